package netconn

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/packetnotify"
)

type recordedPacket struct {
	Note      string
	Version   int    `json:"handshake_version"`
	Magic     uint32 `json:"magic"`
	MagicBits int    `json:"magic_bits"`
	Session   int    `json:"session_id"`
	Client    int    `json:"client_id"`
	Datagram  string
	Header    struct {
		Seq, AckedSeq uint16
		Words         int `json:"HistoryWordCount"`
		History       []uint32
		Info          int   `json:"bHasPacketInfoPayload"`
		Jitter        int   `json:"JitterClockMs"`
		FrameTime     int   `json:"bHasServerFrameTime"`
		FrameByte     uint8 `json:"FrameTimeByte"`
	}
	Bunches []struct {
		Reliable int    `json:"bReliable"`
		Open     int    `json:"bOpen"`
		ChIndex  uint32 `json:"ChIndex"`
		Seq      uint16 `json:"ChSequence"`
		DataBits int    `json:"DataBits"`
		Data     string `json:"Data"`
	}
}

// TestPacketVectors takes recorded datagrams apart, prefix to end marks, compares them, and puts
// them together again.
func TestPacketVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/packets.json")
	require.NoError(t, err)
	var f struct{ Vectors []recordedPacket }
	require.NoError(t, json.Unmarshal(b, &f))
	for i := range f.Vectors {
		checkPacket(t, fmt.Sprintf("vector %d: %s", i, f.Vectors[i].Note), &f.Vectors[i])
	}
	fmt.Printf("vectors packets.json: %d checked\n", len(f.Vectors))
}

func checkPacket(t *testing.T, where string, v *recordedPacket) {
	proto := handshake.Protocol{Version: uint8(v.Version), Magic: v.Magic, MagicBits: v.MagicBits}
	chain := handler.NewChain(&handshake.Component{Protocol: proto, SessionID: uint8(max(0, v.Session)), ClientID: uint8(max(0, v.Client))})
	datagram, err := hex.DecodeString(v.Datagram)
	require.NoError(t, err)
	var r bitio.Reader
	err = chain.Incoming(&r, datagram)
	require.NoError(t, err, where)
	r.StripTerminator()
	var h packetnotify.Header
	err = h.Read(&r)
	require.NoError(t, err, where)
	require.Equal(t, v.Header.Seq, h.Seq, where)
	require.Equal(t, v.Header.AckedSeq, h.AckedSeq, where)
	require.Equal(t, v.Header.Words, h.Words, where)
	for i, word := range v.Header.History {
		require.Equal(t, word, h.History.Word(i), where)
	}

	w := bitio.NewWriter(make([]byte, 2048))
	chain.Begin(w)
	h.Write(w)
	require.Equal(t, v.Header.Info == 1, r.ReadBool(), where)
	w.WriteBool(v.Header.Info == 1)
	if v.Header.Info == 1 {
		require.EqualValues(t, v.Header.Jitter, r.ReadBits(jitterClockBits), where)
		require.Equal(t, v.Header.FrameTime == 1, r.ReadBool(), where)
		w.WriteBits(uint64(v.Header.Jitter), jitterClockBits)
		w.WriteBool(v.Header.FrameTime == 1)
		if v.Header.FrameTime == 1 {
			require.Equal(t, v.Header.FrameByte, r.ReadUint8(), where)
			w.WriteUint8(v.Header.FrameByte)
		}
	}
	var p bunch.Protocol
	for j, want := range v.Bunches {
		var bh bunch.Header
		var payload bitio.Reader
		err := p.Read(&r, &bh, &payload)
		require.NoError(t, err, "%s, bunch %d", where, j)
		require.Equal(t, want.ChIndex, bh.ChIndex, where)
		require.Equal(t, want.DataBits, bh.Bits, where)
		require.Equal(t, want.Reliable == 1, bh.Reliable, where)
		require.Equal(t, want.Open == 1, bh.Open, where)
		if bh.Reliable {
			require.Equal(t, want.Seq, bh.WireSeq, where)
		}
		data := make([]byte, (bh.Bits+7)/8)
		payload.ReadBitsTo(data, bh.Bits)
		require.Equal(t, want.Data, hex.EncodeToString(data), where)
		p.Write(w, &bh, data)
	}
	require.Zero(t, r.Remaining(), where)
	w.WriteBool(true)
	chain.End(w)
	require.Equal(t, v.Datagram, hex.EncodeToString(w.Bytes()), where)
}

// TestSessionVectors decodes a whole recorded session with 5 % loss, both directions, bunch by bunch.
func TestSessionVectors(t *testing.T) {
	f, err := os.Open("testdata/session_dump_5pct.jsonl")
	require.NoError(t, err)
	defer f.Close()
	proto := handshake.Unreal51()
	var p bunch.Protocol
	lines, handshakes, bunches := 0, 0, 0
	for scan := bufio.NewScanner(f); scan.Scan(); lines++ {
		var l struct{ Dir, Hex string }
		require.NoError(t, json.Unmarshal(scan.Bytes(), &l))
		b, err := hex.DecodeString(l.Hex)
		require.NoError(t, err)
		where := fmt.Sprintf("line %d, %s", lines+1, l.Dir)
		if proto.IsHandshake(b) {
			_, err := proto.Read(b, l.Dir == "s>c")
			require.NoError(t, err, where)
			handshakes++
			continue
		}
		chain := handler.NewChain(&anyPrefix{proto})
		var r bitio.Reader
		err = chain.Incoming(&r, b)
		require.NoError(t, err, where)
		r.StripTerminator()
		err = new(packetnotify.Header).Read(&r)
		require.NoError(t, err, where)
		if r.ReadBool() {
			r.ReadBits(jitterClockBits)
			r.ReadBool()
		}
		for r.Remaining() > 0 {
			var h bunch.Header
			err := p.Read(&r, &h, new(bitio.Reader))
			require.NoError(t, err, where)
			bunches++
		}
	}
	require.GreaterOrEqual(t, handshakes, 4)
	require.Greater(t, bunches, 300)
	t.Logf("%d handshake packets, %d bunches", handshakes, bunches)
	fmt.Printf("vectors session_dump_5pct.jsonl: %d checked\n", lines)
}

// anyPrefix takes a game packet's prefix whatever its ids: this peer's client carries 0 at first.
type anyPrefix struct{ proto handshake.Protocol }

func (a *anyPrefix) ReservedBits() int                { return 6 }
func (a *anyPrefix) WritePrefix(*bitio.Writer)        {}
func (a *anyPrefix) ReadPrefix(r *bitio.Reader) error { r.Skip(6); return r.Err() }
