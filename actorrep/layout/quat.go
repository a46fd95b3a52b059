package layout

import (
	"math"
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A rotation is four numbers x, y, z and w of one length, and with all signs turned it is the same rotation. So its largest number need not
// be sent: it is positive, and follows from the others, which are between -m and m = 2^(Bits-1)-1, for a length of m times the root of 2. In
// a Shadow they are all four, in zigzag. {0, 0, 0, 0}, as in a new object, is a value of its own; what is no rotation is notQuat.
//
// Index and others of these two are sent as -m-1, m and m: 0 for {0, 0, 0, 0}, 1 for notQuat.

// notQuat is the first number of what has a NaN or an infinity.
const notQuat = 1

// Quaternion is a rotation as it is sent, in so many bits for each of the three smaller numbers.
func Quaternion(x, y, z, w float64, bits uint8) (a, b, c, d uint64) {
	v := [4]float64{x, y, z, w}
	most, at := 0.0, 0
	for i, f := range v {
		if f = math.Abs(f); f > most {
			most, at = f, i
		}
		if f-f != 0 {
			return notQuat, 0, 0, 0
		}
	}
	if most == 0 {
		return 0, 0, 0, 0
	}
	length := 0.0
	for i := range v {
		v[i] /= most // no square is too large or too small
		length += v[i] * v[i]
	}
	m := largestPart(bits)
	scale := float64(m) * math.Sqrt2 / math.Sqrt(length)
	if v[at] < 0 {
		scale = -scale
	}
	var n [4]int64
	for i := range n {
		n[i] = min(max(int64(math.RoundToEven(v[i]*scale)), -m), m)
	}
	n[at] = missing(&n, at, m)
	for range 3 { // rounding may have made another the largest: what arrived, sent on, is the same again
		most := longest(&n)
		if most == at {
			break
		}
		if at = most; n[at] < 0 {
			negate(&n)
		}
		n[at] = missing(&n, at, m)
	}
	return zigzag(n[0]), zigzag(n[1]), zigzag(n[2]), zigzag(n[3])
}

func largestPart(bits uint8) int64 { return 1<<(bits-1) - 1 }

// missing is the number that the others lead to.
func missing(n *[4]int64, at int, m int64) int64 {
	left := 2 * m * m
	for i, v := range n {
		if i != at {
			left -= v * v
		}
	}
	return int64(math.Sqrt(float64(max(left, 0))) + 0.5) // the same on every machine: a root is exactly rounded
}

// index is the number that isn't sent; -1 of what is no rotation.
func index(n *[4]int64, m int64) int {
	at := 0
	for i := range n {
		if n[i] > n[at] {
			at = i
		}
	}
	for i := range 4 { // the largest nearly always
		i = (i + at) & 3
		fits := n[i] == missing(n, i, m)
		for j, v := range n {
			fits = fits && (j == i || v >= -m && v <= m)
		}
		if fits && n[i] > 0 {
			return i
		}
	}
	return -1
}

func quatOf(v []uint64) (n [4]int64) {
	for i := range n {
		n[i] = unzigzag(v[i])
	}
	return n
}

// fromQuat is a rotation as the game has it.
func fromQuat(v []uint64) (f [4]float64) {
	if v[0] == notQuat && v[1]|v[2]|v[3] == 0 {
		return f
	}
	n, sum := quatOf(v), int64(0)
	for _, part := range n {
		sum += part * part
	}
	length := math.Sqrt(float64(max(sum, 1))) // not quite that of all others: the largest number is rounded too
	for i := range n {
		f[i] = float64(n[i]) / length
	}
	return f
}

func (d *Wire) writeQuat(w *bitio.Writer, v []uint64) { w.WriteBits(d.quatCode(v)) }

// quatCode is a rotation as it is sent whole, and how many bits that are.
func (d *Wire) quatCode(v []uint64) (code uint64, bits int) {
	n, m := quatOf(v), largestPart(d.Bits)
	at := index(&n, m)
	if at < 0 {
		if at = 0; v[0] == notQuat {
			at = 1
		}
		n[(at+1)&3], n[(at+2)&3], n[(at+3)&3] = -m-1, m, m
	}
	code, bits = uint64(at), 2
	for i := 1; i < 4; i++ {
		code |= uint64(n[(at+i)&3]) & (1<<d.Bits - 1) << bits
		bits += int(d.Bits)
	}
	return code, bits
}

func (d *Wire) readQuat(r *bitio.Reader, v []uint64) {
	var n [4]int64
	at, shift := int(r.ReadBits(2)), 64-d.Bits
	for i := 1; i < 4; i++ {
		n[(at+i)&3] = int64(r.ReadBits(int(d.Bits))<<shift) >> shift
	}
	d.finishQuat(&n, at, v)
}

// finishQuat puts a rotation into v of which all numbers but one were read.
func (d *Wire) finishQuat(n *[4]int64, at int, v []uint64) {
	m := largestPart(d.Bits)
	for i := 1; i < 4; i++ {
		if j := n[(at+i)&3]; j < -m || j > m { // none of ours writes other than the two
			clear(v)
			if at == 1 {
				v[0] = notQuat
			}
			return
		}
	}
	n[at] = missing(n, at, m)
	for i := range n {
		v[i] = zigzag(n[i])
	}
}

// nearQuat is a rotation against another in three errors, the means that go with them put in their order, and how its index is named: by
// sameIndex, by 1 more than it, or by notNear for one that is sent whole.
func (d *Wire) nearQuat(v []uint64, g [4]int64, errors, means []uint64) (named uint64) {
	n, m := quatOf(v), largestPart(d.Bits)
	at, expected := index(&n, m), longest(&g)
	if at < 0 {
		return notNear
	}
	if g[at] < 0 {
		negate(&g)
	}
	var order [4]uint64
	copy(order[:], means)
	for i := 1; i < 4; i++ {
		j := (at + i) & 3
		errors[i-1] = zigzag(n[j] - g[j])
		if means != nil {
			means[i-1] = order[j]
		}
	}
	if at == expected {
		return sameIndex
	}
	return 1 + uint64(at)
}

const (
	sameIndex = 0
	notNear   = 5
)

// longest is the number of a rotation that is farthest from 0.
func longest(n *[4]int64) (at int) {
	for i, v := range n {
		if abs(v) > abs(n[at]) {
			at = i
		}
	}
	return at
}

func negate(n *[4]int64) {
	for i := range n {
		n[i] = -n[i]
	}
}

// A rotation against another has 1 when the number that isn't sent is the largest of the other, else 0 and 2 bits which it is; when these name the
// largest all the same, the rotation follows whole.
func indexCode(named uint64, guess *[4]int64) (code uint64, n int) {
	switch named {
	case sameIndex:
		return 1, 1
	case notNear:
		return uint64(longest(guess)) << 1, 3
	}
	return (named - 1) << 1, 3
}

// readNearTo reads it, and is the rotation whose differences follow to what was known, which has that part positive. ok is false when the rotation
// follows whole.
func readNearTo(r *bitio.Reader, known [4]int64) (g [4]int64, at int, ok bool) {
	g = known
	if at, ok = longest(&g), true; !r.ReadBool() {
		named := int(r.ReadBits(2))
		at, ok = named, named != at
	}
	if ok && g[at] < 0 {
		negate(&g)
	}
	return g, at, ok
}

// moved is a part of a rotation that is off by a difference in zigzag. No honest end goes beyond the bounds.
func (d *Wire) moved(part int64, difference uint64) int64 {
	m := largestPart(d.Bits)
	return min(max(part+unzigzag(difference), -m-1), m)
}

func (d *Wire) readNearQuat(r *bitio.Reader, v []uint64, guess *[MaxNumbers]int64, means *[MaxNumbers]uint64) {
	g, at, ok := readNearTo(r, *guess)
	if !ok {
		d.readQuat(r, v)
		return
	}
	var n [4]int64
	largest := uint64(0)
	for i := range 3 {
		j := (at + i + 1) & 3
		e := codeOf(i, means[j&3], largest).read(r)
		n[j], largest = d.moved(g[j], e), max(largest, e)
	}
	d.finishQuat(&n, at, v)
}

// nearRotation puts what is sent of v into e, and says how many bits that takes.
func (d *Wire) nearRotation(v []uint64, guess *[MaxNumbers]int64, means *[MaxNumbers]uint64, e *nearErrors) int {
	var errors [MaxNumbers]uint64
	named := d.nearQuat(v, *guess, errors[:], means[:])
	head, n := indexCode(named, guess)
	if named == notNear {
		code, bits := d.quatCode(v)
		e.bits, e.n = head|code<<n, n+bits
	} else {
		e.set(head, n, 3, &errors, means)
	}
	return e.n
}

// quatDelta is a rotation's differences to another, their width, and how its index is named.
func (d *Wire) quatDelta(v, base []uint64) (diff [MaxNumbers]uint64, width int, named uint64) {
	named = d.nearQuat(v, keptQuat(base), diff[:], nil)
	if width = bits.Len64(diff[0] | diff[1] | diff[2]); width >= escape {
		named = notNear
	}
	return diff, width, named
}

func (d *Wire) writeQuatDelta(w *bitio.Writer, v, base []uint64) {
	diff, width, named := d.quatDelta(v, base)
	known := keptQuat(base)
	code, n := indexCode(named, &known)
	if w.WriteBits(code, n); named == notNear {
		d.writeQuat(w, v)
		return
	}
	w.WriteBits(uint64(width), deltaWidth)
	writeEach(w, diff[:3], width)
}

func (d *Wire) quatDeltaBits(v, base []uint64) int {
	_, width, named := d.quatDelta(v, base)
	switch named {
	case sameIndex:
		return 1 + deltaWidth + 3*width
	case notNear:
		return 3 + 2 + 3*int(d.Bits)
	}
	return 3 + deltaWidth + 3*width
}

func (d *Wire) readQuatDelta(r *bitio.Reader, v, base []uint64) {
	g, at, ok := readNearTo(r, keptQuat(base))
	if !ok {
		d.readQuat(r, v)
		return
	}
	var n [4]int64
	width := int(r.ReadBits(deltaWidth))
	for i := 1; i < 4; i++ {
		j := (at + i) & 3
		n[j] = d.moved(g[j], r.ReadBits(width))
	}
	d.finishQuat(&n, at, v)
}

// keptQuat is a rotation from where it is kept.
func keptQuat(kept []uint64) (n [4]int64) {
	for i := range n {
		n[i] = int64(kept[i])
	}
	return n
}

// turn finds the times of a past at which a rotation has the other sign than at the newest: where the number that is the largest there is below 0.
func (p *Past) turn(at keptAt) {
	newest := keptQuat(p.newest(at)[:])
	largest := longest(&newest)
	for i := range p.Form.Times() {
		p.flips[i] = uint64(int64(p.row(p.At[i], at)[largest]) >> 63)
	}
}

// of is a rotation's number at a time, with the sign of the newest.
func (x *moments) flip(time uint8, v uint64) uint64 {
	f := x[time%Points]
	return v ^ f - f
}
