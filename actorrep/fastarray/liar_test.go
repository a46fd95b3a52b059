package fastarray

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestUpdatesOfALiar: a server may remove ids that aren't there, or one twice, and add elements with any ids. The client has what a map would have, in
// the order of the ids, and is told of exactly that.
func TestUpdatesOfALiar(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l List[uint32]
		has, told := map[ID]uint32{}, map[ID]uint32{}
		l.OnAdd = func(id ID, v uint32) { told[id] = v }
		l.OnChange = func(id ID, old, now uint32) {
			require.Equal(t, told[id], old)
			told[id] = now
		}
		l.OnRemove = func(id ID, old uint32) {
			require.Equal(t, told[id], old)
			delete(told, id)
		}
		buf := make([]byte, 1<<16)
		for version := uint32(1); version < 200; version++ {
			w := bitio.NewWriter(buf)
			w.WriteBool(version == 1)
			w.WriteIntPacked(version)
			if version > 1 {
				w.WriteIntPacked(1)
				n := r.IntN(5)
				w.WriteIntPacked(uint32(n))
				for range n {
					id := ID(1 + r.IntN(60))
					w.WriteIntPacked(uint32(id))
					delete(has, id)
				}
			}
			ids := map[ID]bool{}
			for range r.IntN(8) {
				ids[ID(1+r.IntN(60))] = true
			}
			sorted, last := []ID(nil), ID(0)
			for id := range ids {
				sorted = append(sorted, id)
			}
			slices.Sort(sorted)
			w.WriteIntPacked(uint32(len(sorted)))
			for _, id := range sorted {
				w.WriteIntPacked(uint32(id - last - 1))
				last = id
				if version > 1 {
					w.WriteBool(true)
				}
				v := r.Uint32()
				elem, err := l.describe()
				require.NoError(t, err)
				elem.WriteUnits(w, unsafe.Pointer(&v), elem.All())
				has[id] = v
			}
			require.NoError(t, w.Err())
			w.WriteBits(0, 64) // a count is refused when so many can't follow
			require.NoError(t, l.NetRead(bitio.NewReader(w.Bytes(), w.Len())))
			if r.IntN(3) == 0 {
				l.NetTell(true)
				require.Equal(t, has, told, "seed %d", seed)
			}
			got, before := map[ID]uint32{}, ID(0)
			for id, v := range l.All {
				require.Greater(t, id, before)
				got[id], before = v, id
			}
			require.Equal(t, has, got, "seed %d, version %d", seed, version)
		}
	}
}

// BenchmarkLiar is what updates of 27 bytes cost a client whose list is full: ids that aren't there, and elements that belong in front.
func BenchmarkLiar(b *testing.B) {
	type item struct {
		A    [16]uint64
		Text string
	}
	for _, name := range []string{"gone", "front"} {
		b.Run(name, func(b *testing.B) {
			var l List[item]
			elem, err := l.describe()
			if err != nil {
				b.Fatal(err)
			}
			for i := range Max - 1 {
				l.items = append(l.items, newItem[item](ID(1<<20+i)))
			}
			buf := make([]byte, 1<<12)
			for i := range b.N {
				w := bitio.NewWriter(buf)
				w.WriteBool(false)
				w.WriteIntPacked(l.version + 1)
				w.WriteIntPacked(1)
				w.WriteIntPacked(1)
				w.WriteIntPacked(uint32(1<<20 - i)) // the one that was added last
				if name == "gone" {
					w.WriteIntPacked(0)
				} else {
					w.WriteIntPacked(1)
					w.WriteIntPacked(uint32(1<<20 - i - 2))
					w.WriteBool(true)
					v := item{}
					elem.WriteUnits(w, unsafe.Pointer(&v), elem.All())
				}
				if err := l.NetRead(bitio.NewReader(w.Bytes(), w.Len())); err != nil {
					b.Fatal(fmt.Errorf("%d: %w", i, err))
				}
			}
		})
	}
}

func newItem[T any](id ID) item[T] { return item[T]{id: id} }
