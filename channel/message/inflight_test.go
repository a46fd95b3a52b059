package message

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
)

// budget is a memory of a size.
type budget struct{ used, size int }

func (b *budget) Hold(int) error { panic("not the peer's") }
func (b *budget) Release(int)    { panic("not the peer's") }
func (b *budget) MaxHold() int   { panic("not the peer's") }
func (b *budget) ReleaseSent(n int) {
	b.used -= n
}

func (b *budget) HoldSent(n int) error {
	if b.used+n > b.size {
		return channel.ErrMemory
	}
	b.used += n
	return nil
}

// TestInFlightAgainstModel: packets and their items against a map, with fates in any order, packets that never have one, several notes for a packet,
// and more or less memory. What counts is what the rings have beyond their least.
func TestInFlightAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := &budget{size: []int{0, 2000, 1 << 20, 1 << 20}[seed%4]}
		var f inFlight[int]
		model, order := map[int64][]int{}, []int64{}
		id, now, refused := int64(0), time.Duration(0), 0
		forget := func(p int64) {
			delete(model, p)
			for len(order) > 0 && model[order[0]] == nil {
				order = order[1:]
			}
		}
		for step := range 8_000 {
			busy := step/1000%2 == 0
			if rng.IntN(3) > 0 {
				id += int64(rng.IntN(4))
			}
			now += time.Duration(rng.IntN(20)) * time.Millisecond
			if !busy && rng.IntN(3) > 0 || len(order) > 0 && rng.IntN(3) == 0 {
				fate := rng.Int64N(id + 1)
				if len(order) > 0 && rng.IntN(3) > 0 {
					fate = order[rng.IntN(min(3, len(order)))]
				}
				p := f.find(fate)
				require.Equal(t, model[fate] != nil, p != nil, "seed %d step %d", seed, step)
				if p != nil {
					for i, want := range model[fate] {
						require.Equal(t, want, f.item(p, int32(i)), "seed %d step %d", seed, step)
					}
					require.Len(t, model[fate], int(p.n))
					f.settled(p)
					forget(fate)
				}
			} else if len(order) == 0 || id >= order[len(order)-1] {
				n := 1 + rng.IntN(5)
				if len(order) == maxPackets {
					forget(order[0])
				}
				fits, ok := f.room(m, n)
				if fits < n || !ok {
					refused++
				}
				if ok && fits > 0 {
					for i := range fits {
						model[id] = append(model[id], step*8+i)
					}
					if len(order) == 0 || order[len(order)-1] != id {
						order = append(order, id)
					}
					f.sent(id, now, model[id][len(model[id])-fits:]...)
				}
			}
			f.shrink(m, now)
			require.Equal(t, m.used, f.packets.bytes(max(0, len(f.packets.slots)-leastPackets))+f.items.bytes(max(0, len(f.items.slots)-leastItems)))
			require.LessOrEqual(t, m.used, m.size)
		}
		require.Equal(t, seed%4 < 2, refused > 0, "seed %d", seed)
		for len(order) > 0 {
			f.settled(f.find(order[0]))
			forget(order[0])
		}
		for range 3 {
			now += shrinkEvery
			f.shrink(m, now)
		}
		require.Zero(t, m.used, "seed %d", seed)
		require.Len(t, f.packets.slots, leastPackets)
		require.Zero(t, f.items.len())
	}
}

// TestInFlightDropsTheOldest: a packet whose fate nobody tells counts as lost behind 8192 others.
func TestInFlightDropsTheOldest(t *testing.T) {
	var f inFlight[int]
	for id := range int64(maxPackets + 1) {
		_, ok := f.room(nil, 1)
		require.True(t, ok)
		f.sent(id, 0, int(id))
	}
	require.Nil(t, f.find(0))
	for id := int64(1); id <= maxPackets; id++ {
		p := f.find(id)
		require.EqualValues(t, id, f.item(p, 0))
	}
	require.Len(t, f.packets.slots, maxPackets)
}
