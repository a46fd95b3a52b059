package predict_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestForgottenTick: a game that possesses actors and never calls Tick is told so, once, at the end that forgets it; with a group too. One that calls it, or
// possesses none, isn't told anything.
func TestForgottenTick(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		for _, forgets := range []string{"nobody", "server", "client", "client, nothing possessed"} {
			var ends [2]*predict.Class[*skater, keys]
			var groups [2]*predict.Group
			register := func(i int) func(w *actorrep.World) error {
				return func(w *actorrep.World) (err error) {
					cfg := predict.Config[*skater, keys]{Input: func(*skater) keys { return keys{X: 1} }}
					if grouped {
						groups[i], err = predict.NewGroup(w, predict.GroupConfig{})
						require.NoError(t, err)
						cfg.Group = groups[i]
					}
					ends[i], err = predict.Register(w, "Skater", cfg)
					return err
				}
			}
			tick := func(i int, now time.Duration) error {
				if grouped {
					return groups[i].Tick(now)
				}
				return ends[i].Tick(now)
			}
			var failed []error
			r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, register(0))
			l := r.JoinOther(register(1))
			a := &skater{}
			require.NoError(t, r.Server.Spawn(a))
			if forgets != "client, nothing possessed" {
				require.NoError(t, ends[0].Possess(a, l.Peer, r.Now))
			}
			for range 300 {
				if forgets != "server" {
					require.NoError(t, tick(0, r.Now))
				}
				r.Step()
				if forgets == "nobody" || forgets == "server" {
					require.NoError(t, tick(1, r.Now))
				}
			}
			for i, list := range [][]error{failed, l.Failed} {
				if forgets != []string{"server", "client"}[i] {
					require.Empty(t, list, "%s forgets", forgets)
					continue
				}
				require.Len(t, list, 1)
				require.ErrorContains(t, list[0], "never calls")
				require.ErrorIs(t, list[0], predict.ErrConfig)
			}
		}
	}
}

// TestForgottenPossess: a game whose players own predicted actors, and that never calls Possess, is told so once, after 10 s; with a group too. One that possesses any,
// or whose actors nobody owns, isn't.
func TestForgottenPossess(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		for _, does := range []string{"owns", "owns and possesses", "owns nothing"} {
			register := func(class **predict.Class[*skater, keys]) func(w *actorrep.World) error {
				return func(w *actorrep.World) (err error) {
					cfg := predict.Config[*skater, keys]{Input: func(*skater) keys { return keys{X: 1} }}
					if grouped {
						cfg.Group, err = predict.NewGroup(w, predict.GroupConfig{})
						require.NoError(t, err)
					}
					*class, err = predict.Register(w, "Skater", cfg)
					return err
				}
			}
			var ends [2]*predict.Class[*skater, keys]
			var failed []error
			r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(err error) {
				if !strings.Contains(err.Error(), "Class.Tick") { // what the server's end isn't asked about here
					failed = append(failed, err)
				}
			}}, register(&ends[0]))
			l := r.JoinOther(register(&ends[1]))
			a, other := &skater{}, &skater{}
			if does != "owns nothing" {
				a.SetOwner(l.Peer)
			}
			require.NoError(t, r.Server.Spawn(a))
			require.NoError(t, r.Server.Spawn(other))
			if does == "owns and possesses" {
				require.NoError(t, ends[0].Possess(other, l.Peer, r.Now))
			}
			steps := func(d time.Duration) {
				for end := r.Now + d; r.Now < end; {
					r.Step()
				}
			}
			steps(9 * time.Second)
			require.Empty(t, failed, does)
			steps(40 * time.Second)
			if does != "owns" {
				require.Empty(t, failed, does)
				continue
			}
			require.Len(t, failed, 1)
			require.ErrorContains(t, failed[0], `class "Skater"`)
			require.ErrorContains(t, failed[0], "never called Class.Possess")
			require.ErrorIs(t, failed[0], predict.ErrConfig)
		}
	}
}

// TestExplain: who moves an actor, or what is missing, is told at both ends in each state of a possession.
func TestExplain(t *testing.T) {
	s := newStage(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, right())
	r := &runner{}
	require.Equal(t, "not spawned", s.class.Explain(r))
	require.NoError(t, s.Server.Spawn(r))
	require.Contains(t, s.class.Explain(r), "call Possess")
	l := s.JoinOther(s.register)
	client := s.clients[l.World]
	require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
	require.Contains(t, s.class.Explain(r), "never calls")
	frames := func(d time.Duration, plays bool) {
		for end := s.Now + d; s.Now < end; {
			require.NoError(t, s.class.Tick(s.Now))
			s.Step()
			if plays {
				require.NoError(t, client.Tick(s.Now))
			}
		}
	}
	frames(2*time.Second, false)
	require.Contains(t, s.class.Explain(r), "since Possess")
	require.Contains(t, client.Explain(own(l.World)), "never calls")
	frames(2*time.Second, true)
	onlooker := s.JoinOther(func(w *actorrep.World) (err error) {
		s.clients[w], err = predict.Register(w, "Runner", config{})
		return err
	})
	s.until("seen", func() bool { return onlooker.World.Find(r.GUID()) != nil })
	require.Equal(t, "another player's, or nobody's", s.clients[onlooker.World].Explain(onlooker.World.Find(r.GUID()).(*runner)), "it needs no Input for that")
	require.Equal(t, "its player moves it", s.class.Explain(r))
	require.Contains(t, client.Explain(own(l.World)), "this end's player moves it")
	frames(3*time.Second, false)
	require.Contains(t, s.class.Explain(r), "no input has arrived for 2.9")
	s.class.Unpossess(r)
	frames(time.Second, true)
	r.SetOwner(l.Peer)
	frames(time.Second, true)
	require.Contains(t, s.class.Explain(r), "call Possess")
	require.Contains(t, client.Explain(own(l.World)), "owned, not possessed")
	r.SetOwner(nil)
	frames(time.Second, true)
	for a := range l.World.All {
		require.Equal(t, "another player's, or nobody's", client.Explain(a.(*runner)))
	}
	host := &runner{}
	require.NoError(t, s.Server.Spawn(host))
	require.NoError(t, s.class.Possess(host, s.Server.Local(), s.Now))
	require.Equal(t, "this end's player moves it", s.class.Explain(host))
	require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
	l.S.Close(s.Now, "bye")
	for !l.S.Closed() {
		s.Now += time.Second
		l.S.Tick(s.Now)
	}
	require.Contains(t, s.class.Explain(r), "call World.RemoveConn")
	require.Contains(t, s.Server.Explain(l.Peer, r).Text, "call World.RemoveConn")
	s.Server.RemoveConn(l.Peer)
	require.Equal(t, "the connection was removed", s.Server.Explain(l.Peer, r).Text)
	require.Contains(t, s.class.Explain(r), "call Possess")
}

// TestStrayInput: an input that isn't finite is told once, at a client and for World.Local, and counts as the zero input; a client without Config.Input is told so by
// Explain.
func TestStrayInput(t *testing.T) {
	var told []error
	failed := actorrep.Config{Failed: func(err error) { told = append(told, err) }}
	cfg := config{Input: func(*runner) keys { return keys{X: 1, Look: float32(math.NaN())} }}
	s := &stage{clients: map[*actorrep.World]*runners{}, cfg: cfg}
	s.Rig = rig.New(t, 1, netsim.Settings{}, failed, func(w *actorrep.World) (err error) {
		s.class, err = predict.Register(w, "Runner", cfg)
		return err
	})
	l := s.JoinOther(s.register)
	r, host := &runner{}, &runner{}
	require.NoError(t, s.Server.Spawn(r))
	require.NoError(t, s.Server.Spawn(host))
	require.NoError(t, s.class.Possess(r, l.Peer, s.Now))
	require.NoError(t, s.class.Possess(host, s.Server.Local(), s.Now))
	for range 60 {
		s.step()
	}
	for _, list := range [][]error{told, l.Failed} {
		require.Len(t, list, 1)
		require.ErrorIs(t, list[0], predict.ErrInput)
		require.ErrorContains(t, list[0], "runner: {X:1")
	}
	require.Zero(t, r.Pos.X+host.Pos.X)
	s.cfg.Input = nil
	silent, other := s.JoinOther(s.register), &runner{}
	require.NoError(t, s.Server.Spawn(other))
	require.NoError(t, s.class.Possess(other, silent.Peer, s.Now))
	for range 60 {
		s.step()
	}
	require.Len(t, silent.Failed, 1, "once")
	require.ErrorIs(t, silent.Failed[0], predict.ErrNoInput)
	require.Equal(t, predict.ErrNoInput.Error(), s.clients[silent.World].Explain(own(silent.World)))
}
