package message

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// purse is a memory of so many bytes.
type purse struct {
	budget
	left, most int
}

func (p *purse) Hold(n int) error {
	if n > p.left {
		return channel.ErrMemory
	}
	p.left -= n
	return nil
}
func (p *purse) Release(n int) { p.left += n }
func (p *purse) MaxHold() int  { return p.most }

// TestFarAheadHoldsUpNothing: a message of which the ack was lost arrives again, and so do those behind it, where the peer has no memory for the smaller ones far ahead
// that would fill its packet. The packet would be refused for these each time.
func TestFarAheadHoldsUpNothing(t *testing.T) {
	var reg Registry
	kind := reg.Add("blob", func() Message { return new(blob) })
	a, b := New(Config{Kinds: &reg}), New(Config{Kinds: &reg})
	b.memory = &purse{left: 8 << 10, most: 8 << 10}
	const n = 100
	for id := range n {
		size := 600
		if id > 50 {
			size = 100
		}
		require.NoError(t, a.Send(kind, &blob{make([]byte, size)}))
	}
	got, refused := 0, 0
	for id := int64(0); a.Pending() > 0; id++ {
		require.Less(t, id, int64(10*n), "%d of %d came, and %d packets were refused", got, n, refused)
		w := bitio.NewWriter(make([]byte, 1000))
		if a.Write(time.Duration(id)*time.Second, w) == 0 {
			continue
		}
		a.Sent(id)
		err := b.Read(bitio.NewReader(w.Bytes(), w.Len()))
		if err != nil {
			require.ErrorIs(t, err, channel.ErrMemory)
			refused++
		}
		if err != nil || id == 0 {
			a.Lost(id)
		} else {
			a.Acked(id)
		}
		for m, _ := b.Receive(); m != nil; m, _ = b.Receive() {
			got++
		}
	}
	require.Equal(t, n, got)
	require.Positive(t, refused)
}

// TestRoomForOneMessage: a queue without messages takes one, whatever others hold; of those that come behind it a Sequenced one keeps the newest.
func TestRoomForOneMessage(t *testing.T) {
	for mode, kept := range map[Mode]int{Ordered: 10, Unordered: 10, Sequenced: 12} {
		var reg Registry
		kind := reg.Add("blob", func() Message { return new(blob) })
		a, b := New(Config{Kinds: &reg, Mode: mode}), New(Config{Kinds: &reg, Mode: mode})
		purse := &purse{most: 64 << 10}
		b.memory = purse
		for round := range 3 {
			for size := 10; size < 13; size++ {
				require.NoError(t, a.Send(kind, &blob{make([]byte, size)}))
			}
			w := bitio.NewWriter(make([]byte, 1000))
			require.Positive(t, a.Write(0, w))
			a.Sent(int64(round))
			if err := b.Read(bitio.NewReader(w.Bytes(), w.Len())); mode == Ordered {
				require.ErrorIs(t, err, channel.ErrMemory)
				require.EqualValues(t, 1, b.Counters.Refused)
			} else {
				require.NoError(t, err)
				require.EqualValues(t, 2*(round+1), b.Counters.Dropped)
			}
			m, _ := b.Receive()
			require.Len(t, m.(*blob).data, kept)
			m, _ = b.Receive()
			require.Nil(t, m)
			require.Zero(t, purse.left, "it was counted from the beginning")
			if mode == Ordered {
				break
			}
		}
	}
}
