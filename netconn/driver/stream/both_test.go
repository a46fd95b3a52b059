package stream

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestWrittenArrivesWhenBothClose: an end that closes the connection with nothing left gives a stream of the other, which closes as well, the credit for what that had written.
func TestWrittenArrivesWhenBothClose(t *testing.T) {
	for _, window := range []int{InitialCredit, 256 << 10} {
		for _, lag := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond} {
			for _, total := range []int{20_000, 64 << 10, 200_000} {
				synctest.Test(t, func(t *testing.T) {
					cfg := Config{Window: window, Buffer: 256 << 10}
					l := Listen(name, cfg)
					results := make(chan netconn.CloseResult, 2)
					sc := driver.Config{LingerTimeout: 20 * time.Second, Link: driver.PlainSalted{}, Closed: func(_ *driver.Conn, r netconn.CloseResult) { results <- r }}
					cc := sc
					sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
					set := netsim.Settings{Lag: lag, Bandwidth: 80e6, QueueDelay: 100 * time.Millisecond}
					server, client, _ := linked(t, sc, cc, set, set)
					ctx, stop := running(t, server, client)
					c, err := Dial(ctx, client, name, cfg)
					require.NoError(t, err)
					s, err := l.Accept()
					require.NoError(t, err)
					time.Sleep(time.Second)
					var n int64
					got := make(chan error, 1)
					go func(c net.Conn) {
						var err error
						n, err = io.Copy(io.Discard, c)
						got <- err
					}(s)
					_, err = c.Write(make([]byte, total))
					require.NoError(t, err)
					require.NoError(t, c.CloseWrite())
					begin := time.Now()
					client.Do(func() { client.Shutdown("over") })
					server.Do(func() { server.Shutdown("over") })
					err = <-got
					<-results
					<-results
					took := time.Since(begin) // virtual
					time.Sleep(time.Second)
					stop()
					_ = l.Close()
					require.NoError(t, err, "window %d, %v, %d bytes", window, lag, total)
					require.EqualValues(t, total, n, "window %d, %v", window, lag)
					require.Less(t, took, 5*time.Second, "window %d, %v, %d bytes", window, lag, total)
				})
			}
		}
	}
}

// TestBothCloseBesideASlowReader: who answers a peer that closes as well isn't taken for one who is refused, however long the reader that the peer waits for stands still.
func TestBothCloseBesideASlowReader(t *testing.T) {
	for _, lag := range []time.Duration{0, time.Millisecond, 8 * time.Millisecond, 25 * time.Millisecond} {
		for _, pause := range []time.Duration{33 * time.Second, 38 * time.Second, 43 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				const total = 150_000
				cfg := Config{Window: 64 << 10, Buffer: 4 << 20}
				l := Listen(name, cfg)
				results := make(chan netconn.CloseResult, 2)
				sc := driver.Config{LingerTimeout: 100 * time.Second, Link: driver.PlainSalted{}, Closed: func(_ *driver.Conn, r netconn.CloseResult) { results <- r }}
				cc := sc
				sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
				set := netsim.Settings{Lag: lag, Bandwidth: 80e6, QueueDelay: 100 * time.Millisecond}
				server, client, _ := linked(t, sc, cc, set, set)
				ctx, stop := running(t, server, client)
				c, err := Dial(ctx, client, name, cfg)
				require.NoError(t, err)
				s, err := l.Accept()
				require.NoError(t, err)
				_, err = c.Write(make([]byte, total))
				require.NoError(t, err)
				require.NoError(t, c.CloseWrite())
				client.Do(func() { client.Shutdown("over") })
				server.Do(func() { server.Shutdown("over") })
				time.Sleep(pause)
				n, err := io.Copy(io.Discard, struct{ io.Reader }{s}) // until the end of the connection
				require.NoError(t, err, "%v, %v", lag, pause)
				require.EqualValues(t, total, n, "%v, %v", lag, pause)
				for range 2 {
					r := <-results
					require.Contains(t, []netconn.CloseCode{netconn.ClosedByUs, netconn.ClosedByPeer}, r.Code, "%v, %v: %v", lag, pause, r)
				}
				stop()
				_ = l.Close()
			})
		}
	}
}
