package predict_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// mine is a client's own skater.
func mine(w *actorrep.World) *skater {
	for a := range w.All {
		if s, ok := a.(*skater); ok && s.IsOwned() {
			return s
		}
	}
	return nil
}

// at is a client's form of a server's actor; nil when it isn't there.
func at[A actorrep.Actor](w *actorrep.World, a A) (found A) {
	found, _ = w.Find(id(a)).(A)
	return found
}

// TestGroupContactIsFelt: a ball that the player's own skater runs into moves in the tick of the contact, 160 ms before the server's word of it comes, and
// just as the server's does in that tick: nothing is corrected.
func TestGroupContactIsFelt(t *testing.T) {
	s := newRink(t, 3, netsim.Settings{Lag: 80 * time.Millisecond}, predict.GroupConfig{})
	var client *end
	var seen *ball
	first := map[time.Duration]Disc{}
	touch := collide
	s.cfg.Touch = func(members []actorrep.Actor, dt time.Duration) {
		touch(members, dt)
		if at, again := client.group.Simulating(); !again && seen != nil {
			first[at] = seen.Disc
		}
	}
	l := s.join()
	client = s.ends[l.World]
	server := s.skate(l, vec{-3, 0})
	pushed := s.drop(vec{}, vec{})
	s.until("predicted", func() bool {
		seen = at(l.World, pushed)
		return mine(l.World) != nil && client.skaters.Predicting(mine(l.World)) && seen != nil && client.balls.Predicting(seen)
	})
	for range 60 {
		s.step()
	}
	require.Zero(t, seen.Vel)
	corrected := client.group.Counters.Corrected
	s.inputs = func(*skater) keys { return keys{X: 1} }
	s.until("a contact", func() bool { return seen.Vel.X > 1 })
	require.Zero(t, pushed.Vel, "the server hasn't even the inputs yet")
	require.Less(t, server.Pos.X, mine(l.World).Pos.X)
	for range 30 {
		s.step()
	}
	compared := 0
	for at, d := range first {
		if log, ok := s.log[at]; ok {
			compared++
			require.InDelta(t, log[uint32(pushed.GUID())].Pos.X, d.Pos.X, 0.02, "at %v", at)
		}
	}
	require.Greater(t, compared, 60)
	require.Equal(t, corrected, client.group.Counters.Corrected)
	require.Greater(t, pushed.Vel.X, 1.0)
}

// TestGroupReplaysTogether: when others' inputs turn out to be other ones, what the own ball and skater did since is simulated anew with them: as soon as the
// server's word of a tick is here, the client has all members within their tolerances of what the server then has for the tick it's in, unless a player
// has given another input meanwhile.
func TestGroupReplaysTogether(t *testing.T) {
	s := newRink(t, 3, netsim.Settings{Lag: 60 * time.Millisecond, Loss: 3}, predict.GroupConfig{})
	a, b := s.join(), s.join()
	s.skate(a, vec{-4, 0})
	other := s.skate(b, vec{4, 0})
	hit := s.drop(vec{1, 0.2}, vec{})
	client := s.ends[a.World]
	s.until("predicted", func() bool { return client.group.Len() == 3 && s.ends[b.World].group.Len() == 3 })
	began := s.Now
	s.inputs = func(k *skater) keys { // the other one goes for the ball, and then stands: no input is news after half a second
		if k.GUID() == other.GUID() && s.Now < began+1200*time.Millisecond {
			return keys{X: -1}
		}
		return keys{}
	}
	for s.Now < began+1800*time.Millisecond {
		s.step()
	}
	require.NotZero(t, hit.Vel.X, "it was hit")
	seen := at(a.World, hit)
	for range 30 { // the client is ahead: it has now what the server will have
		s.step()
		now, _ := client.group.Simulating()
		have := seen.Disc
		defer func() {
			want := s.log[now][uint32(hit.GUID())]
			require.InDelta(t, want.Pos.X, have.Pos.X, 0.03, "at %v", now)
			require.InDelta(t, want.Pos.Y, have.Pos.Y, 0.03, "at %v", now)
		}()
	}
	for range 30 {
		s.step()
	}
	require.NotZero(t, client.group.Counters.Replayed)
	require.NotZero(t, client.group.Counters.Corrected)
}

// TestGroupMembersComeAndGo: an actor that joins is predicted from the first word of it; one that leaves, goes out of sight, or is destroyed isn't any
// more: who leaves is where the server replicates it.
func TestGroupMembersComeAndGo(t *testing.T) {
	s := newRink(t, 5, netsim.Settings{Lag: 40 * time.Millisecond, Loss: 10}, predict.GroupConfig{})
	l := s.join()
	client := s.ends[l.World]
	s.skate(l, vec{-3, 0})
	still := s.drop(vec{2, 2}, vec{1, 0})
	s.until("predicted", func() bool { return client.group.Len() == 2 })
	for range 20 {
		s.step()
	}
	b := s.drop(vec{0, 3}, vec{-2, 0})
	s.until("it came", func() bool {
		return client.group.Len() == 3 && at(l.World, b) != nil && client.balls.Predicting(at(l.World, b))
	})
	for range 10 {
		s.step()
	}
	require.Less(t, at(l.World, b).Pos.X, b.Pos.X, "ahead of the server")

	b.Vel = vec{} // an abrupt end, which the client learns of with the leaving only
	s.balls.Leave(b)
	where := b.Pos
	s.until("it left", func() bool { return client.group.Len() == 2 })
	require.False(t, client.balls.Predicting(at(l.World, b)))
	s.until("it is where it was left", func() bool { return math.Abs(at(l.World, b).Pos.X-where.X) < 0.006 && at(l.World, b).Vel == vec{} })
	require.Equal(t, where, b.Pos, "it isn't simulated any more")

	require.NoError(t, s.balls.Join(b))
	s.until("it is back", func() bool { return client.group.Len() == 3 })
	require.NoError(t, s.Server.Destroy(b))
	s.until("gone", func() bool { return client.group.Len() == 2 && at(l.World, b) == nil })
	require.Equal(t, 2, s.group.Len())

	require.NoError(t, still.SetDormant(true))
	for range 60 {
		s.step()
	}
	s.untilAgreed()
}

// TestGroupTellsOfWhatIsSeen: nothing of a member leaves for a player who doesn't see it, though it touches what he sees.
func TestGroupTellsOfWhatIsSeen(t *testing.T) {
	s := newRink(t, 7, netsim.Settings{Lag: 20 * time.Millisecond}, predict.GroupConfig{})
	l := s.join()
	client := s.ends[l.World]
	s.skate(l, vec{-3, 0})
	hidden := &ball{Disc: Disc{Pos: vec{3, 3}, Vel: vec{1, 0}}}
	hidden.SetOnlyOwner(true)
	require.NoError(t, s.Server.Spawn(hidden))
	require.NoError(t, s.balls.Join(hidden))
	seen := s.drop(vec{2, -2}, vec{1, 0})
	s.until("predicted", func() bool { return client.group.Len() == 2 })
	before := client.group.Counters
	for range 120 {
		s.step()
	}
	require.Equal(t, 3, s.group.Len())
	require.Greater(t, client.group.Counters.States, before.States+100)
	require.Zero(t, client.group.Counters.Unknown)
	require.Nil(t, at(l.World, hidden))
	require.NotNil(t, at(l.World, seen))
}

// TestGroupOwnersChange: a member that another player gets is that one's own from then on, and one that nobody has coasts; who has none any more sees all as
// it is replicated; back again too.
func TestGroupOwnersChange(t *testing.T) {
	s := newRink(t, 9, netsim.Settings{Lag: 40 * time.Millisecond, Loss: 5}, predict.GroupConfig{})
	a, b := s.join(), s.join()
	one := s.skate(a, vec{-4, 0})
	two := s.skate(b, vec{4, 2})
	puck := s.drop(vec{0, -2}, vec{1, 1})
	s.inputs = wander(func() time.Duration { return s.Now })
	predicted := func(l *rig.Line, of *skater) func() bool {
		return func() bool {
			m := mine(l.World)
			return m != nil && m.GUID() == of.GUID() && s.ends[l.World].skaters.Predicting(m) && s.ends[l.World].group.Len() == 3
		}
	}
	s.until("each plays", func() bool { return predicted(a, one)() && predicted(b, two)() })
	for range 3 {
		// They change skaters.
		require.NoError(t, s.skaters.Possess(one, b.Peer, s.Now))
		require.NoError(t, s.skaters.Possess(two, a.Peer, s.Now))
		s.until("each plays the other", func() bool { return predicted(a, two)() && predicted(b, one)() })
		for range 30 {
			s.step()
		}
		// One is nobody's; its player looks on.
		s.skaters.Unpossess(one)
		s.until("b looks on", func() bool { return mine(b.World) == nil && s.ends[b.World].group.Len() == 0 })
		for range 60 {
			s.step()
		}
		require.Equal(t, 3, s.group.Len())
		require.Equal(t, 3, s.ends[a.World].group.Len())
		for _, x := range []actorrep.Actor{one, two, puck} {
			have, want := *b.World.Find(id(x)).(interface{ disc() *Disc }).disc(), *x.(interface{ disc() *Disc }).disc()
			require.InDelta(t, want.Pos.X, have.Pos.X, 0.8, "as it was a little ago")
		}
		before := one.Vel
		s.step()
		require.LessOrEqual(t, math.Hypot(one.Vel.X, one.Vel.Y), math.Hypot(before.X, before.Y)+3, "it coasts")
		require.NoError(t, s.skaters.Possess(one, a.Peer, s.Now), "one player may have two")
		require.NoError(t, s.skaters.Possess(one, b.Peer, s.Now))
		s.until("b plays again", predicted(b, one))
		require.NoError(t, s.skaters.Possess(one, a.Peer, s.Now))
		require.NoError(t, s.skaters.Possess(two, b.Peer, s.Now))
		s.until("as before", func() bool { return predicted(a, one)() && predicted(b, two)() })
	}
	s.inputs = nil
	s.untilAgreed()
	s.skaters.Unpossess(one)
	s.skaters.Unpossess(two)
	s.untilAgreed()
}

// TestGroupOfAListenServer: the player of the server's end plays with the others.
func TestGroupOfAListenServer(t *testing.T) {
	s := newRink(t, 2, netsim.Settings{Lag: 30 * time.Millisecond}, predict.GroupConfig{})
	s.inputs = wander(func() time.Duration { return s.Now })
	l := s.join()
	host := &skater{Disc: Disc{Pos: vec{2, 0}}}
	require.NoError(t, s.Server.Spawn(host))
	require.NoError(t, s.skaters.Possess(host, s.Server.Local(), s.Now))
	s.skate(l, vec{-2, 0})
	s.drop(vec{}, vec{1, 0})
	for range 300 {
		s.step()
	}
	require.NotEqual(t, vec{2, 0}, host.Pos)
	require.Equal(t, 3, s.ends[l.World].group.Len())
	s.inputs = nil
	s.untilAgreed()
}

// TestGroupOnALongPath: of a path that is longer than the ticks which a client goes back, each state is taken as of the oldest; all agree in the end.
func TestGroupOnALongPath(t *testing.T) {
	s := newRink(t, 2, netsim.Settings{Lag: 300 * time.Millisecond, Loss: 5}, predict.GroupConfig{MaxBack: 12})
	s.inputs = wander(func() time.Duration { return s.Now })
	for i := range 2 {
		s.skate(s.join(), vec{float64(4 * i), 0})
	}
	s.drop(vec{2, 0}, vec{1, 0})
	for range 300 {
		s.step()
	}
	for _, e := range s.ends {
		c := e.group.Counters
		require.NotZero(t, c.Old)
		require.LessOrEqual(t, c.Replayed, 12*c.Rewinds)
	}
	s.inputs = nil
	s.untilAgreed()
}

// TestGroupHitches: after a client stood still for a while it plays on with the others.
func TestGroupHitches(t *testing.T) {
	for _, still := range []int{7, 12, 100} {
		s := newRink(t, 2, netsim.Settings{Lag: 30 * time.Millisecond}, predict.GroupConfig{})
		s.inputs = wander(func() time.Duration { return s.Now })
		for i := range 2 {
			s.skate(s.join(), vec{float64(4 * i), 0})
		}
		s.drop(vec{2, 0}, vec{1, 0})
		for range 90 {
			s.step()
		}
		for range still {
			require.NoError(t, s.group.Tick(s.Now))
			s.Step()
			require.NoError(t, s.ends[s.Lines[0].World].group.Tick(s.Now))
		}
		e := s.ends[s.Lines[1].World]
		ticks := e.group.Counters.Ticks
		s.step()
		require.LessOrEqual(t, e.group.Counters.Ticks-ticks, uint64(12+30+30), "the pause is left out, but for what it catches up on")
		for range 90 {
			s.step()
		}
		require.NotZero(t, e.skaters.Counters().Hitches)
		require.Equal(t, 3, e.group.Len())
		before := s.skaters.Counters().Server
		for range 60 {
			s.step()
		}
		after := s.skaters.Counters().Server
		require.LessOrEqual(t, after.Missed-before.Missed, uint64(2), "inputs are in time again")
		s.inputs = nil
		s.untilAgreed()
	}
}

// TestGroupOfMany: of as many members as take several messages all are told, and one more than MaxMembers is refused.
func TestGroupOfMany(t *testing.T) {
	s := newRink(t, 2, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5}, predict.GroupConfig{})
	l := s.join()
	s.skate(l, vec{-8, -8})
	for i := range 99 {
		s.drop(vec{float64(i%10)*1.6 - 7, float64(i/10)*1.6 - 7}, vec{0.1 * float64(i%7-3), 0.1 * float64(i%5-2)})
	}
	client := s.ends[l.World]
	s.until("all are there", func() bool { return client.group.Len() == 100 })
	s.inputs = wander(func() time.Duration { return s.Now })
	for range 150 {
		s.step()
	}
	s.inputs = nil
	s.untilAgreed()
	for s.group.Len() < predict.MaxMembers {
		s.drop(vec{7.5, 7.5}, vec{})
	}
	b := &ball{}
	require.NoError(t, s.Server.Spawn(b))
	require.ErrorIs(t, s.balls.Join(b), predict.ErrManyMembers)
	k := &skater{}
	require.NoError(t, s.Server.Spawn(k))
	require.ErrorIs(t, s.skaters.Possess(k, l.Peer, s.Now), predict.ErrManyMembers)
	require.Nil(t, k.Owner())
}

// TestGroupCorrected: the game hears how far a member was put and what is drawn doesn't jump.
func TestGroupCorrected(t *testing.T) {
	s := newRink(t, 2, netsim.Settings{Lag: 50 * time.Millisecond}, predict.GroupConfig{})
	l := s.join()
	server := s.skate(l, vec{})
	b := s.drop(vec{3, 3}, vec{})
	client := s.ends[l.World]
	s.until("predicted", func() bool { return client.group.Len() == 2 })
	for range 30 {
		s.step()
	}
	var told []prediction.Correction
	s.told = func(_ *skater, c prediction.Correction) { told = append(told, c) }
	server.Pos.Y, b.Pos.X = -2, 5 // the game puts them elsewhere
	ours, theirs := mine(l.World), at(l.World, b)
	s.until("told", func() bool { return len(told) > 0 })
	require.InDelta(t, 2/0.005, told[0].Size, 5, "in tolerances")
	require.Positive(t, told[0].Replayed)
	require.InDelta(t, -2, ours.Pos.Y, 0.01)
	require.InDelta(t, 5, theirs.Pos.X, 0.01)
	require.InDelta(t, 2, client.skaters.Offset(ours, s.Now)[1], 0.01, "it is drawn where it was")
	require.InDelta(t, -2, client.balls.Offset(theirs, s.Now)[0], 0.01)
	for range 60 {
		s.step()
	}
	require.InDelta(t, 0, client.skaters.Offset(ours, s.Now)[1], 0.01, "and fades")
	require.Len(t, told, 1)
}

// TestGroupIsUsedRight: what is wrong with a group or its use is told.
func TestGroupIsUsedRight(t *testing.T) {
	w, other := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	for _, cfg := range []predict.GroupConfig{{Rate: 5}, {Rate: math.NaN()}, {Rate: 241}, {MaxCatchUp: -1}, {MaxCatchUp: 65}, {UpdateRate: 0.5}, {UpdateRate: 241}, {MaxBack: -1}, {MaxBack: 65}} {
		_, err := predict.NewGroup(w, cfg)
		require.ErrorIs(t, err, predict.ErrConfig)
	}
	g, err := predict.NewGroup(w, predict.GroupConfig{})
	require.NoError(t, err)
	_, err = predict.Register(other, "Ball", predict.Config[*ball, predict.NoInput]{Group: g})
	require.ErrorIs(t, err, predict.ErrGroup)
	_, err = predict.Register(w, "Ball", predict.Config[*ball, predict.NoInput]{Group: g, Rate: 30})
	require.ErrorIs(t, err, predict.ErrGroup)
	_, err = predict.Register(w, "Ball", predict.Config[*ball, predict.NoInput]{Group: g, Smoothing: prediction.SmootherConfig{Time: -1}})
	require.ErrorIs(t, err, predict.ErrConfig)
	balls, err := predict.Register(w, "Ball", predict.Config[*ball, predict.NoInput]{Group: g})
	require.NoError(t, err)
	alone, err := predict.Register(w, "Runner", config{})
	require.NoError(t, err)
	require.ErrorIs(t, balls.Tick(0), predict.ErrGrouped)
	require.ErrorIs(t, alone.Join(&runner{}), predict.ErrNoGroup)
	require.ErrorIs(t, balls.Join(&ball{}), predict.ErrNotSpawned)
	b := &ball{}
	require.NoError(t, w.Spawn(b))
	require.NoError(t, balls.Join(b))
	require.NoError(t, balls.Join(b), "it is a member already")
	require.Equal(t, 1, g.Len())
	balls.Leave(b)
	require.NoError(t, g.Tick(0))
	require.Zero(t, g.Len())

	theirs, err := predict.NewGroup(other, predict.GroupConfig{})
	require.NoError(t, err)
	class, err := predict.Register(other, "Ball", predict.Config[*ball, predict.NoInput]{Group: theirs})
	require.NoError(t, err)
	require.ErrorIs(t, class.Join(&ball{}), predict.ErrClient)
}

// TestGroupPutBackAndTaken: an actor that is taken from its player and put where it once began is seen there by that player, who looks on now.
func TestGroupPutBackAndTaken(t *testing.T) {
	s := newRink(t, 2, netsim.Settings{Lag: 30 * time.Millisecond}, predict.GroupConfig{})
	l := s.join()
	server := s.skate(l, vec{})
	s.inputs = func(*skater) keys { return keys{X: 1} }
	s.until("played", func() bool { return mine(l.World) != nil && mine(l.World).Pos.X > 2 })
	seen := mine(l.World)
	s.skaters.Unpossess(server)
	server.Disc = Disc{}
	s.until("it's there", func() bool { return !seen.IsOwned() && seen.Disc == Disc{} })
}

// TestGroupTellsAPlayerOnce: a player with several actors of a group, of one class or of several, gets each update of the members' states once.
func TestGroupTellsAPlayerOnce(t *testing.T) {
	updates := func(actors int) uint64 {
		s := newRink(t, 4, netsim.Settings{Lag: 20 * time.Millisecond}, predict.GroupConfig{})
		l := s.join()
		for i := range actors {
			s.skate(l, vec{float64(2*i) - 4, 0})
		}
		client := s.ends[l.World]
		s.until("predicted", func() bool { return client.group.Len() == actors })
		for range 30 {
			s.step()
		}
		sent, taken := s.group.Counters.Updates, client.group.Counters.Updates
		for range 90 {
			s.step()
		}
		sent, taken = s.group.Counters.Updates-sent, client.group.Counters.Updates-taken
		require.InDelta(t, sent, taken, 2)
		return sent
	}
	one := updates(1)
	require.Greater(t, one, uint64(40))
	require.InDelta(t, one, updates(2), 1)
	require.InDelta(t, one, updates(3), 1)
}
