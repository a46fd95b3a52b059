package mesh

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// solo is one server with a Keeper, whose store is the test.
type solo struct {
	t      testing.TB
	world  *actorrep.World
	zone   *Zone
	keeper *Keeper
	state  []byte
	now    time.Duration
	rev    uint64
}

func (s *solo) Make(string) Actor                 { return &sheep{} }
func (s *solo) Give(Actor, string) ([]byte, bool) { return nil, true }
func (s *solo) Take(Actor, []byte) error          { return nil }
func (s *solo) Call(Actor, string, []byte)        {}
func (s *solo) Undelivered(netguid.GUID, []byte)  {}
func (s *solo) step(d time.Duration, in ...kv.Event) []kv.Op {
	s.now += d
	return s.keeper.Step(s.now, in)
}

func newSolo(t testing.TB) *solo {
	s := &solo{t: t, world: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 4}}), state: []byte("state")}
	require.NoError(t, s.world.Register("Sheep", (*sheep)(nil)))
	var err error
	s.zone, err = NewZone(ZoneConfig{ID: "a", World: s.world, Game: s, Table: Table{Epoch: 1, Cell: 100, Columns: 1, Servers: []string{"a"}}, Margin: 10, Hysteresis: 1, Key: [32]byte{1}, Rand: rand.Reader, ToServer: func(string, []byte) {}})
	require.NoError(t, err)
	s.keeper, err = NewKeeper(KeeperConfig{Zone: s.zone, Plan: Table{Cell: 100, Columns: 1, Servers: []string{"z"}}, Zones: []string{"z"}, Save: func(Actor) []byte { return s.state }})
	require.NoError(t, err)
	return s
}

// good answers ops as a store does that has only this server.
func (s *solo) good(ops []kv.Op) (in []kv.Event) {
	for _, op := range ops {
		s.rev++
		in = append(in, kv.Event{Kind: kv.Result, ID: op.ID, Revision: s.rev})
		if op.Key == "mesh.zone.z" || op.Key == "mesh.server.a" {
			in = append(in, kv.Event{Kind: kv.Changed, Key: op.Key, Value: op.Value, Revision: s.rev})
		}
	}
	return in
}

// TestKeeperOwnClock: a server whose writes have no answer is over 98 % of Lease after the last one that had, and owns nothing then.
func TestKeeperOwnClock(t *testing.T) {
	s := newSolo(t)
	in := s.good(s.step(time.Second, kv.Event{Kind: kv.Begin, Store: 1}, kv.Event{Kind: kv.Current}))
	sent := s.now
	in = s.good(s.step(10*time.Millisecond, in...))
	s.step(10*time.Millisecond, in...)
	require.EqualValues(t, 1, s.keeper.Holds("z"))
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	s.step(sent + 1959*time.Millisecond - s.now)
	require.False(t, s.keeper.Over())
	require.True(t, s.zone.Owns(a))
	told := 0
	require.NoError(t, s.keeper.Keep(a, func(err error) {
		require.ErrorIs(t, err, ErrGone)
		told++
	}))
	s.step(time.Millisecond)
	require.True(t, s.keeper.Over())
	require.False(t, s.zone.Owns(a))
	require.Equal(t, 1, told)
	require.Zero(t, s.keeper.Holds("z"))
	require.ErrorIs(t, s.keeper.Keep(a, func(error) {}), ErrNoActor)
}

// TestKeeperLateBegin: a server whose first writes had no answer for a lease may have been ended, and be forgotten by the others, who take nothing of its ID any more. It is over when the store hasn't its lease.
// One that hears so earlier begins.
func TestKeeperLateBegin(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		over  bool
	}{{time.Second, false}, {3 * time.Second, true}} {
		s := newSolo(t)
		asked := uint64(0)
		look := func(ops []kv.Op) {
			for _, op := range ops {
				if op.Key == "mesh.server.a" && op.Kind == kv.Get {
					asked = op.ID
				}
			}
		}
		look(s.step(time.Second, kv.Event{Kind: kv.Begin, Store: 1}, kv.Event{Kind: kv.Current}))
		for until := s.now + c.after; s.now < until; {
			look(s.step(10 * time.Millisecond))
		}
		require.NotZero(t, asked)
		s.step(10*time.Millisecond, kv.Event{Kind: kv.Result, ID: asked, Status: kv.Missing})
		require.Equal(t, c.over, s.keeper.Over(), "after %v", c.after)
	}
}

// TestKeeperFull: what is too long, or too much, is told to who asked.
func TestKeeperFull(t *testing.T) {
	s := newSolo(t)
	in := s.good(s.step(time.Second, kv.Event{Kind: kv.Begin, Store: 1}, kv.Event{Kind: kv.Current}))
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.ErrorIs(t, s.keeper.Keep(a, func(error) {}), ErrNoActor)
	require.NoError(t, s.zone.Own(a, 1))
	var told []error
	for range maxWaiting {
		require.NoError(t, s.keeper.Keep(a, func(err error) { told = append(told, err) }))
	}
	require.ErrorIs(t, s.keeper.Keep(a, func(error) {}), ErrFull)
	for range 5 {
		in = s.good(s.step(10*time.Millisecond, in...))
	}
	require.Len(t, told, maxWaiting)
	require.NoError(t, errors.Join(told...))
	s.state = make([]byte, MaxActorState+1)
	told = nil
	require.NoError(t, s.keeper.Keep(a, func(err error) { told = append(told, err) }))
	for range 5 {
		in = s.good(s.step(10*time.Millisecond, in...))
	}
	require.Equal(t, []error{ErrTooLong}, told)
	require.EqualValues(t, 1, s.keeper.Counters.TooLong)
}

// TestKeeperConfig: what can't be is refused.
func TestKeeperConfig(t *testing.T) {
	s := newSolo(t)
	plan, save := Table{Cell: 100, Columns: 1, Servers: []string{"z"}}, func(Actor) []byte { return nil }
	for _, cfg := range []KeeperConfig{
		{Plan: plan, Save: save},
		{Zone: s.zone, Plan: plan, Save: save}, // it has a Keeper
		{Zone: &Zone{}, Plan: plan},
		{Zone: &Zone{}, Save: save},
		{Zone: &Zone{}, Plan: plan, Save: save, Zones: []string{"y"}},
		{Zone: &Zone{}, Plan: plan, Save: save, Name: "a.b"},
		{Zone: &Zone{}, Plan: plan, Save: save, Lease: time.Millisecond},
		{Zone: &Zone{}, Plan: plan, Save: save, Lease: time.Hour + 1},
		{Zone: &Zone{}, Plan: plan, Save: save, Away: time.Second},
		{Zone: &Zone{}, Plan: plan, Save: save, Away: time.Hour + 1},
		{Zone: &Zone{}, Plan: plan, Save: save, Away: -1},
		{Zone: &Zone{cfg: ZoneConfig{ID: "a b"}}, Plan: plan, Save: save},
	} {
		_, err := NewKeeper(cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestKeeperNonsense: values that no server has written are refused.
func TestKeeperNonsense(t *testing.T) {
	good := (&actorRecord{epoch: 1, write: 1, holder: "a", class: "Sheep", state: []byte("s")}).append(nil)
	for n := range good {
		require.False(t, new(actorRecord).read(good[:n]))
	}
	require.True(t, new(actorRecord).read(good))
	require.False(t, new(actorRecord).read(append(good, 0)))
	require.False(t, new(leaseValue).read([]byte{leaseVersion, 4, 0, 0, 0, 0, 0, 0, 0}))
	require.True(t, new(leaseValue).read([]byte{leaseVersion, 1, 0, 0, 0, 0, 0, 0, 0}))
	require.False(t, new(zoneValue).read((&zoneValue{1, wholly("")}).append(nil)))
	_, ok := readPage(appendPage(nil, make([]netguid.GUID, pageIDs+1)))
	require.False(t, ok)
	require.False(t, new(actorRecord).read((&actorRecord{epoch: 1, state: make([]byte, MaxActorState+1)}).append(nil)))
}

// TestEndOfThisStep: what a server that is over has had isn't taken over before the others have said that they know of it, also when the end and what the store has of an actor come in
// the same Step.
func TestEndOfThisStep(t *testing.T) {
	k := newSolo(t).keeper
	over, other := &lease{id: "b", rev: 7, value: leaseValue{over: true}}, &lease{id: "c", rev: 6}
	k.current, k.leases = true, []*lease{over, other}
	require.False(t, k.dead("b"), "the end has just been heard of")
	k.sight()
	require.False(t, k.dead("b"), "another server has told nothing since")
	other.value.seen = over.rev
	require.True(t, k.dead("b"))
	require.False(t, k.dead("c"))
}
