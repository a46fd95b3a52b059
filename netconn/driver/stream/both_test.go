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

// closers are two ends with a stream from the client to the server, which both close.
type closers struct {
	t       *testing.T
	reader  net.Conn
	results chan netconn.CloseResult
	end     func()
}

// newClosers has the client write so many bytes, and both ends close.
func newClosers(t *testing.T, cfg Config, linger, lag time.Duration, total int) *closers {
	l := Listen(name, cfg)
	b := &closers{t: t, results: make(chan netconn.CloseResult, 2)}
	sc := driver.Config{LingerTimeout: linger, Link: driver.PlainSalted{}, Closed: func(_ *driver.Conn, r netconn.CloseResult) { b.results <- r }}
	cc := sc
	sc.Channels, cc.Channels = []channel.Type{l.Type()}, []channel.Type{Type(name)}
	set := netsim.Settings{Lag: lag, Bandwidth: 80e6, QueueDelay: 100 * time.Millisecond}
	server, client, _ := linked(t, sc, cc, set, set)
	ctx, stop := running(t, server, client)
	b.end = func() {
		stop()
		_ = l.Close()
	}
	c, err := Dial(ctx, client, name, cfg)
	require.NoError(t, err)
	b.reader, err = l.Accept()
	require.NoError(t, err)
	time.Sleep(time.Second)
	_, err = c.Write(make([]byte, total))
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	client.Do(func() { client.Shutdown("over") })
	server.Do(func() { server.Shutdown("over") })
	return b
}

// read returns how much comes until the end.
func (b *closers) read() int64 {
	n, err := io.Copy(io.Discard, b.reader)
	require.NoError(b.t, err)
	return n
}

// TestWrittenArrivesWhenBothClose: an end that closes the connection with nothing left gives a stream of the other, which closes as well, the credit for what that had written.
func TestWrittenArrivesWhenBothClose(t *testing.T) {
	for _, window := range []int{InitialCredit, 256 << 10} {
		for _, lag := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond} {
			for _, total := range []int{20_000, 64 << 10, 200_000} {
				synctest.Test(t, func(t *testing.T) {
					b := newClosers(t, Config{Window: window, Buffer: 256 << 10}, 20*time.Second, lag, total)
					defer b.end()
					begin := time.Now()
					require.EqualValues(t, total, b.read(), "window %d, %v", window, lag)
					<-b.results
					<-b.results
					require.Less(t, time.Since(begin), 5*time.Second, "window %d, %v, %d bytes", window, lag, total) // virtual
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
				b := newClosers(t, Config{Window: 64 << 10, Buffer: 4 << 20}, 100*time.Second, lag, total)
				defer b.end()
				time.Sleep(pause)
				require.EqualValues(t, total, b.read(), "%v, %v", lag, pause)
				for range 2 {
					r := <-b.results
					require.Contains(t, []netconn.CloseCode{netconn.ClosedByUs, netconn.ClosedByPeer}, r.Code, "%v, %v: %v", lag, pause, r)
				}
			})
		}
	}
}
