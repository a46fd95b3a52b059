package bunch

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// recordedBunch is a bunch in the fields of the recordings.
type recordedBunch struct {
	Open                 int    `json:"bOpen"`
	Close                int    `json:"bClose"`
	CloseReason          uint8  `json:"CloseReason"`
	Paused               int    `json:"bIsReplicationPaused"`
	Reliable             int    `json:"bReliable"`
	ChIndex              uint32 `json:"ChIndex"`
	Exports              int    `json:"bHasPackageMapExports"`
	MustBeMapped         int    `json:"bHasMustBeMappedGUIDs"`
	Partial              int    `json:"bPartial"`
	ChSequence           uint16 `json:"ChSequence"`
	PartialInitial       int    `json:"bPartialInitial"`
	PartialFinal         int    `json:"bPartialFinal"`
	PartialCustomExports int    `json:"bPartialCustomExportsFinal"`
	NameIndex            int    `json:"NameIndex"`
	DataBits             int    `json:"DataBits"`
	Data                 string `json:"Data"`
}

func (b *recordedBunch) header() Header {
	h := Header{Open: b.Open == 1, Close: b.Close == 1, CloseReason: CloseReason(b.CloseReason), ReplicationPaused: b.Paused == 1,
		Reliable: b.Reliable == 1, ChIndex: b.ChIndex, HasPackageMapExports: b.Exports == 1, HasMustBeMappedGUIDs: b.MustBeMapped == 1,
		Partial: b.Partial == 1, PartialInitial: b.PartialInitial == 1, PartialFinal: b.PartialFinal == 1,
		PartialCustomExportsFinal: b.PartialCustomExports == 1, Bits: b.DataBits}
	if h.Reliable {
		h.WireSeq = b.ChSequence
	}
	if b.NameIndex >= 0 {
		h.Name.Index = uint32(b.NameIndex)
	}
	return h
}

func load(t testing.TB, file string, v any) {
	b, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, v))
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

// checkBunch decodes recorded bytes, compares every field, and encodes them again.
func checkBunch(t *testing.T, p Protocol, where, datagram string, want Header, data []byte) {
	b := unhex(t, datagram)
	r := bitio.NewReader(b, len(b)*8)
	r.StripTerminator()
	var h Header
	var payload bitio.Reader
	err := p.Read(r, &h, &payload)
	require.NoError(t, err, where)
	require.Zero(t, r.Remaining(), where)
	require.Equal(t, want, h, where)
	got := make([]byte, (h.Bits+7)/8)
	payload.ReadBitsTo(got, h.Bits)
	require.Equal(t, data, got, where)
	w := bitio.NewWriter(make([]byte, 2048))
	p.Write(w, &h, got)
	w.WriteBool(true)
	require.NoError(t, w.Err(), where)
	require.Equal(t, datagram, hex.EncodeToString(w.Bytes()), where)
	for n := range w.Len() - 1 { // every truncation fails and none panics
		r.Reset(b, n)
		err := p.Read(r, &h, new(bitio.Reader))
		require.Error(t, err, "%s cut to %d bits", where, n)
	}
}

func bunchVectors(t *testing.T, file string, p Protocol) {
	var f struct {
		Vectors []struct {
			Hex   string `json:"hex_with_terminator"`
			Bunch recordedBunch
		}
	}
	load(t, file, &f)
	for i, v := range f.Vectors {
		checkBunch(t, p, fmt.Sprintf("%s, vector %d", file, i), v.Hex, v.Bunch.header(), unhex(t, v.Bunch.Data))
	}
	fmt.Printf("vectors %s: %d checked\n", file, len(f.Vectors))
}

func TestBunchVectors(t *testing.T) { bunchVectors(t, "bunches.json", Protocol{}) }

func TestCustomExportsVectors(t *testing.T) {
	bunchVectors(t, "bunches_customexports_derived.json", Protocol{CustomExportsFinal: true})
}

func TestPartialVectors(t *testing.T) {
	var f struct {
		Vectors []struct {
			Message  string `json:"message_hex"`
			Partials []struct {
				Bits, Initial, Final, Partial int
				ChSequence                    uint16
				Hex                           string `json:"hex_with_terminator"`
			}
		}
	}
	load(t, "partials.json", &f)
	var p Protocol
	for i, v := range f.Vectors {
		var a Assembly
		var got []byte
		for j, part := range v.Partials {
			where := fmt.Sprintf("message %d, part %d", i, j)
			b := unhex(t, part.Hex)
			r := bitio.NewReader(b, len(b)*8)
			r.StripTerminator()
			var in In
			err := p.Read(r, &in.Header, &in.Data)
			require.NoError(t, err, where)
			in.ChSequence = int64(in.WireSeq)
			require.Equal(t, [4]int{part.Bits, part.Initial, part.Final, part.Partial}, [4]int{in.Bits, int(b2u(in.PartialInitial)), int(b2u(in.PartialFinal)), int(b2u(in.Partial))}, where)
			require.Equal(t, part.ChSequence, in.WireSeq, where)
			whole := &in
			if in.Partial {
				progress, err := a.Add(&in)
				require.NoError(t, err, where)
				if j < len(v.Partials)-1 {
					require.Equal(t, Merged, progress, where)
					continue
				}
				require.Equal(t, Complete, progress, where)
				whole = a.Take()
			}
			got = make([]byte, whole.Bits/8)
			whole.Data.ReadBytes(got)
		}
		require.Equal(t, v.Message, hex.EncodeToString(got), "message %d", i)
	}
	fmt.Printf("vectors partials.json: %d checked\n", len(f.Vectors))
}
