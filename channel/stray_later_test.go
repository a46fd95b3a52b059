package channel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
)

// TestWaitingFunctionsCount: what the handlers of channels that a peer opens and closes within a tick have given to Later counts as soon as it opens another one, until it has run. The
// queues for them are let go afterwards.
func TestWaitingFunctionsCount(t *testing.T) {
	w := &wire{rng: rand.New(rand.NewPCG(1, 1)), ready: true, room: 1000}
	name, ran := bunch.Name{Index: 300}, 0
	m, err := NewMachine(Config{MaxMemory: 1 << 20, RestartSequence: true, Types: []Type{{Name: name, ClientOpen: true, ServerOpen: true, Accept: func(ch *Channel) Handler {
		ch.table.Later(func() { ran++ })
		return Nop{}
	}}}}, w, w, 7, 9)
	require.NoError(t, err)
	w.t = m.Table()
	open := func() (taken int) {
		for range 10_000 {
			in := &bunch.In{Header: bunch.Header{ChIndex: 1, Name: name, Reliable: true, Open: true, Close: true, WireSeq: 8}}
			nak, err := m.ReceivedBunch(in)
			require.NoError(t, err)
			if !nak { // AllowOpen refuses one now and then
				taken++
			}
		}
		return taken
	}
	for range 3 {
		ran = 0
		taken := open()
		require.Greater(t, taken, 1000)
		require.Less(t, taken*laterCost, 1<<19)
		m.Tick(0)
		m.RunLater()
		require.Equal(t, taken, ran)
	}
	m.Shrink()
	m.Shrink()
	require.Zero(t, cap(m.strange.running)+cap(m.strange.later))
}

// TestWaitingFunctionsOfChannels: one function of each open channel costs nothing.
func TestWaitingFunctionsOfChannels(t *testing.T) {
	s := newStub(t, false, noControl)
	for range 3 {
		s.open(stubGame)
		s.table.Later(func() {})
		require.Zero(t, s.table.strayLater())
	}
	for i := range 3 {
		s.table.Later(func() {})
		require.Equal(t, (i+1)*laterCost, s.table.strayLater())
	}
}
