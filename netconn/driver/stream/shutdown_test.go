package stream

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

// TestShutdownInDarkness: a server that shuts down while its client can't be reached, in one direction or both, ends within LingerTimeout,
// and whoever waits in a stream's Read or Write is told: at the server by then, at the client by its Timeout.
func TestShutdownInDarkness(t *testing.T) {
	const linger, silence = 3 * time.Second, 20 * time.Second
	for way, what := range map[int]string{1: "to the client", 2: "to the server", 3: "both"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := Listen(name, Config{Buffer: 10_000})
				a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
				path, err := proxy.Impair(b, netsim.Settings{}, netsim.Settings{}, 1)
				require.NoError(t, err)
				base := driver.Config{LingerTimeout: linger, Timeout: silence}
				sc, cc := base, base
				sc.Socket, sc.Channels = a, []channel.Type{l.Type()}
				cc.Socket, cc.Channels = path, []channel.Type{Type(name)}
				server, err := driver.Listen("", sc)
				require.NoError(t, err)
				client, err := driver.Dial("127.0.0.1:7777", cc)
				require.NoError(t, err)
				ctx, stop := running(t, server, client)
				var clients, servers []net.Conn
				for range 4 {
					c, err := Dial(ctx, client, name, Config{Buffer: 10_000})
					require.NoError(t, err)
					s, err := l.Accept()
					require.NoError(t, err)
					clients, servers = append(clients, c), append(servers, s)
				}
				_, err = Dial(ctx, client, name, Config{}) // nobody accepts it
				require.NoError(t, err)
				time.Sleep(time.Second)
				on := func(d *driver.Driver, f func()) {
					done := make(chan struct{})
					d.Do(func() { f(); close(done) })
					<-done
				}
				on(client, func() {
					var in, out netsim.Settings
					if way&1 != 0 {
						in.Loss = 100
					}
					if way&2 != 0 {
						out.Loss = 100
					}
					assert.NoError(t, path.Set(in, out))
				})
				wait := func(conns []net.Conn) chan error {
					told := make(chan error, 2*len(conns))
					for _, c := range conns {
						go func() { _, err := io.Copy(io.Discard, c); told <- err }()
						go func() {
							var err error
							for err == nil {
								_, err = c.Write(make([]byte, 1<<20))
							}
							told <- err
						}()
					}
					return told
				}
				atServer, atClient := wait(servers[:3]), wait(clients[:3])
				require.NoError(t, servers[3].Close()) // in the midst of closing
				require.NoError(t, clients[3].Close())
				time.Sleep(time.Second)

				left := func() (n int) { on(server, func() { n = server.Len() }); return n }
				on(server, func() { server.Shutdown("good night") })
				begin := time.Now()
				for left() > 0 {
					time.Sleep(10 * time.Millisecond)
					require.LessOrEqual(t, time.Since(begin), linger+400*time.Millisecond, "the link's goodbye leaves 250 ms later")
				}
				synctest.Wait()
				require.Len(t, atServer, 6, "all who wait at the server are told")
				for range 6 {
					require.ErrorIs(t, <-atServer, ErrLost)
				}
				c, err := l.Accept() // what came before the darkness
				require.NoError(t, err)
				_, err = c.Write([]byte("x"))
				require.ErrorIs(t, err, ErrLost)
				requireIdle(t, l)

				time.Sleep(silence + linger - time.Since(begin))
				require.Len(t, atClient, 6, "all who wait at the client are told")
				for range 6 {
					require.ErrorIs(t, <-atClient, ErrLost)
				}
				_, err = Dial(ctx, client, name, Config{})
				require.ErrorIs(t, err, ErrNoConnection)
				stop()
				require.NoError(t, l.Close())
			})
		})
	}
}

// TestShutdownCutsNothingInSilence: streams that have more to send when the server shuts down than LingerTimeout has time for end with ErrLost at the peer, never with io.EOF short of what
// was written; those whose ends have said all before, as the package's documentation shows, lose nothing.
func TestShutdownCutsNothingInSilence(t *testing.T) {
	for _, wait := range []bool{false, true} {
		bubble(t, Config{}, lossy, func(t *testing.T, e *ends) {
			e.parting.Store(true)
			const total, streams = 60_000, 4
			whole := make(chan bool, streams)
			parted := make(chan error, streams)
			for range streams {
				c, s := e.pair()
				e.server.Do(func() {
					for c := range e.server.Conns {
						c.SetNetSpeed(100_000) // which takes longer than LingerTimeout
					}
				})
				go func() {
					n, err := io.Copy(io.Discard, c)
					assert.True(t, err == nil && n == total || errors.Is(err, ErrLost), "%d bytes, then %v", n, err)
					whole <- err == nil
					assert.NoError(t, c.Close())
				}()
				_, err := s.Write(make([]byte, total))
				require.NoError(t, err)
				go func() {
					err := s.(*Conn).CloseWrite()
					if wait {
						_, err = s.Read(make([]byte, 1))
					}
					parted <- err
				}()
			}
			for range streams {
				err := <-parted
				if wait {
					require.ErrorIs(t, err, io.EOF)
				}
			}
			e.server.Do(func() { e.server.Shutdown("good night") })
			all := true
			for range streams {
				all = <-whole && all
			}
			require.Equal(t, wait, all)
		})
	}
}

// closing is how a connection is closed in order.
var closing = map[string]func(e *ends){
	"shutdown of the server": func(e *ends) { e.server.Do(func() { e.server.Shutdown("good night") }) },
	"shutdown of the client": func(e *ends) { e.client.Do(func() { e.client.Shutdown("good night") }) },
	"close of a connection": func(e *ends) {
		e.server.Do(func() {
			for c := range e.server.Conns {
				c.CloseWithReason("go")
			}
		})
	},
}

// TestWrittenArrives: what was written to streams when their connection is closed in order arrives: io.EOF follows for those whose end of data
// was said by then, ErrLost for the others, and for all who write on.
func TestWrittenArrives(t *testing.T) {
	const total, streams = 20_000, 6 // in LingerTimeout the connection has room for more
	for what, end := range closing {
		t.Run(what, func(t *testing.T) {
			bubble(t, Config{}, lossy, func(t *testing.T, e *ends) {
				e.parting.Store(true)
				type pair struct{ from, to net.Conn }
				var pairs []pair
				for range streams {
					c, s := e.pair()
					if what == "shutdown of the client" {
						c, s = s, c
					}
					pairs = append(pairs, pair{s, c})
				}
				time.Sleep(time.Second) // each knows the other's credit
				for i, p := range pairs {
					n, err := p.from.Write(make([]byte, total))
					require.NoError(t, err)
					require.Equal(t, total, n)
					switch i % 3 {
					case 0:
						require.NoError(t, p.from.Close())
					case 1:
						require.NoError(t, p.from.(*Conn).CloseWrite())
					}
				}
				end(e)
				for i, p := range pairs {
					n, err := io.Copy(io.Discard, p.to)
					assert.EqualValues(t, total, n, "stream %d: %v", i, err)
					if i%3 == 2 {
						require.ErrorIs(t, err, ErrLost)
						_, err = p.from.Write([]byte("x"))
						require.ErrorIs(t, err, ErrLost)
					} else {
						require.NoError(t, err)
					}
				}
			})
		})
	}
}

// TestWrittenArrivesSlowly: so it does where a stream's channel has no room for it yet, as a few bunches with a long round trip are all that
// Unreal's protocol has under way, or the path is slow, if it takes less than LingerTimeout.
func TestWrittenArrivesSlowly(t *testing.T) {
	far := netsim.Settings{LagMin: 250 * time.Millisecond, LagMax: 250 * time.Millisecond}
	for what, edit := range map[string]func(cfg *driver.Config){
		"few bunches": func(cfg *driver.Config) { cfg.NetSpeed, cfg.Protocol.ReliableBuffer = 4_000_000, 32 },
		"slow path":   func(cfg *driver.Config) { cfg.NetSpeed = 20_000 },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := Listen(name, Config{})
				var result netconn.CloseResult
				sc := driver.Unreal51(driver.Config{LingerTimeout: 10 * time.Second})
				edit(&sc)
				cc := sc
				sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
				sc.Closed = func(_ *driver.Conn, r netconn.CloseResult) { result = r }
				server, client, _ := linked(t, sc, cc, far, far)
				ctx, stop := running(t, server, client)
				c, err := Dial(ctx, client, name, Config{})
				require.NoError(t, err)
				s, err := l.Accept()
				require.NoError(t, err)
				time.Sleep(time.Second)
				const total = 64 << 10
				_, err = s.Write(make([]byte, total))
				require.NoError(t, err)
				require.NoError(t, s.Close())
				server.Do(func() { server.Shutdown("good night") })
				n, err := io.Copy(io.Discard, c)
				require.NoError(t, err)
				require.EqualValues(t, total, n)
				time.Sleep(time.Second)
				stop()
				require.NoError(t, l.Close())
				require.Equal(t, netconn.ClosedByUs, result.Code)
				require.Zero(t, result.Unacked)
			})
		})
	}
}

// TestWhoReadsNothingHoldsUpNoEnd: a stream whose peer has given no credit for what was written ends after LingerTimeout, and is listed; a goroutine
// that waits in Write is told at once.
func TestWhoReadsNothingHoldsUpNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const linger = 3 * time.Second
		l := Listen(name, Config{})
		results := make(chan netconn.CloseResult, 1)
		sc := driver.Config{NetSpeed: 4_000_000, LingerTimeout: linger}
		cc := sc
		sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
		sc.Closed = func(_ *driver.Conn, r netconn.CloseResult) { results <- r }
		server, client, _ := linked(t, sc, cc)
		ctx, stop := running(t, server, client)
		c, err := Dial(ctx, client, name, Config{})
		require.NoError(t, err)
		s, err := l.Accept()
		require.NoError(t, err)
		told := make(chan error, 1)
		go func() {
			_, err := s.Write(make([]byte, 1<<20))
			told <- err
		}()
		time.Sleep(5 * time.Second)
		require.Empty(t, told)
		begin := time.Now()
		server.Do(func() { server.Shutdown("good night") })
		require.ErrorIs(t, <-told, ErrLost)
		require.Less(t, time.Since(begin), time.Second/2)
		r := <-results
		require.GreaterOrEqual(t, time.Since(begin), linger)
		require.Less(t, time.Since(begin), linger+time.Second)
		require.Equal(t, 1, r.Unacked)
		require.Len(t, r.Undelivered, 1)
		require.Equal(t, name, r.Undelivered[0].Name)
		n, err := io.Copy(io.Discard, c)
		require.ErrorIs(t, err, ErrLost)
		require.EqualValues(t, 256<<10, n, "the client's window")
		time.Sleep(time.Second)
		stop()
		require.NoError(t, l.Close())
	})
}

// TestOpenedIntoAClose: a stream that is opened while the other end begins to close the connection has its bytes read there, when both close.
func TestOpenedIntoAClose(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{Lag: 100 * time.Millisecond}, func(t *testing.T, e *ends) {
		e.parting.Store(true)
		const total = 4000
		c, s := e.pair()
		defer func() { require.NoError(t, errors.Join(c.Close(), s.Close())) }()
		closing["shutdown of the server"](e)
		late, err := Dial(t.Context(), e.client, name, Config{})
		require.NoError(t, err)
		_, err = late.Write(make([]byte, total))
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond) // it has left, and the server's close hasn't come
		e.client.Do(func() { e.client.Shutdown("good night") })
		got, err := e.l.Accept()
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, got)
		require.ErrorIs(t, err, ErrLost)
		require.EqualValues(t, total, n)
		require.NoError(t, errors.Join(late.Close(), got.Close()))
	})
}

// TestOpenedIntoACloseGoesOn: a stream that is opened while the other end begins to close the connection has credit from there for all that was written, when both close.
func TestOpenedIntoACloseGoesOn(t *testing.T) {
	for _, total := range []int{40_000, 64 << 10} {
		bubble(t, Config{}, netsim.Settings{Lag: 100 * time.Millisecond}, func(t *testing.T, e *ends) {
			e.parting.Store(true)
			c, s := e.pair()
			defer func() { require.NoError(t, errors.Join(c.Close(), s.Close())) }()
			closing["shutdown of the server"](e)
			late, err := Dial(t.Context(), e.client, name, Config{})
			require.NoError(t, err)
			_, err = late.Write(make([]byte, total))
			require.NoError(t, err)
			require.NoError(t, late.CloseWrite())
			time.Sleep(50 * time.Millisecond) // it has left, and the server's close hasn't come
			e.client.Do(func() { e.client.Shutdown("good night") })
			got, err := e.l.Accept()
			require.NoError(t, err)
			n, err := io.Copy(io.Discard, got)
			require.NoError(t, err)
			require.EqualValues(t, total, n)
			require.NoError(t, errors.Join(late.Close(), got.Close()))
		})
	}
}

// TestCutShortIsntWhole: a program that is told ErrLost as its connection closes in order, and then closes its stream or its direction, as by a defer, doesn't make what has come of its data look whole.
func TestCutShortIsntWhole(t *testing.T) {
	for what, end := range closing {
		t.Run(what, func(t *testing.T) {
			bubble(t, Config{}, lossy, func(t *testing.T, e *ends) {
				e.parting.Store(true)
				var reads []net.Conn
				wrote := make(chan error, 2)
				for i := range 2 {
					c, s := e.pair()
					if what == "shutdown of the client" {
						c, s = s, c
					}
					reads = append(reads, c)
					go func() {
						defer s.Close()
						for {
							if _, err := s.Write(make([]byte, 5000)); err != nil {
								if i == 1 {
									_ = s.(*Conn).CloseWrite()
								}
								wrote <- err
								return
							}
						}
					}()
				}
				read := make(chan error, 2)
				for _, c := range reads {
					go func() {
						_, err := io.Copy(io.Discard, c)
						read <- err
					}()
				}
				time.Sleep(300 * time.Millisecond)
				end(e)
				for range reads {
					require.ErrorIs(t, <-wrote, ErrLost)
					require.ErrorIs(t, <-read, ErrLost)
				}
			})
		})
	}
}
