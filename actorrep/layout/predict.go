package layout

import (
	"math/bits"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A number that moves is predicted from where it was at up to six earlier times that both ends know, and what is sent is
// how far the prediction was off. Both ends predict alike, with integers: along a line through the newest time and the one before it, along
// one through the newest and the one before that, along a parabola through these three, or a cubic through four. Which of them a unit takes, and in how many bits its errors are
// expected, is decided by how far off each would have been at the two newest of those times. So nothing of it is sent, and
// the bits depend on the values alone: connections that know the same times get the same bits.

// Points is how many earlier times a prediction uses, when there are so many.
const Points = 6

// The bounds of a Past. A client keeps the numbers of MaxRecords records.
const (
	MaxAge     = 255
	MaxGap     = 31
	MaxRecords = 32
)

// Past is an object's numbers at earlier times, which both ends know.
type Past struct {
	// At is the numbers at the newest time, and at Points-1 before it, as far as Gap and Full say.
	At [Points][]uint64
	// Mask is the units whose numbers at the newest time are known.
	Mask Mask
	// Predicted is those of them that are predicted. The others are sent as differences to the newest.
	Predicted Mask
	// Age is the Steps from the newest time to now, 1 to MaxAge. Gap is the Steps between one time and the next, 1 to MaxGap; 0 when
	// there is but one. With Full there are Points times, else two.
	Age, Gap int
	Full     bool

	factors
	x      [MaxNumbers][4]int64     // numbers of the unit at hand, newest first
	off    [MaxNumbers][ways]uint64 // how far off each way would have been
	quats  [Points][4]int64         // rotations, see Past.rotations
	errors []uint64                 // of predicted numbers, in zigzag; see Predict
	widths []uint8
}

// Reset makes it nothing known.
func (p *Past) Reset() {
	p.Mask, p.Predicted, p.Age, p.Gap, p.Full = 0, 0, 0, 0, false
}

// factors are what predictions multiply with, in 1/65536.
type factors struct {
	age, gap                        int // for which they are
	line, longLine, parabola, cubic int64
	spread                          [MaxNumbers + 1]uint64 // by how many numbers a unit has
}

const one = 1 << 16

// Prepare has to be called when the other fields are set, before anything is predicted.
func (p *Past) Prepare() {
	f := &p.factors
	if p.Gap == 0 || f.age == p.Age && f.gap == p.Gap {
		return
	}
	f.age, f.gap = p.Age, p.Gap
	n, s := int64(p.Age), int64(p.Gap)
	f.line = (n*one + s/2) / s
	f.longLine = f.line / 2
	f.parabola = (n*(n+s)*one/2 + s*s/2) / (s * s)
	f.cubic = (n*(n+s)*(n+2*s)*one/6 + s*s*s/2) / (s * s * s)
	// Errors over 2*Gap Steps are known; they grow with the time, between linearly and with its square.
	h := 2 * s
	for i := range f.spread {
		f.spread[i] = uint64(n * (n + h) * one / (2 * h * h * int64(i+1)))
	}
}

func scaled(v, factor int64) int64 { return (v*factor + one/2) >> 16 }

// The ways to predict. What sets others back against the first is that they follow noise.
const (
	alongLine = iota
	alongLongLine
	alongParabola
	alongCubic
	ways
)

// predict is where a unit's numbers are expected, and for each the width of its error.
func (d *Wire) predict(p *Past, first int, guess []uint64, widths []uint8) {
	if !p.Full {
		d.predictStart(p, first, guess, widths)
		return
	}
	n := len(guess)
	at0, at1, at2 := p.At[0][first:][:n], p.At[1][first:][:n], p.At[2][first:][:n]
	at3, at4, at5 := p.At[3][first:][:n], p.At[4][first:][:n], p.At[5][first:][:n]
	if d.Kind == Quat {
		p.rotations(first)
	}
	var sum [ways]uint64
	for j := range at0 {
		var x0, x1, x2, x3, x4, x5 int64
		switch d.Kind {
		case Quat:
			q := &p.quats
			x0, x1, x2, x3, x4, x5 = q[0][j&3], q[1][j&3], q[2][j&3], q[3][j&3], q[4][j&3], q[5][j&3]
		case Angle:
			shift, w := 64-d.Bits, at0[j]
			x0 = int64(w)
			x1, x2, x3 = x0+int64((at1[j]-w)<<shift)>>shift, x0+int64((at2[j]-w)<<shift)>>shift, x0+int64((at3[j]-w)<<shift)>>shift
			x4, x5 = x0+int64((at4[j]-w)<<shift)>>shift, x0+int64((at5[j]-w)<<shift)>>shift
		default:
			x0, x1, x2 = unzigzag(at0[j]), unzigzag(at1[j]), unzigzag(at2[j])
			x3, x4, x5 = unzigzag(at3[j]), unzigzag(at4[j]), unzigzag(at5[j])
		}
		x := &p.x[j&3]
		x[0], x[1], x[2], x[3] = x0, x1, x2, x3
		// How far off x0 and x1 are from what those at least 2*Gap Steps before them say.
		a, b, c := x0-x2, x1-x3, x2-x3
		v, v1 := c-(x3-x4), (x3-x4)-(x4-x5)
		line, next := a-2*c, b-2*(x3-x4)
		o0, o1 := abs(line)+abs(next), abs(a-(x2-x4))+abs(b-(x3-x5))
		o2, o3 := abs(line-3*v)+abs(next-3*v1), 2*abs(line-3*v-4*(v-v1))
		o := &p.off[j&3]
		o[alongLine], o[alongLongLine], o[alongParabola], o[alongCubic] = o0, o1, o2, o3
		sum[alongLine] += o0
		sum[alongLongLine] += o1
		sum[alongParabola] += o2
		sum[alongCubic] += o3
	}
	way, least := alongLine, sum[alongLine]
	for i := alongLongLine; i < ways; i++ {
		if s := sum[i] + sum[i]/4; s < least {
			least, way = s, i
		}
	}
	spread, all := p.spread[n], sum[way]
	for j := range guess {
		at := &p.x[j&3]
		g, v := at[0], at[0]-at[1]
		switch way {
		case alongLine:
			g += scaled(v, p.line)
		case alongLongLine:
			g += scaled(at[0]-at[2], p.longLine)
		case alongParabola:
			g += scaled(v, p.line) + scaled(v-(at[1]-at[2]), p.parabola)
		case alongCubic:
			v1 := at[1] - at[2]
			g += scaled(v, p.line) + scaled(v-v1, p.parabola) + scaled(v-2*v1+at[2]-at[3], p.cubic)
		}
		guess[j] = d.wrap(g)
		widths[j] = width(min(p.off[j&3][way]+all, 1<<30) * spread)
	}
}

// predictStart predicts from two times: how far off that will be isn't known yet, and taken for a quarter of the way.
func (d *Wire) predictStart(p *Past, first int, guess []uint64, widths []uint8) {
	var way [MaxNumbers]int64
	all := uint64(0)
	if d.Kind == Quat {
		p.rotations(first)
	}
	for j := range guess {
		if way[j] = unzigzag(d.difference(p.At[0][first+j], p.At[1][first+j])); d.Kind == Quat {
			way[j] = p.quats[0][j&3] - p.quats[1][j&3]
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
		guess[j] = d.wrap(g + scaled(way[j], p.line))
		widths[j] = width(min(abs(way[j])/2+all, 1<<30) * spread)
	}
}

// wrap is a predicted integer as a number of the unit.
func (d *Wire) wrap(v int64) uint64 {
	if d.Kind == Angle {
		return uint64(v) & (1<<d.Bits - 1)
	}
	return zigzag(v)
}

// width is the parameter of a Rice code for errors whose mean, in zigzag, is v/65536: the logarithm of 0.69 of that, rounded.
func width(v uint64) uint8 {
	return uint8(max(bits.Len64((v-v/64+27_500)>>16), 1) - 1)
}

func abs(v int64) uint64 { return uint64(max(v, -v)) }

// writeNear writes the errors of predicted numbers.
func writeNear(w *bitio.Writer, errors []uint64, widths []uint8) {
	all, n := uint64(0), 0
	for i, v := range errors {
		k := int(widths[i])
		if q := v >> k; q < riceOnes && n+int(q)+1+k <= 64 { // nearly always
			all |= (1<<q - 1 | v&(1<<k-1)<<(q+1)) << n
			n += int(q) + 1 + k
			continue
		}
		code, bits := rice(v, k)
		if n+bits > 64 {
			w.WriteBits(all, n)
			all, n = 0, 0
		}
		if bits > 64 {
			writeLongRice(w, v, k)
			continue
		}
		all, n = all|code<<n, n+bits
	}
	w.WriteBits(all, n)
}

// readNear reads them.
func (d *Wire) readNear(r *bitio.Reader, v, guess []uint64, widths []uint8) {
	if d.Kind == Quat {
		d.readNearQuat(r, v, guess, widths)
		return
	}
	for i := range v {
		v[i] = d.add(guess[i], readRice(r, int(widths[i])))
	}
}

// A Rice code of width k is v>>k ones, a zero, and the k low bits of v. From riceOnes ones on there is no zero but an Elias gamma code
// of what is more, plus 1: for a number of n bits n-1 ones, a zero, and all bits but the highest.
const riceOnes = 6

// rice is a number's code and how many bits it has. With more than 64 it is for writeLongRice.
func rice(v uint64, k int) (code uint64, n int) {
	q := v >> k
	if q < riceOnes {
		return 1<<q - 1 | v&(1<<k-1)<<(q+1), int(q) + 1 + k
	}
	more := q - riceOnes + 1
	m := bits.Len64(more)
	n = riceOnes + 2*m - 1 + k
	if n > 64 {
		return 0, n
	}
	low := more&(1<<(m-1)-1) | v&(1<<k-1)<<(m-1)
	return 1<<(riceOnes+m-1) - 1 | low<<(riceOnes+m), n
}

func writeLongRice(w *bitio.Writer, v uint64, k int) {
	more := v>>k - riceOnes + 1
	m := bits.Len64(more)
	w.WriteBits(1<<riceOnes-1, riceOnes)
	w.WriteBits(1<<(m-1)-1, m)
	w.WriteBits(more, m-1)
	w.WriteBits(v, k)
}

func readRice(r *bitio.Reader, k int) uint64 {
	if v, ok := r.Peek64(); ok {
		if q := bits.TrailingZeros64(^v); q < riceOnes {
			r.Skip(q + 1 + k)
			return uint64(q)<<k | v>>(q+1)&(1<<k-1)
		}
	}
	q := uint64(0)
	for q < riceOnes && r.ReadBool() {
		q++
	}
	if q == riceOnes {
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
		p.errors, p.widths = make([]uint64, l.words), make([]uint8, l.words)
	}
	p.Prepare()
	near, far, short := 0, 0, 0
	for m := p.Predicted; m != 0; m &= m - 1 {
		u := &l.Units[bits.TrailingZeros64(m)]
		from, to := u.first, u.first+int(u.N)
		v, errors, widths := s.Words[from:to], p.errors[from:to], p.widths[from:to]
		u.predict(p, from, errors, widths)
		short += deltaWidth + 2*len(v)
		if u.Kind == Quat {
			near += u.predictedQuat(v, errors, widths)
			continue
		}
		for i := range v {
			e, k := u.difference(v[i], errors[i]), int(widths[i])
			errors[i] = e
			if q := e >> k; q < riceOnes {
				near += int(q) + 1 + k
			} else {
				_, n := rice(e, k)
				near += n
			}
		}
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
