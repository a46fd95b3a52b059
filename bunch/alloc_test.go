package bunch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

func TestAllocs(t *testing.T) {
	var p Protocol
	buf, data := make([]byte, 512), make([]byte, 100)
	var w bitio.Writer
	var r bitio.Reader
	var got Header
	for _, h := range []Header{
		{ChIndex: 3, Bits: 800}, {ChIndex: 300, Reliable: true, WireSeq: 9, Name: Actor, Bits: 800},
		{ChIndex: 3, Open: true, Reliable: true, Name: Control, Bits: 3}, {ChIndex: 1, Partial: true, PartialFinal: true, Bits: 80},
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			w.Reset(buf)
			p.Write(&w, &h, data)
			r.Reset(w.Bytes(), w.Len())
			if err := p.Read(&r, &got, new(bitio.Reader)); err != nil {
				t.Error(err)
			}
		}), "%+v", h)
		require.Equal(t, h, got)
	}
}
