package layout

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPackedNumbers: what each way was off is for packed numbers what it is for each alone, also where they are negative, far from 0, or an angle goes
// around.
func TestPackedNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 10))
	for range 5000 {
		d := Wire{Kind: Step, N: uint8(1 + rng.IntN(MaxNumbers))}
		if rng.IntN(2) == 0 {
			d.Kind, d.Bits = Angle, uint8(8+rng.IntN(9))
		}
		together := keptAt{int(d.N), d.packs()}.history(Points)
		var alone [MaxNumbers]History
		past := &Past{Age: 1 + rng.IntN(9), Gap: 1 + rng.IntN(3), Form: Form(1 + rng.IntN(3))}
		for j := range d.N {
			alone[j] = keptAt{1, 1}.history(Points)
		}
		far := int64(1) << rng.IntN(50)
		for j := range d.N {
			at, speed := rng.Int64N(2*far)-far, rng.Int64N(1<<d.Bits>>6+2)
			for i := range Points {
				past.At[i] = Points - 1 - i
				at += speed + rng.Int64N(3)
				word := zigzag(at)
				if d.Kind == Angle {
					word = uint64(at) & (1<<d.Bits - 1)
				}
				one := d
				one.N = 1
				one.keep(&alone[j], keptAt{}, i, []uint64{word})
				// The unit is kept as a whole: with what it has so far.
				words := make([]uint64, d.N)
				for k := range words {
					words[k] = d.word(together.row(i, keptAt{})[k])
				}
				words[j] = word
				d.keep(&together, keptAt{}, i, words)
			}
		}
		past.Prepare()
		past.History = &together
		var off [2]misses
		for i := range d.packs() {
			d.check(past, i, &off[i])
		}
		for j := range int(d.N) {
			past.History = &alone[j]
			var want misses
			one := d
			one.N = 1
			one.check(past, 0, &want)
			for way := range ways {
				got := off[j/lanes].word[way] >> (j % lanes * lane) & laneMask
				require.Equal(t, want.word[way], got, "%v, number %d, form %d, way %d", d, j, past.Form, way)
			}
		}
	}
}

// TestMagnitudes: of each number of two words, and all together.
func TestMagnitudes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 11))
	for range 10_000 {
		var v [2][lanes]int64
		var packed [2]uint64
		want := uint64(0)
		for i := range v {
			for j := range v[i] {
				v[i][j] = (rng.Int64N(1<<lane-1) - (1<<(lane-1) - 1)) >> rng.UintN(lane)
				packed[i] += uint64(v[i][j]) << (j * lane)
				want += abs(v[i][j])
			}
		}
		got := magnitudes(packed[0]+laneSigns, packed[1]+laneSigns)
		for j := range lanes {
			require.Equal(t, abs(v[0][j])+abs(v[1][j]), got>>(j*lane)&laneMask, "%v", v)
		}
		require.Equal(t, want, total(got), "%v", v)
	}
}

// TestHistoryGrows: each time is where it was said to be.
func TestHistoryGrows(t *testing.T) {
	d := Wire{Kind: Step, N: 4}
	h := keptAt{4, 2}.history(4)
	words := func(i int) []uint64 { return []uint64{uint64(i), uint64(2 * i), uint64(3 * i), uint64(5 * i)} }
	for i := range 4 {
		d.keep(&h, keptAt{}, i, words(i+7))
	}
	bigger := h.Grown(8, func(place int) int { return (place + 6) & 7 })
	want := keptAt{4, 2}.history(8)
	for i := range 4 {
		d.keep(&want, keptAt{}, (i+6)&7, words(i+7))
	}
	require.Equal(t, want, bigger)
}

// TestSmallHistory: a History of any number of places and one unit holds what is put into it.
func TestSmallHistory(t *testing.T) {
	for n := uint8(1); n <= MaxNumbers; n++ {
		for places := 1; places <= 4; places++ {
			d := Wire{Kind: Step, N: n}
			h := keptAt{int(n), d.packs()}.history(places)
			for i := range places {
				words := []uint64{2, 4, 6, uint64(8 + 2*i)}
				d.keep(&h, keptAt{}, i, words[4-n:])
			}
			for i := range places {
				want := []uint64{1, 2, 3, uint64(4 + i)}
				require.Equal(t, want[4-n:], h.row(i, keptAt{})[:n], "%d numbers, place %d of %d", n, i, places)
			}
		}
	}
}
