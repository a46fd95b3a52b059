package bunch_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// part is a part of a partial bunch, with as many bits as its data unless edit says otherwise.
func part(seq int64, data []byte, edit func(in *bunch.In)) *bunch.In {
	in := &bunch.In{ChSequence: seq, PacketID: seq, Header: bunch.Header{Partial: true, Reliable: true, Bits: len(data) * 8}}
	if edit != nil {
		edit(in)
	}
	in.Data.Reset(data, in.Bits)
	return in
}

func initial(in *bunch.In)    { in.PartialInitial = true }
func final(in *bunch.In)      { in.PartialFinal = true }
func unreliable(in *bunch.In) { in.Reliable = false }

// all is several edits in one.
func all(edits ...func(in *bunch.In)) func(in *bunch.In) {
	return func(in *bunch.In) {
		for _, edit := range edits {
			edit(in)
		}
	}
}

// add adds a part and expects what becomes of it.
func add(t *testing.T, a *bunch.Assembly, in *bunch.In, want bunch.Progress, wantErr error) {
	t.Helper()
	got, err := a.Add(in)
	if wantErr != nil {
		require.ErrorIs(t, err, wantErr)
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// whole is the bytes of a complete bunch.
func whole(in *bunch.In) []byte {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	return b
}

// TestAssembly joins payloads of all sizes up to the largest, cut at random, and checks what is taken from which part.
func TestAssembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var a bunch.Assembly
	for _, size := range []int{1, 2, 100, 5000, bunch.MaxPayload - 1, bunch.MaxPayload} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		seq := int64(100)
		for left := data; len(left) > 0; seq++ {
			n := min(len(left), 1+rng.IntN(900))
			last := n == len(left)
			in := part(seq, left[:n], func(in *bunch.In) {
				in.PartialInitial, in.PartialFinal = len(left) == len(data), last
				in.Open, in.Close = in.PartialInitial, last
				in.ReplicationPaused, in.HasMustBeMappedGUIDs = last, last
				if last {
					in.CloseReason = bunch.TearOff
				}
			})
			want := bunch.Merged
			if last {
				want = bunch.Complete
			}
			add(t, &a, in, want, nil)
			require.Equal(t, len(data)-len(left)+n, a.Len())
			require.True(t, a.Active())
			left = left[n:]
		}
		in := a.Take()
		require.False(t, a.Active())
		require.True(t, in.Open && in.Close && in.ReplicationPaused && in.HasMustBeMappedGUIDs)
		require.Equal(t, bunch.TearOff, in.CloseReason)
		require.False(t, in.Partial || in.PartialInitial || in.PartialFinal)
		require.EqualValues(t, 100, in.PacketID, "of the first part")
		require.Equal(t, seq-1, in.ChSequence, "of the last part")
		require.True(t, bytes.Equal(data, whole(in)), "%d bytes", size)
		add(t, &a, part(seq, []byte{1}, final), bunch.Refused, nil)
	}
	require.Zero(t, a.Dropped())
}

// TestAssemblyReliable checks that a reliable partial is only continued by the next sequence, and that unreliable parts leave it alone.
func TestAssemblyReliable(t *testing.T) {
	var a bunch.Assembly
	add(t, &a, part(4, []byte{1}, nil), bunch.Refused, nil)
	add(t, &a, part(5, []byte{1}, initial), bunch.Merged, nil)
	add(t, &a, part(6, []byte{1}, initial), 0, bunch.ErrPartialInitialReliable)
	add(t, &a, part(6, []byte{9}, all(initial, unreliable)), bunch.Refused, nil)
	add(t, &a, part(6, []byte{9}, all(final, unreliable)), bunch.Refused, nil)
	for _, seq := range []int64{4, 5, 7, 8} {
		add(t, &a, part(seq, []byte{9}, final), 0, bunch.ErrPartialMergeReliable)
	}
	require.True(t, a.Active())
	add(t, &a, part(6, []byte{2}, final), bunch.Complete, nil)
	require.Equal(t, []byte{1, 2}, whole(a.Take()))
	require.Zero(t, a.Dropped(), "a reliable one isn't given up")
}

// TestAssemblyExpire checks that an unreliable bunch is given up once its next part can't come, a reliable one never.
func TestAssemblyExpire(t *testing.T) {
	var a bunch.Assembly
	require.False(t, a.Unreliable())
	require.False(t, a.Expire(1000))
	add(t, &a, part(5, []byte{1}, initial), bunch.Merged, nil)
	require.False(t, a.Unreliable())
	require.False(t, a.Expire(1000))
	a.Reset()
	add(t, &a, part(5, []byte{1}, all(initial, unreliable)), bunch.Merged, nil)
	for id := range int64(7) {
		require.False(t, a.Expire(id), "packet %d", id)
		require.True(t, a.Unreliable())
	}
	require.True(t, a.Expire(7))
	require.False(t, a.Active())
	require.False(t, a.Expire(7), "only once")
	require.EqualValues(t, 1, a.Dropped())
}

// TestAssemblyUnreliable checks that unreliable parts follow in the same packet or the next, and that a gap gives the bunch up.
func TestAssemblyUnreliable(t *testing.T) {
	var a bunch.Assembly
	add(t, &a, part(5, []byte{1}, all(initial, unreliable)), bunch.Merged, nil)
	add(t, &a, part(5, []byte{2}, unreliable), bunch.Merged, nil)
	add(t, &a, part(6, []byte{3}, all(final, unreliable)), bunch.Complete, nil)
	require.Equal(t, []byte{1, 2, 3}, whole(a.Take()))
	for _, seq := range []int64{3, 4, 7, 8} {
		dropped := a.Dropped()
		add(t, &a, part(5, []byte{1}, all(initial, unreliable)), bunch.Merged, nil)
		add(t, &a, part(seq, []byte{2}, unreliable), bunch.Refused, nil)
		require.False(t, a.Active())
		require.Equal(t, dropped+1, a.Dropped())
		add(t, &a, part(6, []byte{2}, all(final, unreliable)), bunch.Refused, nil)
	}
	dropped := a.Dropped()
	add(t, &a, part(5, []byte{1}, all(initial, unreliable)), bunch.Merged, nil)
	add(t, &a, part(6, []byte{7}, all(initial, unreliable)), bunch.Merged, nil)
	require.Equal(t, dropped+1, a.Dropped(), "a new one replaces it")
	add(t, &a, part(7, []byte{8}, final), bunch.Refused, nil) // reliable
	add(t, &a, part(9, []byte{8}, all(initial, unreliable)), bunch.Merged, nil)
	add(t, &a, part(10, []byte{8}, all(final, unreliable)), bunch.Complete, nil)
	require.Equal(t, []byte{8, 8}, whole(a.Take()))
}

// TestAssemblyRules checks what parts may hold: whole bytes but at the end, exports but at the end, and no more than a payload.
func TestAssemblyRules(t *testing.T) {
	bits := func(n int) func(in *bunch.In) { return func(in *bunch.In) { in.Bits = n } }
	exports := func(in *bunch.In) { in.HasPackageMapExports = true }
	var a bunch.Assembly
	add(t, &a, part(1, []byte{1}, all(initial, bits(7))), 0, bunch.ErrPartialInitialAlign)
	require.False(t, a.Active())
	add(t, &a, part(1, []byte{0x15}, all(initial, exports, bits(5))), bunch.Merged, nil)
	add(t, &a, part(2, []byte{1}, bits(7)), 0, bunch.ErrPartialAlign)
	add(t, &a, part(2, []byte{0x5}, all(exports, bits(3))), bunch.Merged, nil)
	add(t, &a, part(3, []byte{1}, all(final, exports)), 0, bunch.ErrPartialFinalExports)
	add(t, &a, part(3, []byte{0x3}, all(exports, bits(2))), bunch.Merged, nil)
	add(t, &a, part(4, []byte{0xa7, 1}, all(final, bits(9))), bunch.Complete, nil)
	in := a.Take()
	require.Equal(t, 19, in.Bits)
	require.EqualValues(t, 0x15|0x5<<5|0x3<<8|0x1a7<<10, in.Data.ReadBits(19))

	add(t, &a, part(1, []byte{3}, all(initial, final, bits(3))), bunch.Complete, nil)
	require.Equal(t, 3, a.Take().Bits)

	large := make([]byte, bunch.MaxPayload)
	add(t, &a, part(1, large, initial), bunch.Merged, nil)
	add(t, &a, part(2, []byte{1}, all(final, bits(1))), 0, bunch.ErrPartialTooLarge)
	add(t, &a, part(2, nil, final), bunch.Complete, nil) // it is as it was before
	require.Equal(t, 8*bunch.MaxPayload, a.Take().Bits)
	add(t, &a, part(3, append(large, 1), all(initial, final)), 0, bunch.ErrPartialTooLarge)
	require.False(t, a.Active())
}

// TestAssemblyBuffers checks that a lent buffer is filled where it is, and given back.
func TestAssemblyBuffers(t *testing.T) {
	var a bunch.Assembly
	lent := make([]byte, 0, 256)
	require.Nil(t, a.Grow(lent))
	require.Equal(t, 256, a.Cap())
	add(t, &a, part(1, bytes.Repeat([]byte{1}, 128), initial), bunch.Merged, nil)
	add(t, &a, part(2, bytes.Repeat([]byte{2}, 128), final), bunch.Complete, nil)
	require.Equal(t, 256, a.Cap(), "what fits needs no other buffer")
	got := whole(a.Take())
	require.Equal(t, append(bytes.Repeat([]byte{1}, 128), bytes.Repeat([]byte{2}, 128)...), got)
	back := a.Reset()
	require.Same(t, &lent[:1][0], &back[0])
	require.Zero(t, a.Cap())

	a.Grow(lent)
	add(t, &a, part(1, []byte{1, 2}, initial), bunch.Merged, nil)
	back = a.Grow(make([]byte, 512))
	require.Same(t, &lent[:1][0], &back[0])
	add(t, &a, part(2, []byte{3}, final), bunch.Complete, nil)
	require.Equal(t, []byte{1, 2, 3}, whole(a.Take()))
}

// TestNames checks the names of channels on the wire, and those that no channel can have.
func TestNames(t *testing.T) {
	var p bunch.Protocol
	round := func(h bunch.Header) (bunch.Header, error) {
		buf := make([]byte, 600)
		w := writer(buf)
		p.Write(w, &h, nil)
		require.NoError(t, w.Err())
		r := reader(w.Bytes(), w.Len())
		got := bunch.Header{Close: true, Partial: true, Bits: 77, Name: bunch.Name{Text: "of another"}} // overwritten
		payload := reader(nil, 0)
		err := p.Read(r, &got, payload)
		return got, err
	}
	for _, name := range []bunch.Name{{Index: 1}, {Index: 127}, {Index: 128}, {Index: 16383}, {Index: 16384}, {Index: 1<<32 - 1}, {Text: "a"}, {Text: "Ünï", Number: -7}, {Text: string(bytes.Repeat([]byte{'n'}, 64)), Number: 1 << 30}} {
		for _, reliable := range []bool{false, true} {
			h := bunch.Header{Open: true, Reliable: reliable, Name: name, ChIndex: 9}
			got, err := round(h)
			require.NoError(t, err)
			require.Equal(t, h, got)
		}
	}
	_, err := round(bunch.Header{Open: true, Name: bunch.Name{Text: string(bytes.Repeat([]byte{'n'}, 65))}})
	require.ErrorIs(t, err, bunch.ErrName)

	w := writer(make([]byte, 100)) // a name of text without any text
	w.WriteBits(0b0011, 4)         // control, open, not close; not paused
	w.WriteBits(0, 1)              // unreliable
	w.WriteIntPacked(1)
	w.WriteBits(0, 3)
	w.WriteBool(false)
	w.WriteUint32(0)
	w.WriteUint32(0)
	w.WriteInt(0, 8192)
	var got bunch.Header
	require.ErrorIs(t, p.Read(reader(w.Bytes(), w.Len()), &got, reader(nil, 0)), bunch.ErrName)
	for n := range 40 { // cut short: an overflow, not a bad name
		require.ErrorIs(t, p.Read(reader(w.Bytes(), n), &got, reader(nil, 0)), bunch.ErrHeader, "%d bits", n)
	}
}

func writer(buf []byte) *bitio.Writer { return bitio.NewWriter(buf) }

func reader(p []byte, bits int) *bitio.Reader { return bitio.NewReader(p, bits) }
