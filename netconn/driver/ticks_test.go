package driver

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestTickTimes: the time of a tick goes to what took it, and to the bucket of its length.
func TestTickTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, Config{}, Config{})
		m.until("joined", func() bool { return m.cc != nil && m.sc != nil })
		before := m.server.TickTimes()
		for _, step := range []time.Duration{0, 3 * time.Microsecond, time.Millisecond, time.Hour} {
			m.server.TickDispatch(m.now)
			time.Sleep(step) // virtual, and all that takes time here
			m.server.TickFlush(m.now)
		}
		m.server.TickFlush(m.now) // no tick
		after := m.server.TickTimes()
		require.EqualValues(t, 4, after.Count-before.Count)
		require.Equal(t, time.Hour+time.Millisecond+3*time.Microsecond, after.Step-before.Step)
		require.Zero(t, after.Dispatch)
		require.Zero(t, after.Flush)
		for i, n := range after.Below {
			want := map[int]uint64{0: 1, 2: 1, 10: 1, TickBuckets - 1: 1}[i]
			require.Equal(t, want, n-before.Below[i], "bucket %d", i)
		}
	})
}

// TestAnswersBetweenTicks: without Prompt too, what a datagram is answered with by the link leaves when the datagram has been read,
// not at the tick: here a server whose tick is five seconds away lets a client in.
func TestAnswersBetweenTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		in := false
		srv, err := Listen("", Config{Socket: a, Link: PlainSalted{}, Accepted: func(*Conn) { in = true }})
		require.NoError(t, err)
		cl, err := Dial("127.0.0.1:7777", Config{Socket: b, Link: PlainSalted{}, TickRate: 100})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- cl.Run(ctx, nil) }()
		begin := time.Now()
		srv.wait(begin.Add(5 * time.Second))
		require.True(t, in, "the client got its challenge, and answered it, before the tick")
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, srv.Close())
	})
}
