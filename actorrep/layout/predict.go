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
	// At is the numbers at the newest time, and at those before it, as far as Gap and Form say.
	At [Points][]uint64
	// Mask is the units whose numbers at the newest time are known.
	Mask Mask
	// Predicted is those of them that are predicted. The others are sent as differences to the newest.
	Predicted Mask
	// Age is the Steps from the newest time to now, 1 to MaxAge. Gap is the Steps between one time and the next, 1 to MaxGap; 0 when
	// there is but one.
	Age, Gap int
	Form     Form

	factors
	x      [MaxNumbers]moving       // numbers of the unit at hand, newest first
	off    [MaxNumbers][ways]uint64 // how far off each way would have been
	means  [MaxNumbers]uint64       // how far off they are expected to be, in zigzag, in 1/65536
	errors []uint64                 // of predicted numbers, in zigzag; see Predict
	codes  []riceCode
}

// Reset makes it nothing known.
func (p *Past) Reset() {
	p.Mask, p.Predicted, p.Age, p.Gap, p.Form = 0, 0, 0, 0, Two
}

// factors are what predictions multiply with, in 1/65536.
type factors struct {
	age, gap int // for which they are
	form     Form
	strides  [3]curve // through each time, every second, every fourth
	spread   [MaxNumbers + 1]uint64
}

// curve is what the first, second and third differences of numbers are multiplied with.
type curve struct{ line, parabola, cubic int64 }

const one = 1 << 16

// Prepare has to be called when the other fields are set, before anything is predicted.
func (p *Past) Prepare() {
	f := &p.factors
	if p.Gap == 0 || f.age == p.Age && f.gap == p.Gap && f.form == p.Form {
		return
	}
	f.age, f.gap, f.form = p.Age, p.Gap, p.Form
	n := int64(p.Age)
	for i := range f.strides {
		s := int64(p.Gap) << i
		f.strides[i] = curve{(n*one + s/2) / s, (n*(n+s)*one/2 + s*s/2) / (s * s), (n*(n+s)*(n+2*s)*one/6 + s*s*s/2) / (s * s * s)}
	}
	// Errors so far ahead are known; they grow with the time, between linearly and with its square.
	h := 2 * int64(p.Gap)
	if p.Form == Twelve {
		h *= 2
	}
	for i := range f.spread {
		f.spread[i] = uint64(n * (n + h) * one / (2 * h * h * int64(i+1)))
	}
}

func scaled(v, factor int64) int64 { return (v*factor + one/2) >> 16 }

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

	sixWays, eightWays = cubic + 1, parabola2 + 1
)

// predict is where a unit's numbers are expected, and for each how far off it is expected to be.
func (d *Wire) predict(p *Past, first int, guess, means []uint64) {
	if p.Form == Two {
		d.predictStart(p, first, guess, means)
		return
	}
	n := len(guess)
	switch {
	case d.Kind == Quat:
		p.rotations(first)
	case d.Kind == Angle:
		p.angles(first, n, 64-d.Bits)
	default:
		p.steps(first, n)
	}
	var sum [ways]uint64
	for j := range guess {
		o := &p.off[j&3]
		if p.Form == Twelve {
			p.x[j&3].ahead(o, &sum)
		} else {
			p.x[j&3].check(o, &sum, p.Form)
		}
	}
	way, least := line2, sum[line2]
	for i := line; i < [...]int{0, sixWays, eightWays, ways}[p.Form&3]; i++ {
		if s := sum[i] + sum[i]/4; s < least {
			least, way = s, i
		}
	}
	spread, all := p.spread[n], sum[way]
	for j := range guess {
		guess[j] = d.wrap(p.x[j&3].along(way, p))
		means[j] = min(p.off[j&3][way]+all, 1<<30) * spread
	}
}

// steps puts the numbers at the times of a past into p.x.
func (p *Past) steps(first, n int) {
	times := p.Form.Times()
	if n == 3 { // most often
		for i := range p.At {
			if i == times {
				break
			}
			at := (*[3]uint64)(p.At[i][first:])
			p.x[0][i], p.x[1][i], p.x[2][i] = unzigzag(at[0]), unzigzag(at[1]), unzigzag(at[2])
		}
		return
	}
	for i := range times {
		for j, w := range p.At[i][first:][:n] {
			p.x[j&3][i] = unzigzag(w)
		}
	}
}

// angles does it for angles, which go on from the newest the shorter way around.
func (p *Past) angles(first, n int, shift uint8) {
	times := p.Form.Times()
	if n == 3 {
		newest := (*[3]uint64)(p.At[0][first:])
		a, b, c := newest[0], newest[1], newest[2]
		for i := range p.At {
			if i == times {
				break
			}
			at := (*[3]uint64)(p.At[i][first:])
			p.x[0][i] = int64(a) + int64((at[0]-a)<<(shift&63))>>(shift&63)
			p.x[1][i] = int64(b) + int64((at[1]-b)<<(shift&63))>>(shift&63)
			p.x[2][i] = int64(c) + int64((at[2]-c)<<(shift&63))>>(shift&63)
		}
		return
	}
	newest := p.At[0][first:][:n]
	for i := range times {
		for j, w := range p.At[i][first:][:n] {
			p.x[j&3][i] = int64(newest[j]) + int64((w-newest[j])<<shift)>>shift
		}
	}
}

// moving is a number at some times, newest first.
type moving [Points]int64

// along is where it will be along a curve.
func (x *moving) along(way int, p *Past) int64 {
	f := &p.strides
	switch v := x[0] - x[1]; way {
	case line:
		return x[0] + scaled(v, f[0].line)
	case line2:
		return x[0] + scaled(x[0]-x[2], f[1].line)
	case line4:
		return x[0] + scaled(x[0]-x[4], f[2].line)
	case parabola:
		return x[0] + scaled(v, f[0].line) + scaled(v-(x[1]-x[2]), f[0].parabola)
	case parabola2:
		return x[0] + scaled(x[0]-x[2], f[1].line) + scaled(x[0]-2*x[2]+x[4], f[1].parabola)
	case cubic:
		a, b := v-(x[1]-x[2]), x[1]-2*x[2]+x[3]
		return x[0] + scaled(v, f[0].line) + scaled(a, f[0].parabola) + scaled(a-b, f[0].cubic)
	default:
		a, b := x[0]-2*x[2]+x[4], x[2]-2*x[4]+x[6]
		return x[0] + scaled(x[0]-x[2], f[1].line) + scaled(a, f[1].parabola) + scaled(a-b, f[1].cubic)
	}
}

// check is how far off each way was at the two newest times, from what was known two gaps before each; ahead, four gaps before each. Both add
// it to sum.
func (x *moving) check(o, sum *[ways]uint64, form Form) {
	*o = [ways]uint64{}
	for t := range 2 {
		y := (*[4]int64)(x[t+2:])
		e, v, w := x[t]-y[0], y[0]-y[1], y[0]-y[2]
		a, off := 2*v-w, e-2*v
		o[line] += abs(off)
		o[line2] += abs(e - w)
		o[parabola] += abs(off - 3*a)
		c := y[0] - 3*y[1] + 3*y[2] - y[3]
		if form == Eight {
			o[cubic] += abs(off - 3*a - 4*c)
			o[parabola2] += abs(e - w - (2*w - (y[0] - x[t+6])))
		} else if t == 0 { // the time before the last is one too many
			o[cubic] = 2 * abs(off-3*a-4*c)
		}
	}
	for i, v := range o {
		sum[i] += v
	}
}

func (x *moving) ahead(o, sum *[ways]uint64) {
	y0, y1, y2, y3, y4, y5, y6, y7 := x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11]
	e, u, v, w := x[0]-y0, y0-y1, y0-y2, y0-y4
	f, r, s, z := x[1]-y1, y1-y2, y1-y3, y1-y5
	a, b, a2, b2 := 2*u-v, 2*r-s, 2*v-w, 2*s-z
	e1, f1, e2, f2 := e-4*u, f-4*r, e-2*v, f-2*s
	o0, o1, o2 := abs(e1)+abs(f1), abs(e2)+abs(f2), abs(e-w)+abs(f-z)
	o[line], o[line2], o[line4] = o0, o1, o2
	sum[line], sum[line2], sum[line4] = sum[line]+o0, sum[line2]+o1, sum[line4]+o2
	e1, f1, e2, f2 = e1-10*a, f1-10*b, e2-3*a2, f2-3*b2
	o0, o1 = abs(e1)+abs(f1), abs(e2)+abs(f2)
	o[parabola], o[parabola2] = o0, o1
	sum[parabola], sum[parabola2] = sum[parabola]+o0, sum[parabola2]+o1
	o0, o1 = abs(e1-20*(a-b))+abs(f1-20*(b-(y2-2*y3+y4))), abs(e2-4*(a2-(y2-2*y4+y6)))+abs(f2-4*(b2-(y3-2*y5+y7)))
	o[cubic], o[cubic2] = o0, o1
	sum[cubic], sum[cubic2] = sum[cubic]+o0, sum[cubic2]+o1
}

// predictStart predicts from two times: how far off that will be isn't known yet, and taken for a quarter of the way.
func (d *Wire) predictStart(p *Past, first int, guess, means []uint64) {
	var way [MaxNumbers]int64
	all := uint64(0)
	if d.Kind == Quat {
		p.rotations(first)
	}
	for j := range guess {
		if way[j] = unzigzag(d.difference(p.At[0][first+j], p.At[1][first+j])); d.Kind == Quat {
			way[j] = p.x[j&3][0] - p.x[j&3][1]
		}
		all += abs(way[j]) / 2
	}
	spread := p.spread[len(guess)]
	for j := range guess {
		w := p.At[0][first+j]
		g := unzigzag(w)
		if d.Kind == Angle {
			g = int64(w)
		}
		guess[j] = d.wrap(g + scaled(way[j], p.strides[0].line))
		means[j] = min(abs(way[j])/2+all, 1<<30) * spread
	}
}

// wrap is a predicted integer as a number of the unit.
func (d *Wire) wrap(v int64) uint64 {
	if d.Kind == Angle {
		return uint64(v) & (1<<d.Bits - 1)
	}
	return zigzag(v)
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

func log(v uint64) uint8 { return uint8(max(bits.Len64(v>>16), 1) - 1) }

// chooseCodes finds the codes for errors and returns how many bits these take.
func chooseCodes(errors, means []uint64, codes []riceCode) (all int) {
	largest := uint64(0)
	for i, e := range errors {
		c := codeOf(i, means[i], largest)
		if q := e >> c.width; q < uint64(c.ones) {
			all += int(q) + 1 + int(c.width)
		} else {
			_, n := c.code(e)
			all += n
		}
		codes[i], largest = c, max(largest, e)
	}
	return all
}

func abs(v int64) uint64 { return uint64(max(v, -v)) }

// writeNear writes the errors of predicted numbers.
func writeNear(w *bitio.Writer, errors []uint64, codes []riceCode) {
	all, n := uint64(0), 0
	for i, v := range errors {
		c := codes[i]
		k := int(c.width)
		if q := v >> k; q < uint64(c.ones) && n+int(q)+1+k <= 64 { // nearly always
			all |= (1<<q - 1 | v&(1<<k-1)<<(q+1)) << n
			n += int(q) + 1 + k
			continue
		}
		code, bits := c.code(v)
		if n+bits > 64 {
			w.WriteBits(all, n)
			all, n = 0, 0
		}
		if bits > 64 {
			c.writeLong(w, v)
			continue
		}
		all, n = all|code<<n, n+bits
	}
	w.WriteBits(all, n)
}

// readNear reads them.
func (d *Wire) readNear(r *bitio.Reader, v, guess, means []uint64) {
	if d.Kind == Quat {
		d.readNearQuat(r, v, guess, means)
		return
	}
	largest := uint64(0)
	for i := range v {
		e := codeOf(i, means[i], largest).read(r)
		v[i], largest = d.add(guess[i], e), max(largest, e)
	}
}

// A Rice code of width k is v>>k ones, a zero, and the k low bits of v. From so many ones on there is no zero but an Elias gamma code
// of what is more, plus 1: for a number of n bits n-1 ones, a zero, and all bits but the highest.

// code is a number's code and how many bits it has. With more than 64 it is for writeLong.
func (c riceCode) code(v uint64) (code uint64, n int) {
	k, ones := int(c.width), int(c.ones)
	q := v >> k
	if q < uint64(ones) {
		return 1<<q - 1 | v&(1<<k-1)<<(q+1), int(q) + 1 + k
	}
	more := q - uint64(ones) + 1
	m := bits.Len64(more)
	n = ones + 2*m - 1 + k
	if n > 64 {
		return 0, n
	}
	low := more&(1<<(m-1)-1) | v&(1<<k-1)<<(m-1)
	return 1<<(ones+m-1) - 1 | low<<(ones+m), n
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
// If not, Predicted is none of them afterwards.
func (l *Layout) Predict(s *Shadow, p *Past) bool {
	if len(p.errors) < l.words {
		p.errors, p.codes = make([]uint64, l.words), make([]riceCode, l.words)
	}
	p.Prepare()
	near, far, short := 0, 0, 0
	for m := p.Predicted; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		from, to := u.first, u.first+int(u.N)
		v, errors, means := s.Words[from:to], p.errors[from:to], p.means[:u.N]
		u.predict(p, from, errors, means)
		short += deltaWidth + 2*len(v)
		if u.Kind == Quat {
			near += u.predictedQuat(v, errors, means, p.codes[from:to])
			continue
		}
		for i := range v {
			errors[i] = u.difference(v[i], errors[i])
		}
		near += chooseCodes(errors, means, p.codes[from:to])
	}
	if near <= short { // differences are hardly less
		return true
	}
	for m := p.Predicted; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		from, to := u.first, u.first+int(u.N)
		far += u.deltaBits(s.Words[from:to], p.At[0][from:to])
	}
	if near >= far {
		p.Predicted = 0
	}
	return near < far
}
