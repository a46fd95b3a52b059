package coding

import (
	"errors"
	"math/bits"

	"github.com/klauspost/reedsolomon"
)

const (
	slots   = 32 // packets that a decoder keeps
	maxRows = 16 // symbols that it keeps

	// The work for symbols follows the bytes that came, of packets and of symbols: workEach bytes may be combined for each of them, and mostWork saved. A packet or
	// a symbol as large as those before it takes 49 for each at most. rowWork is what two rows take besides their bytes, and callBytes what counts for a packet besides its content.
	workEach  = 64
	mostWork  = 256 << 10
	rowWork   = 32
	callBytes = 16
)

// ErrSymbol is a symbol that says what can't be of itself.
var ErrSymbol = errors.New("coding: malformed symbol")

// Counters is what happened to symbols.
type Counters struct {
	Recovered    uint64 // packets
	Symbols      uint64 // received
	Redundant    uint64 // that said nothing new: nothing that they cover is missing, or others said it before
	TooOld       uint64 // that cover packets which aren't kept any more, or were never
	Dropped      uint64 // that waited, and cover packets that are too old by now, or had to give way
	Inconsistent uint64 // that are false
	TooDear      uint64 // that would take more work than the bytes that came are worth: they are small beside those that are kept
	Combined     uint64 // bytes that were combined
}

// Decoder keeps the last packets received and the symbols that cover missing ones, and finds these. The zero value is
// ready.
//
// Invariants, between any two calls:
//
//	slot of id is id modulo slots, for first <= id and newest-slots < id <= newest
//	rows are in reduced form: each has 1 at its pivot, where all others have 0; the pivot is its oldest packet, so that
//	when that is too old nothing else is lost
//	a row has no packet that is known, and at least two that are missing
type Decoder struct {
	Counters Counters

	begun         bool
	first, newest int64 // nothing before first was kept
	covered       int64 // the newest packet that a symbol covered
	known         uint32
	found         uint32 // known by repair, and not taken yet
	slots         [slots]buffer
	rows          [maxRows + 1]row // the first n of them, and one to work with
	n             int
	spent         int // of mostWork
}

// row is an equation: the sum of coefficient times content over the packets in mask is the sum.
type row struct {
	mask         uint32 // the slots of missing packets
	pivot        uint8
	coefficients [slots]uint8
	sum          buffer
}

func slotOf(id int64) int { return int(id & (slots - 1)) }

// idOf is the packet at a slot.
func (d *Decoder) idOf(slot int) int64 { return d.newest - (d.newest-int64(slot))&(slots-1) }

// keeps reports whether there is a slot for a packet.
func (d *Decoder) keeps(id int64) bool {
	return d.begun && id >= d.first && id > d.newest-slots && id <= d.newest
}

// begin starts with packet id.
func (d *Decoder) begin(id int64) {
	if !d.begun {
		d.begun, d.first, d.newest, d.covered = true, id, id-1, id-1
	}
}

// advance makes room for packets up to id.
func (d *Decoder) advance(id int64) {
	d.newest = max(d.newest, id-slots) // the slots of what is between are of other packets by now, or empty
	if id-d.newest >= slots {
		d.known, d.found = 0, 0
		d.dropRows(^uint32(0))
	}
	for d.newest < id {
		d.newest++
		bit := uint32(1) << slotOf(d.newest)
		d.known &^= bit
		d.found &^= bit
		d.dropRows(bit)
	}
}

// dropRows drops the rows with any of the slots, whose packets can't be found any more.
func (d *Decoder) dropRows(mask uint32) {
	for i := 0; i < d.n; {
		if d.rows[i].mask&mask == 0 {
			i++
			continue
		}
		d.Counters.Dropped++
		d.remove(i)
	}
}

func (d *Decoder) remove(i int) {
	d.n--
	d.rows[i], d.rows[d.n] = d.rows[d.n], d.rows[i]
}

// Add takes the content of a packet that was received, which is copied. The first one is where the decoder begins. What is known already, or too old, changes nothing.
func (d *Decoder) Add(id int64, content []byte) {
	d.begin(id)
	if id > d.newest {
		d.advance(id)
	}
	d.came(callBytes + len(content))
	slot := slotOf(id)
	if !d.keeps(id) || d.known>>slot&1 == 1 {
		return
	}
	d.slots[slot].set(content)
	d.known |= 1 << slot
	if d.tooDear() {
		d.dropRows(1 << slot)
	}
	if d.n > 0 {
		d.substitute(slot)
	}
}

// came notes that so many bytes came.
func (d *Decoder) came(n int) { d.spent = max(0, d.spent-workEach*n) }

// combined notes that so many bytes of a row were combined with another's.
func (d *Decoder) combined(n int) {
	d.Counters.Combined += uint64(n)
	d.spent += rowWork + n
}

// tooDear reports whether the bytes that came are worth no more work for now.
func (d *Decoder) tooDear() bool { return d.spent > mostWork }

// Known reports whether a packet is kept, received or found.
func (d *Decoder) Known(id int64) bool { return d.keeps(id) && d.known>>slotOf(id)&1 == 1 }

// MayCome reports whether the next symbol may find a missing packet: none of a later packet has come yet, or one that covers it is kept, and lacks no more than one
// packet besides. Where several in a row are lost it takes as many symbols.
func (d *Decoder) MayCome(id int64) bool {
	if !d.keeps(id) {
		return false
	}
	if id > d.covered {
		return true
	}
	for i := range d.n {
		if m := d.rows[i].mask; m>>slotOf(id)&1 == 1 && bits.OnesCount32(m) <= 2 {
			return true
		}
	}
	return false
}

// Symbol takes symbol k of packet carrier, over some packets before it.
func (d *Decoder) Symbol(carrier int64, k int, c Cover, p []byte) error {
	if k < 0 || k >= MaxSymbols || c == 0 || len(p) == 0 {
		return ErrSymbol
	}
	n := c.reach()
	d.Counters.Symbols++
	d.came(len(p))
	if d.tooDear() {
		d.Counters.TooDear++
		return nil
	}
	d.begin(carrier)
	if carrier-1 > d.newest {
		d.advance(carrier - 1)
	}
	if !d.keeps(carrier - int64(n)) {
		d.Counters.TooOld++
		return nil
	}
	d.covered = max(d.covered, carrier-1)
	var mask uint32
	for i := 1; i <= n; i++ {
		if c.has(i) {
			mask |= 1 << slotOf(carrier-int64(i))
		}
	}
	missing := mask &^ d.known
	if missing == 0 {
		d.Counters.Redundant++
		return nil
	}
	if d.n == maxRows {
		d.remove(d.oldest())
		d.Counters.Dropped++
	}
	r := &d.rows[d.n]
	r.mask, r.coefficients = missing, [slots]uint8{}
	r.sum.set(p)
	draw, by := newCoefficients(carrier, k), uint8(1)
	for i := 1; i <= n; i++ {
		slot := slotOf(carrier - int64(i))
		if i > 1 {
			by = draw.next()
		}
		if missing>>slot&1 == 1 {
			r.coefficients[slot] = by
		}
		if !c.has(i) || missing>>slot&1 == 1 {
			continue
		}
		if d.slots[slot].n > len(p) {
			d.Counters.Inconsistent++
			return nil
		}
		addProduct(r.sum.data, d.slots[slot].data, by)
		d.combined(len(p))
	}
	d.insert()
	d.solve()
	return nil
}

// oldestOf is the slot of the oldest packet in a mask that isn't empty.
func (d *Decoder) oldestOf(mask uint32) int {
	first := slotOf(d.newest + 1)
	return (bits.TrailingZeros32(bits.RotateLeft32(mask, -first)) + first) & (slots - 1)
}

// oldest is the row whose pivot is the oldest.
func (d *Decoder) oldest() (at int) {
	id := d.newest + 1
	for i := range d.n {
		if p := d.idOf(int(d.rows[i].pivot)); p < id {
			at, id = i, p
		}
	}
	return at
}

// add adds a coefficient times another row.
func (r *row) add(q *row, by uint8) {
	if q.sum.n > r.sum.n {
		r.extend(q.sum.n)
	}
	addProduct(r.sum.data, q.sum.data, by)
	addProduct(r.coefficients[:], q.coefficients[:], by)
	for m := q.mask; m != 0; m &= m - 1 {
		slot := bits.TrailingZeros32(m)
		if r.coefficients[slot] == 0 {
			r.mask &^= 1 << slot
		} else {
			r.mask |= 1 << slot
		}
	}
}

// extend makes the sum n bytes long: its packets go on with zeros.
func (r *row) extend(n int) {
	old := len(r.sum.data)
	r.sum.resize(n)
	clear(r.sum.data[old:])
}

// insert takes the row behind the others, whose packets are all missing, as one of them, unless it says nothing new.
func (d *Decoder) insert() {
	r := &d.rows[d.n]
	for i := range d.n {
		q := &d.rows[i]
		if c := r.coefficients[q.pivot]; c != 0 {
			r.add(q, c)
			d.combined(q.sum.n)
		}
	}
	if r.mask == 0 {
		if isZero(r.sum.data) {
			d.Counters.Redundant++
		} else {
			d.Counters.Inconsistent++
		}
		return
	}
	r.pivot = uint8(d.oldestOf(r.mask))
	by := reedsolomon.Inv(r.coefficients[r.pivot])
	scale(r.sum.data, by)
	scale(r.coefficients[:], by)
	for i := range d.n {
		q := &d.rows[i]
		if c := q.coefficients[r.pivot]; c != 0 {
			q.add(r, c)
			d.combined(r.sum.n)
		}
	}
	d.n++
}

// substitute puts a packet that came into the rows that miss it.
func (d *Decoder) substitute(slot int) {
	s := &d.slots[slot]
	again := -1
	for i := 0; i < d.n; i++ {
		r := &d.rows[i]
		c := r.coefficients[slot]
		if c == 0 {
			continue
		}
		if s.n > r.sum.n {
			r.extend(s.n) // the symbol was false: what is too long shows in what is found
		}
		addProduct(r.sum.data, s.data, c)
		d.combined(s.n)
		r.coefficients[slot] = 0
		r.mask &^= 1 << slot
		if int(r.pivot) == slot {
			again = i // no other row has this slot
		}
	}
	if again >= 0 {
		d.remove(again)
		d.insert()
	}
	d.solve()
}

// solve takes the packets that rows have found.
func (d *Decoder) solve() {
	for i := 0; i < d.n; {
		r := &d.rows[i]
		if r.mask&(r.mask-1) != 0 {
			i++
			continue
		}
		slot := int(r.pivot)
		n := len(r.sum.data)
		for n > 0 && r.sum.data[n-1] == 0 {
			n--
		}
		if n == 0 {
			d.Counters.Inconsistent++
		} else {
			r.sum.data = r.sum.data[:padded(n)]
			r.sum.n = n
			d.slots[slot], r.sum = r.sum, d.slots[slot]
			d.known |= 1 << slot
			d.found |= 1 << slot
			d.Counters.Recovered++
		}
		d.remove(i)
	}
}

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// Next returns the oldest packet that was found and not taken yet, if it is before the given id. content is valid until the next call of Add or
// Symbol.
func (d *Decoder) Next(before int64) (id int64, content []byte, ok bool) {
	if d.found == 0 {
		return 0, nil, false
	}
	slot := d.oldestOf(d.found)
	if id = d.idOf(slot); id >= before {
		return 0, nil, false
	}
	d.found &^= 1 << slot
	s := &d.slots[slot]
	return id, s.data[:s.n], true
}
