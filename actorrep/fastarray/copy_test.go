package fastarray

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// TestCopy: a list that is copied after random changes, at random times and from one server's list and then another's, is what that is, with the same ids. Clients who have any version of the copy
// follow it, and nothing is sent when nothing has changed.
func TestCopy(t *testing.T) {
	type thing struct {
		N     uint32
		Parts []uint16 `net:"cap=6"`
		Name  string
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var own, mirror List[thing] // another server's list, and this server's copy
		there := &List[thing]{}     // own as it has come here
		var clients [3]List[thing]
		versions := [3]uint32{}
		update := func(from, to *List[thing], base uint32) {
			var w bitio.Writer
			w.Reset(make([]byte, 1<<15))
			from.NetWrite(&w, base)
			require.NoError(t, w.Err())
			r := bitio.NewReader(w.Bytes(), w.Len())
			require.NoError(t, to.NetRead(r))
			require.NoError(t, r.Err())
		}
		for step := range 200 {
			switch n := rng.IntN(20); {
			case n == 0:
				require.NoError(t, own.Clear())
			case n == 1: // another server has it now, whose list has other versions, and perhaps other ids
				own, there = List[thing]{}, &List[thing]{}
				for range rng.IntN(4) {
					_, _ = own.Add(thing{N: rng.Uint32()})
				}
			case n < 8 && own.Len() > 0:
				ids := []ID{}
				for id := range own.All {
					ids = append(ids, id)
				}
				id := ids[rng.IntN(len(ids))]
				if n < 5 {
					require.NoError(t, own.Remove(id))
				} else {
					require.NoError(t, own.Set(id, thing{N: rng.Uint32(), Parts: make([]uint16, rng.IntN(6)), Name: fmt.Sprint(step)}))
				}
			default:
				_, _ = own.Add(thing{N: rng.Uint32(), Parts: []uint16{uint16(step)}})
			}
			if rng.IntN(3) > 0 {
				continue
			}
			if own.NetKey() != 0 {
				update(&own, there, there.NetKey())
			}
			if rng.IntN(4) == 0 { // this server has changed it meanwhile
				_, err := mirror.Add(thing{N: 1})
				require.NoError(t, err)
			}
			require.NoError(t, mirror.NetCopy(there))
			was := mirror.NetKey()
			again := *there // another connection's copy
			require.NoError(t, mirror.NetCopy(&again))
			require.NoError(t, mirror.NetCopy(there))
			require.Equal(t, was, mirror.NetKey(), "nothing has changed")
			require.Equal(t, contents(&own), contents(&mirror), "seed %d, step %d", seed, step)
			require.NoError(t, mirror.check())
			for i := range clients {
				if rng.IntN(3) > 0 || mirror.NetKey() == versions[i] || mirror.NetKey() == 0 {
					continue
				}
				update(&mirror, &clients[i], versions[i])
				versions[i] = mirror.NetKey()
				require.Equal(t, contents(&own), contents(&clients[i]), "seed %d, step %d, client %d", seed, step, i)
			}
		}
		_, err := mirror.Add(thing{N: 1}) // it is this server's now
		require.NoError(t, err)
	}
	var other List[int]
	require.Error(t, other.NetCopy(&List[uint32]{}))
}

// TestCopyMap: a map that is copied has the other one's keys and values, also when this server goes on with it.
func TestCopyMap(t *testing.T) {
	var own, mirror Map[string, int]
	for i := range 20 {
		require.NoError(t, own.Set(fmt.Sprint(i%7), i))
		if i%3 == 0 {
			require.NoError(t, own.Delete(fmt.Sprint((i+2)%7)))
		}
		require.NoError(t, mirror.NetCopy(&own))
		require.Equal(t, own.Len(), mirror.Len())
		for k, v := range own.All {
			got, ok := mirror.Get(k)
			require.True(t, ok && got == v, k)
		}
	}
	n := mirror.Len()
	require.NoError(t, mirror.Set("0", 99))
	require.NoError(t, mirror.Delete("0"))
	require.NoError(t, mirror.Set("new", 1))
	require.LessOrEqual(t, mirror.Len(), n+1)
	require.Error(t, mirror.NetCopy(&Map[string, uint8]{}))
}

func contents[T any](l *List[T]) (all []any) {
	for id, v := range l.All {
		all = append(all, fmt.Sprint(id, v))
	}
	return all
}

// check says what is wrong with what the list knows of itself.
func (l *List[T]) check() error {
	bits := 0
	for i := range l.items {
		size, err := l.size(l.items[i].value)
		if err != nil {
			return err
		}
		bits += size + gapBits(l.before(i), l.items[i].id)
		if int(l.items[i].size) != size {
			return fmt.Errorf("element %d has size %d, and %d is known", l.items[i].id, size, l.items[i].size)
		}
	}
	if bits != l.bits || len(l.units) != len(l.items)*len(l.elem.Units) {
		return fmt.Errorf("%d bits and %d, %d units", bits, l.bits, len(l.units))
	}
	return nil
}
