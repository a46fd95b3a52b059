package actorrep

// trimEvery is the number of Steps after which a connection gives back memory that it didn't need in them.
const trimEvery = 512

// peaks is the most that a connection needed in one Step since the last trim.
type peaks struct{ steps, pending, opening, settling, bytes, chunks, inFlight, fates int }

// trim gives back unused memory, once every trimEvery Steps.
func (p *Peer) trim() {
	m := &p.peaks
	if m.steps++; m.steps < trimEvery {
		return
	}
	p.pending, p.opening, p.settling = lean(p.pending, m.pending), lean(p.opening, m.opening), lean(p.settling, m.settling)
	t := &p.batch
	t.buf, t.chunks = lean(t.buf, m.bytes), lean(t.chunks, m.chunks)
	t.ranks = lean(t.ranks, max(m.pending, m.opening))
	p.sent.trim(m.inFlight)
	p.fates = lean(p.fates, m.fates)
	*m = peaks{}
}

// lean returns s with less capacity, when that is much larger than the most that was needed.
func lean[T any](s []T, most int) []T {
	if most = max(most, len(s)); cap(s) <= 4*most+64 {
		return s
	}
	return append(make([]T, 0, 2*most), s...)
}
