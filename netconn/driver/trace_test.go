package driver

import (
	"bytes"
	"context"
	"runtime/trace"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// tapped is packets as a sink gets them.
type tapped struct{ got []nettrace.Packet }

func (p *tapped) TracePacket(t *nettrace.Packet) {
	c := *t
	c.Data = append([]byte(nil), t.Data...)
	p.got = append(p.got, c)
}

// TestTraces: sinks added at any time get what happens from then on, and packet sinks see both ends' bytes alike.
func TestTraces(t *testing.T) {
	before, live, late := nettrace.NewRing(1000), nettrace.NewRing(1000), nettrace.NewRing(1000)
	server, client := &tapped{}, &tapped{}
	e := &echo{}
	m := newMemory(t, Config{Trace: before, Packets: server, Channels: chat(e)}, Config{Packets: client, Channels: chat(e)})
	require.Zero(t, before.Total(), "there is no connection yet")
	m.server.AddTrace(live)
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	require.Equal(t, slices.Collect(before.All), slices.Collect(live.All))
	require.Equal(t, nettrace.ConnOpened, slices.Collect(before.All)[0].Kind)
	m.server.AddTrace(late)
	n := before.Total()
	ch, err := m.cc.Open(chatName, e)
	require.NoError(t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("tapped"), Reliable: true})
	require.NoError(t, err)
	m.until("said", func() bool { return e.n > 3 })
	require.Equal(t, slices.Collect(before.All), slices.Collect(live.All))
	require.Equal(t, before.Total()-n, late.Total())
	require.Positive(t, late.Total())
	flags := uint64(0)
	for e := range late.All {
		if e.Kind == nettrace.BunchReceived {
			flags |= e.A
		}
	}
	require.EqualValues(t, nettrace.Reliable|nettrace.Open, flags)

	m.cc.SetTrace(nil)
	require.NotEmpty(t, server.got)
	sent := map[string]bool{}
	for _, p := range client.got {
		require.Equal(t, m.client.LocalAddr(), p.Local)
		require.Equal(t, m.server.LocalAddr(), p.Remote)
		require.False(t, p.Server)
		if p.Sent {
			sent[string(p.Data)] = true
		}
	}
	received := 0
	for _, p := range server.got {
		require.True(t, p.Server)
		require.Equal(t, m.client.LocalAddr(), p.Remote)
		if !p.Sent {
			received++
			require.True(t, sent[string(p.Data)], "the server has a packet that the client didn't send")
		}
	}
	require.Positive(t, received)
}

// TestRegions: an execution trace names the parts of a tick.
func TestRegions(t *testing.T) {
	var b bytes.Buffer
	if err := trace.Start(&b); err != nil {
		t.Skip(err) // the test itself runs with -trace
	}
	d, err := Listen("127.0.0.1:0", Config{TickRate: 1000})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ticks := 0
	require.NoError(t, d.Run(ctx, func(time.Time) {
		if ticks++; ticks == 3 {
			cancel()
		}
	}))
	trace.Stop()
	for _, name := range []string{regionDispatch, regionStep, regionFlush} {
		require.Contains(t, b.String(), name)
	}
}

// TestAllocsRegions: nobody traces, so a tick without traffic costs no allocation.
func TestAllocsRegions(t *testing.T) {
	d, err := Listen("127.0.0.1:0", Config{})
	require.NoError(t, err)
	defer d.Close()
	now := time.Now()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		d.TickDispatch(now)
		d.TickFlush(now)
	}))
}
