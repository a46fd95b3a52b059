package bitio

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllocs(t *testing.T) {
	buf, src, dst := make([]byte, 256), make([]byte, 64), make([]byte, 64)
	var w Writer // out here, as the table of codecs makes them escape
	var r Reader
	sum := uint64(0)
	got := testing.AllocsPerRun(200, func() {
		w.Reset(buf)
		m := w.Mark()
		for i := range codecs {
			codecs[i].write(&w, codecs[i].norm(0x123456789))
		}
		w.WriteIntWrapped(77, 10)
		w.WriteString("plain")
		w.WriteString("wïde")
		w.WriteBitsFrom(src, 3, 401)
		w.PatchBits(9, 1, 30)
		w.Align()
		w.WriteBytes(src)
		n := w.Len()
		w.WriteUint64(1)
		p := w.Bytes()
		w.Rollback(m)

		r.Reset(p, n)
		for i := range codecs {
			sum += codecs[i].read(&r)
		}
		sub := r.Sub(100)
		sub.ReadBitsTo(dst, 99)
		r.ReadBytes(dst[:50])
		r.Skip(1)
		r.Align()
		if w.Err() != nil || r.Err() != nil || sub.Err() != nil {
			t.Fatal(w.Err(), r.Err(), sub.Err())
		}
	})
	require.Zero(t, got)
	_ = sum
}
