package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
)

// TestUnreliableCallsThatFitNoPacket: a server's unreliable call goes in one packet. Who makes a larger one is told, and so is who makes one more than a packet has room
// for; neither holds up the actor's values and later calls. Those for which packets have become too small meanwhile are lost, and counted.
func TestUnreliableCallsThatFitNoPacket(t *testing.T) {
	var got []int
	run := func(c Call, _ *pupil, b []byte) error {
		if !c.World.IsServer() {
			got = append(got, len(b))
		}
		return nil
	}
	hint, all := ClientRPC(run), MulticastRPC(run)
	s, c := NewServer(Config{}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Hint": hint, "All": all}))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	a := p.newPupil(t)
	a.SetOwner(p.l.peer)
	p.serves(t, 5)
	heard := func() []int {
		got = nil
		p.serves(t, 4)
		p.tell(t)
		return got
	}
	require.ErrorIs(t, hint.Call(a, make([]byte, lanePacket/8)), channel.ErrTooLarge)
	require.Empty(t, heard())

	require.NoError(t, hint.Call(a, make([]byte, 600)))
	require.ErrorIs(t, hint.Call(a, make([]byte, 600)), ErrSaturated)
	a.N++
	require.Equal(t, []int{600}, heard())

	dropped := s.Counters.CallsDropped
	require.NoError(t, all.Call(a, make([]byte, lanePacket/8)))
	require.NoError(t, all.Call(a, make([]byte, 700)))
	require.NoError(t, all.Call(a, make([]byte, 600)))
	require.EqualValues(t, 2, s.Counters.CallsDropped-dropped)
	require.Equal(t, []int{700}, heard())

	dropped = s.Counters.CallsDropped
	require.NoError(t, hint.Call(a, make([]byte, 600)))
	a.N++
	p.l.narrow = 3000
	require.Empty(t, heard())
	require.EqualValues(t, 1, s.Counters.CallsDropped-dropped)
	require.NoError(t, hint.Call(a, make([]byte, 200)))
	require.Equal(t, []int{200}, heard())
	require.Equal(t, a.N, p.c.Find(a.guid).(*pupil).N)

	sent := s.Counters.Large
	a.N++
	require.Empty(t, heard())
	require.Equal(t, sent, s.Counters.Large, "values go in packets again")
}
