package layout

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A number that moves is predicted from where it was at up to twelve earlier times that both ends know, and what is sent is
// how far the prediction was off. Both ends predict alike, with integers: along a line, a parabola or a cubic through the newest of those times, or
// through every second of them. Which of these a unit takes, and how far off it will be, is decided by how far off each would
// have been at the two newest times, had it been as long ahead. So nothing of it is sent, and
// the bits depend on the values alone: connections that know the same times get the same bits.

// Points is how many earlier times a prediction uses at most.
const Points = 12

// Form is how many earlier times there are.
type Form uint8

// The forms. With six or eight times the prediction is checked at two gaps ahead, with twelve at four.
const (
	Two Form = iota
	Six
	Eight
	Twelve
)

// Times is their number.
func (f Form) Times() int { return int([...]uint8{2, 6, 8, Points}[f&3]) }

// The bounds of a Past. A client keeps the numbers of MaxRecords records.
const (
	MaxAge     = 255
	MaxGap     = 31
	MaxRecords = 32
)

// Past is an object's numbers at earlier times, which both ends know.
type Past struct {
	// History has the object's numbers, and At says where in it the times are: the newest, and those before it as far as Gap and Form say.
	*History
	At [Points]int
	// Mask is the units whose numbers at the newest time are known.
	Mask Mask
	// Predicted is those of them that are predicted. The others are sent as differences to the newest.
	Predicted Mask
	// Age is the Steps from the newest time to now, 1 to MaxAge. Gap is the Steps between one time and the next, 1 to MaxGap; 0 when
	// there is but one.
	Age, Gap int
	Form     Form

	factors
	flips moments      // of the rotation at hand: all ones at the times when it has the other sign
	near  []nearErrors // by unit; see Predict
}

// Reset makes it nothing known.
func (p *Past) Reset() {
	p.Mask, p.Predicted, p.Age, p.Gap, p.Form = 0, 0, 0, 0, Two
}

// newest is the numbers of a unit at the newest time.
func (p *Past) newest(at keptAt) *[MaxNumbers]uint64 { return p.row(p.At[0], at) }

// factors are what predictions multiply with.
type factors struct {
	age, gap int // for which they are
	form     Form
	curves   [ways]curve
	spread   [2 * MaxNumbers]uint64 // by how many numbers there are, up to MaxNumbers; in 1/65536
}

// curve is what the differences of the newest number to those at three other times are multiplied with, in 1/65536, and added up, to get from it to
// where the next is expected; and these times, 0 for those it doesn't need.
type curve struct {
	by    [3]int64
	times [3]uint8
}

const one = 1 << 16

// Prepare has to be called when the other fields are set, before anything is predicted.
func (p *Past) Prepare() {
	if f := &p.factors; p.Gap != 0 && (f.age != p.Age || f.gap != p.Gap || f.form != p.Form) {
		p.prepare(f)
	}
}

func (p *Past) prepare(f *factors) {
	f.age, f.gap, f.form = p.Age, p.Gap, p.Form
	n := int64(p.Age)
	for i, way := range waysToPredict {
		c, s := &f.curves[i], int64(p.Gap)*int64(way.stride)
		*c = curve{[3]int64{(n*one + s/2) / s}, [3]uint8{way.stride}}
		if way.degree > 1 {
			second := (n*(n+s)*one/2 + s*s/2) / (s * s) // of the second differences
			c.times[1], c.by[0], c.by[1] = 2*way.stride, c.by[0]+2*second, -second
		}
		if way.degree > 2 {
			third := (n*(n+s)*(n+2*s)*one/6 + s*s*s/2) / (s * s * s)
			c.times[2], c.by[0], c.by[1], c.by[2] = 3*way.stride, c.by[0]+3*third, c.by[1]-3*third, third
		}
	}
	// Errors so far ahead are known; they grow with the time, between linearly and with its square.
	h := 2 * int64(p.Gap)
	if p.Form == Twelve {
		h *= 2
	}
	for i := range MaxNumbers + 1 {
		f.spread[i] = uint64(n * (n + h) * one / (2 * h * h * int64(i+1)))
	}
}

// ahead is how far from x0 a number will be that was x0, x1, x2 and x3, all of them shifted to the left.
func (c *curve) ahead(x0, x1, x2, x3 uint64, shift uint8) int64 {
	shift &= 63
	return (int64(x0-x1)>>shift*c.by[0] + int64(x0-x2)>>shift*c.by[1] + int64(x0-x3)>>shift*c.by[2] + one/2) >> 16
}

// The ways to predict, by the times that they take. What sets others back against the first is that they follow noise.
const (
	line2 = iota
	line
	parabola
	cubic
	parabola2
	line4
	cubic2
	ways
)

// waysToPredict says through every how manieth time a way's curve goes, and the degree of that.
var waysToPredict = [ways]struct{ stride, degree uint8 }{
	line2: {2, 1}, line: {1, 1}, parabola: {1, 2}, cubic: {1, 3}, parabola2: {2, 2}, line4: {4, 1}, cubic2: {2, 3},
}

// predict is where the numbers of a unit are expected, as they are kept, and for each how far off that is expected to be, in zigzag, in 1/65536.
func (d *Wire) predict(p *Past, at keptAt, guess *[MaxNumbers]int64, means *[MaxNumbers]uint64) {
	if p.Form == Two {
		d.predictStart(p, at, guess, means)
		return
	}
	quat := d.Kind == Quat
	if quat {
		p.turn(at)
	}
	var off misses
	var fourth [ways]uint64
	if d.N > lanes {
		d.check(p, at.pack+1, &off)
		fourth = off.word
	}
	d.check(p, at.pack, &off)
	way := p.choose(&off.sum)
	unused := uint8(0)
	if d.Kind == Angle {
		unused = (lane - d.Bits) & 63
	}
	missed, all, spread := off.word[way], off.sum[way]>>unused, p.spread[d.N&7]
	for j := range int(d.N) {
		if j == lanes {
			missed = fourth[way]
		}
		means[j&3] = (missed&laneMask>>unused + all) * spread // less than 1<<25 * spread
		missed >>= lane
	}
	c := &p.curves[way]
	x0, x1 := p.newest(at), p.row(p.At[c.times[0]], at)
	shift := d.shift() & 63
	if c.times[1] == 0 && !quat { // a line
		by := c.by[0]
		for j := range int(d.N) {
			j &= 3
			guess[j] = int64(x0[j]) + (int64(x0[j]-x1[j])>>shift*by+one/2)>>16<<shift
		}
		return
	}
	x2, x3 := p.row(p.At[c.times[1]], at), p.row(p.At[c.times[2]], at)
	if quat {
		for j, a := range x0 {
			b, e, f := p.flips.flip(c.times[0], x1[j]), p.flips.flip(c.times[1], x2[j]), p.flips.flip(c.times[2], x3[j])
			guess[j] = int64(a) + c.ahead(a, b, e, f, 0)
		}
		return
	}
	for j := range int(d.N) {
		j &= 3 // spares the checks
		guess[j] = int64(x0[j]) + c.ahead(x0[j], x1[j], x2[j], x3[j], shift)<<shift
	}
}

// misses is how far off each way was: in the numbers of a packed word, and in all that were checked.
type misses struct{ word, sum [ways]uint64 }

// note notes how far off a way was in a packed word.
func (o *misses) note(way int, word uint64) {
	o.word[way] = word
	o.sum[way] += total(word)
}

// choose finds the way that was off least. sums is how far off each was.
func (p *Past) choose(sums *[ways]uint64) (way int) {
	best := min(sums[line2]<<3, setBack(sums, line), setBack(sums, parabola), setBack(sums, cubic))
	if p.Form >= Eight {
		best = min(best, setBack(sums, parabola2))
	}
	if p.Form == Twelve {
		best = min(best, setBack(sums, line4), setBack(sums, cubic2))
	}
	return int(best & 7)
}

// setBack is a way's sum for choose, with the way in its lowest bits: of ways that were off as much the first is taken.
func setBack(sums *[ways]uint64, way int) uint64 {
	return (sums[way]+sums[way]/4)<<3 | uint64(way)
}

// predictStart predicts from two times: how far off that will be isn't known yet, and taken for a quarter of the way.
func (d *Wire) predictStart(p *Past, at keptAt, guess *[MaxNumbers]int64, means *[MaxNumbers]uint64) {
	shift, all := d.shift()&63, uint64(0)
	x0, x1 := p.newest(at), p.row(p.At[1], at)
	if d.Kind == Quat {
		p.turn(at)
	}
	for j := range int(d.N) {
		j &= 3
		before := x1[j]
		if d.Kind == Quat {
			before = p.flips.flip(1, before)
		}
		way := int64(x0[j]-before) >> shift
		guess[j] = int64(x0[j]) + (way*p.curves[line].by[0]+one/2)>>16<<shift
		means[j] = abs(way) / 2
		all += means[j]
	}
	for j := range int(d.N) {
		means[j&3] = min(means[j&3]+all, 1<<30) * p.spread[d.N]
	}
}

// check notes how far off each way was at the two newest times, in the numbers of a packed word: with twelve times from what
// was known four gaps before each, else two.
func (d *Wire) check(p *Past, pack int, off *misses) {
	var all moments
	from, times := p.column(pack), p.At[:p.Form.Times()]
	x := all[:len(times)]
	switch d.Kind {
	case Angle: // on from the newest the shorter way around; what other angles carried goes into bits that they don't use
		unused := (lane - d.Bits) & 63
		step := uint64(laneOnes) << unused
		newest, keep := from[times[0]]-laneSigns-step/2, 1<<63-1-(step-laneOnes)
		for i, t := range times {
			x[i] = (from[t] - newest) & keep
		}
	case Quat:
		for i, t := range times {
			x[i] = p.flips.flip(uint8(i), from[t])
		}
	default:
		for i, t := range times {
			x[i] = from[t]
		}
	}
	if p.Form == Twelve {
		all.far(off)
	} else {
		all.near(off, p.Form)
	}
}

// moments is numbers at the times of a past, newest first.
type moments [Points]uint64

func (x *moments) near(o *misses, form Form) {
	y0, y1, y2, y3, y4 := x[2], x[3], x[4], x[5], x[6]
	e, v, w := x[0]-y0+laneSigns, y0-y1, y0-y2 // with laneSigns for magnitudes
	f, r, s := x[1]-y1+laneSigns, y1-y2, y1-y3
	a, b := 2*v-w, 2*r-s
	e1, f1 := e-2*v, f-2*r
	o.note(line, magnitudes(e1, f1))
	o.note(line2, magnitudes(e-w, f-s))
	e1, f1 = e1-3*a, f1-3*b
	o.note(parabola, magnitudes(e1, f1))
	if e1 -= 4 * (y0 - 3*y1 + 3*y2 - y3); form == Six { // the other's last time is one too many
		o.note(cubic, magnitudes(e1, e1))
		return
	}
	o.note(cubic, magnitudes(e1, f1-4*(y1-3*y2+3*y3-y4)))
	o.note(parabola2, magnitudes(e-w-(2*w-(y0-x[6])), f-s-(2*s-(y1-x[7]))))
}

func (x *moments) far(o *misses) {
	y0, y1, y2, y3, y4, y5, y6, y7 := x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11]
	e, u, v, w := x[0]-y0+laneSigns, y0-y1, y0-y2, y0-y4 // with laneSigns for magnitudes
	f, r, s, z := x[1]-y1+laneSigns, y1-y2, y1-y3, y1-y5
	a, b, a2, b2 := 2*u-v, 2*r-s, 2*v-w, 2*s-z
	e1, f1, e2, f2 := e-4*u, f-4*r, e-2*v, f-2*s
	o.note(line, magnitudes(e1, f1))
	o.note(line2, magnitudes(e2, f2))
	o.note(line4, magnitudes(e-w, f-z))
	e1, f1, e2, f2 = e1-10*a, f1-10*b, e2-3*a2, f2-3*b2
	o.note(parabola, magnitudes(e1, f1))
	o.note(parabola2, magnitudes(e2, f2))
	o.note(cubic, magnitudes(e1-20*(a-b), f1-20*(b-(y2-2*y3+y4))))
	o.note(cubic2, magnitudes(e2-4*(a2-(y2-2*y4+y6)), f2-4*(b2-(y3-2*y5+y7))))
}

// riceCode is a Rice code of a width, with so many ones at most.
type riceCode struct{ width, ones uint8 }

// few is a mean, in 1/65536, below which errors are mostly what rounding makes of them.
const few = 8 << 16

// firstCode is the code of a unit's first error, of which a mean, in zigzag, of v/65536 is expected, and nextCode those of the others. Most large
// errors are much smaller than was expected, and a few much larger: then the others of the unit are too.
func firstCode(v uint64) riceCode {
	if v < few {
		return riceCode{log(v - v/64 + 27_500), 3}
	}
	return riceCode{log(v + v*2/5), 2}
}

func nextCode(v, largest uint64) riceCode {
	largest = min(largest, 1<<30) << 16
	if v < few {
		return riceCode{log(v - v/8 + largest/8 + 27_500), 6}
	}
	return riceCode{log((3*v+2*largest)/5 + 27_500), 4}
}

// codeOf is the code of error i, when the largest of those before it is known.
func codeOf(i int, mean, largest uint64) riceCode {
	if i == 0 {
		return firstCode(mean)
	}
	return nextCode(mean, largest)
}

func log(v uint64) uint8 { return uint8(bits.Len64(v>>16|1)-1) & 63 }

func abs(v int64) uint64 { return uint64(max(v, -v)) }

// nearErrors is how far off the numbers of a unit were expected, as it is sent.
type nearErrors struct {
	bits uint64 // all of it, when n is no more than 64, else its head
	n    int
	long longErrors
}

// longErrors are those that take more than 64 bits.
type longErrors struct {
	head    uint8 // bits
	numbers uint8
	codes   [MaxNumbers]riceCode
	errors  [MaxNumbers]uint64
}

// set makes it a head of a few bits, and some errors in zigzag.
func (e *nearErrors) set(head uint64, headBits, numbers int, errors, means *[MaxNumbers]uint64) {
	largest, all, n := uint64(0), head, headBits
	c := firstCode(means[0])
	for i := 0; ; {
		v, at := errors[i&3], n&63
		if q := v >> (c.width & 63); q < uint64(c.ones) { // nearly always
			low := v & (1<<(c.width&63) - 1)
			all |= ((2*low+1)<<(q&63) - 1) << at
			n += int(q) + 1 + int(c.width)
		} else {
			code, bits := c.longer(v, q)
			all |= code << at
			n += bits
		}
		if i++; i >= numbers {
			break
		}
		largest = max(largest, v)
		c = nextCode(means[i&3], largest)
	}
	if e.bits, e.n = all, n; n > 64 {
		e.bits = head
		e.long.set(headBits, errors[:numbers], means[:])
	}
}

func (e *longErrors) set(headBits int, errors, means []uint64) {
	largest := uint64(0)
	e.head, e.numbers = uint8(headBits), uint8(copy(e.errors[:], errors))
	for i, v := range errors {
		e.codes[i], largest = codeOf(i, means[i], largest), max(largest, v)
	}
}

func (e *nearErrors) write(w *bitio.Writer) {
	if e.n <= 64 { // nearly always
		w.WriteBits(e.bits, e.n)
		return
	}
	w.WriteBits(e.bits, int(e.long.head))
	for i, v := range e.long.errors[:e.long.numbers] {
		c := e.long.codes[i]
		if code, n := c.code(v); n <= 64 {
			w.WriteBits(code, n)
		} else {
			c.writeLong(w, v)
		}
	}
}

// readNear reads them.
func (d *Wire) readNear(r *bitio.Reader, v []uint64, guess *[MaxNumbers]int64, means *[MaxNumbers]uint64) {
	if d.Kind == Quat {
		d.readNearQuat(r, v, guess, means)
		return
	}
	largest := uint64(0)
	for i := range v {
		e := codeOf(i, means[i&3], largest).read(r)
		v[i], largest = d.add(uint64(guess[i&3]), e), max(largest, e)
	}
}

// A Rice code of width k is v>>k ones, a zero, and the k low bits of v. From so many ones on there is no zero but an Elias gamma code
// of what is more, plus 1: for a number of n bits n-1 ones, a zero, and all bits but the highest.

// code is a number's code and how many bits it has. With more than 64 it is for writeLong.
func (c riceCode) code(v uint64) (code uint64, n int) {
	q := v >> c.width
	if q < uint64(c.ones) {
		return 1<<q - 1 | v&(1<<c.width-1)<<(q+1), int(q) + 1 + int(c.width)
	}
	return c.longer(v, q)
}

// longer is code for a v>>width of q that is at least ones.
func (c riceCode) longer(v, q uint64) (code uint64, n int) {
	q -= uint64(c.ones) - 1
	m := bits.Len64(q) - 1
	lead := int(c.ones) + m
	if n = lead + 1 + m + int(c.width); n > 64 {
		return 0, n
	}
	low := q&(1<<m-1) | v&(1<<c.width-1)<<m
	return (2*low+1)<<lead - 1, n
}

func (c riceCode) writeLong(w *bitio.Writer, v uint64) {
	more := v>>c.width - uint64(c.ones) + 1
	m := bits.Len64(more)
	w.WriteBits(1<<c.ones-1, int(c.ones))
	w.WriteBits(1<<(m-1)-1, m)
	w.WriteBits(more, m-1)
	w.WriteBits(v, int(c.width))
}

func (c riceCode) read(r *bitio.Reader) uint64 {
	k, ones := int(c.width), int(c.ones)
	if v, ok := r.Peek64(); ok {
		if q := bits.TrailingZeros64(^v); q < ones {
			r.Skip(q + 1 + k)
			return uint64(q)<<k | v>>(q+1)&(1<<k-1)
		}
	}
	q := uint64(0)
	for q < uint64(ones) && r.ReadBool() {
		q++
	}
	if q == uint64(ones) {
		n := 0
		for n < 64 && r.ReadBool() {
			n++
		}
		q += (1<<n | r.ReadBits(n)) - 1
	}
	return q<<k | r.ReadBits(k)
}

// Predict predicts the units of p.Predicted, and reports whether their errors take fewer bits than their differences to the newest time.
// If not, it empties Predicted.
func (l *Layout) Predict(s *Shadow, p *Past) bool {
	if len(p.near) < len(l.Units) {
		p.near = make([]nearErrors, len(l.Units))
	}
	p.Prepare()
	near, far, short := 0, 0, 0
	var guess [MaxNumbers]int64
	var errors, means [MaxNumbers]uint64
	for m := p.Predicted; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		u, e := &l.Units[i], &p.near[i]
		v := s.Words[u.first:][:u.N]
		u.predict(p, u.kept, &guess, &means)
		short += deltaWidth + 2*len(v)
		if u.Kind == Quat {
			near += u.nearRotation(v, &guess, &means, e)
			continue
		}
		u.differences(v, &guess, &errors)
		e.set(0, 0, len(v), &errors, &means)
		near += e.n
	}
	if near <= short { // differences are hardly less
		return true
	}
	for m := p.Predicted; m != 0 && far <= near; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		far += u.deltaBits(s.Words[u.first:][:u.N], p.newest(u.kept)[:])
	}
	if near >= far {
		p.Predicted = 0
	}
	return near < far
}
