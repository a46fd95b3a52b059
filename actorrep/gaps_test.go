package actorrep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestBadCallsAreCounted: what a client sends that isn't a call, or only the beginning of one, is an error and counted as bad.
func TestBadCallsAreCounted(t *testing.T) {
	p := newPair(t)
	p.serves(t, 4)
	v := p.l.peer.views[p.newPupil(t).base()]
	for i, kind := range []uint64{wire.Role, wire.Call} {
		w := bitio.NewWriter(make([]byte, 8))
		w.WriteBits(kind, wire.KindBits)
		require.ErrorIs(t, p.l.peer.receiveCalls(v, bitio.NewReader(w.Bytes(), w.Len()), nil), errFormat)
		require.EqualValues(t, i+1, p.s.Counters.Bad)
		require.Zero(t, p.s.Counters.CallsRefused)
	}
}

// TestReferencesOfThoseGone: references of actors that are gone give way to others, again and again, though they are looked for once a Step only.
func TestReferencesOfThoseGone(t *testing.T) {
	w := NewClient(Config{})
	c := w.client
	w.byGUID[1] = &Base{world: w, guid: 1}
	for round := range netguid.GUID(3) {
		w.Step(time.Duration(round) * time.Second)
		for i := range netguid.GUID(maxUnmapped) {
			c.wait(2*(maxUnmapped*round+i)+2, unmapped{3, 0})
		}
		id := 2*(maxUnmapped*10+round) + 2
		c.wait(id, unmapped{1, 0})
		require.Len(t, c.waiting[id], 1)
	}
}

// TestManyGoBetweenSteps: of actors that disappear a client keeps as many ids as references may wait, and then looks at the references.
func TestManyGoBetweenSteps(t *testing.T) {
	c := NewClient(Config{}).client
	c.referring = []*Base{{}}
	for i := range netguid.GUID(maxUnmapped) {
		require.EqualValues(t, i, len(c.missed))
		c.miss(2*i + 2)
	}
	require.Empty(t, c.missed)
	require.Empty(t, c.referring)
}

// TestDepartOfNobodys: an actor without an owner at a client has no calls to go with it.
func TestDepartOfNobodys(t *testing.T) {
	s := NewServer(Config{IDs: netguid.Share{Servers: 2}})
	require.NoError(t, s.Register("place", (*place)(nil)))
	a := &place{}
	require.NoError(t, s.Spawn(a))
	for _, owner := range []*Peer{nil, s.Local()} {
		a.SetOwner(owner)
		state, err := s.Depart(a, []byte{7})
		require.NoError(t, err)
		require.Equal(t, []byte{7, 0, 0, 0, 0}, state)
	}
}

// TestLoopOverPeersEnds: a loop over the connections ends where the game leaves it. A server has no connection of its own.
func TestLoopOverPeersEnds(t *testing.T) {
	p := newPair(t)
	c := NewClient(Config{})
	require.NoError(t, c.Register("pupil", (*pupil)(nil), RPCs{"Poke": poke}))
	addLane(t, p.s, c)
	n := 0
	for range p.s.Peers {
		n++
	}
	require.Equal(t, 2, n)
	for range p.s.Peers {
		n++
		break
	}
	require.Equal(t, 3, n)
	require.Nil(t, p.s.Conn())
}

type deaf struct {
	Base
	N uint32 `net:"notify=OnNothing"`
}

// TestNotifyThatIsMissing: a class whose notify has no method is refused.
func TestNotifyThatIsMissing(t *testing.T) {
	require.ErrorIs(t, NewServer(Config{}).Register("deaf", (*deaf)(nil)), ErrNotify)
}

// TestCallsOfAFormerOwner: of calls for which there is no room when the owner changes, those to the owner are dropped, of which the game is told; multicasts run.
// A client without the class is nobody to call.
func TestCallsOfAFormerOwner(t *testing.T) {
	var failed []error
	whisper := ClientRPC(func(Call, *pupil, uint8) error { return nil }, Reliable)
	s, c := NewServer(Config{Failed: func(err error) { failed = append(failed, err) }}), NewClient(Config{})
	for _, w := range []*World{s, c} {
		require.NoError(t, w.Register("pupil", (*pupil)(nil), RPCs{"Whisper": whisper, "Poke": poke}))
	}
	p := &pair{s: s, c: c, l: addLane(t, s, c)}
	p.serves(t, 4)
	a := p.newPupil(t)
	a.SetOwner(p.l.peer)
	p.serves(t, 5)
	p.tell(t)
	v := p.l.peer.views[a.base()]
	require.NoError(t, whisper.Call(a, 1))
	require.NoError(t, poke.Call(a, 2))
	p.l.flying[v] = laneRoom
	a.SetOwner(nil)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], ErrOwnerGone)
	require.Len(t, v.calls, 1)
	delete(p.l.flying, v)
	p.serves(t, 4)
	require.Equal(t, []string{"poked 2"}, p.tell(t))

	a.SetOwner(p.l.peer)
	p.l.peer.lacks = []bool{true}
	require.ErrorIs(t, whisper.Call(a, 3), ErrNoClass)
}
