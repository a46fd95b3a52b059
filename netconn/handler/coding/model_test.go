package coding

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is a decoder that keeps all equations as they came and solves them anew each time.
type model struct {
	newest    int64
	known     map[int64][]byte
	equations []equation
}

type equation struct {
	coefficients map[int64]uint8
	sum          []byte
}

func (m *model) keeps(id int64) bool { return id > m.newest-slots && id <= m.newest && id >= 0 }

func (m *model) add(id int64, content []byte) {
	m.newest = max(m.newest, id)
	if m.keeps(id) {
		m.known[id] = content
	}
}

func (m *model) symbol(carrier int64, k int, c Cover, p []byte) {
	n := 0
	for i := 1; i <= MaxWindow; i++ {
		if c&(1<<(i-1)) != 0 {
			n = i
		}
	}
	m.newest = max(m.newest, carrier-1)
	if !m.keeps(carrier - int64(n)) {
		return
	}
	e := equation{map[int64]uint8{}, p}
	x := (uint32(carrier&0x3fff)*4 + uint32(k) + 1) * 0x9e3779b1
	if c&1 != 0 {
		e.coefficients[carrier-1] = 1
	}
	for i := 2; i <= n; i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		if c&(1<<(i-1)) != 0 {
			e.coefficients[carrier-int64(i)] = uint8(1 + 255*(x>>16)>>16)
		}
	}
	m.equations = append(m.equations, e)
}

// solve finds what the equations tell of the packets that are kept.
func (m *model) solve(size int) {
	var ids []int64 // missing, oldest first
	for _, e := range m.equations {
		for id := range e.coefficients {
			if m.known[id] == nil && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	rows := make([][]byte, len(m.equations)) // coefficients of ids, then the sum
	for i, e := range m.equations {
		r := make([]byte, len(ids)+size)
		copy(r[len(ids):], e.sum)
		for id, c := range e.coefficients {
			if at := slices.Index(ids, id); at >= 0 {
				r[at] = c
			}
			for j, b := range m.known[id] {
				r[len(ids)+j] ^= slowMultiply(c, b)
			}
		}
		rows[i] = r
	}
	done := 0
	for col := range ids {
		at := slices.IndexFunc(rows[done:], func(r []byte) bool { return r[col] != 0 })
		if at < 0 {
			continue
		}
		rows[done], rows[done+at] = rows[done+at], rows[done]
		p := rows[done]
		inverse := uint8(1)
		for slowMultiply(inverse, p[col]) != 1 {
			inverse++
		}
		for j := range p {
			p[j] = slowMultiply(inverse, p[j])
		}
		for i, r := range rows {
			if c := r[col]; i != done && c != 0 {
				for j := range r {
					r[j] ^= slowMultiply(c, p[j])
				}
			}
		}
		done++
	}
	for _, r := range rows[:done] {
		at := slices.IndexFunc(r, func(b byte) bool { return b != 0 })
		if slices.ContainsFunc(r[at+1:len(ids)], func(b byte) bool { return b != 0 }) || !m.keeps(ids[at]) {
			continue
		}
		content := r[len(ids):]
		n := len(content)
		for n > 0 && content[n-1] == 0 {
			n--
		}
		m.known[ids[at]] = content[:n]
	}
}

func randomContent(rng *rand.Rand, most int) []byte {
	p := randomBytes(rng, 1+rng.IntN(most))
	p[len(p)-1] |= 1
	return p
}

// checkDecoder holds the invariants of a Decoder.
func checkDecoder(t require.TestingT, d *Decoder) {
	pivots := uint32(0)
	for i := range d.n {
		r := &d.rows[i]
		pivots |= 1 << r.pivot
		require.Zero(t, r.mask&d.known)
		require.NotZero(t, r.mask&(r.mask-1), "it would be solved")
		require.EqualValues(t, 1, r.coefficients[r.pivot])
		require.EqualValues(t, d.oldestOf(r.mask), r.pivot)
		require.Equal(t, padded(r.sum.n), len(r.sum.data))
		require.True(t, isZero(r.sum.data[r.sum.n:]))
		for s, c := range r.coefficients {
			if (c != 0) != (r.mask>>s&1 == 1) {
				t.Errorf("row %d, slot %d: %d in %x", i, s, c, r.mask)
			}
		}
	}
	for i := range d.n {
		require.EqualValues(t, uint32(1)<<d.rows[i].pivot, d.rows[i].mask&pivots)
	}
	require.Zero(t, d.found&^d.known)
}

// TestDecoderFindsWhatTheEquationsTell: on bad networks, with all windows, numbers of symbols and sizes, a decoder knows
// after every datagram what solving all that came at once gives, and no more; from ids on both sides of where sequences wrap.
func TestDecoderFindsWhatTheEquationsTell(t *testing.T) {
	const most = 40
	recovered := 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		loss, window := rng.Float64()/2, 1+rng.IntN(8)
		var enc Encoder
		var dec Decoder
		m := &model{newest: -1, known: map[int64][]byte{}}
		first := int64(rng.IntN(2)) * (1<<14 - 20)
		sent := map[int64][]byte{}
		type datagram struct {
			id      int64
			symbols [][]byte
			n       Cover
		}
		var late []datagram
		take := func(g datagram) {
			dec.Add(g.id, sent[g.id])
			m.add(g.id, sent[g.id])
			for k, s := range g.symbols {
				require.NoError(t, dec.Symbol(g.id, k, g.n, s))
				m.symbol(g.id, k, g.n, s)
			}
			m.solve(most)
			checkDecoder(t, &dec)
			for id := m.newest - slots + 1; id <= m.newest; id++ {
				if id < first {
					continue
				}
				if dec.n == maxRows || dec.Counters.Dropped > 1000 {
					t.Fatal("the model has no bound of rows")
				}
				if (m.known[id] != nil) != dec.Known(id) {
					t.Fatalf("seed %d, packet %d: known %v", seed, id, dec.Known(id))
				}
			}
			for last := int64(-1); ; recovered++ {
				id, content, ok := dec.Next(1 << 40)
				if !ok {
					break
				}
				require.Greater(t, id, last)
				require.Equal(t, sent[id], content)
				last = id
			}
		}
		for id := first; id < first+100; id++ {
			g := datagram{id: id}
			n, size := enc.Covers(id, window)
			for k := 0; n > 0 && k < rng.IntN(MaxSymbols+1); k++ {
				g.symbols, g.n = append(g.symbols, enc.AppendSymbol(nil, id, k, n, size)), n
			}
			sent[id] = randomContent(rng, most)
			enc.Add(id, sent[id], rng.IntN(6) == 0)
			switch {
			case id == first: // where both begin
				take(g)
			case rng.Float64() < loss:
			case rng.IntN(10) == 0:
				late = append(late, g)
			default:
				take(g)
			}
			if len(late) > 0 && rng.IntN(5) == 0 {
				take(late[0])
				if rng.IntN(2) == 0 {
					take(late[0]) // twice
				}
				late = late[1:]
			}
		}
	}
	require.Greater(t, recovered, 100)
}

// TestSymbolsRepair: k lost packets of about the same size in a row come back with k symbols that cover them, but for a few in a thousand.
func TestSymbolsRepair(t *testing.T) {
	for lost := 1; lost <= 4; lost++ {
		failed, runs := 0, 500
		for run := range runs {
			rng := rand.New(rand.NewPCG(uint64(run), 5))
			content := func() []byte { return append(randomBytes(rng, 24+rng.IntN(6)), 1) }
			var enc Encoder
			var dec Decoder
			id := int64(run * 37)
			for range 6 {
				c := content()
				enc.Add(id, c, false)
				dec.Add(id, c)
				id++
			}
			for range lost {
				enc.Add(id, content(), false)
				id++
			}
			for range lost {
				n, size := enc.Covers(id, 8)
				require.NoError(t, dec.Symbol(id, 0, n, enc.AppendSymbol(nil, id, 0, n, size)))
				c := content()
				enc.Add(id, c, false)
				dec.Add(id, c)
				id++
			}
			if int(dec.Counters.Recovered) != lost {
				failed++
			}
		}
		require.LessOrEqual(t, failed, runs/100, fmt.Sprint(lost))
	}
}
