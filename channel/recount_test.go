package channel

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history/seqnum"
)

// wire is a connection for channels alone: packets are lists of notes.
type wire struct {
	t      *Table
	rng    *rand.Rand
	ready  bool
	room   int
	id     int64
	notes  []wireNote
	now    time.Duration
	failed error
	gone   bool
}

type wireNote struct {
	ch  *Channel
	seq int64
	id  int64
}

func (w *wire) IsNetReady() bool   { return w.ready }
func (w *wire) Budget() int        { return 1000 }
func (w *wire) FreeBits() int      { return 8000 }
func (w *wire) Now() time.Duration { return w.now }
func (w *wire) IsServer() bool     { return true }
func (w *wire) Fail(err error, _ bool) {
	w.failed = err
	w.gone = true
}
func (w *wire) Table() *Table             { return w.t }
func (w *wire) PacketID() int64           { return w.id }
func (w *wire) Heard() int64              { return 0 }
func (w *wire) EndPacket()                { w.id++ }
func (w *wire) HasRoom(int) bool          { return w.room > 0 }
func (w *wire) HasPackets(int) bool       { return w.room > 0 }
func (w *wire) MaySend(bits int) bool     { return w.ready && w.room > 0 }
func (w *wire) CloseInOrder()             { _ = (*Machine)(w.t).CloseControl() }
func (w *wire) ControlClosed(CloseReason) { w.gone = true }
func (w *wire) AllowOpen(*bunch.In) error {
	if w.rng.IntN(20) == 0 {
		return errors.New("not now")
	}
	return nil
}
func (w *wire) WriteBunch(h *bunch.Header, data []byte, ch *Channel, seq int64) int64 {
	if w.rng.IntN(4) == 0 {
		w.id++
	}
	w.room--
	(*Machine)(w.t).Noted(ch)
	w.notes = append(w.notes, wireNote{ch, seq, w.id})
	return w.id
}
func (w *wire) MayMerge(int) bool                      { return true }
func (w *wire) ExtendBunch(data []byte, bits int) bool { return w.rng.IntN(2) == 0 }

type wild struct {
	w *wire
}

func (h wild) act(ch *Channel) {
	w := h.w
	switch w.rng.IntN(6) {
	case 0:
		n := w.rng.IntN(40)
		switch w.rng.IntN(20) {
		case 0, 1:
			n = w.rng.IntN(20000)
		case 2:
			n = 40000 + w.rng.IntN(20000)
		}
		ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: w.rng.IntN(4) != 0, NoMerge: w.rng.IntN(3) == 0})
	case 1:
		ch.Hold(w.rng.IntN(3000))
	case 2:
		ch.Release(w.rng.IntN(3000))
	case 3:
		if w.rng.IntN(4) == 0 && ch.index != 0 {
			ch.Close(bunch.Destroyed)
		}
	case 4:
		if c, err := w.t.Open(bunch.Name{Index: 300}, h); err == nil {
			switch w.rng.IntN(3) {
			case 0:
				c.SendTemporary(&bunch.Out{Data: make([]byte, w.rng.IntN(3000))})
			case 1:
				c.SendBunch(&bunch.Out{Data: make([]byte, w.rng.IntN(3000)), Reliable: true})
			}
		}
	}
}
func (h wild) ReceivedBunch(ch *Channel, in *bunch.In) { h.act(ch) }
func (h wild) ReceivedAck(ch *Channel, _ int64)        { h.act(ch) }
func (h wild) ReceivedNak(ch *Channel, _ int64)        { h.act(ch) }
func (h wild) Closed(ch *Channel, _ CloseReason)       { h.act(ch) }

// recount counts anew what is held; notes are those of packets in flight.
func recount(t *Table, notes []wireNote) (held, heldOut, unacked int) {
	counted := map[*Channel]bool{}
	for _, n := range notes { // closed, but a packet in flight names it
		if n.ch.closed && !n.ch.openedLocally && !counted[n.ch] {
			counted[n.ch] = true
			held += channelCost
		}
	}
	for _, p := range t.pages {
		if p != nil {
			held += pageCost
		}
	}
	held -= t.ownPages * pageCost
	for ch := range t.All {
		if !ch.openedLocally {
			held += channelCost
		}
		held += int(ch.handlerHeld)
		if r := ch.rare; r != nil {
			r.in.each(func(e *early) { held += e.cost() })
			held += int(r.joining)
		}
		for s := ch.out.first; s < ch.out.next; s++ {
			heldOut += outCost + cap(ch.out.at(s).data)
		}
		for _, q := range ch.queued() {
			heldOut += t.queuedCost(q.Bits)
		}
		unacked += ch.out.len() + len(ch.queued())
	}
	return held, heldOut, unacked
}

// recountLarge counts what split payloads are charged, at both ends, what was never sent, and what waits for turns of refused channels.
func recountLarge(t *Table) (begun, joining, fresh, refused, refusing int) {
	for ch := range t.All {
		if r := ch.rare; r != nil {
			begun += r.charge()
			joining += int(r.joining)
		}
		fresh += int(ch.fresh)
		if ch.inTurn {
			refused += int(ch.numRefused)
		}
		if ch.refused {
			refusing++
		}
	}
	return begun, joining, fresh, refused, refusing
}

// recountAhead counts what the channels that wait for lost bunches have sent, and checks what each of them counts.
func recountAhead(t *testing.T, tab *Table) (ahead, blocked int) {
	opened := 0
	for ch := range tab.All {
		if ch.openedLocally {
			opened++
		}
		holes, sent := 0, 0
		for s := ch.out.first; s < ch.firstFresh(); s++ {
			rec := ch.out.at(s)
			if rec.hole {
				holes++
			}
			if !rec.refused {
				sent += peerCost(rec)
			}
		}
		require.Equal(t, holes, ch.holes(), "%v", ch)
		if holes > 0 {
			require.EqualValues(t, sent, ch.rare.ahead, "%v", ch)
			ahead += sent
		}
		if ch.isBlocked() {
			blocked += int(ch.fresh)
		}
	}
	require.Equal(t, opened, tab.opened)
	return ahead, blocked
}

func assembling(ch *Channel) bool { return ch.rare != nil && ch.rare.assembly.Active() }

// lentOnce reports whether nothing is in the pool twice, or there and in use.
func lentOnce(t *Table) bool {
	p := t.cfg.Pool
	seen := map[any]bool{}
	once := func(k any) bool {
		was := seen[k]
		seen[k] = true
		return !was
	}
	ok := true
	buffer := func(b []byte) {
		if cap(b) > 0 {
			ok = ok && once(&b[:1][0])
		}
	}
	for _, l := range p.free {
		for _, b := range l.items {
			buffer(b)
		}
	}
	if p.recs != nil {
		for _, r := range p.recs.rare.items {
			ok = ok && once(r)
		}
		for _, e := range p.recs.early.items {
			ok = ok && once(e) && e.data == nil
		}
		for c := range p.recs.rings {
			for _, r := range p.recs.rings[c].items {
				ok = ok && once(&r[0])
				for i := range r {
					ok = ok && r[i].data == nil && !r[i].waiting
				}
			}
		}
	}
	for ch := range t.All {
		for s := ch.out.first; s < ch.out.next; s++ {
			buffer(ch.out.at(s).data)
		}
		if ch.rare != nil {
			ok = ok && once(ch.rare)
			ch.rare.in.each(func(e *early) {
				ok = ok && once(e)
				buffer(e.data)
			})
		}
		for _, q := range ch.queued() {
			buffer(q.Data)
		}
		if ch.out.slots != nil {
			ok = ok && once(&ch.out.slots[0])
		}
	}
	return ok
}

// TestCountsAreWhatIsHeld: what is counted against MaxMemory is what is there, whatever the peer and the game do.
func TestCountsAreWhatIsHeld(t *testing.T) {
	sizes := []int{0, 1, 5, 30, 64, 100, 700, 850}
	seeds, ended, steps, inLine, blocked := 60, 0, 0, 0, 0
	if os.Getenv("CI") != "" {
		seeds = 1500
	}
	pool := new(Pool)
	why := map[string]int{}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := &wire{rng: rng, ready: true, room: 50}
		accept := func(*Channel) Handler { return wild{w} }
		names := []bunch.Name{bunch.Control, {Index: 300}, {Index: 301}}
		m, err := NewMachine(Config{MaxMemory: []int{256 << 10, 2 << 20}[rng.IntN(2)], Pool: pool, ReliableBuffer: []int{4, 16, 256, 512}[rng.IntN(4)], RestartSequence: rng.IntN(8) == 0, EvenParts: rng.IntN(2) == 0,
			CloseOnOverflow: rng.IntN(4) == 0, FirstFree: rng.IntN(2) == 0, NeverReuseIndex: rng.IntN(4) == 0,
			Types: []Type{{Name: names[0], Static: true, ClientOpen: true, ServerOpen: true, Accept: accept},
				{Name: names[1], ClientOpen: true, ServerOpen: true, Accept: accept}, {Name: names[2], ClientOpen: true, Accept: accept}}}, w, w, 7, 9)
		require.NoError(t, err)
		tab := m.Table()
		tab.cfg.PeerMemory = 16 << 10 // less than Config takes, so that channels wait for room often
		w.t = tab
		last := "begin"
		for i := 0; i < 1500 && !w.gone; i++ {
			w.now += 16 * time.Millisecond
			switch rng.IntN(8) {
			case 0, 1, 2:
				ch := uint32(rng.IntN(6))
				if rng.IntN(20) == 0 {
					ch = uint32(rng.IntN(3000))
				}
				in := &bunch.In{Header: bunch.Header{ChIndex: ch, Name: names[1]}}
				if ch == 0 {
					in.Name = names[0]
				} else if rng.IntN(30) == 0 {
					in.Name = names[2]
				}
				if c := tab.Channel(ch); c != nil && rng.IntN(30) != 0 {
					in.Name = c.typ.Name
				}
				in.Reliable = rng.IntN(4) != 0
				seq := tab.inReliable(ch) + 1
				switch rng.IntN(4) {
				case 0:
					seq += int64(rng.IntN(4))
				case 1:
					seq += int64(rng.IntN(tab.cfg.ReliableBuffer))
				}
				in.WireSeq = seqnum.Channel.Truncate(seq)
				c := tab.Channel(ch)
				in.Open = (c == nil || !c.openedLocally && !c.openAcked) && (!in.Reliable || seq == tab.inReliable(ch)+1) && rng.IntN(100) != 0
				in.Close = ch != 0 && rng.IntN(8) == 0
				if c := tab.Channel(ch); rng.IntN(3) == 0 || c != nil && assembling(c) && rng.IntN(10) != 0 {
					in.Partial = true
					in.PartialInitial = c == nil || !assembling(c)
					in.PartialFinal = rng.IntN(4) == 0
				}
				n := sizes[rng.IntN(len(sizes))]
				in.Bits = n * 8
				if in.Partial && in.PartialFinal && n > 0 {
					in.Bits -= rng.IntN(8)
				}
				in.PacketID = int64(i)
				in.Data = *bitio.NewReader(make([]byte, n), in.Bits)
				last = "received"
				m.ReceivedPacket(in.PacketID)
				if _, err := m.ReceivedBunch(in); err != nil {
					w.failed, w.gone = err, true
				}
			case 3, 4:
				last = "fate"
				if len(w.notes) == 0 {
					break
				}
				id := w.notes[0].id
				arrived := rng.IntN(3) != 0
				var of []wireNote
				for len(w.notes) > 0 && w.notes[0].id == id {
					of = append(of, w.notes[0])
					w.notes = w.notes[1:]
				}
				w.id = max(w.id, id+1)
				w.room += len(of)
				for _, n := range of {
					if arrived {
						m.Acked(n.ch, n.seq, n.id)
					} else {
						m.Naked(n.ch, n.seq, n.id)
					}
				}
				for _, n := range of {
					m.Settled(n.ch, n.id, arrived)
				}
			case 5:
				last = "tick"
				w.id++
				m.Tick(w.now)
			case 6:
				last = "game"
				if tab.Len() > 0 {
					k := rng.IntN(tab.Len())
					for ch := range tab.All {
						if k--; k < 0 {
							wild{w}.act(ch)
							break
						}
					}
				}
				wild{w}.act(&Channel{table: tab, typ: &Type{}, closed: true})
			case 7:
				last = "ready"
				w.ready = rng.IntN(3) != 0
			}
			steps++
			held, heldOut, unacked := recount(tab, w.notes)
			require.Equal(t, held, tab.held, "seed %d step %d held after %s", seed, i, last)
			require.Equal(t, heldOut, tab.heldOut, "seed %d step %d heldOut after %s", seed, i, last)
			require.Equal(t, unacked, tab.unacked, "seed %d step %d unacked after %s", seed, i, last)
			early := 0
			for ch := range tab.All {
				if ch.rare != nil {
					early += ch.rare.in.bytes
				}
			}
			require.Equal(t, early, tab.early, "seed %d step %d early after %s", seed, i, last)
			begun, joining, fresh, refused, refusing := recountLarge(tab)
			require.Equal(t, begun, tab.begun, "seed %d step %d begun after %s", seed, i, last)
			require.Equal(t, joining, tab.joining, "seed %d step %d joining after %s", seed, i, last)
			ahead, waiting := recountAhead(t, tab)
			require.Equal(t, ahead, tab.ahead, "seed %d step %d ahead after %s", seed, i, last)
			require.Equal(t, waiting, tab.blocked.waiting, "seed %d step %d blocked after %s", seed, i, last)
			require.Equal(t, fresh, tab.fresh.waiting+tab.line.waiting+tab.blocked.waiting, "seed %d step %d waiting after %s", seed, i, last)
			require.Equal(t, refused, tab.refused.waiting, "seed %d step %d refused after %s", seed, i, last)
			require.Equal(t, refusing, tab.refusing, "seed %d step %d refusing after %s", seed, i, last)
			require.LessOrEqual(t, pool.unused, 12<<20)
			inLine = max(inLine, tab.line.len()-int(tab.line.stale))
			blocked = max(blocked, tab.blocked.len()-int(tab.blocked.stale))
			if len(w.notes) == 0 && tab.line.len()+tab.blocked.len() > int(tab.line.stale+tab.blocked.stale) {
				require.Positive(t, tab.Waiting()+tab.due.len()+tab.refused.len(), "seed %d step %d: nobody is under way after %s", seed, i, last)
			}
			if steps%16 == 0 {
				require.True(t, lentOnce(tab), "seed %d step %d", seed, i)
			}
		}
		if w.gone {
			e := "control"
			if w.failed != nil {
				e = w.failed.Error()
			}
			e = strings.TrimRight(strings.Split(e, " on ")[0], "0123456789 :")
			if len(e) > 60 {
				e = e[:60]
			}
			why[e]++
			ended++
		}
		require.True(t, lentOnce(tab), "seed %d", seed)
		m.End()
		require.True(t, lentOnce(tab), "seed %d end", seed)
		held, heldOut, unacked := recount(tab, w.notes)
		require.Equal(t, held, tab.held, "seed %d end", seed)
		require.Zero(t, heldOut)
		require.Zero(t, tab.heldOut, "seed %d end", seed)
		require.Zero(t, unacked+tab.unacked, "seed %d end", seed)
	}
	require.Greater(t, inLine, 1, "channels in line")
	require.Greater(t, blocked, 1, "blocked channels")
	t.Log(ended, steps, pool.unused, inLine, blocked, why)
}
