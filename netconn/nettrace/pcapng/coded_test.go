package pcapng

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handler/coding"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// TestCodedPackets: tshark sees the symbols behind a packet, which it reads as without them, and hellos; a broken trailer is malformed.
func TestCodedPackets(t *testing.T) {
	var w bitio.Writer
	w.Reset(make([]byte, 1024))
	h := packetnotify.Header{Seq: 77, AckedSeq: 33, Words: 1}
	h.Write(&w)
	w.WriteBool(false) // packet info
	p := netconn.Bunchnet().Bunch
	p.Write(&w, &bunch.Header{ChIndex: 9, Bits: 16}, []byte{1, 2})
	handler.WriteTerminator(&w)
	plain := w.Bytes()
	coded := func(k int, c coding.Cover, size int, repaired uint32) []byte {
		q := append(bytes.Clone(plain), bytes.Repeat([]byte{5}, k*size)...)
		return coding.AppendEnd(q, k, c, size, repaired)
	}
	var buf bytes.Buffer
	out, err := NewWriter(&buf, time.Unix(1_700_000_000, 0))
	require.NoError(t, err)
	for i, data := range [][]byte{
		plain, coded(1, 0b111, 40, 0), coded(2, 0b101, 40, 0), coded(3, 0xffff, 200, 0x10), coded(1, 0xa001, 200, 0), coded(0, 0, 0, 0x30201),
		coding.AppendHello(nil, false), coding.AppendHello(nil, true), {1, 2, 3, 0x7f, 0x30, 0},
	} {
		out.TracePacket(&nettrace.Packet{At: time.Duration(i) * time.Millisecond, Sent: true, Local: netip.MustParseAddrPort("[::]:7777"),
			Remote: netip.MustParseAddrPort("[2001:db8::1]:4242"), Data: data})
	}
	require.NoError(t, out.Flush())
	file := filepath.Join(t.TempDir(), "coded.pcapng")
	require.NoError(t, os.WriteFile(file, buf.Bytes(), 0o644))
	rows := tshark(t, file, nil, []string{"bunchnet.malformed", "bunchnet.hello", "bunchnet.seq", "bunchnet.bunch.ch_index", "bunchnet.coding.symbols",
		"bunchnet.coding.size", "bunchnet.coding.covers", "bunchnet.coding.repaired"})
	for i := range rows { // newer releases print words
		for from, to := range map[string]string{"True": "1", "False": "0"} {
			if rows[i][1] == from {
				rows[i][1] = to
			}
		}
	}
	require.Equal(t, [][]string{
		{"", "", "77", "9", "", "", "", ""},
		{"", "", "77", "9", "1", "40", "0x00000007", ""},
		{"", "", "77", "9", "2", "40", "0x00000005", ""},
		{"", "", "77", "9", "3", "200", "0x0000ffff", "0x00000010"},
		{"", "", "77", "9", "1", "200", "0x0000a001", ""},
		{"", "", "77", "9", "", "", "", "0x00030201"},
		{"", "0", "", "", "", "", "", ""},
		{"", "1", "", "", "", "", "", ""},
		{"a broken trailer", "", "", "", "", "", "", ""},
	}, rows)
}
