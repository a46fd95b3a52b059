package actorrep

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// strip is a Tape whose messages are played at once, into a client's world. It may have no room for any of them.
type strip struct {
	t      *testing.T
	s      *World
	rng    *rand.Rand
	n      uint32
	tight  bool
	to     bridge.Player
	copies bridge.Player // takes copies only; nil for none
	no     int           // how often there was no room
	still  bool          // no frame is due
	copied map[uint32]bridge.Kind
}

func (p *strip) refuse(n int) bool {
	no := p.tight && p.rng.IntN(n) == 0
	if no {
		p.no++
	}
	return no
}

func (p *strip) Begin(time.Duration) (frame, ended bool) {
	if p.still || p.refuse(3) {
		return false, false
	}
	p.n++
	p.to.Frame(p.s.frame)
	return true, false
}
func (p *strip) Number() uint32 { return p.n }
func (p *strip) Put(kind bridge.Kind, place uint32, data []byte, bits int) bool {
	if p.refuse(4) {
		return false
	}
	to := p.to
	if kind == bridge.Copy || kind == bridge.Sleeper {
		to, p.copied[place] = p.copies, kind
		to.Frame(p.s.frame)
	}
	r := bitio.NewReader(append([]byte(nil), data...), bits)
	var err error
	if kind == bridge.Records {
		err = to.Records(&bunch.In{Data: *r})
	} else {
		err = to.Message(kind, place, r)
	}
	if err != nil {
		p.t.Fatalf("message %d of place %d: %v", kind, place, err)
	}
	return true
}
func (p *strip) Budget() int {
	if p.tight {
		return []int{0, 100, 2000, 30000}[p.rng.IntN(4)]
	}
	return 1 << 20
}
func (p *strip) OpenRoom() int {
	if p.tight {
		return p.rng.IntN(3)
	}
	return 100
}
func (p *strip) End()           {}
func (p *strip) Fail(err error) { p.t.Fatal(err) }

// shown is what a viewer has of each actor.
func shown(w *World) map[string]any {
	all := map[string]any{}
	for a := range w.All {
		p := a.(*parcel)
		all[p.guid.String()] = fmt.Sprint(p.numbers(), p.list(), p.tornOff)
	}
	return all
}

// TestTapeWithoutRoom: whatever has no room in a frame, who watches a recording has in the end what the server has; and whoever begins at copies of
// all actors has what the other has.
func TestTapeWithoutRoom(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 15))
		register := func(w *World) *World {
			require.NoError(t, w.Register("parcel", (*parcel)(nil)))
			return w
		}
		s := register(NewServer(Config{}))
		viewer := func() (*World, bridge.Player) {
			w := register(NewClient(Config{Failed: func(err error) { t.Error(err) }}))
			to := newPlayer(w)
			data, n := s.encodeSchema()
			ok, err := to.Describe(bitio.NewReader(data, n))
			require.True(t, ok)
			require.NoError(t, err)
			return w, to
		}
		first, to := viewer()
		tape := &strip{t: t, s: s, rng: rng, tight: true, to: to, copied: map[uint32]bridge.Kind{}}
		r := newRecording(s, tape, nil, true).(*recording)
		now := time.Duration(0)
		step := func() {
			now += 33 * time.Millisecond
			s.Step(now)
			r.Step()
			s.Consistent(t)
			first.Step(now)
			first.Consistent(t)
			require.EqualValues(t, len(r.slots), r.Places())
		}
		copies := func() {
			second, to := viewer()
			tape.copies = to
			clear(tape.copied)
			for place := range r.Places() {
				copied, ok, tries := false, false, 0
				for !ok {
					copied, ok = r.Copy(place)
					if tries++; tries > 1000 {
						t.Fatalf("seed %d: place %d is never copied", seed, place)
					}
				}
				if slot := &r.slots[place]; copied != (slot.v != nil) {
					t.Fatalf("place %d was copied: %v", place, copied)
				} else if copied {
					require.Equal(t, slot.v.state == asleep, tape.copied[place] == bridge.Sleeper)
				}
			}
			tape.copies = nil
			second.Step(now)
			second.Consistent(t)
			require.Len(t, tape.copied, len(r.ids))
			want := shown(first)
			for a := range first.All {
				if a.base().tornOff { // it isn't the recording's any more
					delete(want, a.base().guid.String())
				}
			}
			require.Equal(t, want, shown(second), "seed %d", seed)
		}
		var all []*parcel
		for n := uint32(1); n < 100; n++ {
			if len(all) < 8 && rng.IntN(3) == 0 {
				p := &parcel{}
				p.set(n)
				require.NoError(t, s.Spawn(p))
				all = append(all, p)
			}
			for i := 0; i < len(all); i++ {
				p := all[i]
				if rng.IntN(2) == 0 {
					p.set(n)
				}
				switch rng.IntN(40) {
				case 0:
					p.SetOwner(r.peer)
				case 1:
					p.SetOwner(nil)
				case 2, 3:
					require.NoError(t, p.SetDormant(!p.dormant))
				case 4:
					p.FlushDormancy()
				case 5:
					if rng.IntN(3) == 0 {
						require.NoError(t, p.TearOff())
					}
					require.NoError(t, s.Destroy(p))
					all = append(all[:i], all[i+1:]...)
					i--
				}
			}
			step()
			if rng.IntN(12) == 0 && len(r.peer.halves) == 0 {
				copies()
			}
		}
		require.Greater(t, tape.no, 50)
		tape.tight = false
		for _, p := range all {
			p.FlushDormancy()
		}
		for range 10 {
			step()
		}
		copies()
		own := 0
		for a := range first.All {
			if a.base().tornOff {
				own++
			}
		}
		require.Equal(t, len(all)+own, first.Len())
		for _, p := range all {
			c := first.Find(p.guid).(*parcel)
			want := c.numbers()
			for name := range maps.Keys(want) {
				if name != "Born" {
					want[name] = int(p.n)
				}
			}
			require.Equal(t, want, c.numbers())
			require.True(t, reflect.DeepEqual(c.list(), p.list()))
		}
		r.Remove()
		require.Empty(t, s.peers)
		s.Consistent(t)
	}
}

// TestPlacesOfATape: nothing opens at a place that is taken, nor at place 0; nothing is said of one that isn't.
func TestPlacesOfATape(t *testing.T) {
	o := newHonest(t)
	to := player{o.client.client}
	opening := func(id uint32, data ...byte) error {
		return to.Message(bridge.Open, id, bitio.NewReader(data, 8*len(data)))
	}
	require.ErrorIs(t, opening(0, 0), errFormat)
	require.Error(t, opening(1, 0), "an opening of nothing")
	for kind := bridge.Values; kind <= bridge.Close; kind++ {
		require.ErrorIs(t, to.Message(kind, 70000, bitio.NewReader([]byte{1}, 8)), ErrGUID)
		require.ErrorIs(t, to.Message(kind, 2, bitio.NewReader([]byte{1}, 8)), ErrGUID)
	}
	o.open(3, 0, false, &smallActor{N: 5})
	require.ErrorIs(t, opening(3, 0), errFormat)
	require.Error(t, to.Message(bridge.Close, 3, bitio.NewReader(nil, 0)), "without a reason")
	o.open(3, 0, false, &smallActor{N: 6})
	o.open(4, 1, false, &fuzzed{})
	o.client.client.wait(9, unmapped{2, 0})
	require.Len(t, o.client.client.waiting, 1)
	sleeper := o.openAs(wire.Opening{GUID: 8, Class: 0, Frame: 1}, 5, &smallActor{})
	_, err := sleeper.remember(1, 1)
	require.NoError(t, err)
	sleeper.closedBy(bunch.Dormancy)
	require.Nil(t, sleeper.history, "after its sleep nothing builds on what was before")
	o.client.client.missed = map[netguid.GUID]struct{}{12: {}}
	to.Reset()
	require.Zero(t, o.client.Len())
	require.Empty(t, o.client.client.missed)
	require.Empty(t, o.client.client.waiting)
	require.Nil(t, o.client.client.mirror(3))
	_, ok := o.client.ServerTime()
	require.False(t, ok)
	o.client.Consistent(t)
}
