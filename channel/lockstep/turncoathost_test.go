package lockstep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// liesOfHost changes fields of what a host sends.
func liesOfHost(rng *rand.Rand, pkt []byte, old [][]byte) []byte {
	odd := func(n int64) int64 {
		switch rng.IntN(6) {
		case 0:
			return 0
		case 1:
			return int64(rng.Uint64() >> (4 + rng.IntN(60)))
		case 2:
			return max(0, n+int64(rng.IntN(300))-150)
		case 3:
			return 1 << rng.IntN(60)
		default:
			return max(0, n+int64(rng.IntN(5))-2)
		}
	}
	if rng.IntN(10) == 0 {
		return old[rng.IntN(len(old))]
	}
	r := wire.Reader{P: pkt}
	e := readEnvelope(&r)
	switch {
	case rng.IntN(6) == 0:
		out := slices.Clone(pkt)
		out[6+rng.IntN(len(out)-6)] = byte(rng.Uint32())
		return out
	case e.typ == typeWelcome:
		w, ok := readWelcome(&r)
		if !ok {
			return pkt
		}
		for range 1 + rng.IntN(3) {
			switch rng.IntN(9) {
			case 0:
				w.base = odd(w.base)
			case 1:
				w.version = odd(w.version)
			case 2:
				w.setup = int(odd(int64(w.setup)) & (1<<31 - 1))
			case 3:
				w.start = odd(w.start)
			case 4:
				w.snapshot = int(odd(int64(w.snapshot)) & (1<<31 - 1))
			case 5:
				w.delay = int(odd(int64(w.delay)) & 255)
			case 6:
				w.active = rng.Uint64()
			case 7:
				w.life = odd(w.life)
			case 8:
				w.generation = odd(w.generation)
			}
		}
		return w.append(e.append(nil))
	case e.typ == typeStream:
		s, ok := readStream(&r)
		if !ok {
			return pkt
		}
		for range 1 + rng.IntN(3) {
			switch rng.IntN(7) {
			case 0:
				s.inputs = odd(s.inputs)
			case 1:
				s.hashes = odd(s.hashes)
			case 2:
				s.stamp = uint16(odd(int64(s.stamp)))
			case 3:
				s.waiting = rng.Uint64() & 3
			case 4:
				s.offset = odd(s.offset)
			case 5:
				s.data = s.data[rng.IntN(len(s.data)+1):]
			case 6: // records of its own
				t := Turn{Substituted: rng.Uint64() & 3}
				for range rng.IntN(4) {
					t.Events = append(t.Events, Event{Kind: EventKind(1 + rng.IntN(7)), Player: rng.IntN(2), Value: odd(int64(rng.IntN(20))), Who: uint64(rng.IntN(4))})
				}
				rec := t.append(nil)
				s.data = append([]byte{byte(len(rec))}, rec...)
			}
		}
		return append(s.append(e.append(nil)), s.data...)
	}
	return pkt
}

// TestTurncoatHost: a host that changes its packets, field by field, panics none of its peers, has none hold more than its bounds, and none sends more than
// a packet or two for each that it gets.
func TestTurncoatHost(t *testing.T) {
	for seed := range uint64(*turncoatSeeds) {
		rng := rand.New(rand.NewPCG(seed, 99))
		cfg := config(2)
		cfg.Delay = FixedDelay(1 + rng.IntN(16))
		if rng.IntN(2) == 0 {
			cfg.Parts = []string{"a", "b"}
		}
		tb := newTable(t, cfg)
		require.NoError(t, tb.host.SetSetup(tb.now, []byte("setup")))
		rate, from := 1+rng.IntN(10), rng.IntN(60)
		var old [][]byte
		for i := range 600 {
			tb.now += 10 * ms
			for p, peer := range tb.peers {
				if v, _, ok := peer.Setup(); ok && v > peer.accepted {
					require.NoError(t, peer.Accept())
				}
				if _, _, ok := peer.TakeSnapshot(); ok {
					rng.Uint64()
				}
				for range 50 {
					if _, ok := peer.Next(); !ok {
						break
					}
					if peer.InGame() && rng.IntN(3) == 0 {
						_ = peer.Submit(make([]byte, 1+rng.IntN(20))) // when there is room
					}
					require.NoError(t, peer.Done(make([]uint64, max(1, len(cfg.Parts)))...), "seed %d", seed)
				}
				sent := peer.Stats().PacketsSent
				peer.Tick(tb.now)
				require.LessOrEqual(t, peer.Stats().PacketsSent-sent, uint64(3), "seed %d", seed)
				require.LessOrEqual(t, len(peer.setup), MaxSetup)
				require.LessOrEqual(t, len(peer.snapshot), peer.cfg.MaxSnapshot)
				require.Equal(t, peer.cfg.ReceiveBuffer, cap(peer.recv.buf))
				tb.up[p].take(func(pkt []byte) { _ = tb.host.Receive(tb.now, p, pkt) }) // it may be nonsense
			}
			if i == 20 {
				tb.host.Start(tb.now)
			}
			tb.host.Tick(tb.now)
			for p, peer := range tb.peers {
				tb.down[p].take(func(pkt []byte) {
					if len(old) < 40 {
						old = append(old, slices.Clone(pkt))
					}
					if i > from && rng.IntN(rate) == 0 {
						for range 1 + rng.IntN(3) {
							_ = peer.Receive(tb.now, liesOfHost(rng, pkt, old))
						}
					}
					_ = peer.Receive(tb.now, pkt)
				})
				if peer.State() == Ended { // begin anew
					require.Error(t, peer.Err())
					var err error
					tb.peers[p], err = NewPeer(PeerConfig{Config: cfg.Config, Player: p, Session: peer.cfg.Session + 1}, tb.up[p])
					require.NoError(t, err)
				}
			}
		}
	}
}
