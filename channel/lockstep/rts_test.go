package lockstep

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func (w *world) told(event string) bool {
	return slices.ContainsFunc(w.events, func(e string) bool { return strings.HasSuffix(e, event) })
}

// TestSpectators: who only watches sees the same game, a while later, and holds nobody, whatever it does.
func TestSpectators(t *testing.T) {
	cfg := config(2)
	cfg.Spectators, cfg.SpectatorDelay = 3, 40
	w := newWorld(t, 1, cfg, bad(5))
	w.start()
	w.playTo(100, time.Minute)
	for _, p := range w.players[2:] {
		require.InDelta(t, 60, p.peer.Turn(), 8)
		require.ErrorIs(t, p.peer.Submit([]byte{1}), ErrInactive)
	}
	w.players[2].frozen = true
	w.players[3].offline = true
	w.players[4].lie = func(uint64) uint64 { return 1 }
	require.Greater(t, turnsIn(w, 20*time.Second), int64(380))
	w.players[2].frozen, w.players[3].offline = false, false
	turn := w.host.Turn()
	w.until("spectators", time.Minute, func() bool {
		return !slices.ContainsFunc(w.players[2:], func(p *player) bool { return p.peer.Turn() < turn })
	})
	require.EqualValues(t, 3, w.host.Active())
	require.Zero(t, w.host.Stats().Desyncs+w.host.Stats().Splits+w.host.Stats().Unhashed)
	w.agree(0, 1, 2, 3, 4)
}

// TestLateSpectatorsGetAnOlderSnapshot: who comes to watch late, with a delay that is longer than the time between two snapshots, gets one that is
// as old as the delay, when it joins and when it is mended; and the Host keeps few of them.
func TestLateSpectatorsGetAnOlderSnapshot(t *testing.T) {
	for _, every := range []int64{7, 25, 60, 130} {
		cfg := config(2)
		cfg.Spectators, cfg.SpectatorDelay = 2, 100
		cfg.LogTurns = 400
		if every == 25 {
			cfg.LogBytes = 2 * 44 * 100 // the least, for players that send as much as they may
		}
		w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
		w.players[0].stuffed, w.players[1].stuffed = every == 25, every == 25
		for i := range 3 {
			w.connect(i, 0)
		}
		w.until("ready players", 20*time.Second, func() bool { return w.host.Ready() == w.cfg.mask() })
		w.host.Start(w.now)
		for turn := every; turn <= 900; turn += every {
			w.playTo(turn, time.Minute)
			require.NoError(t, w.host.SetSnapshot(w.players[0].g.turn, w.players[0].g.save()))
			require.LessOrEqual(t, len(w.host.snapshots.list), 5)
		}
		require.NoError(t, w.host.Mend(w.now, 2))
		w.connect(3, 0)
		for range 100 {
			w.step()
			for _, p := range w.players[2:] {
				require.NotEqual(t, Ended, p.peer.State(), "every %d: %v %d", every, p.peer.Err(), p.peer.Reason())
				require.LessOrEqual(t, p.peer.Turn(), w.host.Turn()-100)
			}
		}
		turn := w.host.Turn()
		w.until("spectators", time.Minute, func() bool { return min(w.players[2].peer.Turn(), w.players[3].peer.Turn()) >= turn })
		w.agree(0, 2)
	}
}

// TestSetupBeforeTurnZero: nobody plays who hasn't accepted the setup that the game begins with, whole as the host
// has it; who comes later gets it too.
func TestSetupBeforeTurnZero(t *testing.T) {
	w := newWorld(t, 2, config(4), bad(20))
	require.ErrorIs(t, w.host.SetSetup(w.now, nil), ErrSetup)
	require.ErrorIs(t, w.host.SetSetup(w.now, make([]byte, MaxSetup+1)), ErrSetup)
	require.NoError(t, w.host.SetSetup(w.now, make([]byte, 5000)))
	for i := range 3 {
		w.connect(i, 0)
	}
	w.players[2].undecided = true
	w.until("two ready", 20*time.Second, func() bool { return w.host.Ready() == 0b011 })
	final := append(make([]byte, 3000), "the map is another"...)
	require.NoError(t, w.host.SetSetup(w.now, final))
	require.Zero(t, w.host.Ready(), "they accepted another")
	w.until("two ready", 20*time.Second, func() bool { return w.host.Ready() == 0b011 })
	w.host.Start(w.now)
	require.ErrorIs(t, w.host.SetSetup(w.now, final), ErrStarted)
	w.playTo(50, time.Minute)
	require.EqualValues(t, 0b011, w.host.Active())
	w.players[2].undecided = false
	w.connect(3, 0)
	w.until("all", 20*time.Second, func() bool { return w.host.Active() == 0b1111 })
	w.playTo(w.host.Turn()+50, time.Minute)
	for _, p := range w.players {
		version, data, ok := p.peer.Setup()
		require.True(t, ok)
		require.EqualValues(t, 2, version)
		require.Equal(t, final, data)
	}
	w.agree(0, 1, 2)
}

// TestPartsNameWhatDiffers: a desync says which part of whose state is wrong.
func TestPartsNameWhatDiffers(t *testing.T) {
	for seed := range uint64(4) {
		cfg := config(3)
		cfg.Parts = []string{"clock", "units", "economy"}
		w := newWorld(t, seed, cfg, bad(20))
		w.start()
		w.players[1].corrupt = 60
		w.playTo(110, time.Minute)
		require.True(t, w.told("desync 1 at 60"), "%v", w.events)
		require.True(t, w.told("differs 1 in 10 at 60"), "%v", w.events)
	}
	// With two players the Split says who, and Differs what.
	cfg := config(2)
	cfg.Parts = []string{"clock", "units", "economy"}
	w := newWorld(t, 9, cfg, bad(20))
	w.start()
	w.players[1].corrupt = 60
	w.playTo(110, time.Minute)
	require.True(t, w.told("split 1 at 60"), "%v", w.events)
	require.True(t, w.told("differs 1 in 10 at 60"), "%v", w.events)
	require.ErrorIs(t, w.host.Judge(60, 1), ErrParts)
	require.NoError(t, w.host.Judge(60, 60, w.hashes[60], 7))
}

// TestMend: a player whose state is wrong gets the snapshot while the others play on at their pace.
func TestMend(t *testing.T) {
	w := newWorld(t, 3, config(3), bad(10))
	w.start()
	w.players[1].corrupt = 60
	w.playTo(110, time.Minute)
	require.True(t, w.told("desync 1 at 60"))
	require.NoError(t, w.host.SetSnapshot(w.players[0].g.turn, w.players[0].g.save()))
	w.players[1].events = nil
	require.ErrorIs(t, w.host.Mend(w.now, 7), ErrNoPlayer)
	from, began := w.host.Turn(), w.now
	require.NoError(t, w.host.Mend(w.now, 1))
	w.until("rejoin", 10*time.Second, func() bool { return w.host.Active() == 7 })
	w.playTo(w.host.Turn()+60, time.Minute)
	require.InDelta(t, (w.now-began)/(50*ms), w.host.Turn()-from, 12, "the others play on")
	require.True(t, w.told("drop 1 for 4"), "%v", w.events)
	require.EqualValues(t, 1, w.host.Stats().Desyncs, "it is whole again")
	require.Greater(t, w.players[1].g.last[1], uint64(30))
}

// small is a transport whose packets have n bytes.
type small struct {
	push
	n int
}

func (s small) MaxPacket() int { return s.n }

// TestPacketsFitTheTransport: packets are no larger than what carries them takes whole, and a MaxInput that doesn't
// fit is an error.
func TestPacketsFitTheTransport(t *testing.T) {
	cfg := config(2)
	h, err := NewHost(cfg, nil)
	require.NoError(t, err)
	require.ErrorIs(t, h.Connect(0, small{n: 300}), ErrPacketSize)
	_, err = NewPeer(PeerConfig{Config: cfg.Config}, small{n: 300})
	require.ErrorIs(t, err, ErrPacketSize)
	l, err := link.New(link.Config{}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, h.Connect(0, l), ErrPacketSize, "255 bytes")
	cfg.MaxInput = 100
	h, err = NewHost(cfg, nil)
	require.NoError(t, err)
	require.NoError(t, h.Connect(0, l))

	w := newWorld(t, 5, config(2), netsim.Settings{Lag: 20 * ms})
	w.start()
	largest := 0
	for i, p := range w.players {
		require.NoError(t, w.host.Connect(i, measured{small{push{p.down}, 400}, &largest}))
		p.stuffed = true
	}
	w.playTo(200, time.Minute)
	w.connectWith = func(t Transport) Transport { return measured{small{t.(push), 400}, &largest} }
	w.connect(0, 0) // replays the log
	w.until("rejoin", time.Minute, func() bool { return w.host.Active() == 3 })
	require.LessOrEqual(t, largest, 400)
	require.Greater(t, largest, 300)
}

type measured struct {
	small
	largest *int
}

func (m measured) Send(now time.Duration, p []byte) error {
	*m.largest = max(*m.largest, len(p))
	return m.small.Send(now, p)
}

// TestForgedPartsNameNoOther: one of those who are right, with other parts than it has and the same hash, doesn't have the wrong part named.
func TestForgedPartsNameNoOther(t *testing.T) {
	cfg := config(3)
	cfg.Parts = []string{"clock", "units", "economy"}
	w := newWorld(t, 1, cfg, netsim.Settings{Lag: 20 * ms})
	w.start()
	w.players[1].corrupt = 60
	for w.players[0].peer.Turn() <= 60 {
		w.step()
	}
	parts := w.players[0].peer.partsOf(60)
	mix := func(h, s uint64) uint64 { // invertible, so that another part makes up for a difference
		h = (h ^ s) * 0x9e3779b97f4a7c15
		return h ^ h>>29
	}
	first := mix(0, parts[0])
	parts[0]++
	parts[1] ^= first ^ mix(0, parts[0])
	w.until("what differs", 20*time.Second, func() bool { return w.told("at 60") && w.host.parts.told != 0 })
	w.run(time.Second)
	require.True(t, w.told("differs 1 in 10 at 60"), "%v", w.events)
}

// TestReplayOfParts: who plays a replay computes the hash that was recorded, and that of events, from those of the parts.
func TestReplayOfParts(t *testing.T) {
	cfg := config(1).Config
	cfg.Parts = []string{"units", "economy"}
	var out bytes.Buffer
	r, err := NewRecorder(&out, cfg, nil)
	require.NoError(t, err)
	require.NoError(t, r.Turn(&Turn{}, 7, 8))
	require.NoError(t, r.Close())
	p, err := OpenReplay(bytes.NewReader(out.Bytes()), int64(out.Len()), 0)
	require.NoError(t, err)
	_, recorded, err := p.Next()
	require.NoError(t, err)
	played := p.Config()
	hash, err := played.Hash(7, 8)
	require.NoError(t, err)
	require.Equal(t, recorded, hash)
	for _, sums := range [][]uint64{nil, {7}, {7, 8, 9}} {
		_, err = played.Hash(sums...)
		require.ErrorIs(t, err, ErrParts)
	}
	other, err := played.Hash(8, 7)
	require.NoError(t, err)
	require.NotEqual(t, recorded, other)
}
