package bitio

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sample of testdata/bits.json. IntPacked samples stand behind some one bits
// and before a single one, so that they are seen at every offset.
type sample struct {
	Op    string
	Value uint32
	Max   uint32
	Bits  int
	Lead  int `json:"lead_one_bits"`
	Total int `json:"total_bits_incl_trailing_one"`
	Hex   string
}

func TestBitsVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/bits.json")
	require.NoError(t, err)
	var file struct{ Vectors []sample }
	require.NoError(t, json.Unmarshal(b, &file))
	for i, s := range file.Vectors {
		checkSample(t, s, fmt.Sprintf("sample %d: %+v", i, s))
	}
	line := fmt.Sprintf("vectors bits.json: %d checked", len(file.Vectors))
	fmt.Println(line)
	t.Log(line)
}

func checkSample(t *testing.T, s sample, where string) {
	want, err := hex.DecodeString(s.Hex)
	require.NoError(t, err, where)
	w := NewWriter(make([]byte, len(want)))
	ones := uint64(1)<<s.Lead - 1
	w.WriteBits(ones, s.Lead)
	n := s.Bits
	switch s.Op {
	case "SerializeInt":
		w.WriteInt(s.Value, s.Max)
	case "WriteIntWrapped":
		w.WriteIntWrapped(s.Value, s.Max)
	case "SerializeIntPacked":
		w.WriteIntPacked(s.Value)
		w.WriteBool(true)
		n = s.Total
	default:
		t.Fatal("unknown op in", where)
	}
	require.NoError(t, w.Err(), where)
	require.Equal(t, n, w.Len(), where)
	require.Equal(t, want, w.Bytes(), where)

	r := NewReader(want, n)
	require.Equal(t, ones, r.ReadBits(s.Lead), where)
	switch s.Op {
	case "SerializeInt":
		require.Equal(t, s.Value, r.ReadInt(s.Max), where)
	case "WriteIntWrapped": // the value came back in range
		require.Equal(t, s.Value&(s.Max-1), r.ReadInt(s.Max), where)
	default:
		require.Equal(t, s.Value, r.ReadIntPacked(), where)
		require.True(t, r.ReadBool(), where)
	}
	require.NoError(t, r.Err(), where)
	require.Zero(t, r.Remaining(), where)
}
