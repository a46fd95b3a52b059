package history_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
)

// packets is the naive history: all that ever was, the newest last.
type packets []bool

func (p packets) delivered(i int) bool {
	return i >= 0 && i < len(p) && i < history.Bits && p[len(p)-1-i]
}

func (p packets) anyDelivered(n int) bool {
	for i := range n {
		if p.delivered(i) {
			return true
		}
	}
	return false
}

func (p packets) word(n int) (v uint32) {
	for i := range 32 {
		if p.delivered(32*n + i) {
			v |= 1 << i
		}
	}
	return v
}

func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		var h history.History
		var model packets
		for range 200 {
			if rnd.IntN(3) == 0 {
				lost := rnd.IntN(1 << rnd.IntN(10))
				h.AddLost(lost)
				model = append(model, make(packets, lost)...)
			} else {
				delivered := rnd.IntN(4) > 0
				h.Add(delivered)
				model = append(model, delivered)
			}
			checkSame(t, &h, model, seed)
			checkWire(t, &h, model, seed)
		}
	}
}

func checkSame(t *testing.T, h *history.History, model packets, seed uint64) {
	for i := -1; i < history.Bits+70; i++ {
		if model.delivered(i) != h.Delivered(i) {
			t.Fatalf("seed %d: %d before the newest delivered: %v", seed, i, h.Delivered(i))
		}
	}
	for n := -1; n < history.Bits+70; n += 17 {
		if model.anyDelivered(n) != h.AnyDelivered(n) {
			t.Fatalf("seed %d: any of %d delivered: %v", seed, n, h.AnyDelivered(n))
		}
	}
	for i := range history.MaxWords {
		require.Equal(t, model.word(i), h.Word(i), "seed %d: word %d", seed, i)
	}
}

// checkWire writes and reads every number of words at an odd bit.
func checkWire(t *testing.T, h *history.History, model packets, seed uint64) {
	for words := 1; words <= history.MaxWords; words++ {
		w := bitio.NewWriter(make([]byte, 40))
		w.WriteBits(0, 3)
		w.WriteUint32(h.Word(0))
		h.WriteRest(w, words)
		require.Equal(t, 3+32*words, w.Len())
		r := bitio.NewReader(w.Bytes(), w.Len())
		r.Skip(3)
		for i := range words {
			require.Equal(t, model.word(i), r.ReadUint32(), "seed %d: word %d on the wire", seed, i)
		}
		r.Reset(w.Bytes(), w.Len())
		r.Skip(3)
		var got history.History
		for range history.Bits {
			got.Add(true) // overwritten, the words that aren't read too
		}
		got.ReadRest(r, r.ReadUint32(), words)
		require.NoError(t, r.Err())
		for i := range history.Bits {
			if got.Delivered(i) != (i < 32*words && model.delivered(i)) {
				t.Fatalf("seed %d: read %d before the newest delivered: %v", seed, i, got.Delivered(i))
			}
		}
	}
}

func TestTruncated(t *testing.T) {
	var h history.History
	for range history.Bits {
		h.Add(true)
	}
	w := bitio.NewWriter(make([]byte, 40))
	h.WriteRest(w, history.MaxWords)
	for n := range w.Len() {
		r := bitio.NewReader(w.Bytes(), n)
		h.ReadRest(r, 0, history.MaxWords)
		require.ErrorIs(t, r.Err(), bitio.ErrShort, "%d bits", n)
	}
}

func TestAllocs(t *testing.T) {
	buf := make([]byte, 40)
	var h history.History
	var w bitio.Writer
	var r bitio.Reader
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h.Add(true)
		h.AddLost(70)
		w.Reset(buf)
		h.WriteRest(&w, 7)
		r.Reset(buf, w.Len())
		h.ReadRest(&r, 0, 7)
		if h.Delivered(0) || !h.AnyDelivered(71) {
			t.Fatal(h)
		}
	}))
}

func Example() {
	var h history.History
	h.Add(true)  // packet 1 arrived
	h.AddLost(1) // packet 2 didn't
	h.Add(true)  // packet 3 arrived
	for i := range 3 {
		fmt.Println("packet", 3-i, h.Delivered(i))
	}
	fmt.Printf("word 0: %b\n", h.Word(0))
	// Output:
	// packet 3 true
	// packet 2 false
	// packet 1 true
	// word 0: 101
}
