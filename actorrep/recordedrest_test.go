package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
)

// stingy is a cutting whose frames have room for so many openings.
type stingy struct {
	cutting
	room int
}

func (s *stingy) OpenRoom() int { return s.room }

// stingily records a pair's world instead of sending it to the client.
func (p *pair) stingily(t *testing.T, room int) (*recording, *stingy) {
	tape := &stingy{cutting{strip: strip{t: t, s: p.s, to: p.l.to, copied: map[uint32]bridge.Kind{}}}, room}
	p.s.RemoveConn(p.l.peer)
	return newRecording(p.s, tape, nil, true).(*recording), tape
}

// TestCopyWakes: for a copy a sleeper's changes are recorded also when the frame has no room for openings, which others then wait for as before. What the copy
// takes is in the recording's attribution.
func TestCopyWakes(t *testing.T) {
	p := newPair(t)
	r, tape := p.stingily(t, 1)
	a := &pupil{}
	require.NoError(t, p.s.Spawn(a))
	p.record(4)
	require.NoError(t, a.SetDormant(true))
	p.record(4)
	place := r.ids[a.guid]
	v := r.slots[place].v
	require.Equal(t, asleep, v.state)
	a.N = 1_000_000
	tape.room = 0
	a.FlushDormancy()
	p.record(1)
	require.Equal(t, asleep, v.state)
	require.NotZero(t, v.dirty)
	row := r.peer.rowBits[a.class.firstRow]
	require.True(t, r.catchUp(v))
	require.EqualValues(t, 1_000_000, p.c.Find(a.guid).(*pupil).N)
	opened := r.peer.rowBits[a.class.firstRow]
	require.Greater(t, opened, row)
	r.out.Reset(make([]byte, 4096))
	r.writeCopy(&r.out, &r.slots[place])
	require.Equal(t, opened+(opened-row), r.peer.rowBits[a.class.firstRow])

	for range 3 {
		require.NoError(t, p.s.Spawn(&pupil{}))
	}
	p.record(3)
	require.Equal(t, 1, p.c.Len(), "there is no room for openings")
	tape.room = 1
	for n := range 3 {
		p.record(1)
		require.Equal(t, 2+n, p.c.Len())
	}
}
