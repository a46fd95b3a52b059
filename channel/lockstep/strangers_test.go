package lockstep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// What one player who lies can do to the others.

// turnsIn plays for d and returns the number of turns.
func turnsIn(w *world, d time.Duration) int64 {
	from := w.host.Turn()
	w.run(d)
	return w.host.Turn() - from
}

// TestFreezerHoldsTheGameOnce: a player that never sends commands, and is back at once when it was dropped,
// costs the game DropAfter and then a tenth of the time at most.
func TestFreezerHoldsTheGameOnce(t *testing.T) {
	w := newWorld(t, 1, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(20, time.Minute)
	w.players[2].inputsTo = func() int64 { return 0 }
	w.players[2].comesBack = true
	turns := turnsIn(w, time.Minute)
	t.Logf("%d of 1200 turns in the first minute", turns)
	require.Greater(t, turns, int64(900))
	turns = turnsIn(w, time.Minute)
	t.Logf("%d of 1200 turns in the second minute", turns)
	require.Greater(t, turns, int64(1080))
	require.Zero(t, w.host.Stats().Desyncs)
}

// TestEverySecondTurn: by Substitute, who answers every second turn is soon not waited for, and then dropped.
func TestEverySecondTurn(t *testing.T) {
	cfg := config(3)
	cfg.Stall = Substitute
	w := newWorld(t, 2, cfg, netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(20, time.Minute)
	w.players[2].inputsTo = func() int64 { return w.host.Turn() + 1 - w.host.Turn()%2 }
	turns := turnsIn(w, time.Minute)
	t.Logf("%d of 1200 turns", turns)
	require.Greater(t, turns, int64(1080))
	require.True(t, slices.ContainsFunc(w.events, func(e string) bool { return strings.HasSuffix(e, fmt.Sprintf("drop 2 for %d", DropStalled)) }))
}

// TestLiarBlamesNobody: a liar in slot 0 meets honest players one after another.
func TestLiarBlamesNobody(t *testing.T) {
	w := newWorld(t, 3, config(5), netsim.Settings{Lag: 20 * ms})
	w.players[0].lie = func(h uint64) uint64 { return ^h }
	w.connect(0, 0)
	w.connect(1, 0)
	w.until("ready players", 10*time.Second, func() bool { return w.host.Ready() == 3 })
	w.host.Start(w.now)
	w.playTo(50, time.Minute)
	for i := 2; i < 5; i++ {
		w.connect(i, 0)
		w.until("join", 10*time.Second, func() bool { return w.host.Active()>>i&1 != 0 })
		w.playTo(w.host.Turn()+50, time.Minute)
	}
	for _, e := range w.events {
		for honest := 1; honest < 5; honest++ {
			require.NotContains(t, e, fmt.Sprintf("desync %d ", honest))
		}
	}
	require.True(t, slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "desync 0 ") }), "three to one: %v", w.events)
}

// TestLateHashesBlameNobody: by Substitute the game goes on without players that are dark. Those who were there don't decide alone what
// is right: who is back is not named, and who really differs still is.
func TestLateHashesBlameNobody(t *testing.T) {
	for _, liars := range []int{1, 2} {
		players := 3*liars - 1
		cfg := config(players)
		cfg.Stall = Substitute
		w := newWorld(t, 12, cfg, netsim.Settings{Lag: 20 * ms})
		w.start()
		w.playTo(40, time.Minute)
		for i := range liars {
			w.players[i].lie = func(h uint64) uint64 { return ^h }
		}
		dark := w.players[players-liars:]
		for _, p := range dark {
			require.NoError(t, p.up.Set(netsim.Settings{Loss: 100}))
		}
		w.run(5 * time.Second)
		for _, p := range dark {
			require.NoError(t, p.up.Set(netsim.Settings{Lag: 20 * ms}))
		}
		w.run(20 * time.Second)
		require.Zero(t, w.host.Stats().Drops)
		events := strings.Join(w.events, ", ")
		for honest := liars; honest < players; honest++ {
			require.NotContains(t, events, fmt.Sprintf("desync %d ", honest))
		}
		if liars == 1 {
			require.Contains(t, events, "split 1 ")
			continue
		}
		require.Contains(t, events, "desync 0 ", "three to two")
		require.Contains(t, events, "desync 1 ")
	}
}

// TestWhoPlayedAloneJudgesNobody: who joins, and executes turns of which there is one player's hash, isn't named because of it.
func TestWhoPlayedAloneJudgesNobody(t *testing.T) {
	w := newWorld(t, 13, config(2), netsim.Settings{Lag: 20 * ms})
	w.players[0].lie = func(h uint64) uint64 { return ^h }
	w.connect(0, 0)
	w.until("ready", 10*time.Second, func() bool { return w.host.Ready() == 1 })
	w.host.Start(w.now)
	w.playTo(50, time.Minute)
	w.connect(1, 0)
	w.playTo(150, time.Minute)
	require.NotZero(t, w.host.Stats().Splits)
	require.Zero(t, w.host.Stats().Desyncs, "%v", w.events)
	require.NoError(t, w.host.Judge(20, ^w.hashes[20]))
	require.EqualValues(t, 1, w.host.Stats().Desyncs, "the host's own game judges all")
}

// TestWithoutHashes: a player that sends no hashes is reported, and verdicts don't wait for it.
func TestWithoutHashes(t *testing.T) {
	w := newWorld(t, 4, config(4), netsim.Settings{Lag: 20 * ms})
	w.players[3].noHashes = true
	w.start()
	w.players[1].corrupt = 60
	w.playTo(110, time.Minute)
	require.EqualValues(t, 1, w.host.Stats().Desyncs, "50 turns later")
	w.playTo(300, time.Minute)
	require.True(t, slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "no hashes 3") }), "%v", w.events)
	require.EqualValues(t, 1, w.host.Stats().Desyncs)
}

// TestOneHashIsMissing: a hash that never comes delays what is told of others by 2*MaxDelay+16 turns at most, and of the one who keeps it back by 256, or until it begins
// anew or is dropped.
func TestOneHashIsMissing(t *testing.T) {
	for _, c := range []struct {
		liar       int // another, or the one who differs
		hides, end int64
		then, told string
	}{
		{0, 62, 64 + 2*16 + 16, "", "split 10 at 62,desync 1 at 63"}, {1, 60, 62 + hashWindow, "", "desync 1 at 62"},
		{1, 62, 84, "shows", "desync 1 at 62"}, {1, 60, 84, "is judged of other turns, and shows", "desync 1 at 62"}, {1, 60, 84, "anew", "desync 1 at 62"}, {1, 60, 84, "dropped", "desync 1 at 62"},
		{1, 60, 62 + hashWindow, "is silent", "desync 1 at 62"}, {1, 62, 62 + hashWindow + 1, "shows when it is about to be forgotten", "desync 1 at 62"},
	} {
		w := newWorld(t, 4, config(3), netsim.Settings{Lag: 20 * ms})
		w.start()
		p := w.players[1]
		p.corrupt, w.players[c.liar].hides = 62, c.hides
		w.playTo(80, time.Minute)
		require.Zero(t, w.host.Stats().Desyncs, "%+v: %v", c, w.events)
		switch c.then {
		case "is judged of other turns, and shows":
			for _, turn := range []int64{61, 70} {
				require.NoError(t, w.host.Judge(turn, w.hashes[turn]))
			}
			fallthrough
		case "shows":
			p.hides, p.peer.hashNext, p.peer.hashSent = 0, c.hides, c.hides
		case "anew":
			p.corrupt = -1
			w.connect(1, 0)
			p.frozen = true
		case "is silent":
			p.offline = true
		case "shows when it is about to be forgotten":
			p.hides = 62
			w.until("end", time.Minute, func() bool { return w.host.Turn() == c.hides+hashWindow })
			w.host.takeHashes(1, &input{firstHash: c.hides, hashes: make([]byte, 8)})
		case "dropped":
			require.NoError(t, w.host.Drop(w.now, 1))
		}
		w.until("report", time.Minute, func() bool { return w.host.Stats().Desyncs > 0 })
		require.LessOrEqual(t, w.host.Turn(), c.end)
		w.playTo(w.host.Turn()+10, time.Minute)
		require.Equal(t, c.told, strings.Join(w.differences(), ","), "%+v", c)
	}
}

// differences are the Desynced and Split events.
func (w *world) differences() (told []string) {
	for _, e := range w.events {
		if _, e, _ = strings.Cut(e, ":"); strings.HasPrefix(e, "desync ") || strings.HasPrefix(e, "split ") {
			told = append(told, e)
		}
	}
	return told
}

// proved is a Transport to a peer that has proved who it is.
type proved struct{ Transport }

func (proved) Proven() bool { return true }

// TestWhoBeginsAnewHidesNoSplit: a player that begins a session in each turn doesn't keep from the others that their states differ.
func TestWhoBeginsAnewHidesNoSplit(t *testing.T) {
	w := newWorld(t, 4, config(3), netsim.Settings{Lag: 60 * ms})
	w.connectWith = func(tr Transport) Transport { return proved{tr} }
	w.start()
	w.players[1].corrupt = 150
	for turn := int64(0); turn < 250; turn = w.host.Turn() {
		if w.step(); w.host.Turn() > max(turn, 140) {
			w.connect(2, 0)
		}
	}
	require.Contains(t, strings.Join(w.events, ","), "split 1 at 150")

	w = newWorld(t, 4, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	for _, p := range w.players[:2] {
		p.hides = 61 // so that it isn't told yet when the third begins anew
	}
	w.players[1].corrupt = 62
	w.players[2].lie = func(h uint64) uint64 { return h + uint64(w.players[2].g.turn/63) }
	w.playTo(80, time.Minute)
	w.connect(2, 0)
	w.players[2].frozen = true
	w.until("split", time.Minute, func() bool { return w.host.Stats().Splits > 0 })
	w.playTo(w.host.Turn()+5, time.Minute)
	require.Equal(t, []string{"split 1 at 62"}, w.differences())
}

// TestOldStamps: a player that echoes old stamps looks far away; it raises the delay by little.
func TestOldStamps(t *testing.T) {
	w := newWorld(t, 5, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(200, time.Minute)
	honest := w.host.Delay()
	w.players[2].echoOld = 40
	w.playTo(600, 2*time.Minute)
	t.Logf("delay %d turns, %d with the liar", honest, w.host.Delay())
	require.LessOrEqual(t, w.host.Delay(), honest+4)
}

// TestStuffedCommands: a player that fills each turn can't take the log from those who rejoin.
func TestStuffedCommands(t *testing.T) {
	held := func(stuffed bool) int64 {
		cfg := config(3)
		cfg.LogTurns, cfg.LogBytes = 2048, 64<<10
		w := newWorld(t, 6, cfg, netsim.Settings{Lag: 20 * ms})
		w.start()
		w.players[2].stuffed = stuffed
		w.playTo(2000, 5*time.Minute)
		return w.host.log.next - w.host.log.first
	}
	honest, stuffed := held(false), held(true)
	t.Logf("the log holds %d turns, %d with the liar", honest, stuffed)
	require.Greater(t, stuffed, honest/2)
}

// TestSnapshotOverTheLimit: a peer whose MaxSnapshot is too small is told.
func TestSnapshotOverTheLimit(t *testing.T) {
	cfg := config(2)
	cfg.LogTurns = 100
	w := newWorld(t, 7, cfg, netsim.Settings{Lag: 20 * ms})
	w.connect(0, 0)
	w.until("ready", time.Minute, func() bool { return w.host.Ready() == 1 })
	w.host.Start(w.now)
	w.playTo(300, time.Minute)
	w.snapshotNow()
	w.maxSnapshot = 100
	w.connect(1, 0)
	w.until("end", time.Minute, func() bool { return w.players[1].peer.State() == Ended })
	require.ErrorIs(t, w.players[1].peer.Err(), ErrDenied)
	require.Equal(t, DenySnapshot, w.players[1].peer.Reason())
}

// TestHostRestartIsTold: peers of a host that began anew hear that their session is gone.
func TestHostRestartIsTold(t *testing.T) {
	w := newWorld(t, 8, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(50, time.Minute)
	host, err := NewHost(config(2), w)
	require.NoError(t, err)
	w.host = host
	for i, p := range w.players {
		require.NoError(t, host.Connect(i, push{p.down}))
	}
	w.until("end", time.Minute, func() bool {
		return w.players[0].peer.State() == Ended && w.players[1].peer.State() == Ended
	})
	require.ErrorIs(t, w.players[0].peer.Err(), ErrDenied)
}

// TestSilentHostIsTold: a host that is gone doesn't leave its peers waiting for ever, whether they are
// connecting or running.
func TestSilentHostIsTold(t *testing.T) {
	w := newWorld(t, 9, config(2), netsim.Settings{Lag: 20 * ms})
	w.connect(0, 0)
	w.until("ready", time.Minute, func() bool { return w.host.Ready() == 1 })
	w.connect(1, 0)
	for _, p := range w.players {
		require.NoError(t, p.down.Set(netsim.Settings{Loss: 100}))
	}
	w.until("end", 5*time.Minute, func() bool {
		return w.players[0].peer.State() == Ended && w.players[1].peer.State() == Ended
	})
}

// TestRestartsDontAmplify: what begins sessions without having seen an answer gets no more than it sent.
func TestRestartsDontAmplify(t *testing.T) {
	tb := startedTable(t, config(2))
	for range 400 {
		tb.turn([]byte("a command of more bytes"[:12]))
	}
	sent, before := 0, tb.host.Stats().BytesSent
	for session := uint32(100); session < 200; session++ {
		tb.now += 10 * ms
		for _, p := range [][]byte{
			hello{agreement: tb.host.cfg.agreement()}.append(envelope{typeHello, 0, session}.append(nil)),
			craftIn(0, session),
		} {
			sent += len(p)
			_ = tb.host.Receive(tb.now, 0, p)
		}
		tb.host.Tick(tb.now)
		tb.down[0].packets, tb.down[1].packets = nil, nil
	}
	got := tb.host.Stats().BytesSent - before
	t.Logf("%d bytes brought %d", sent, got)
	require.Less(t, got, uint64(sent)+100*300, "but for what the game itself sends the other")
}

// craftIn is an Input that says nothing.
func craftIn(player int, session uint32) []byte {
	p := (&input{received: 1, hold: noHold}).appendHead(envelope{typeInput, player, session}.append(nil))
	return append(p, 0, 0)
}

// TestProvenRestartsArePaced: who gets the answers and begins sessions all the time gets Rate at most, and
// over a connection what the connection has.
func TestProvenRestartsArePaced(t *testing.T) {
	cfg := config(2)
	cfg.Rate = 30000
	tb := startedTable(t, cfg)
	for range 400 {
		tb.turn([]byte("a command of more bytes"[:12]))
	}
	before := tb.host.Stats().BytesSent
	for session := uint32(100); session < 600; session++ { // 5 s
		tb.now += 10 * ms
		key := keyOf(tb.host.proof(0, session))
		_ = tb.host.Receive(tb.now, 0, hello{agreement: tb.host.cfg.agreement(), proof: tb.host.proof(0, session)}.append(envelope{typeHello, 0, session}.append(nil)))
		_ = tb.host.Receive(tb.now, 0, craftIn(0, key))
		tb.host.Tick(tb.now)
		tb.down[0].packets, tb.down[1].packets = nil, nil
	}
	got := tb.host.Stats().BytesSent - before
	t.Logf("%d bytes a second", got/5)
	require.Less(t, got, uint64(5*cfg.Rate*2+2*burstPackets*cfg.MaxPacket+20000), "of both players")
	require.NotZero(t, tb.host.Stats().Paced)
}

// TestSpoofedHello: a Hello from elsewhere can't end a player's session.
func TestSpoofedHello(t *testing.T) {
	tb := startedTable(t, config(2))
	tb.turn([]byte{1})
	before := tb.host.Stats().Challenges
	spoofed := hello{agreement: tb.host.cfg.agreement()}.append(envelope{typeHello, 0, 99}.append(nil))
	for range 20 {
		require.NoError(t, tb.host.Receive(tb.now, 0, spoofed))
		tb.down[0].packets = tb.down[0].packets[:0] // the challenges, which the liar doesn't see
		tb.turn([]byte{1})
	}
	require.EqualValues(t, 3, tb.host.Active())
	require.EqualValues(t, before+20, tb.host.Stats().Challenges)
}

// TestSpoofedHelloOfAnotherVersion: nor can one that has the number of the player's own session, which is easily guessed, and another version or other settings.
func TestSpoofedHelloOfAnotherVersion(t *testing.T) {
	other := append(envelope{typeHello, 0, 5}.append(nil), wireVersion+1)
	settings := hello{agreement: 1}.append(envelope{typeHello, 0, 5}.append(nil))
	for _, spoofed := range [][]byte{other, settings} {
		tb := startedTable(t, config(2))
		tb.turn([]byte{1})
		for range 20 {
			_ = tb.host.Receive(tb.now, 0, spoofed) // an error, or not: nobody is there to see it
			tb.turn([]byte{1})
		}
		require.Equal(t, Running, tb.peers[0].State())
		require.EqualValues(t, 3, tb.host.Active())
	}
}

// TestTransportMustBeProven: a forgotten Secret says so.
func TestTransportMustBeProven(t *testing.T) {
	cfg := config(2)
	cfg.Secret = [32]byte{}
	h, err := NewHost(cfg, nil)
	require.NoError(t, err)
	require.ErrorIs(t, h.Connect(0, &box{}), ErrTransport)
	require.NoError(t, h.Connect(0, &OnChannel{}))
}

// TestOverBudget: commands beyond InputRate are refused by Submit, and by the host when a liar sends them.
func TestOverBudget(t *testing.T) {
	tb := startedTable(t, config(2))
	tb.turn(nil)
	p := tb.peers[0]
	submitted := 0
	for range 100 {
		if p.Submit(make([]byte, 200)) == nil {
			submitted += 202
		}
		tb.turn(nil)
	}
	require.Less(t, submitted, 256+101*16)
	require.Greater(t, submitted, 99*16-202)
	require.Zero(t, tb.host.Stats().RefusedOversize)
	huge := append([]byte{0xfd, 1}, make([]byte, 253)...)
	in := input{life: p.life, first: tb.host.clients[0].received, hold: noHold, executed: p.next}
	require.ErrorIs(t, tb.host.Receive(tb.now, 0, tb.craft(0, in, [][]byte{huge, huge})), ErrOversize)

	from := in.first // behind a gap they are kept, and forgotten when it is filled
	in.first++
	require.NoError(t, tb.host.Receive(tb.now, 0, tb.craft(0, in, [][]byte{huge})))
	in.first = from
	require.NoError(t, tb.host.Receive(tb.now, 0, tb.craft(0, in, [][]byte{nil})))
	require.Equal(t, from+1, tb.host.clients[0].received)
}

// TestInputsTooLateAreCounted: each turn's commands once that come behind its turn, also when those of later turns are there before them.
func TestInputsTooLateAreCounted(t *testing.T) {
	cfg := config(2)
	cfg.Stall, cfg.StallAfter = Substitute, 60*ms
	tb := startedTable(t, cfg)
	for range 5 {
		tb.turn(nil)
	}
	c := &tb.host.clients[1]
	missing := c.received
	send := func(turn int64) {
		in := input{life: c.life, first: turn, hold: noHold, executed: c.executed}
		require.NoError(t, tb.host.Receive(tb.now, 1, tb.craft(1, in, [][]byte{nil})))
	}
	send(missing + 1)
	in := input{life: tb.host.clients[0].life, first: missing, hold: noHold, executed: c.executed}
	require.NoError(t, tb.host.Receive(tb.now, 0, tb.craft(0, in, [][]byte{nil, nil, nil})))
	for tb.host.Turn() <= missing {
		tb.now += 10 * ms
		tb.host.Tick(tb.now)
	}
	require.Equal(t, missing+2, c.received)
	for range 2 {
		send(missing)
		send(missing + 1)
	}
	require.EqualValues(t, 1, tb.host.Stats().InputsTooLate)
}

// TestTwoPlayersCannotBeJudged: with two players the Split is told, and nobody blamed; the host's own game may judge.
func TestTwoPlayersCannotBeJudged(t *testing.T) {
	w := newWorld(t, 10, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].corrupt = 60
	w.playTo(100, time.Minute)
	require.EqualValues(t, 1, w.host.Stats().Splits, "told once")
	require.Zero(t, w.host.Stats().Desyncs)
	require.True(t, slices.ContainsFunc(w.events, func(e string) bool { return strings.HasSuffix(e, "split 1 at 60") }), "%v", w.events)
	require.ErrorIs(t, w.host.Judge(w.host.Turn()+1, 5), ErrTurn)
	require.NoError(t, w.host.Judge(60, w.hashes[60]))
	w.playTo(w.host.Turn()+50, time.Minute)
	require.EqualValues(t, 1, w.host.Stats().Desyncs)
	require.True(t, slices.ContainsFunc(w.events, func(e string) bool { return strings.HasSuffix(e, "desync 1 at 60") }), "%v", w.events)
	require.EqualValues(t, 1, w.host.Stats().Splits, "it votes no longer")
	w.agree(0, 1)

	w = newWorld(t, 10, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].lie = func(h uint64) uint64 { return h + uint64(w.players[1].g.turn/20%2) }
	w.playTo(110, time.Minute)
	require.EqualValues(t, 3, w.host.Stats().Splits, "told again after they agreed: %v", w.events)

	w = newWorld(t, 10, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].corrupt, w.players[1].hides = 62, 60 // so that it isn't told yet when both begin anew
	w.playTo(80, time.Minute)
	w.players[1].corrupt = -1
	w.connect(1, 0)
	w.connect(0, w.players[0].peer.Turn())
	w.playTo(150, time.Minute)
	require.Zero(t, w.host.Stats().Splits, "what they said before doesn't count: %v", w.events)

	w = newWorld(t, 10, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].corrupt, w.players[1].hides = 62, 62
	w.until("end", time.Minute, func() bool {
		w.host.clients[1].away = 2 // it was substituted, so it is waited for
		return w.host.Turn() == 62+hashWindow
	})
	w.host.takeHashes(1, &input{firstHash: 62, hashes: make([]byte, 8)})
	w.playTo(w.host.Turn()+10, time.Minute)
	require.Equal(t, []string{"split 1 at 62"}, w.differences(), "though the turn is forgotten as this one is complete")
}

// TestWhoIsOverruledCountsNoLonger: what Judge says of a turn holds for later ones that were begun before, and for who hasn't been told yet.
func TestWhoIsOverruledCountsNoLonger(t *testing.T) {
	for _, c := range []struct {
		players int
		judged  int64 // 0: the last turn executed when a Split is told
		told    string
	}{{3, 62, "desync 0 at 62,desync 2 at 62"}, {2, 62, "desync 1 at 62"}, {2, 0, "split 1 at 62,desync 1 at 63"}} {
		w := newWorld(t, 10, config(c.players), netsim.Settings{Lag: 20 * ms})
		w.start()
		w.players[c.players-1].corrupt = 62
		if c.players == 3 {
			w.players[0].corrupt, w.players[1].hides = 62, 60
			w.playTo(80, time.Minute)
			require.NotZero(t, w.host.differing, "the two would have the third named")
		}
		w.until("turn", time.Minute, func() bool {
			honest := w.players[c.players-2].peer.Turn() - 1
			if c.judged == 0 && w.host.Stats().Splits > 0 && w.host.judge.ballot(honest).state == undecided {
				c.judged = honest
			}
			return c.judged > 0 && c.judged <= honest
		})
		require.NoError(t, w.host.Judge(c.judged, w.hashes[c.judged]))
		if p := w.players[1]; c.players == 3 {
			p.hides, p.peer.hashNext, p.peer.hashSent = 0, 60, 60
		}
		w.playTo(140, time.Minute)
		require.Equal(t, c.told, strings.Join(w.differences(), ","))
	}
}

// TestHostHitch: a host that slept for a minute drops nobody.
func TestHostHitch(t *testing.T) {
	w := newWorld(t, 11, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(50, time.Minute)
	w.now += time.Minute
	w.playTo(100, time.Minute)
	w.now += time.Minute
	w.playTo(150, time.Minute)
	require.Zero(t, w.host.Stats().Drops)
}

// TestStandingStillIsNoSlowPath: the host, a player's machine or all of them stand still, and the input delay stays as it is.
func TestStandingStillIsNoSlowPath(t *testing.T) {
	for _, d := range []time.Duration{300 * ms, time.Second, 3 * time.Second, time.Minute, 10 * time.Hour} {
		for who := range 3 {
			w := newWorld(t, 11, config(2), netsim.Settings{Lag: 20 * ms})
			w.start()
			w.playTo(100, time.Minute)
			if who == 0 && d < 10*time.Second {
				w.players[1].still = true
				w.run(d)
				w.players[1].still = false
			} else {
				w.now += d
			}
			if who == 1 {
				w.host.Tick(w.now)
			}
			for range 60 {
				w.run(200 * ms)
				require.Equal(t, 2, w.host.Delay(), "%d, %v", who, d)
				for i := range w.players {
					require.Less(t, w.host.Path(i).RTT, 60*ms, "%d, %v", who, d)
				}
			}
			require.Zero(t, w.host.Stats().Drops, "%d, %v", who, d)
		}
	}
}

// TestClockFromAnywhere: the clock may begin hours before 0, as that of a match to come does, or count from 1970.
func TestClockFromAnywhere(t *testing.T) {
	for _, from := range []time.Duration{-10 * time.Hour, -3 * time.Second, 1_800_000_000 * time.Second} {
		for _, policy := range []StallPolicy{Wait, Substitute} {
			cfg := config(3)
			cfg.Stall = policy
			w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
			w.now = from
			w.start()
			w.playTo(40, 10*time.Second)
			w.players[2].offline = true
			w.until("drop", time.Minute, func() bool { return w.host.Active() == 0b011 })
			w.players[2].offline = false
			w.until("return", time.Minute, func() bool { return w.host.Active() == 0b111 })
			w.playTo(w.host.Turn()+100, 20*time.Second)
			require.EqualValues(t, 1, w.host.Stats().Drops, "%v, %v", from, policy)

			w.players[0].peer.news = true
			at, _ := w.players[0].peer.NextDeadline()
			require.LessOrEqual(t, at, w.now, "what is new is sent at once")
			w.host.complete(w.now, 0)
			at, _ = w.host.clientDeadline(&w.host.clients[0])
			require.LessOrEqual(t, at, w.now, "what is new is sent at once")
			w.host.clients[0].lagging = true
			require.Greater(t, w.host.patience(&w.host.clients[0]), w.cfg.TurnInterval, "nobody was waited for")

			w = newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
			w.now = from
			for i := range w.players {
				w.connect(i, 0)
			}
			for began := w.now; w.host.Turn() < 100; {
				w.now = w.wake()
				w.woken()
				if w.host.Ready() == w.cfg.mask() {
					w.host.Start(w.now)
				}
				require.Less(t, w.now-began, 10*time.Second, "%v, %v", from, policy)
			}
		}
	}
}

// TestSlowTicksCount: a host that ticks four times a second, or comes so late again and again, has the delay that this takes.
func TestSlowTicksCount(t *testing.T) {
	for _, often := range []time.Duration{0, 100 * ms} {
		w := newWorld(t, 11, config(2), netsim.Settings{Lag: 20 * ms})
		w.start()
		for range 200 {
			w.now += 250 * ms
			w.step()
			w.run(often)
		}
		require.Greater(t, w.host.Delay(), 3, "%v", often)
	}
}

// TestEachDropCostsMore: who is dropped again soon waits twice as long before it is in the game again.
func TestEachDropCostsMore(t *testing.T) {
	w := newWorld(t, 14, config(3), netsim.Settings{Lag: 20 * ms})
	w.start()
	w.playTo(20, time.Minute)
	var waits []time.Duration
	for range 4 {
		w.players[2].inputsTo = func() int64 { return 0 }
		w.until("drop", time.Minute, func() bool { return w.host.Active()>>2&1 == 0 })
		at := w.now
		w.players[2].inputsTo = nil
		w.connect(2, w.players[2].peer.Turn())
		w.until("return", 10*time.Minute, func() bool { return w.host.Active()>>2&1 != 0 })
		waits = append(waits, w.now-at)
		w.playTo(w.host.Turn()+20, time.Minute)
	}
	for i := 1; i < len(waits); i++ {
		require.Greater(t, waits[i], waits[i-1]*3/2, "%v", waits)
	}
}

// TestSeatOfAnother: whatever numbers a player gave its sessions, who gets its place from Connect begins one.
func TestSeatOfAnother(t *testing.T) {
	for _, before := range []uint32{6, 7, 5 + 1<<31 - 1} {
		cfg := config(2)
		tb := newTable(t, cfg)
		seat := func(session uint32) {
			var err error
			tb.peers[1], err = NewPeer(PeerConfig{Config: cfg.Config, Player: 1, Session: session}, tb.up[1])
			require.NoError(t, err)
			require.NoError(t, tb.host.Connect(1, tb.down[1]))
			for range 12 {
				tb.exchange()
			}
		}
		seat(before)
		tb.host.Start(tb.now)
		require.NoError(t, tb.host.Drop(tb.now, 1))
		tb.down[1].take(func([]byte) {})
		seat(6)
		require.Equal(t, Running, tb.peers[1].State(), "%v %d", tb.peers[1].Err(), tb.peers[1].Reason())
	}
}

// TestHostInTheDark: when the host hears nobody for longer than DropAfter, nobody has held the game, and all are back as soon as their
// packets are. Only one of them has sent the commands that the host waits for.
func TestHostInTheDark(t *testing.T) {
	for players := 2; players <= 4; players++ {
		w := newWorld(t, uint64(players), config(players), netsim.Settings{Lag: 20 * ms, Jitter: 20 * ms})
		w.start()
		w.playTo(100, time.Minute)
		w.players[1].offline = true
		w.run(200 * ms)
		for _, p := range w.players {
			p.offline = true
		}
		w.run(12 * time.Second)
		for _, p := range w.players {
			p.offline = false
		}
		turn := w.host.Turn()
		w.until("all players", 2*time.Second, func() bool { return w.host.Active() == w.cfg.mask() })
		require.LessOrEqual(t, w.host.Turn()-turn, int64(6))
	}
}

// TestEquallySlowPlayersHoldNobody: where all have a path that is longer than the delay hides, the game is slower, and nobody is dropped for that. One
// who is slower than the others still is.
func TestEquallySlowPlayersHoldNobody(t *testing.T) {
	for _, lag := range []time.Duration{300 * ms, 400 * ms, 600 * ms} {
		cfg := config(4)
		cfg.DropAfter = 2 * time.Second
		w := newWorld(t, 3, cfg, netsim.Settings{Loss: 5, LagMin: lag * 3 / 4, LagMax: lag * 5 / 4})
		w.start()
		w.playTo(400, 2*time.Minute)
		require.Zero(t, w.host.Stats().Drops, "%v: %v", lag, w.events)
	}
	cfg := config(4)
	cfg.DropAfter = 2 * time.Second
	w := newWorld(t, 3, cfg, netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[2].skew = 100 * ms
	w.until("drop", time.Minute, func() bool { return w.host.Stats().Drops > 0 })
	require.True(t, w.told("drop 2 for 1"), "%v", w.events)
}
