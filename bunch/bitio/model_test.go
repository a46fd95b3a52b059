package bitio

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// bitList is the naive bit stream: one bool for each bit.
type bitList []bool

func bitsOf(v uint64, n int) (l bitList) {
	for i := range n {
		l = append(l, v>>uint(i)&1 != 0)
	}
	return l
}

func bitsOfBytes(p []byte) (l bitList) {
	for _, b := range p {
		l = append(l, bitsOf(uint64(b), 8)...)
	}
	return l
}

func (l bitList) value() (v uint64) {
	for i, set := range l {
		if set {
			v |= 1 << uint(i)
		}
	}
	return v
}

// bytes packs the list, zeros at the end of the last byte.
func (l bitList) bytes() []byte {
	p := make([]byte, (len(l)+7)/8)
	for i, set := range l {
		if set {
			p[i/8] |= 1 << (i % 8)
		}
	}
	return p
}

// intBits is SerializeInt as its definition says it.
func intBits(v, limit uint32) (l bitList) {
	var acc uint64
	for mask := uint64(1); acc+mask < uint64(limit); mask <<= 1 {
		set := uint64(v)&mask != 0
		if set {
			acc += mask
		}
		l = append(l, set)
	}
	return l
}

func packedBits(v uint64) (l bitList) {
	for {
		more := v>>7 != 0
		l = append(l, more)
		l = append(l, bitsOf(v, 7)...)
		if v >>= 7; !more {
			return l
		}
	}
}

func randomBytes(rnd *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	return p
}

// randomValue has a random width, so that small ones are as common as large.
func randomValue(rnd *rand.Rand) uint64 { return rnd.Uint64() >> rnd.UintN(64) }

// One write of the random test: on the Writer, and what it adds to the model.
func randomWrite(w *Writer, rnd *rand.Rand, have int) bitList {
	v := randomValue(rnd)
	limit := uint32(randomValue(rnd)) | 1
	switch rnd.IntN(14) {
	case 0:
		w.WriteBool(v&1 != 0)
		return bitsOf(v, 1)
	case 1:
		w.WriteUint8(uint8(v))
		return bitsOf(v, 8)
	case 2:
		w.WriteUint16(uint16(v))
		return bitsOf(v, 16)
	case 3:
		w.WriteUint32(uint32(v))
		return bitsOf(v, 32)
	case 4:
		w.WriteUint64(v)
		return bitsOf(v, 64)
	case 5:
		w.WriteInt(uint32(v)%limit, limit)
		return intBits(uint32(v)%limit, limit)
	case 6:
		w.WriteIntWrapped(uint32(v), limit)
		return intBits(uint32(v), limit)
	case 7:
		w.WriteIntPacked(uint32(v))
		return packedBits(uint64(uint32(v)))
	case 8:
		w.WriteIntPacked64(v)
		return packedBits(v)
	case 9:
		p := randomBytes(rnd, rnd.IntN(30))
		w.WriteBytes(p)
		return bitsOfBytes(p)
	case 10:
		p := randomBytes(rnd, 1+rnd.IntN(30))
		from := rnd.IntN(len(p) * 8)
		n := rnd.IntN(len(p)*8 - from + 1)
		w.WriteBitsFrom(p, from, n)
		return bitsOfBytes(p)[from : from+n]
	case 11:
		w.Align()
		return bitsOf(0, -have&7)
	default:
		n := rnd.IntN(65)
		w.WriteBits(v, n)
		return bitsOf(v, n)
	}
}

// Random writes, patches, marks and rollbacks leave the bits that the naive list
// says, and nothing that doesn't fit is half there after its rollback.
func TestWriterModel(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		room := rnd.IntN(200 * 8)
		buf := randomBytes(rnd, (room+7)/8) // old rubbish must not show
		var w Writer
		w.ResetBits(buf, room)
		var model bitList
		mark, marked := w.Mark(), 0
		for range 60 {
			switch rnd.IntN(10) {
			case 0:
				mark, marked = w.Mark(), len(model)
			case 1:
				w.Rollback(mark)
				model = model[:marked]
			case 2:
				if len(model) == 0 {
					continue
				}
				pos := rnd.IntN(len(model))
				n := rnd.IntN(min(64, len(model)-pos) + 1)
				v := rnd.Uint64()
				w.PatchBits(pos, v, n)
				copy(model[pos:], bitsOf(v, n))
			default:
				before := w.Mark()
				added := randomWrite(&w, rnd, len(model))
				if len(added) > room-len(model) {
					require.ErrorIs(t, w.Err(), ErrOverflow, "seed %d", seed)
					require.Zero(t, w.Free())
					stuck := w.Len()
					w.WriteBits(1, 1)
					w.WriteBytes(nil)
					require.Equal(t, stuck, w.Len(), "seed %d: wrote after an error", seed)
					w.Rollback(before)
					added = nil
				}
				model = append(model, added...)
			}
			require.NoError(t, w.Err(), "seed %d", seed)
			require.Equal(t, len(model), w.Len(), "seed %d", seed)
			require.Equal(t, room-len(model), w.Free(), "seed %d", seed)
		}
		require.Equal(t, model.bytes(), w.Bytes(), "seed %d", seed)
	}
}

// Random reads of random bits, some through a Sub, give what the naive list gives.
func TestReaderModel(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		buf := randomBytes(rnd, rnd.IntN(60))
		nbits := rnd.IntN(len(buf)*8 + 1)
		r := NewReader(buf, nbits)
		checkReads(t, r, bitsOfBytes(buf)[:nbits], 0, rnd, seed)
	}
}

// checkReads reads from r, at bit pos of the whole, until it ends.
func checkReads(t *testing.T, r *Reader, model bitList, pos int, rnd *rand.Rand, seed uint64) {
	for r.Err() == nil {
		require.Equal(t, pos, r.Pos(), "seed %d", seed)
		require.Equal(t, len(model), r.Remaining(), "seed %d", seed)
		n, before := rnd.IntN(90), *r
		op := rnd.IntN(5)
		if op == 0 {
			n = min(n, 64)
		}
		if n > len(model) {
			checkShort(t, r, op, n, seed)
			*r = before // it fails once, then it goes on with fewer
			if n = len(model); n == 0 {
				return
			}
			n = min(n, 64)
		}
		switch op {
		case 0:
			require.Equal(t, model[:n].value(), r.ReadBits(n), "seed %d", seed)
		case 1:
			r.Skip(n)
		case 2:
			dst := randomBytes(rnd, (n+7)/8+1)
			guard := dst[len(dst)-1]
			r.ReadBitsTo(dst, n)
			require.Equal(t, model[:n].bytes(), dst[:(n+7)/8], "seed %d", seed)
			require.Equal(t, guard, dst[len(dst)-1], "seed %d: wrote past the bits", seed)
		case 3:
			sub := r.Sub(n)
			checkReads(t, &sub, model[:n], pos, rnd, seed)
		case 4:
			n = min(-pos&7, len(model))
			if n != -pos&7 {
				return
			}
			r.Align()
		}
		model, pos = model[n:], pos+n
	}
}

func checkShort(t *testing.T, r *Reader, op, n int, seed uint64) {
	dst := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	old := append([]byte(nil), dst...)
	switch op {
	case 0:
		require.Zero(t, r.ReadBits(n))
	case 1:
		r.Skip(n)
	case 2:
		r.ReadBitsTo(dst, n)
	default:
		sub := r.Sub(n)
		require.ErrorIs(t, sub.Err(), ErrShort)
		require.Zero(t, sub.Remaining())
	}
	require.ErrorIs(t, r.Err(), ErrShort, "seed %d", seed)
	require.Equal(t, old, dst, "seed %d: touched on an error", seed)
	require.Zero(t, r.Remaining())
	require.Zero(t, r.ReadBits(0))
	require.Zero(t, r.ReadIntPacked())
	require.False(t, r.ReadBool())
}

// Every width at every offset, in a buffer just large enough, in a roomy one, and between the two.
func TestBitsEveryOffset(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for lead := range 80 {
		for n := range 65 {
			for _, spare := range []int{0, 1, 7, 8, 9, 20} {
				size := (lead+n+7)/8 + spare
				first, v := randomBytes(rnd, (lead+7)/8), rnd.Uint64()
				w := NewWriter(randomBytes(rnd, size))
				w.WriteBitsFrom(first, 0, lead)
				w.WriteBits(v, n)
				want := append(bitsOfBytes(first)[:lead], bitsOf(v, n)...)
				require.Equal(t, want.bytes(), w.Bytes())
				r := NewReader(w.buf, lead+n)
				r.Skip(lead)
				require.Equal(t, bitsOf(v, n).value(), r.ReadBits(n))
				require.NoError(t, r.Err())
			}
		}
	}
}

// Every copy of up to 150 bits from any offset to any offset.
func TestCopyEveryOffset(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	for to := range 9 {
		for from := range 9 {
			for n := range 150 {
				src := randomBytes(rnd, (from+n+7)/8)
				w := NewWriter(randomBytes(rnd, (to+n+7)/8))
				w.WriteBits(0x155, to)
				w.WriteBitsFrom(src, from, n)
				want := append(bitsOf(0x155, to), bitsOfBytes(src)[from:from+n]...)
				require.Equal(t, want.bytes(), w.Bytes(), "to %d from %d n %d", to, from, n)

				dst := make([]byte, (n+7)/8)
				r := NewReader(src, from+n)
				r.Skip(from)
				r.ReadBitsTo(dst, n)
				require.NoError(t, r.Err())
				require.Equal(t, want[to:].bytes(), dst, "from %d n %d", from, n)
			}
		}
	}
}

// SerializeInt against its definition for every value of every small limit, and
// around the limits of large ones.
func TestIntDefinition(t *testing.T) {
	check := func(v, limit uint32) {
		w := NewWriter(make([]byte, 4))
		w.WriteInt(v, limit)
		require.NoError(t, w.Err())
		want := intBits(v, limit)
		require.Equal(t, len(want), w.Len(), "%d of %d", v, limit)
		require.Equal(t, want.bytes(), w.Bytes(), "%d of %d", v, limit)
		require.Equal(t, len(want), IntBits(v, limit))
		r := NewReader(w.Bytes(), w.Len())
		require.Equal(t, v, r.ReadInt(limit), "of %d", limit)
		require.NoError(t, r.Err())
	}
	for limit := range uint32(130) {
		for v := range limit {
			check(v, limit)
		}
	}
	for shift := 8; shift <= 32; shift++ {
		for d := -2; d <= 2; d++ {
			limit := uint32(1<<uint(shift) + d)
			for _, v := range []uint32{0, 1, limit / 2, limit/2 + 1, limit - 2, limit - 1} {
				if v < limit {
					check(v, limit)
				}
			}
		}
	}
}
