package stream

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var name = bunch.Name{Index: 310}

// ends is a server that accepts streams and a client, each run by a goroutine, on a link in memory.
type ends struct {
	t              *testing.T
	l              *Listener
	server, client *driver.Driver
	stop           func()
	stopped        atomic.Bool
	parting        atomic.Bool // a connection may end
}

func newEnds(t *testing.T, cfg Config, bad netsim.Settings) *ends {
	e := &ends{t: t, l: Listen(name, cfg)}
	base := driver.Config{NetSpeed: 4_000_000, TickRate: 200, Closed: func(_ *driver.Conn, r netconn.CloseResult) {
		if !e.stopped.Load() && !e.parting.Load() {
			t.Errorf("a connection ended: %v", r)
		}
	}}
	sc, cc := base, base
	sc.Channels, cc.Channels = []channel.Type{e.l.Type()}, []channel.Type{Type(name)}
	var path []netsim.Settings
	if bad != (netsim.Settings{}) {
		path = []netsim.Settings{bad, bad}
	}
	e.server, e.client, _ = linked(t, sc, cc, path...)
	_, e.stop = running(t, e.server, e.client)
	return e
}

func (e *ends) close() {
	if e.stopped.Swap(true) {
		return
	}
	e.stop()
	require.NoError(e.t, e.l.Close())
}

// linked is a server and a client with these settings, on a link in memory; with a path, up and down, the client's socket is behind it.
func linked(t *testing.T, sc, cc driver.Config, path ...netsim.Settings) (server, client *driver.Driver, impaired *proxy.Impaired) {
	var err error
	sc.Socket, cc.Socket = udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	if len(path) > 0 {
		impaired, err = proxy.Impair(cc.Socket, path[0], path[1], 1)
		require.NoError(t, err)
		cc.Socket = impaired
	}
	server, err = driver.Listen("", sc)
	require.NoError(t, err)
	client, err = driver.Dial("127.0.0.1:7777", cc)
	require.NoError(t, err)
	return server, client, impaired
}

// ticking has a client join, and returns what ticks both ends, 10 ms further on.
func ticking(now *time.Time, server, client *driver.Driver) (tick func()) {
	tick = func() {
		*now = now.Add(10 * time.Millisecond)
		client.TickDispatch(*now)
		client.TickFlush(*now)
		server.TickDispatch(*now)
		server.TickFlush(*now)
	}
	for c := client.Server(); c == nil || !c.Joined(); c = client.Server() {
		tick()
	}
	return tick
}

// running has drivers run, with a context for as long, until stop, when none may have had an error.
func running(t *testing.T, drivers ...*driver.Driver) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, len(drivers))
	for _, d := range drivers {
		go func() { done <- d.Run(ctx, nil) }()
	}
	return ctx, func() {
		cancel()
		for range drivers {
			require.NoError(t, <-done)
		}
	}
}

// pair is a stream's two ends.
func (e *ends) pair() (client, server net.Conn) {
	c, err := Dial(e.t.Context(), e.client, name, Config{})
	require.NoError(e.t, err)
	s, err := e.l.Accept()
	require.NoError(e.t, err)
	return c, s
}

// bubble runs f with two ends in virtual time.
func bubble(t *testing.T, cfg Config, bad netsim.Settings, f func(t *testing.T, e *ends)) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, cfg, bad)
		f(t, e)
		e.close()
	})
}

var lossy = netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 40 * time.Millisecond, Dup: 3, Order: 5}

// TestHTTP is net/http over streams on a bad link, several requests at once.
func TestHTTP(t *testing.T) {
	bubble(t, Config{}, lossy, func(t *testing.T, e *ends) {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_, _ = w.Write(body)
			}
		})
		srv := &http.Server{Handler: mux}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(e.l) }()
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, e.client, name, Config{}) }}
		results := make(chan error, 4)
		for i := range cap(results) {
			go func() { results <- postEcho(tr, uint64(i)) }()
		}
		for range cap(results) {
			require.NoError(t, <-results)
		}
		tr.CloseIdleConnections()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

func postEcho(tr http.RoundTripper, seed uint64) error {
	body := make([]byte, 100_000)
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range body {
		body[i] = byte(rng.Uint32())
	}
	c := http.Client{Transport: tr}
	resp, err := c.Post("http://game/echo", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Equal(got, body) {
		err = fmt.Errorf("seed %d: %d bytes came back, not as they were", seed, len(got))
	}
	return err
}

func TestGob(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
		c, s := e.pair()
		type score struct {
			Name   string
			Points int
		}
		go func() {
			enc := gob.NewEncoder(c)
			for i := range 50 {
				if enc.Encode(score{"Ann", i}) != nil {
					break
				}
			}
			_ = c.Close()
		}()
		dec := gob.NewDecoder(s)
		for i := range 50 {
			var got score
			require.NoError(t, dec.Decode(&got))
			require.Equal(t, score{"Ann", i}, got)
		}
		_, err := s.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "bunchnet", s.LocalAddr().Network())
		require.Equal(t, "127.0.0.1:7777#1", c.RemoteAddr().String())
		require.Equal(t, c.LocalAddr(), s.RemoteAddr())
	})
}

// TestBackPressure: a writer whose peer doesn't read gets no further than the two bounds.
func TestBackPressure(t *testing.T) {
	bubble(t, Config{Window: 20_000}, netsim.Settings{}, func(t *testing.T, e *ends) {
		c, s := e.pair()
		want := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
		n, err := c.Write(want)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 20_000+64<<10, n)

		require.NoError(t, c.SetWriteDeadline(time.Time{}))
		go func() {
			_, _ = c.Write(want[n:])
			_ = c.(*Conn).CloseWrite()
		}()
		got, err := io.ReadAll(s)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		_, err = s.Write([]byte("the other direction goes on"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		got, err = io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "the other direction goes on", string(got))
	})
}

// TestClose: what a closed end leaves to the other, and that the channel goes away.
func TestClose(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		bubble(t, Config{}, lossy, func(t *testing.T, e *ends) {
			first, second := e.pair()
			if !clientFirst {
				first, second = second, first
			}
			_, err := first.Write([]byte("last words"))
			require.NoError(t, err)
			require.NoError(t, first.Close())
			require.NoError(t, first.Close())
			_, err = first.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = first.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorIs(t, first.SetDeadline(time.Time{}), net.ErrClosed)
			got, err := io.ReadAll(second)
			require.NoError(t, err)
			require.Equal(t, "last words", string(got))
			_, err = second.Write([]byte("in vain"))
			require.ErrorIs(t, err, ErrPeerClosed)
			time.Sleep(2 * time.Second) // virtual
			channels := make(chan int, 1)
			e.client.Do(func() { channels <- e.client.Server().Stats().Channels })
			require.Equal(t, 1, <-channels) // the control channel
		})
	}
}

// TestLost: the driver goes away under a stream.
func TestLost(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
		c, s := e.pair()
		got := make(chan error, 2)
		for _, conn := range []net.Conn{c, s} {
			go func() {
				_, err := conn.Read(make([]byte, 1))
				got <- err
			}()
		}
		synctest.Wait()
		e.close()
		require.ErrorIs(t, <-got, ErrLost)
		require.ErrorIs(t, <-got, ErrLost)
		_, err := c.Write([]byte("x"))
		require.ErrorIs(t, err, ErrLost)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = Dial(ctx, e.client, name, Config{})
		require.ErrorIs(t, err, ErrNoConnection)
		_, err = e.l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestDeadlines(t *testing.T) {
	bubble(t, Config{}, netsim.Settings{}, func(t *testing.T, e *ends) {
		c, s := e.pair()
		begin := time.Now()
		require.NoError(t, c.SetReadDeadline(begin.Add(3*time.Second)))
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Hour))) // the first is forgotten
		go func() {
			time.Sleep(10 * time.Second)
			_, _ = s.Write([]byte("!"))
		}()
		n, err := c.Read(make([]byte, 8))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
	})
}

// TestBounds: streams beyond MaxStreams or Backlog are refused at once, and the peer sees so.
func TestBounds(t *testing.T) {
	bubble(t, Config{MaxStreams: 3, Backlog: 2}, netsim.Settings{}, func(t *testing.T, e *ends) {
		var open []net.Conn
		refused := 0
		for range 4 {
			c, err := Dial(t.Context(), e.client, name, Config{})
			require.NoError(t, err)
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
			_, err = c.Read(make([]byte, 1))
			if errors.Is(err, BacklogFull) {
				refused++
				continue
			}
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			open = append(open, c)
		}
		require.Len(t, open, 2)
		require.Equal(t, 2, refused)
		require.EqualValues(t, 2, e.l.Refused())
		for range 2 {
			s, err := e.l.Accept()
			require.NoError(t, err)
			require.NoError(t, s.Close())
		}
		for _, c := range open {
			require.NoError(t, c.Close())
		}
		time.Sleep(time.Second) // virtual
		e.l.mu.Lock()
		defer e.l.mu.Unlock()
		require.Zero(t, e.l.open)
	})
}
