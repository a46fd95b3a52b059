package actorrep

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// batch is what one Step sends to one connection: records, in chunks of at most a packet. Making it touches nothing of
// other connections, so that batches are made in parallel.
type batch struct {
	buf    []byte
	chunks []chunk
	large  []*view // too large for one packet
	// With an observer: how many of said it knows of, whose they are, and the records of the chunks.
	told     int
	saidBy   []*view
	observed []bridge.Sent
	said     []*call // unreliable calls sent with records. They are dropped after all batches are made, because other batches may hold them.
	ranks    []ranked
	stats    batchStats
}

// batchStats is what a batch adds to the Counters.
type batchStats struct{ updates, deltas, saturated, sharedBits, calls uint64 }

type chunk struct {
	from, bits int   // in buf, from in bytes
	first, end int64 // places in sentRing: of its first record, and after its last one
	said       int   // calls of the batch up to its end
}

// worker is what one core needs to make batches. It caches the values that were encoded in this Step.
type worker struct {
	frame   uint32
	begun   bool
	cache   []cached // by the actor's slot: the index of its first entry
	entries []encoded
	alone   encoded  // of an actor whose encoding no other connection can use
	sizes   []uint16 // of the units of entries
	arena   bitio.Writer
	out     bitio.Writer
	buf     []byte
	byID    []*view // see sort; nil between
	ids     []uint64
	lastOf  []layout.Mask // by class: the mask of its last record in this chunk
	state   wire.Chunk
	past    layout.Past
}

type cached struct {
	frame uint32
	first int32
}

// first is the index of an actor's first entry, or 0.
func (k *worker) first(b *Base) int32 {
	if c := k.cache[b.slot]; c.frame == k.frame {
		return c.first
	}
	return 0
}

// encoded is one encoding of an actor's values. The same mask and basis make the same bits; so do another basis with the
// same baseline and path, when the client lacks records that the path doesn't use.
type encoded struct {
	mask layout.Mask
	basis
	path       wire.Path
	predicted  bool
	from, bits int
	sizes      int   // index of the first of the units' sizes
	next       int32 // index of another encoding of the same actor; 0 none
}

const arenaBytes = 1 << 20

func newWorker() *worker {
	return &worker{buf: make([]byte, arenaBytes)}
}

// begin empties the cache for a new Step.
func (k *worker) begin(w *World) {
	if k.frame == w.frame && k.begun {
		return
	}
	if w.frame < k.frame { // it has wrapped: entries of 2^32 Steps ago mustn't look like those of now
		clear(k.cache)
	}
	k.frame, k.begun = w.frame, true
	if len(k.cache) < len(w.actors) {
		k.cache = make([]cached, len(w.actors)+len(w.actors)/2)
	}
	k.entries, k.sizes = append(k.entries[:0], encoded{}), k.sizes[:0] // entry 0 is none
	k.arena.Reset(k.buf)
	if len(k.lastOf) < len(w.classes) {
		k.lastOf = make([]layout.Mask, len(w.classes))
	}
}

// gatherAll makes the batches of all connections, on one core when there is little to send.
func (w *World) gatherAll() {
	n := 0
	for _, p := range w.peers {
		n += len(p.pending)
	}
	if n >= fewForCores {
		w.onCores(len(w.peers), w.gatherPeer)
		return
	}
	for _, p := range w.peers {
		p.gather(w.workers[0])
	}
}

// fewForCores updates are encoded on one core: others would wake up too late to help.
const fewForCores = 64

// onCores calls f(0) to f(n-1) on the cores of Config.Parallel.
func (w *World) onCores(n int, f func(i, worker int)) {
	if len(w.workers) > 1 && n > 1 {
		w.cfg.Parallel.Run(n, f)
		return
	}
	for i := range n {
		f(i, 0)
	}
}

// gather chooses what to send and encodes it.
func (p *Peer) gather(k *worker) {
	if p.gathered = p.ready && !p.idle && len(p.pending) > 0; !p.gathered {
		return
	}
	k.begin(p.world)
	budget, free := p.out.budget(), p.out.freeBits()
	chosen := p.choose(budget)
	if chosen == 0 {
		return
	}
	wait := p.pending
	for chosen > 0 {
		serve := wait[:chosen]
		wait = wait[chosen:]
		k.sort(serve)
		budget, free = p.encodeAll(k, serve, budget, free)
		if chosen = 0; budget >= worthChunk { // those before took less than their last records
			chosen = likely(wait, budget)
		}
	}
	p.starve(wait)
	m := &p.peaks
	m.pending, m.chunks = max(m.pending, len(p.pending)), max(m.chunks, len(p.batch.chunks))
	rest := p.pending[:0]
	for _, v := range p.pending {
		if v.state == open && (v.dirty&v.allowed != 0 || v.flags&mentioning != 0) {
			rest = append(rest, v)
		} else {
			v.flags &^= pending
		}
	}
	clear(p.pending[len(rest):])
	p.pending = rest
}

func byID(a, b *view) int { return cmp.Compare(a.id, b.id) }

// maxSpread is how many ids there may be for each view, for sort to go through all ids. It takes 64 of them at a time.
const maxSpread = 512

// sort sorts views by id. Ids are different and dense, as a rule, so that it marks them and goes through the marks.
func (k *worker) sort(views []*view) {
	sorted, most := true, views[0].id
	for _, v := range views[1:] {
		sorted = sorted && v.id > most
		most = max(most, v.id)
	}
	if sorted {
		return
	}
	if len(views) < 8 || uint64(most) >= uint64(maxSpread*len(views)) {
		slices.SortFunc(views, byID)
		return
	}
	if n := int(most) + 1; len(k.byID) < n {
		k.byID, k.ids = make([]*view, n+n/2), make([]uint64, (n+n/2+63)/64)
	}
	for _, v := range views {
		k.byID[v.id] = v
		k.ids[v.id/64] |= 1 << (v.id % 64)
	}
	n := 0
	for i := range k.ids[:most/64+1] {
		for m := k.ids[i]; m != 0; m &= m - 1 {
			id := i*64 + bits.TrailingZeros64(m)
			views[n], k.byID[id] = k.byID[id], nil
			n++
		}
		k.ids[i] = 0
	}
}

// choose drops the views that have nothing to send, and returns for how many of the others there is likely to be bandwidth. When that isn't all, they are sorted,
// the most urgent first.
func (p *Peer) choose(budget int) int {
	kept, estimate := p.pending[:0], 0
	for _, v := range p.pending {
		if v.state != open || (v.dirty&v.allowed == 0 || v.flags&inTurns != 0) && v.flags&mentioning == 0 {
			v.flags &^= pending
			continue
		}
		kept = append(kept, v)
		estimate += int(max(v.lastBits, 32))
	}
	clear(p.pending[len(kept):])
	p.pending = kept
	if budget <= 0 || p.sent.full() {
		p.starve(kept)
		return 0
	}
	if estimate <= budget {
		return len(kept)
	}
	p.rank(kept)
	return likely(kept, budget)
}

// likely is how many views, from the first, the budget allows if their records take as much as their last ones.
func likely(views []*view, budget int) int {
	for i, v := range views {
		if budget <= 0 {
			return i
		}
		budget -= int(max(v.lastBits, 32))
	}
	return len(views)
}

// starve notes that there was no bandwidth for these views.
func (p *Peer) starve(views []*view) {
	if len(views) > 0 {
		p.batch.stats.saturated = 1
	}
	for _, v := range views {
		v.reason = ReasonStarved
	}
}

const (
	maxMentions = 8
	worthChunk  = 4 * bunchMargin // bits of bandwidth for which more views are chosen: a chunk of few would be head, mostly
	// nearFrames is how far a chunk's frame may be from one that the client is known to have. The client then finds the
	// frame from the wire's low bits, even if it has a newer one.
	nearFrames = 1 << (wire.FrameBits - 2)
	nearTime   = 1 << (wire.TimeBits - 2 + wire.TimeUnit) // likewise, 17 s
)

// encodeAll encodes views until the budget is used up. free is the bits left in the current packet. It returns what is left of both.
func (p *Peer) encodeAll(k *worker, views []*view, budget, free int) (int, int) {
	t := &p.batch
	full := p.out.packetBits()
	limit := min(free, full)
	if limit < full/4 {
		limit = full
	}
	for len(views) > 0 && budget > 0 {
		from := len(t.buf)
		need := (limit+7)/8 + 8
		t.buf = slices.Grow(t.buf, need)
		p.peaks.bytes = max(p.peaks.bytes, from+need)
		w := &k.out // one made here would escape
		w.ResetBits(t.buf[from:from+(limit+7)/8], limit)
		first := p.sent.end()
		served, some := p.encodeChunk(k, w, views, budget, limit)
		if views = views[served:]; some {
			t.chunks = append(t.chunks, chunk{from, w.Len(), first, p.sent.end(), len(t.said)})
			t.buf = t.buf[:from+len(w.Bytes())]
			budget -= w.Len()
		}
		free, limit = limit-w.Len()-bunchMargin, full
	}
	p.starve(views)
	return budget, free
}

// splitBetween reports whether a chunk must end between two ids.
func (p *Peer) splitBetween(a, b uint32) bool {
	return a < p.splits[0] && b >= p.splits[0] || a < p.splits[1] && b >= p.splits[1]
}

// encodeChunk encodes one chunk. It returns how many views it served, and whether the chunk has any records. A view that
// doesn't fit an empty packet is added to large.
func (p *Peer) encodeChunk(k *worker, w *bitio.Writer, views []*view, budget, limit int) (served int, some bool) {
	t := &p.batch
	clear(k.lastOf)
	since := p.world.now - p.knownAt
	near := p.knows && !p.replay && p.world.frame-p.known < nearFrames && since >= 0 && since < nearTime // a seek knows none
	wire.WriteTime(w, p.world.frame, p.world.now, near)
	empty := w.Len()
	k.state = wire.NewChunk()
	prev := uint32(0)
	for i, v := range views {
		// The first record is sent even when the budget is smaller.
		if i > 0 && (w.Len() >= budget || p.splitBetween(prev, v.id)) {
			return i, some
		}
		mark, start := w.Mark(), w.Len()
		old, state := k.lastOf[v.b.class.id], k.state
		r := p.sent.next()
		p.encodeRecord(k, w, v, prev, r)
		if w.Err() != nil {
			*r = record{}
			w.Rollback(mark)
			k.lastOf[v.b.class.id], k.state = old, state
			if w.Len() > empty || limit < p.out.packetBits() {
				return i, some
			}
			t.large = append(t.large, v)
			continue
		}
		if v.tell(r.mask); r.deltas {
			v.number++
		}
		r.number, r.why = v.number, v.reason
		v.lastBits = int32(w.Len() - start)
		v.total += uint64(w.Len() - start)
		v.reason = ReasonSent
		prev, some = v.id, true
		if r.mask != 0 {
			p.sent.push()
			if p.world.observer != nil {
				p.observe(v, r)
			}
		} else {
			*r = record{}
		}
	}
	return len(views), some
}
