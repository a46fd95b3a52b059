package actorrep

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

var errand = ServerRPC(hear, Reliable)

// errands is a client's world with a clerk of the player's own, which has sent so many calls.
func errands(t *testing.T, sent int, unacked ...uint32) (w *World, m *mirror) {
	w = NewClient(Config{})
	require.NoError(t, w.Register("clerk", (*clerk)(nil), RPCs{"Errand": errand}))
	a := &clerk{}
	w.add(a, w.classes[0], 3)
	m = &mirror{world: w, b: a.base(), self: a.base(), guid: 3, owned: true, sent: uint64(sent),
		class: &remoteClass{name: "clerk", local: w.classes[0], rpcs: []remoteRPC{{name: "Errand"}}}}
	a.mirror = m
	for _, n := range unacked {
		m.unacked = append(m.unacked, sentCall{call: errandCall(t, w, n)})
	}
	return w, m
}

func errandCall(t *testing.T, w *World, n uint32) *call {
	bw := bitio.NewWriter(make([]byte, 4))
	bw.WriteUint32(n)
	c := w.unheld.take()
	c.name, c.def, c.data, c.bits = "Errand", errand.definition(), append(c.data, bw.Bytes()...), bw.Len()
	return c
}

// said is the numbers of calls.
func said(calls []*call) (all []uint32) {
	for _, c := range calls {
		r := bitio.NewReader(c.data, c.bits)
		all = append(all, r.ReadUint32())
	}
	return all
}

// TestResume: of the calls that a former server had, those that it hasn't run are made again, in order, before those that wait; those that nobody kept are told.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		name        string
		sent        int
		unacked     []uint32
		ran, before uint64
		heard       uint64
		want        []uint32
		lost        int
		skip        uint64
	}{
		{"all have run", 5, []uint32{4, 5}, 5, 0, 0, nil, 0, 0},
		{"the last hasn't", 5, []uint32{4, 5}, 4, 0, 0, []uint32{5}, 0, 0},
		{"none of those that aren't acked", 5, []uint32{3, 4, 5}, 2, 0, 0, []uint32{3, 4, 5}, 0, 0},
		{"an acked one hasn't", 5, []uint32{4, 5}, 2, 0, 0, []uint32{4, 5}, 1, 0},
		{"more than are kept", 5, []uint32{}, 2, 0, 0, nil, 3, 0},
		{"calls of the server that were heard", 0, nil, 0, 3, 7, nil, 0, 7},
		{"and that weren't", 0, nil, 0, 9, 7, nil, 0, 9},
		{"a server that says nonsense", 5000, nil, 0, 0, 0, nil, maxAcked, 0},
	} {
		from, former := errands(t, c.sent, c.unacked...)
		former.heard = c.heard
		former.calls = []*call{errandCall(t, from, 50), errandCall(t, from, 51)}
		var lost []error
		w, m := errands(t, 0)
		w.cfg.Failed = func(err error) { lost = append(lost, err) }
		m.calls = []*call{errandCall(t, w, 99)}
		w.Follow(from)
		require.Equal(t, []*mirror{former}, m.former())
		m.resume(1, c.before, c.ran)
		require.Equal(t, append(append([]uint32{}, c.want...), 50, 51, 99), said(m.calls), c.name)
		require.Len(t, lost, c.lost, c.name)
		for _, err := range lost {
			require.ErrorIs(t, err, ErrUnacked)
		}
		require.Equal(t, []uint64{c.skip, c.before}, []uint64{m.skip, m.heard}, c.name)
		require.Equal(t, []any{c.ran, uint32(1), m}, []any{m.sent, m.stay, former.moved})
		require.Empty(t, former.unacked)
		require.Empty(t, former.calls)
		require.Equal(t, []*mirror{m}, w.client.speaking)
		require.False(t, m.awaits())
		from.Consistent(t)
	}
}

// TestHeardCalls: a client leaves out the calls of a server that it had from another, counts on, and takes a resumption once.
func TestHeardCalls(t *testing.T) {
	_, m := errands(t, 0)
	said := func(n ...uint64) *bitio.Reader {
		bw := bitio.NewWriter(make([]byte, 40))
		for i, v := range n {
			bw.WriteBits(v, []int{32, 64, 64, 1}[i])
		}
		return bitio.NewReader(bw.Bytes(), bw.Len())
	}
	for _, n := range [][]uint64{{0, 2, 3}, {1, 2}, {1, 2, 3, 1}} {
		done, err := m.heardCall(resumeCall, said(n...))
		require.True(t, done)
		require.ErrorIs(t, err, errFormat, "%v", n)
		require.Zero(t, m.stay)
	}
	done, err := m.heardCall(resumeCall, said(4, 2, 3))
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, []uint64{4, 2, 2, 3}, []uint64{uint64(m.stay), m.heard, m.skip, m.sent})
	done, err = m.heardCall(resumeCall, said(5, 9, 9))
	require.NoError(t, err)
	require.True(t, done)
	require.EqualValues(t, 4, m.stay, "Arrive was called twice")
	m.skip = 4
	for i, c := range []struct {
		id   int
		done bool
	}{{0, true}, {0, true}, {0, false}, {holeCall, true}, {0, false}} {
		done, err := m.heardCall(c.id, nil)
		require.NoError(t, err)
		require.Equal(t, c.done, done, "%d", i)
		require.EqualValues(t, 3+i, m.heard)
	}
	m.moved = m
	done, err = m.heardCall(0, nil)
	require.NoError(t, err)
	require.True(t, done, "it runs where the player is")
	require.EqualValues(t, 7, m.heard)
}

// TestWhoFollowsWhom: servers follow nobody and are followed by nobody, a World has one follower, and a chain of Worlds whose calls have gone on is forgotten.
func TestWhoFollowsWhom(t *testing.T) {
	server := NewServer(Config{})
	var w []*World
	var m []*mirror
	for range maxFollowed + 4 {
		c, own := errands(t, 1)
		c.client.place(own)
		w, m = append(w, c), append(m, own)
	}
	server.Follow(w[0])
	w[0].Follow(server)
	w[0].Follow(w[0])
	require.Nil(t, w[0].client.follows)
	require.Nil(t, w[0].client.follower)
	require.False(t, w[0].client.isFollowed())
	w[1].Follow(w[0])
	require.True(t, w[0].client.isFollowed())
	w[1].Follow(w[0])
	require.Same(t, w[0], w[1].client.follows)
	w[2].Follow(w[0])
	require.Same(t, w[2], w[0].client.follower)
	require.Nil(t, w[1].client.follows, "the player went elsewhere")
	w[2].Follow(nil)
	require.Nil(t, w[0].client.follower)
	require.Nil(t, w[2].client.follows)

	for i := 1; i < len(w); i++ {
		w[i].Follow(w[i-1])
	}
	length := 0
	for at := w[len(w)-1].client.follows; at != nil; at = at.client.follows {
		length++
	}
	require.Equal(t, maxFollowed+1, length, "nothing of them has gone on")
	list := m[len(m)-1].former()
	require.Equal(t, m[len(m)-1-length:len(m)-1], list, "the oldest first")
	m[len(m)-3].stay = 1
	require.Equal(t, m[len(m)-3:len(m)-1], m[len(m)-1].former(), "from where they were last known to go on")
	require.True(t, m[len(m)-1].awaits())
	m[len(m)-3].stay = 0
	for _, old := range m[:len(m)-2] {
		old.moved = m[len(m)-2]
	}
	next, own := errands(t, 1)
	next.Follow(w[len(w)-1])
	require.Nil(t, w[len(w)-2].client.follows, "those are needed no more")
	require.Len(t, own.former(), 2)
	w[len(w)-2].Follow(next) // back
	require.Len(t, m[len(m)-2].former(), 2)
}

// TestKeptOver: calls of the player's own actors are kept for the World that follows, of so many; without one, or of others, they are told of.
func TestKeptOver(t *testing.T) {
	w, m := errands(t, 1)
	c := w.client
	require.False(t, c.keepOver(m), "nobody follows")
	next, _ := errands(t, 0)
	next.Follow(w)
	for _, not := range []func(m *mirror){func(m *mirror) { m.owned = false }, func(m *mirror) { m.moved = m }, func(m *mirror) { m.sent = 0 }} {
		o := *m
		not(&o)
		require.False(t, c.keepOver(&o))
	}
	for _, does := range []func(m *mirror){func(*mirror) {}, func(m *mirror) { m.sent, m.heard = 0, 1 }, func(m *mirror) { m.sent, m.calls = 0, []*call{{}} }} {
		o := *m
		does(&o)
		require.True(t, o.counting())
	}
	require.False(t, c.awaited())
	for i := range maxOver {
		o := *m
		o.guid = netguid.GUID(2*i + 3)
		require.True(t, c.keepOver(&o))
		require.Same(t, &o, c.own(&mirror{guid: o.guid}))
	}
	require.True(t, c.awaited())
	require.False(t, c.keepOver(m), "so many are kept")
	require.Nil(t, c.own(&mirror{guid: math.MaxInt32}))

	// The actor itself is what is known of it, unless it is another's or has gone on.
	clear(c.over)
	require.False(t, c.awaited())
	require.Same(t, m, c.own(&mirror{guid: m.guid}))
	require.Nil(t, c.own(m), "apart from itself")
	m.owned = false
	require.Nil(t, c.own(&mirror{guid: m.guid}))
	m.owned, m.moved = true, m
	require.Nil(t, c.own(&mirror{guid: m.guid}))

	w.typesAsked = true
	// When the World that follows follows another, the calls that were kept are told of.
	var lost []error
	w.cfg.Failed = func(err error) { lost = append(lost, err) }
	m.moved = nil
	m.unacked, m.acked = []sentCall{{call: errandCall(t, w, 7)}, {call: errandCall(t, w, 8)}, {call: errandCall(t, w, 9)}}, 1
	require.True(t, c.keepOver(m))
	m.calls = []*call{errandCall(t, w, 1), errandCall(t, w, 2)}
	w.remove(m.b)
	m.b = nil
	w.Step(time.Second)
	require.Len(t, m.calls, 2)
	next.Follow(nil)
	require.Empty(t, c.over)
	require.Len(t, lost, 2, "the server had acked one of three")
	require.ErrorIs(t, lost[0], ErrUnacked)
	require.ErrorIs(t, lost[1], ErrUnacked)
	require.Empty(t, m.unacked)
	lost = nil
	w.Step(2 * time.Second)
	require.Len(t, lost, 2)
	require.ErrorIs(t, lost[0], ErrActorGone)
	require.Empty(t, m.calls)
	require.Empty(t, c.speaking)
}

// TestGoneTo: a call of an actor that has gone on is made where it is at last, by the procedure that is the same there.
func TestGoneTo(t *testing.T) {
	_, a := errands(t, 0)
	_, b := errands(t, 0)
	to, c := errands(t, 0)
	a.moved, b.moved = b, c
	proc := &a.class.local.rpcs[0]
	w, at, id, err := a.goneTo(proc)
	require.NoError(t, err)
	require.Equal(t, []any{to, c.b, 0}, []any{w, at, id})
	_, _, _, err = a.goneTo(&procedure{Procedure: bid})
	require.ErrorIs(t, err, ErrNoProcedure)
	to.remove(c.b)
	_, _, _, err = a.goneTo(proc)
	require.ErrorIs(t, err, ErrNotThere)
	require.ErrorIs(t, errand.Call(a.b.self.(*clerk), 1), ErrNotThere)
	c.b = nil
	_, _, _, err = a.goneTo(proc)
	require.ErrorIs(t, err, ErrNotThere)
}

// TestResumeElsewhere: when the actor has come to a further server meanwhile, or back to where it was, its calls go on there.
func TestResumeElsewhere(t *testing.T) {
	for _, stay := range []uint32{2, 3} {
		from, former := errands(t, 0)
		former.stay = 3
		former.calls = []*call{errandCall(t, from, 50)}
		w, m := errands(t, 0)
		m.calls = []*call{errandCall(t, w, 99)}
		w.Follow(from)
		m.resume(stay, 5, 4)
		require.Same(t, former, m.moved)
		require.Nil(t, former.moved)
		require.Empty(t, m.calls)
		require.Equal(t, []uint32{50, 99}, said(former.calls))
		require.Equal(t, []*mirror{former}, from.client.speaking)
		require.Empty(t, w.client.speaking)
	}
}

// TestCallsThatNobodyTakes: a received call whose actor is gone is dropped; the game is told of a procedure that it lacks, once, and of none that it has.
func TestCallsThatNobodyTakes(t *testing.T) {
	w, m := errands(t, 0)
	var failed []error
	w.cfg.Failed = func(err error) { failed = append(failed, err) }
	receive := func(id uint32) {
		bw := bitio.NewWriter(make([]byte, 20))
		bw.WriteIntPacked(id)
		bw.WriteIntPacked(32)
		bw.WriteUint32(7)
		before := w.Counters.CallsDropped
		require.NoError(t, m.receiveCall(bitio.NewReader(bw.Bytes(), bw.Len()), 1, false))
		require.EqualValues(t, 1, w.Counters.CallsDropped-before)
		require.Empty(t, w.client.pending)
	}
	b := m.b
	m.b = nil
	receive(0)
	require.Empty(t, failed)
	m.b = b
	m.class.rpcs[0].local = -1
	receive(0)
	receive(0)
	require.Len(t, failed, 1)
	require.ErrorIs(t, failed[0], ErrNoProcedure)
	m.class.rpcs[0].told, m.class.local, m.b = false, nil, nil
	receive(0)
	require.Len(t, failed, 1, "that the class is lacking was told before")
}

// TestCallsOfAnotherChannel: the ack of a channel that the actor no longer has says nothing of its calls; those in flight of a connection that has ended are
// forgotten, as the game knows of that.
func TestCallsOfAnotherChannel(t *testing.T) {
	w, m := errands(t, 2, 1, 2)
	var failed []error
	w.cfg.Failed = func(err error) { failed = append(failed, err) }
	m.forgetAcked(&channel.Channel{})
	require.Len(t, m.unacked, 2)
	m.forgetUnacked()
	require.Empty(t, m.unacked)
	require.Empty(t, failed)
}
