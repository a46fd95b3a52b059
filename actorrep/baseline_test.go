package actorrep

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
)

// TestFollow: a path is found when there is, for each of its frames, a record that the client has, and only then; its places are those of these
// records. Actors change in every Step, or in some, or twice in one: then not every path need be found.
func TestFollow(t *testing.T) {
	found := [2]int{} // without and with
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 14))
		s, b := &snapshots{}, basis{known: 7, allowed: 7, frame: ^uint32(0) - uint32(rng.IntN(40)), older: rng.Uint32() | rng.Uint32() | rng.Uint32()}
		if rng.IntN(3) == 0 {
			b.older = ^uint32(0)
		}
		has, steps := map[uint32]int{}, rng.IntN(3) // frame: the place of the record
		for b.count = int64(1 + rng.IntN(3)); b.count < int64(20+rng.IntN(100)); b.count++ {
			s.note(b.count, b.frame, layout.Mask(1|rng.IntN(8)))
			switch { // the next one's
			case steps == 0:
				b.frame++
			case steps == 1:
				b.frame += uint32(1 + rng.IntN(8)/7)
			default:
				b.frame += uint32(1+rng.IntN(8)/7) - uint32(rng.IntN(8)/7)
			}
		}
		b.count--
		b.frame = s.frames[b.count%snapshotRing]
		b.older |= 1
		for d := range 32 { // two changes of one frame have one record at most
			if count := b.count - int64(d); count > 0 && s.has(count) && b.older>>d&1 != 0 {
				if _, two := has[s.frames[count%snapshotRing]]; two {
					b.older &^= 1 << d
					continue
				}
				has[s.frames[count%snapshotRing]] = int(count % snapshotRing)
			}
		}
		for form := layout.Two; form <= layout.Twelve; form++ {
			past := &layout.Past{Age: 1 + rng.IntN(12)}
			past.At[0] = int(b.count % snapshotRing)
			gap := 1 + rng.IntN(4)
			want, mask := past.Age+(form.Times()-1)*gap <= maxReach, layout.Mask(7)
			for i := 1; want && i < form.Times(); i++ {
				place, ok := has[b.frame-uint32(i*gap)]
				want, mask = ok, mask&s.changed[place]
			}
			var path wire.Path
			got := b.follow(s, gap, form, past, &path)
			if require.False(t, got && !want, "seed %d, form %d, gap %d", seed, form, gap); steps < 2 {
				require.Equal(t, want, got, "seed %d, form %d, gap %d", seed, form, gap)
			}
			if !got {
				require.Zero(t, path)
				found[0]++
				continue
			}
			found[1]++
			require.Equal(t, wire.Path{Gap: uint8(gap), Form: uint8(form)}, path)
			require.Equal(t, mask, past.Predicted)
			for i := 1; i < form.Times(); i++ {
				require.Equal(t, has[b.frame-uint32(i*gap)], past.At[i], "seed %d, form %d, gap %d, record %d", seed, form, gap, i)
			}
		}
	}
	require.Greater(t, min(found[0], found[1]), 1000, "%v", found)
}
