package lockstep

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

var turncoatSeeds = flag.Int("turncoats", 60, "seeds of TestTurncoats")

// turncoat is the transport of a player whose packets are changed, field by field, before they leave. It knows all that its Peer knows, proofs too.
type turncoat struct {
	Transport
	w    *world
	p    *player
	rng  *rand.Rand
	rate int // one in so many packets is changed
	kept [][]byte
}

// odd is a number near n, or anywhere.
func (c *turncoat) odd(n int64) int64 {
	switch c.rng.IntN(6) {
	case 0:
		return 0
	case 1:
		return int64(c.rng.Uint64() >> (4 + c.rng.IntN(60)))
	case 2:
		return n + int64(c.rng.IntN(300)) - 150
	case 3:
		return 1 << c.rng.IntN(60)
	default:
		return n + int64(c.rng.IntN(5)) - 2
	}
}

func (c *turncoat) Reliable() bool { return reliable(c.Transport) }

func (c *turncoat) MaxPacket() int { return packetLimit(c.Transport, 1<<20) }

func (c *turncoat) Send(now time.Duration, pkt []byte) error {
	if c.rng.IntN(c.rate) > 0 {
		return c.Transport.Send(now, pkt)
	}
	pkt = slices.Clone(pkt)
	if len(c.kept) < 50 {
		c.kept = append(c.kept, pkt)
	}
	for n := c.rng.IntN(4); n >= 0; n-- {
		out := pkt
		switch c.rng.IntN(8) {
		case 0:
			out = c.kept[c.rng.IntN(len(c.kept))]
		case 1: // ready, or parts
			out = binary.AppendUvarint(envelope{[]packetType{typeReady, typeParts}[c.rng.IntN(2)], c.p.id, c.p.peer.welcome.key}.append(nil), uint64(max(0, c.odd(c.p.peer.next))))
			for range c.rng.IntN(4) {
				out = binary.LittleEndian.AppendUint64(out, c.rng.Uint64())
			}
		case 2: // a session of another number, with or without its proof
			s := uint32(c.odd(int64(c.p.peer.cfg.Session)))
			h := hello{agreement: c.p.peer.cfg.agreement(), have: max(0, c.odd(c.p.peer.next)), maxSnapshot: max(0, c.odd(1<<20)), generation: max(0, c.odd(c.p.peer.Generation()))}
			if c.rng.IntN(4) > 0 {
				h.proof = c.w.host.proof(c.p.id, s)
			}
			out = h.append(envelope{typeHello, c.p.id, s}.append(nil))
		case 3:
			out = slices.Clone(pkt)
			out[c.rng.IntN(len(out))] ^= 1 << c.rng.IntN(8)
		default:
			out = c.input(pkt)
		}
		if len(out) > packetLimit(c.Transport, 1<<20) {
			continue
		}
		_ = c.Transport.Send(now, out)
	}
	return nil
}

// input changes fields of an Input.
func (c *turncoat) input(pkt []byte) []byte {
	r := wire.Reader{P: pkt}
	e := readEnvelope(&r)
	if e.typ != typeInput {
		return pkt
	}
	in, err := readInput(&r, &c.w.cfg.Config)
	if err != nil {
		return pkt
	}
	for range 1 + c.rng.IntN(3) {
		switch c.rng.IntN(9) {
		case 0:
			in.received = max(0, c.odd(in.received))
		case 1:
			in.executed = max(0, c.odd(in.executed))
		case 2:
			in.stamp = uint16(c.odd(int64(in.stamp)))
		case 3:
			in.hold = uint16(c.rng.Uint32())
		case 4:
			in.life = max(0, c.odd(in.life))
		case 5:
			in.first = max(0, c.odd(in.first))
		case 6:
			in.firstHash = max(0, c.odd(in.firstHash))
		case 7:
			in.hashes = slices.Clone(in.hashes)
			for i := range in.hashes {
				in.hashes[i] = byte(c.rng.Uint32())
			}
		case 8:
			in.inputs, in.count = nil, c.rng.IntN(20)
			for range in.count {
				n := c.rng.IntN(2) * c.rng.IntN(30)
				if n == 0 {
					in.inputs = append(in.inputs, 0)
					continue
				}
				c.p.commands++
				cmd := binary.LittleEndian.AppendUint64(nil, c.p.commands)
				in.inputs = append(append(in.inputs, byte(1+len(cmd)), byte(len(cmd))), cmd...)
			}
		}
	}
	out := in.appendHead(e.append(nil))
	out = append(out, byte(in.count))
	out = append(out, in.inputs...)
	out = binary.AppendUvarint(out, uint64(in.firstHash))
	return append(out, in.hashes...)
}

// TestTurncoats: a player who changes its packets, field by field, disturbs nobody: the others have the same states and events, play
// most of the turns, and aren't named by hashes or dropped.
func TestTurncoats(t *testing.T) {
	for seed := range uint64(*turncoatSeeds) {
		turncoatGame(t, seed)
	}
}

func turncoatGame(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 77))
	cfg := config(4)
	cfg.Stall = StallPolicy(rng.IntN(2))
	cfg.DropAfter = 2 * time.Second
	cfg.LogTurns = 600
	cfg.Rate = 64 << 10
	overLink := rng.IntN(3) == 0
	if overLink {
		cfg.MaxPacket = 255
	}
	if rng.IntN(2) == 0 {
		cfg.Parts = []string{"a", "b", "c"}
	}
	if rng.IntN(2) == 0 {
		cfg.Spectators, cfg.SpectatorDelay = 1, rng.IntN(20)
	}
	liar := rng.IntN(4 + cfg.Spectators)
	w := newWorld(t, seed, cfg, netsim.Settings{Loss: float64(rng.IntN(2) * 2), LagMin: 15 * ms, LagMax: 25 * ms})
	w.overLink = overLink
	w.start()
	w.playTo(10, time.Minute)
	bad := &turncoat{Transport: w.players[liar].peer.transport, w: w, p: w.players[liar], rng: rng, rate: 1 + rng.IntN(8)}
	w.players[liar].peer.transport = bad
	w.liar = liar
	from := w.host.Turn()
	sent := w.host.Stats().BytesSent
	for range 60 { // s
		w.run(time.Second)
		if p := w.players[liar]; p.peer.State() == Ended && !p.peer.under {
			w.connect(liar, 0)
			bad.Transport = p.peer.transport
			p.peer.transport = bad
		}
		w.snapshotOfHonest()
	}
	turns := w.host.Turn() - from
	if turns < 900 {
		t.Errorf("seed %d: %d of 1200 turns; liar %d, events %v", seed, turns, liar, w.events)
	}
	for i := range 4 {
		if i == liar {
			continue
		}
		for _, e := range w.events {
			for _, bad := range []string{fmt.Sprintf("desync %d ", i), fmt.Sprintf("drop %d ", i), fmt.Sprintf("differs %d ", i), fmt.Sprintf("no hashes %d ", i)} {
				if strings.Contains(e, ":"+bad) {
					t.Errorf("seed %d: liar %d, policy %d, link %v: %s", seed, liar, cfg.Stall, overLink, e)
				}
			}
		}
	}
	if n := w.host.Stats().BytesSent - sent; n > uint64(5*60*cfg.Rate) {
		t.Errorf("seed %d: %d bytes", seed, n)
	}
	if testing.Verbose() {
		t.Logf("seed %d: %d turns, liar %d, policy %d, link %v, %d bytes, joins %d, %+v", seed, turns, liar, cfg.Stall, overLink, w.host.Stats().BytesSent-sent, w.host.Stats().Joins, w.host.Stats())
	}
	require.False(t, t.Failed())
}

// snapshotOfHonest gives the host the state of an honest player now and then.
func (w *world) snapshotOfHonest() {
	p := w.players[(w.liar+1)%4]
	if p.g.turn > 0 && w.host.log.holds(p.g.turn) {
		require.NoError(w.t, w.host.SetSnapshot(p.g.turn, p.g.save()))
	}
}
