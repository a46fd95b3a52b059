package driver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// onBunch is a handler that calls a function for each bunch.
type onBunch struct {
	channel.Nop
	f func()
}

func (h onBunch) ReceivedBunch(*channel.Channel, *bunch.In) { h.f() }

// TestOverlappingTicks: ticks within a callback, and those of a driver that runs, panic with what to do; afterwards all goes on.
func TestOverlappingTicks(t *testing.T) {
	var w *town
	called := 0
	try := onBunch{f: func() {
		called++
		require.Panics(t, func() { w.server.TickDispatch(w.now) })
		require.Panics(t, func() { w.server.TickFlush(w.now) })
		require.Panics(t, func() { _ = w.server.Run(context.Background(), nil) })
	}}
	cfg := Config{Link: PlainSalted{}, Channels: chat(try)}
	w = newTown(t, 1, netsim.Settings{}, cfg)
	c := w.dial(cfg)
	w.until("joined", func() bool { return c.joined })
	ch, err := c.Server().Open(chatName, nil)
	require.NoError(t, err)
	for n := range 3 {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
		require.NoError(t, err)
		w.until("heard", func() bool { return called > n })
	}

	ctx, stop := context.WithCancel(context.Background())
	d, err := Listen("127.0.0.1:0", Config{Link: PlainSalted{}})
	require.NoError(t, err)
	require.NoError(t, d.Run(ctx, func(now time.Time) {
		require.Panics(t, func() { d.TickFlush(now) })
		stop()
	}))
	require.NotPanics(t, func() { d.TickDispatch(time.Now()) }, "it has ended")
}

// TestNilFunctions: a function that was forgotten panics where it is given, not in a later tick.
func TestNilFunctions(t *testing.T) {
	w := newTown(t, 1, netsim.Settings{}, Config{Link: PlainSalted{}})
	require.Panics(t, func() { w.server.Do(nil) })
	require.Panics(t, func() { w.server.BeforeFlush(nil) })
	require.Panics(t, func() { (&Conn{}).SendSpare(nil) })
	w.step()
}
