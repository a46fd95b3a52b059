package lockstep

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func bad(loss float64) netsim.Settings {
	return netsim.Settings{Loss: loss, Dup: 5, Order: 10, LagMin: 20 * ms, LagMax: 50 * ms}
}

func config(players int) HostConfig {
	return HostConfig{Config: Config{Players: players, Protocol: 7}, Secret: [32]byte{7}}
}

func TestGame(t *testing.T) {
	for seed := range uint64(12) {
		players := 2 + int(seed%4)*2
		w := newWorld(t, seed, config(players), bad(float64(seed%4)*10))
		w.start()
		w.playTo(300, 2*time.Minute)
		all := make([]int, players)
		for i := range all {
			all[i] = i
		}
		w.agree(all...)
		require.Zero(t, w.host.Stats().Desyncs)
		require.Zero(t, w.host.Stats().Drops)
		require.Greater(t, w.commands, 100*players)
		require.Greater(t, w.host.Stats().HashesCompared, uint64(250*players))
		for _, p := range w.players { // all commands executed, but the last ones
			require.InDelta(t, p.commands, w.players[0].g.last[p.id], 20, "seed %d", seed)
		}
	}
}

// TestGameOverLink runs the same over package link.
func TestGameOverLink(t *testing.T) {
	for seed := range uint64(6) {
		cfg := config(4)
		cfg.MaxPacket = 255
		w := newWorld(t, seed, cfg, bad(float64(seed%3)*10))
		w.overLink = true
		w.start()
		w.playTo(200, 2*time.Minute)
		w.agree(0, 1, 2, 3)
		require.Zero(t, w.host.Stats().Desyncs)
		// A late session over the link: the log in one go.
		w.connect(2, 0)
		w.until("second join", time.Minute, func() bool { return slices.Contains(w.events, joinOf(w, 2, 1)) })
		turn := w.host.Turn() + 20
		w.playTo(turn, time.Minute)
		require.Zero(t, w.host.Stats().Desyncs)
	}
}

// counted is a Transport whose bytes are counted; as a countedLink it says of itself what a link does.
type counted struct {
	Transport
	bytes *int
}

func (c counted) Send(now time.Duration, p []byte) error {
	*c.bytes += len(p)
	return c.Transport.Send(now, p)
}

type countedLink struct{ counted }

func (c countedLink) Reliable() bool { return c.Transport.(*link.Link).Reliable() }

// TestReliabilityIsTheTransports: no setting has to say that nothing needs to be repeated over package link. Where a transport doesn't
// tell, what isn't acked is sent again.
func TestReliabilityIsTheTransports(t *testing.T) {
	var bytes [2]int // where it isn't told, and where it is
	for told := range bytes {
		cfg := config(4)
		cfg.MaxPacket = 255
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: 150 * ms})
		w.overLink = true
		w.connectWith = func(tr Transport) Transport {
			c := counted{tr, &bytes[told]}
			if told == 1 {
				return countedLink{c}
			}
			return c
		}
		w.start()
		bytes[told] = 0
		w.playTo(w.host.Turn()+200, time.Minute)
		w.agree(0, 1, 2, 3)
	}
	t.Logf("%d bytes, %d when the transport tells", bytes[0], bytes[1])
	require.Less(t, bytes[1], bytes[0]*3/4)
}

// TestSnapshotOverANarrowLink: who comes late through a thin line gets the game's state, and joins, over package link or without.
func TestSnapshotOverANarrowLink(t *testing.T) {
	const rate = 5_000
	for _, c := range []struct {
		overLink bool
		size     int
		queue    time.Duration
	}{{true, 50_000, 100 * ms}, {true, 50_000, 3 * time.Second}, {false, 50_000, 3 * time.Second}} {
		cfg := HostConfig{Config: Config{Players: 2}, Secret: [32]byte{1}, Stall: Substitute, LogTurns: 1500}
		if c.overLink {
			cfg.MaxPacket = 255
		}
		w := newWorld(t, 5, cfg, netsim.Settings{Lag: 30 * ms})
		w.overLink = c.overLink
		w.connect(0, 0)
		w.until("the first", 10*time.Second, func() bool { return w.host.Ready() == 1 })
		w.host.Start(w.now)
		w.run(90 * time.Second)
		late := w.players[1]
		thin := netsim.Settings{Lag: 30 * ms, Bandwidth: 8 * rate, QueueDelay: c.queue}
		require.NoError(t, late.up.Set(thin))
		require.NoError(t, late.down.Set(thin))
		require.NoError(t, w.host.SetSnapshot(w.players[0].peer.Turn(), append(w.players[0].g.save(), make([]byte, c.size)...)))
		w.run(2 * time.Second)
		w.connect(1, 0)
		w.until("the second", time.Duration(8*c.size/rate)*time.Second, late.peer.InGame)
	}
}

// joinOf is the n-th join of player after the first, as told by the host.
func joinOf(w *world, player, n int) string {
	for _, e := range w.events {
		var turn, p int
		if c, _ := fmt.Sscanf(e, "%d:join %d", &turn, &p); c == 2 && p == player {
			if n == 0 {
				return e
			}
			n--
		}
	}
	return "none"
}

func TestLateJoin(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, seed, config(3), bad(10))
		w.connect(0, 0)
		w.connect(1, 0)
		w.until("ready players", 10*time.Second, func() bool { return w.host.Ready() == 3 })
		w.host.Start(w.now)
		w.playTo(400, 2*time.Minute)
		require.EqualValues(t, 3, w.host.Active())
		w.connect(2, 0)
		w.until("join", time.Minute, func() bool { return w.host.Active() == 7 })
		w.playTo(w.host.Turn()+100, time.Minute)
		w.agree(0, 1, 2)
		require.Greater(t, w.players[2].g.last[2], uint64(10), "its commands count")
		require.Zero(t, w.host.Stats().Desyncs)
	}
}

func TestReconnect(t *testing.T) {
	for seed := range uint64(6) {
		for _, keep := range []bool{true, false} {
			w := newWorld(t, seed, config(3), bad(10))
			w.start()
			w.playTo(100, time.Minute)
			w.players[1].offline = true // its network is gone for 3 s, and it gives up
			w.run(3 * time.Second)
			have := int64(0)
			if keep {
				have = w.players[1].peer.Turn()
			} else {
				w.players[1].events = nil
			}
			w.connect(1, have)
			w.until("reconnect", time.Minute, func() bool { return joinOf(w, 1, 1) != "none" })
			w.playTo(w.host.Turn()+100, time.Minute)
			w.agree(0, 1, 2)
			require.Zero(t, w.host.Stats().Desyncs)
			require.EqualValues(t, 7, w.host.Active())
		}
	}
}

// TestSnapshotJoin trims the log, so that who comes late needs the snapshot.
func TestSnapshotJoin(t *testing.T) {
	cfg := config(3)
	cfg.LogTurns = 200
	w := newWorld(t, 1, cfg, bad(10))
	w.connect(0, 0)
	w.connect(1, 0)
	w.until("ready players", 10*time.Second, func() bool { return w.host.Ready() == 3 })
	w.host.Start(w.now)
	w.playTo(500, time.Minute)
	w.connect(2, 0)
	w.until("denial", 10*time.Second, func() bool { return w.players[2].peer.State() == Ended })
	require.Equal(t, DenyTooOld, w.players[2].peer.Reason())
	require.ErrorIs(t, w.players[2].peer.Err(), ErrDenied)

	require.ErrorIs(t, w.host.SetSnapshot(10, []byte{1}), ErrSnapshot, "turn 10 left the log")
	require.ErrorIs(t, w.host.SetSnapshot(w.host.Turn(), nil), ErrSnapshot)
	p := w.players[0]
	require.NoError(t, w.host.SetSnapshot(p.g.turn, p.g.save()))
	w.run(2 * time.Second) // 40 turns later
	w.connect(2, 0)
	w.until("join", time.Minute, func() bool { return w.host.Active() == 7 })
	w.playTo(w.host.Turn()+100, time.Minute)
	require.Zero(t, w.host.Stats().Desyncs)
	require.Greater(t, w.players[2].g.last[2], uint64(10))
}

func TestStallWait(t *testing.T) {
	cfg := config(3)
	cfg.DropAfter = 2 * time.Second
	w := newWorld(t, 2, cfg, bad(5))
	w.start()
	w.playTo(50, time.Minute)
	w.players[1].frozen = true
	w.run(time.Second)
	turn := w.host.Turn()
	w.run(500 * ms)
	require.Equal(t, turn, w.host.Turn(), "the game waits")
	require.EqualValues(t, 2, w.host.Waiting())
	require.EqualValues(t, 2, w.players[0].peer.Waiting(), "and players can see for whom")
	w.until("drop", 5*time.Second, func() bool { return w.host.Active() == 5 })
	w.playTo(turn+100, time.Minute)
	require.Contains(t, w.events, fmt.Sprintf("%d:drop 1 for %d", turn, DropStalled))
	w.agree(0, 2)
	// It thaws: executes what it missed, and is in the game again.
	w.players[1].frozen = false
	w.until("rejoin", time.Minute, func() bool { return w.host.Active() == 7 })
	w.playTo(w.host.Turn()+50, time.Minute)
	w.agree(0, 1, 2)
	require.Zero(t, w.host.Stats().Desyncs)
}

func TestStallSubstitute(t *testing.T) {
	cfg := config(3)
	cfg.Stall = Substitute
	cfg.DropAfter = 4 * time.Second
	w := newWorld(t, 3, cfg, bad(5))
	w.start()
	w.playTo(50, time.Minute)
	w.players[1].offline = true
	turn, began := w.host.Turn(), w.now
	w.run(2 * time.Second)
	require.InDelta(t, (w.now-began)/w.cfg.TurnInterval, w.host.Turn()-turn, 10, "the game goes on at its pace")
	require.NotZero(t, w.host.Stats().Substituted)
	require.EqualValues(t, 7, w.host.Active())
	w.players[1].offline = false
	w.playTo(w.host.Turn()+100, time.Minute)
	require.NotZero(t, w.players[1].peer.Stats().InputsLost)
	w.agree(0, 1, 2)
	before := w.host.Stats().Substituted
	w.playTo(w.host.Turn()+100, time.Minute)
	require.Less(t, w.host.Stats().Substituted-before, uint64(10), "it has caught up")
	w.players[1].offline = true
	w.until("drop", 6*time.Second, func() bool { return w.host.Active() == 5 })
	require.Zero(t, w.host.Stats().Desyncs)
}

func TestAllLeaveAndOneReturns(t *testing.T) {
	cfg := config(2)
	cfg.DropAfter = time.Second
	w := newWorld(t, 4, cfg, bad(0))
	w.start()
	w.playTo(50, time.Minute)
	w.players[0].offline, w.players[1].offline = true, true
	w.until("empty game", 10*time.Second, func() bool { return w.host.Active() == 0 })
	turn := w.host.Turn()
	w.run(10 * time.Second)
	require.Equal(t, turn, w.host.Turn(), "nobody plays")
	w.connect(1, w.players[1].peer.Turn())
	w.until("return", 10*time.Second, func() bool { return w.host.Active() == 2 })
	w.playTo(turn+50, time.Minute)
}

func TestDropAndConnect(t *testing.T) {
	w := newWorld(t, 5, config(2), bad(0))
	w.start()
	w.playTo(50, time.Minute)
	require.ErrorIs(t, w.host.Drop(w.now, 2), ErrNoPlayer)
	require.NoError(t, w.host.Drop(w.now, 1))
	w.until("denial", time.Second, func() bool { return w.players[1].peer.State() == Ended })
	require.Equal(t, DenyDropped, w.players[1].peer.Reason())
	require.ErrorIs(t, w.players[1].peer.Submit([]byte{1}), ErrInactive)
	w.playTo(100, time.Minute)
	w.connect(1, 0)
	w.until("return", 10*time.Second, func() bool { return w.host.Active() == 3 })
	w.playTo(200, time.Minute)
}

func TestDesync(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, seed, config(4), bad(10))
		w.start()
		who, turn := int(seed%4), int64(60+seed*3)
		w.players[who].corrupt = turn
		w.until("report", time.Minute, func() bool { return w.host.Stats().Desyncs > 0 })
		w.playTo(w.host.Turn()+20, time.Minute)
		require.EqualValues(t, 1, w.host.Stats().Desyncs)
		report := fmt.Sprintf("desync %d at %d", who, turn)
		has := func(e string) bool { return len(e) > len(report) && e[len(e)-len(report):] == report }
		require.True(t, slices.ContainsFunc(w.events, has), "seed %d: %v", seed, w.events)
		w.agree(0, 1, 2, 3)
		require.True(t, slices.ContainsFunc(w.players[who].events, has), "all peers are told")
		// A new session replays the log and is whole again.
		w.players[who].corrupt = -1
		w.players[who].events = nil
		w.connect(who, 0)
		w.until("rejoin", time.Minute, func() bool { return joinOf(w, who, 1) != "none" })
		w.playTo(w.host.Turn()+50, time.Minute)
		require.EqualValues(t, 1, w.host.Stats().Desyncs)
	}
}

var desyncSeeds = flag.Int("desyncs", 6, "seeds of TestFirstDifferenceIsTold")

// TestFirstDifferenceIsTold: where hashes don't fit beside commands, packets get lost and overtake each other, the first turn that differs is told, of a player or a split.
func TestFirstDifferenceIsTold(t *testing.T) {
	for seed := range uint64(*desyncSeeds) {
		for i, loss := range []float64{5, 20, 5, 20} {
			cfg := config(2 + i/2*2)
			cfg.MaxPacket, cfg.MaxInput, cfg.InputRate, cfg.TurnInterval, cfg.MaxDelay = 128, 32, 30, 10*ms, 60
			w := newWorld(t, seed, cfg, netsim.Settings{Loss: loss, LagMin: 200 * ms, LagMax: 240 * ms, Order: 10})
			w.start()
			turn := int64(50 + seed%30)
			w.players[int(seed)%cfg.Players].corrupt = turn
			w.until("report", time.Minute, func() bool {
				for _, p := range w.players {
					p.stuffed, p.every = p.g.turn%40 == 0, 1<<30
				}
				return w.host.Stats().Desyncs+w.host.Stats().Splits > 0 && w.host.Turn() > turn+100
			})
			of := func(e string) bool { return strings.Contains(e, "desync ") || strings.Contains(e, "split ") }
			i := slices.IndexFunc(w.events, of)
			require.True(t, i >= 0 && strings.HasSuffix(w.events[i], fmt.Sprintf(" at %d", turn)), "seed %d, loss %v: %v", seed, loss, w.events)
			require.LessOrEqual(t, w.host.Stats().Desyncs, uint64(1))
		}
	}
}

// TestDelayAdapts: the ways get longer and shorter again, and all agree from which
// turn on what delay held.
func TestDelayAdapts(t *testing.T) {
	for seed := range uint64(4) {
		set := func(w *world, lag time.Duration) {
			for _, p := range w.players {
				s := netsim.Settings{Loss: 5, LagMin: lag, LagMax: lag + 20*ms}
				require.NoError(t, p.up.Set(s))
				require.NoError(t, p.down.Set(s))
			}
		}
		w := newWorld(t, seed, config(3), netsim.Settings{})
		set(w, 10*ms)
		w.start()
		w.playTo(200, time.Minute)
		short := w.host.Delay()
		require.LessOrEqual(t, short, 4, "seed %d", seed)
		set(w, 150*ms)
		w.playTo(500, 2*time.Minute)
		long := w.host.Delay()
		require.GreaterOrEqual(t, long, 7, "seed %d", seed)
		set(w, 10*ms)
		w.playTo(1600, 3*time.Minute)
		require.LessOrEqual(t, w.host.Delay(), short+1, "seed %d", seed)
		w.agree(0, 1, 2)
		require.Zero(t, w.host.Stats().Desyncs)
		require.Greater(t, w.host.Stats().DelayChanges, uint64(4))
	}
}

// TestSkewedClocks: machines whose turns take longer set the pace; nobody gets lost.
func TestSkewedClocks(t *testing.T) {
	w := newWorld(t, 6, config(3), bad(10))
	w.players[1].skew = 2 * ms
	w.players[2].skew = -2 * ms
	w.start()
	w.playTo(1000, 3*time.Minute)
	w.agree(0, 1, 2)
	require.Zero(t, w.host.Stats().Drops)
}

// TestSameSeedSameBytes runs a game twice.
func TestSameSeedSameBytes(t *testing.T) {
	var logs [2][]byte
	var stats [2]HostStats
	for i := range logs {
		w := newWorld(t, 9, config(4), bad(20))
		w.start()
		w.playTo(200, time.Minute)
		l := &w.host.log
		logs[i], stats[i] = l.appendRange(nil, l.start, l.end), w.host.Stats()
	}
	require.Equal(t, logs[0], logs[1])
	require.Equal(t, stats[0], stats[1])
}
