package lockstep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// recorded is a file of a game of 3 with 550 turns, and the state's hashes after each.
func recorded(t testing.TB) (file []byte, hashes map[int64]uint64) {
	var out bytes.Buffer
	w := newWorld(t, 1, config(3), bad(10))
	var err error
	w.players[0].record, err = NewRecorder(&out, w.cfg.Config, []byte("the map"))
	require.NoError(t, err)
	w.start()
	w.playTo(550, time.Minute)
	require.NoError(t, w.players[0].record.Close())
	return out.Bytes(), w.hashes
}

// play executes turns of a replay on g up to turn to.
func replayTo(t testing.TB, r *Replay, g *game, to int64) {
	for g.turn < to {
		turn, hash, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, g.turn, turn.N)
		for _, e := range turn.Events {
			g.mix(uint64(e.Kind)<<8 | uint64(e.Player))
		}
		g.mix(uint64(turn.N))
		for who, cmd := range turn.Commands() {
			g.last[who] = binary.LittleEndian.Uint64(cmd)
			g.mix(uint64(who))
			for _, b := range cmd {
				g.mix(uint64(b))
			}
		}
		g.turn++
		require.Equal(t, g.state, hash, "turn %d", turn.N)
		require.NotZero(t, turn.Delay)
	}
}

// TestReplay: a game is recorded, opened, played, and sought about in by its snapshots.
func TestReplay(t *testing.T) {
	file, hashes := recorded(t)
	r, err := OpenReplay(bytes.NewReader(file), int64(len(file)), 0)
	require.NoError(t, err)
	first, end, whole := r.Turns()
	require.True(t, whole)
	require.Zero(t, first)
	require.GreaterOrEqual(t, end, int64(550))
	require.Equal(t, "the map", string(r.Setup()))
	require.Equal(t, 3, r.Config().Players)
	require.NoError(t, r.Verify())
	g := &game{last: make([]uint64, 3)}
	replayTo(t, r, g, end)
	require.Equal(t, hashes[end-1], g.state)
	_, _, err = r.Next()
	require.Equal(t, io.EOF, err)
	for _, turn := range []int64{0, 99, 100, 101, 349, 500, end} {
		at, err := r.SeekTurn(turn)
		require.NoError(t, err)
		require.Equal(t, turn/100*100, at.Turn)
		g := game{last: make([]uint64, 3)}
		if at.State != nil {
			g = loadGame(at.State, 3)
			require.EqualValues(t, 7, at.Active)
		}
		replayTo(t, r, &g, turn)
	}
	_, err = r.SeekTurn(end + 1)
	require.ErrorIs(t, err, ErrReplayTurn)
	_, err = r.SeekTurn(-1)
	require.ErrorIs(t, err, ErrReplayTurn)
}

// TestReplayCut: what a crash leaves of a file is good up to its last whole part.
func TestReplayCut(t *testing.T) {
	file, _ := recorded(t)
	for cut := len(file) - 1; cut > 0; cut -= 1 + cut/40 {
		r, err := OpenReplay(bytes.NewReader(file[:cut]), int64(cut), 0)
		if cut < 60 {
			if err != nil {
				require.ErrorIs(t, err, ErrReplay)
				continue
			}
		}
		require.NoError(t, err, "%d of %d bytes", cut, len(file))
		_, end, whole := r.Turns()
		require.False(t, whole)
		require.NoError(t, r.Verify(), "%d of %d bytes", cut, len(file))
		g := game{last: make([]uint64, 3)}
		at, err := r.SeekTurn(end)
		require.NoError(t, err)
		if at.State != nil {
			g = loadGame(at.State, 3)
		}
		replayTo(t, r, &g, end)
	}
}

// TestReplayLargeSnapshot: a snapshot over the reader's limit is told, and costs no turns in silence, also of a file that a
// crash cut.
func TestReplayLargeSnapshot(t *testing.T) {
	cfg := config(2).Config
	for _, closed := range []bool{false, true} {
		var out bytes.Buffer
		rec, err := NewRecorder(&out, cfg, nil)
		require.NoError(t, err)
		turns := func(n int64) {
			for range n {
				require.NoError(t, rec.Turn(&Turn{N: rec.next, Delay: 2}, 1))
			}
		}
		turns(10)
		require.NoError(t, rec.Snapshot(Resume{Turn: 10, Delay: 2, State: make([]byte, 1<<20+64)}))
		turns(10)
		rec.flush()
		if closed {
			require.NoError(t, rec.Close())
		}
		open := func(limit int) (*Replay, error) {
			return OpenReplay(bytes.NewReader(out.Bytes()), int64(out.Len()), limit)
		}
		r, err := open(0)
		if err == nil {
			err = r.Verify()
		}
		require.ErrorIs(t, err, ErrSnapshotSize)
		require.ErrorIs(t, err, ErrReplay)
		r, err = open(1<<20 + 64)
		require.NoError(t, err)
		require.NoError(t, r.Verify())
		_, end, whole := r.Turns()
		require.EqualValues(t, 20, end)
		require.Equal(t, closed, whole)

		damaged := bytes.Clone(out.Bytes())
		damaged[out.Len()/2] ^= 1 // within the snapshot
		if r, err = OpenReplay(bytes.NewReader(damaged), int64(len(damaged)), 0); !closed {
			require.NoError(t, err, "what is whole is good")
			_, end, _ = r.Turns()
			require.EqualValues(t, 10, end)
		}
	}
}

// TestReplayManySnapshots: an index grows with the file.
func TestReplayManySnapshots(t *testing.T) {
	var out bytes.Buffer
	rec, err := NewRecorder(&out, config(2).Config, nil)
	require.NoError(t, err)
	const n = 200_000
	for turn := range int64(n) {
		require.NoError(t, rec.Snapshot(Resume{Turn: turn, Delay: 2, State: []byte{1}}))
		require.NoError(t, rec.Turn(&Turn{N: turn, Delay: 2}, 1))
	}
	require.NoError(t, rec.Close())
	r, err := OpenReplay(bytes.NewReader(out.Bytes()), int64(out.Len()), 0)
	require.NoError(t, err)
	_, end, whole := r.Turns()
	require.EqualValues(t, n, end)
	require.True(t, whole)
	at, err := r.SeekTurn(n - 1)
	require.NoError(t, err)
	require.EqualValues(t, n-1, at.Turn)
}

// TestReplayDamaged: no flipped bit goes unnoticed, but for one in a part that isn't needed to play.
func TestReplayDamaged(t *testing.T) {
	file, _ := recorded(t)
	whole, err := OpenReplay(bytes.NewReader(file), int64(len(file)), 0)
	require.NoError(t, err)
	_, all, _ := whole.Turns()
	for at := 0; at < len(file); at += 1 + at/50 {
		bad := bytes.Clone(file)
		bad[at] ^= 0x10
		r, err := OpenReplay(bytes.NewReader(bad), int64(len(bad)), 0)
		if err != nil {
			require.ErrorIs(t, err, ErrReplay)
			continue
		}
		verr := r.Verify()
		_, end, closed := r.Turns()
		require.True(t, verr != nil || end < all || !closed, "byte %d", at)
		if verr != nil {
			require.ErrorIs(t, verr, ErrReplay)
		}
	}
}

// TestRecorderMisuse: turns that don't follow, and errors of the writer, are told.
func TestRecorderMisuse(t *testing.T) {
	c := config(2).Config
	_, err := NewRecorder(io.Discard, Config{}, nil)
	require.ErrorIs(t, err, ErrConfig)
	_, err = NewRecorder(io.Discard, c, make([]byte, MaxSetup+1))
	require.ErrorIs(t, err, ErrSetup)
	r, err := NewRecorder(io.Discard, c, nil)
	require.NoError(t, err)
	require.ErrorIs(t, r.Turn(&Turn{N: 3}, 1), ErrReplayOrder)
	require.ErrorIs(t, r.Turn(&Turn{N: 0}), ErrParts)
	require.NoError(t, r.Snapshot(Resume{Turn: 30, Delay: 2, State: []byte{1}}))
	require.NoError(t, r.Turn(&Turn{N: 30, Delay: 2}, 1))
	require.ErrorIs(t, r.Snapshot(Resume{Turn: 30, State: []byte{1}}), ErrReplayOrder)
	require.NoError(t, r.Close())
	require.Error(t, r.Turn(&Turn{N: 31}, 1))
	_, err = NewRecorder(broken{}, c, nil)
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("disk full")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// FuzzReplay opens, verifies and seeks in whatever comes.
func FuzzReplay(f *testing.F) {
	var out bytes.Buffer
	r, _ := NewRecorder(&out, config(2).Config, []byte("map"))
	tn := Turn{Delay: 2, Events: []Event{{Kind: Joined, Value: 1}}, present: 1}
	tn.inputs[0] = []byte{2, 'g', 'o'}
	_ = r.Turn(&tn, 5)
	_ = r.Snapshot(Resume{Turn: 1, State: []byte("state")})
	_ = r.Turn(&Turn{N: 1, Delay: 2}, 6)
	f.Add(bytes.Clone(out.Bytes()))
	_ = r.Close()
	f.Add(bytes.Clone(out.Bytes()))
	f.Fuzz(func(t *testing.T, file []byte) {
		// Checksums are set right, so that what is behind them is reached.
		file = bytes.Clone(file)
		for at := len(replayMagic) + 1; at+chunkHead+chunkTail <= len(file); {
			size := int(binary.LittleEndian.Uint32(file[at+1:]))
			if size > len(file)-at-chunkHead-chunkTail {
				break
			}
			p := file[at : at+chunkHead+size]
			seal(p[:len(p):len(p)+chunkTail], p[0])
			at += chunkHead + size + chunkTail
		}
		r, err := OpenReplay(bytes.NewReader(file), int64(len(file)), 1000)
		if err != nil {
			return
		}
		first, end, _ := r.Turns()
		_ = r.Verify()
		for _, turn := range []int64{first, end, (first + end) / 2} {
			if _, err := r.SeekTurn(turn); err == nil {
				for range 10 {
					if tn, _, err := r.Next(); err == nil {
						for _, cmd := range tn.Commands() {
							require.NotEmpty(t, cmd)
						}
					}
				}
			}
		}
	})
}

// TestAnotherHost: the host is gone; a player becomes host and the game goes on for all, those who were ahead of it
// and those behind. Then it is restarted from a file.
func TestAnotherHost(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, seed, config(4), bad(10))
		w.start()
		w.playTo(100, time.Minute)
		w.players[2].frozen = true
		w.run(60 * ms)
		takeOver := func(by int) {
			p := w.players[by]
			at := p.peer.Resume()
			at.State = p.g.save()
			w.resumeAt(at)
			for i := range w.players {
				w.players[i].events = nil
				w.connect(i, w.players[i].peer.Turn())
			}
			w.until("all", 20*time.Second, func() bool { return w.host.Ready() == 15 })
			w.host.Start(w.now)
			w.playTo(at.Turn+100, time.Minute)
			require.True(t, w.told("drop 0 for 5"))
			require.EqualValues(t, 15, w.host.Active())
			require.Zero(t, w.host.Stats().Desyncs)
			require.True(t, later(p.peer.Generation(), at.Generation))
		}
		behind := w.players[2].peer.Turn() < w.players[1].peer.Turn()
		takeOver(2) // who is behind: the others have turns that never were
		require.True(t, behind)
		takeOver(0)
	}
	// Who comes with turns of a game that the host knows nothing of isn't taken for one who has them.
	w := newWorld(t, 7, config(2), netsim.Settings{})
	w.start()
	w.playTo(60, time.Minute)
	at := w.players[0].peer.Resume()
	at.State = w.players[0].g.save()
	w.resumeAt(at)
	p, err := NewPeer(PeerConfig{Config: w.cfg.Config, Session: 1 << 20, Have: 10, Generation: 5 << ownBits}, push{w.players[0].up})
	require.NoError(t, err)
	w.players[0].peer = p
	require.NoError(t, w.host.Connect(0, push{w.players[0].down}))
	w.until("denial", time.Minute, func() bool { return p.State() == Ended })
	require.Equal(t, DenyOldHost, p.Reason())
}

// TestTwoHostsAtOnce: two machines take up the game of a host that is gone, and it goes on twice. Who comes from one to the other, with turns that
// one never had, gets its state: no desync tells it first.
func TestTwoHostsAtOnce(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(t, seed, config(4), bad(10))
		w.start()
		w.playTo(60, time.Minute)
		at := w.players[0].peer.Resume()
		at.State = w.players[0].g.save()
		goOn := func(secret byte, players uint64) {
			w.cfg.Secret = [32]byte{secret}
			w.resumeAt(at)
			for i, p := range w.players {
				p.offline, p.frozen = true, true
				if players>>i&1 != 0 {
					w.connect(i, p.peer.Turn())
				}
			}
			w.until("players", 20*time.Second, func() bool { return w.host.Ready() == players })
			w.host.Start(w.now)
			w.playTo(at.Turn+100, time.Minute)
		}
		goOn(1, 0b0011)
		goOn(2, 0b1100)
		require.NotEqual(t, w.players[0].peer.Generation(), w.players[2].peer.Generation())
		require.Less(t, w.players[0].peer.Turn(), w.host.Turn()+20)
		w.connect(0, w.players[0].peer.Turn())
		w.until("the one of the other host", time.Minute, func() bool { return w.players[0].peer.InGame() })
		w.playTo(w.host.Turn()+50, time.Minute)
		require.Zero(t, w.host.Stats().Desyncs+w.host.Stats().Splits, "seed %d", seed)
		require.Equal(t, w.players[2].peer.Generation(), w.players[0].peer.Generation())
	}
}

// resumeAt begins a host there; what came after never was.
func (w *world) resumeAt(at Resume) {
	cfg := w.cfg
	cfg.Resume = &at
	var err error
	w.host, err = NewHost(cfg, w)
	require.NoError(w.t, err)
	for turn := range w.hashes {
		if turn >= at.Turn {
			delete(w.hashes, turn)
		}
	}
}
