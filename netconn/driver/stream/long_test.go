package stream

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestManyStreams: streams come and go on one connection, more than 16 bits count, and each carries what was written; nothing is left of
// them.
func TestManyStreams(t *testing.T) {
	cfg := driver.Config{MaxChannels: 64}
	l := Listen(name, Config{})
	now := time.Unix(1_700_000_000, 0)
	cfg.Clock, cfg.NetSpeed = func() time.Time { return now }, 100_000_000
	sc, cc := cfg, cfg
	sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
	server, client, _ := linked(t, sc, cc)
	tick := ticking(&now, server, client)
	const total = 70_000
	at := 0
	for at < total {
		var opened []*Conn
		for range 16 {
			c, err := Open(client.Server(), name, Config{})
			if err != nil {
				t.Fatalf("%+v: stream %d: %v", cfg, at, err)
			}
			_, err = c.Write([]byte{byte(at), byte(at >> 8), byte(at >> 16)})
			require.NoError(t, err)
			require.NoError(t, c.CloseWrite())
			opened = append(opened, c)
			at++
		}
		for i := 0; l.count() < 16; i++ {
			tick()
			if i > 100 {
				t.Fatalf("%+v: stream %d: %d came, %d refused", cfg, at, l.count(), l.Refused())
			}
		}
		for range opened {
			s, err := l.Accept()
			require.NoError(t, err)
			for i := 0; !s.(*Conn).readable(); i++ {
				tick()
				require.Less(t, i, 100)
			}
			got, err := io.ReadAll(s)
			require.NoError(t, err)
			_, err = s.Write(got)
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		for i, c := range opened {
			for i := 0; !c.readable(); i++ {
				tick()
				require.Less(t, i, 100)
			}
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			n := at - 16 + i
			if !bytes.Equal([]byte{byte(n), byte(n >> 8), byte(n >> 16)}, got) {
				t.Fatalf("stream %d: %v", n, got)
			}
			require.NoError(t, c.Close())
		}
	}
	for range 100 {
		tick()
	}
	require.Zero(t, l.Refused())
	requireIdle(t, l)
	require.Equal(t, 1, client.Server().Table().Len())
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
	require.NoError(t, l.Close())
}

func (l *Listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

func (c *Conn) readable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerFin || c.ended
}

// TestOffsetsWrap: a stream goes on past 2 and 4 GiB.
func TestOffsetsWrap(t *testing.T) {
	for _, from := range []uint64{1<<31 - 100_000, 1<<32 - 100_000} {
		bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
			c, s := e.pair()
			time.Sleep(time.Second)
			for _, s := range []*Conn{c.(*Conn), s.(*Conn)} {
				s.mu.Lock()
				for _, n := range []*uint64{&s.sent, &s.credit, &s.received, &s.taken, &s.granted} {
					*n += from
				}
				s.mu.Unlock()
			}
			for _, x := range [][2]net.Conn{{c, s}, {s, c}} {
				want := bytes.Repeat([]byte("0123456789abcdef!"), 100_000)
				go func() {
					_, err := x[0].Write(want)
					assert.NoError(t, err)
				}()
				got := make([]byte, len(want))
				_, err := io.ReadFull(x[1], got)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got))
			}
			require.NoError(t, c.Close())
			require.NoError(t, s.Close())
		})
	}
}

// TestClosedDriverFreesAll: however many wait in a stream's calls when a driver closes, each is told, at both ends.
func TestClosedDriverFreesAll(t *testing.T) {
	for _, serverFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := newEnds(t, Config{}, netsim.Settings{})
			e.parting.Store(true)
			const streams, waiters = 8, 5
			told := make(chan error, 4*streams*waiters)
			for i := range streams {
				c, s := e.pair()
				for _, c := range []net.Conn{c, s} {
					n := waiters
					if i%2 == 1 {
						n = 1 // others would wait for a mutex, and virtual time with them
					}
					for range n {
						if i%2 == 0 {
							go func() { _, err := c.Read(make([]byte, 1)); told <- err }()
						} else {
							go func() { _, err := c.Write(make([]byte, 1<<20)); told <- err }()
						}
					}
				}
			}
			time.Sleep(10 * time.Second)
			require.Empty(t, told)
			d := e.client
			if serverFirst {
				d = e.server
			}
			d.Do(func() { _ = d.Close() })
			time.Sleep(time.Minute)
			for range streams * (waiters + 1) {
				require.ErrorIs(t, <-told, ErrLost)
			}
			_, err := Dial(t.Context(), e.client, name, Config{})
			require.ErrorIs(t, err, ErrNoConnection)
			requireIdle(t, e.l)
			other := e.server
			if serverFirst {
				other = e.client
			}
			other.Do(func() { _ = other.Close() })
			synctest.Wait()
			time.Sleep(time.Second)
			require.NoError(t, e.l.Close())
		})
	}
}

// TestDarkness: a stream's open, close, half close and deadline in the midst of a time without a path: afterwards all flows.
func TestDarkness(t *testing.T) {
	for _, dark := range []time.Duration{time.Second, 5 * time.Second, 9 * time.Second} {
		for _, way := range []int{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				l := Listen(name, Config{MaxStreams: 4})
				base := driver.Config{TickRate: 60}
				sc, cc := base, base
				sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
				server, client, path := linked(t, sc, cc, netsim.Settings{}, netsim.Settings{})
				ctx, stop := running(t, server, client)
				set := func(on bool) {
					var in, out netsim.Settings
					if on && way&1 != 0 {
						in.Loss = 100
					}
					if on && way&2 != 0 {
						out.Loss = 100
					}
					done := make(chan struct{})
					client.Do(func() { assert.NoError(t, path.Set(in, out)); close(done) })
					<-done
				}
				c, err := Dial(ctx, client, name, Config{})
				require.NoError(t, err)
				s, err := l.Accept()
				require.NoError(t, err)
				c3, err := Dial(ctx, client, name, Config{})
				require.NoError(t, err)
				s3, err := l.Accept()
				require.NoError(t, err)
				time.Sleep(time.Second)
				set(true)
				_, err = c.Write(bytes.Repeat([]byte("x"), 50_000))
				require.NoError(t, err)
				require.NoError(t, c.CloseWrite())
				_, err = s.Write(bytes.Repeat([]byte("y"), 50_000))
				require.NoError(t, err)
				require.NoError(t, s3.Close())
				require.NoError(t, c3.Close())
				c2, err := Dial(ctx, client, name, Config{})
				require.NoError(t, err)
				_, err = c2.Write([]byte("hello"))
				require.NoError(t, err)
				require.NoError(t, c.SetReadDeadline(time.Now().Add(dark/2)))
				n := 0
				for err == nil {
					var m int
					m, err = c.Read(make([]byte, 10000))
					n += m
				}
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.NoError(t, c.SetReadDeadline(time.Time{}))
				time.Sleep(dark / 2)
				set(false)
				require.NoError(t, s.Close())
				rest, err := io.ReadAll(c)
				require.NoError(t, err)
				require.Equal(t, 50_000, n+len(rest))
				s2, err := l.Accept()
				require.NoError(t, err)
				got := make([]byte, 5)
				_, err = io.ReadFull(s2, got)
				require.NoError(t, err)
				require.Equal(t, "hello", string(got))
				require.NoError(t, c.Close())
				require.NoError(t, s2.Close())
				_, err = c2.Read(got)
				require.ErrorIs(t, err, io.EOF)
				require.NoError(t, c2.Close())
				time.Sleep(5 * time.Second)
				requireIdle(t, l)
				stop()
				require.NoError(t, l.Close())
			})
		}
	}
}

// requireIdle looks that nothing takes room in a listener.
func requireIdle(t *testing.T, l *Listener) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Zero(t, l.open)
	require.Empty(t, l.perConn)
}
