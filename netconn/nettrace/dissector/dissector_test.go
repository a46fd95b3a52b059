package dissector

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/packetnotify"
)

func TestCurrent(t *testing.T) {
	require.Equal(t, Generate(), Lua, "bunchnet.lua is old; run go generate ./netconn/nettrace/dissector")
}

// TestDefaultsAreBunchnets: without a preference the dissector reads netconn's default protocol.
func TestDefaultsAreBunchnets(t *testing.T) {
	p, checked := netconn.Bunchnet().Bunch, 0
	for _, pref := range Preferences {
		switch pref.Key {
		case "sequence_bits":
			require.EqualValues(t, p.Sequences(), pref.Default)
			checked++
		case "max_packet":
			require.EqualValues(t, p.PacketBits()/8, pref.Default)
			checked++
		}
	}
	require.Equal(t, 2, checked)
}

// TestNames: a condition may only name what comes before it.
func TestNames(t *testing.T) {
	known := map[string]bool{"from_server": true}
	for _, p := range Preferences {
		known["pref."+p.Key] = true
	}
	for _, fields := range [][]Field{Packet, Bunch} {
		here := map[string]bool{}
		for k := range known {
			here[k] = true
		}
		for _, f := range fields {
			require.False(t, here[f.Key], f.Key)
			for _, c := range append(append([]string{}, f.All...), f.Any...) {
				if c[0] == '!' {
					c = c[1:]
				}
				require.True(t, here[c], "%s depends on %s", f.Key, c)
			}
			here[f.Key] = true
		}
	}
}

// TestBunches writes random bunches with the engine and reads them as described.
func TestBunches(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	flip := func() bool { return rng.IntN(2) == 0 }
	for i := range 3000 {
		p := bunch.Protocol{CustomExportsFinal: flip(), MaxPacket: 1024, SequenceBits: []uint8{0, 10, 11, 12}[rng.IntN(4)]}
		h := bunch.Header{ChIndex: rng.Uint32() >> rng.IntN(32), Open: flip(), Close: flip(), ReplicationPaused: flip(), Reliable: flip(),
			HasPackageMapExports: flip(), HasMustBeMappedGUIDs: flip(), Partial: flip(), Bits: rng.IntN(2000)}
		if h.Close {
			h.CloseReason = bunch.CloseReason(rng.IntN(15))
		}
		if h.Partial {
			h.PartialInitial, h.PartialFinal, h.PartialCustomExportsFinal = flip(), flip(), flip() && p.CustomExportsFinal
		}
		if h.Reliable {
			h.WireSeq = uint16(rng.IntN(p.Sequences().Size()))
		}
		if h.Reliable || h.Open {
			if h.Name.Index = uint32(rng.IntN(400)); flip() {
				h.Name = bunch.Name{Text: "Chat", Number: int32(rng.Uint32())}
			}
		}
		payload := make([]byte, 250)
		for j := range payload {
			payload[j] = byte(rng.Uint32())
		}
		var w bitio.Writer
		w.Reset(make([]byte, 1024))
		w.WriteBits(0, rng.IntN(8))
		at := w.Len()
		p.Write(&w, &h, payload)
		require.NoError(t, w.Err())
		var r bitio.Reader
		r.Reset(w.Bytes(), w.Len())
		r.Skip(at)
		v := record{}
		pr := prefs{"max_packet": 1024, "sequence_bits": uint32(p.Sequences())}
		if p.CustomExportsFinal {
			pr["custom_exports_final"] = 1
		}
		require.NoError(t, decode(&r, Bunch, pr, v), "seed %d bunch %d", seed, i)
		require.Zero(t, r.Remaining())
		requireBunch(t, h, v)
		for j := range h.Bits {
			require.Equal(t, payload[j/8]>>(j%8)&1, v["payload"].([]byte)[j/8]>>(j%8)&1)
		}
	}
}

func requireBunch(t *testing.T, h bunch.Header, v record) {
	is := func(key string) bool { b, _ := v[key].(bool); return b }
	num := func(key string) uint32 { n, _ := v[key].(uint32); return n }
	got := bunch.Header{ChIndex: num("ch_index"), WireSeq: uint16(num("ch_sequence")), CloseReason: bunch.CloseReason(num("close_reason")),
		Open: is("open"), Close: is("close"), ReplicationPaused: is("paused"), Reliable: is("reliable"),
		HasPackageMapExports: is("exports"), HasMustBeMappedGUIDs: is("must_be_mapped"), Partial: is("partial"),
		PartialInitial: is("partial_initial"), PartialCustomExportsFinal: is("partial_exports_final"), PartialFinal: is("partial_final"), Bits: int(num("bits"))}
	got.Name.Index = num("name_index")
	if s, ok := v["name"].(string); ok {
		got.Name = bunch.Name{Text: s, Number: v["name_number"].(int32)}
	}
	require.Equal(t, h, got)
}

// TestPackets does the same with packet headers.
func TestPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for range 500 {
		h := packetnotify.Header{Seq: uint16(rng.IntN(1 << 14)), AckedSeq: uint16(rng.IntN(1 << 14)), Words: 1 + rng.IntN(8)}
		var w bitio.Writer
		w.Reset(make([]byte, 128))
		w.WriteBits(1|5<<2, 5)
		w.WriteBool(false)
		h.Write(&w)
		w.WriteBool(true)
		w.WriteBits(777, 10)
		w.WriteBool(true)
		w.WriteUint8(16)
		for _, server := range []bool{true, false} {
			var r bitio.Reader
			r.Reset(w.Bytes(), w.Len())
			v := record{"from_server": server}
			require.NoError(t, decode(&r, Packet, prefs{"handlers": 1, "ids": 1}, v))
			require.Equal(t, record{"from_server": server, "magic": uint32(0), "session": uint32(1), "client": uint32(5), "handshake": false,
				"history_words": uint32(h.Words - 1), "seq": uint32(h.Seq), "acked_seq": uint32(h.AckedSeq), "history": uint32(0),
				"has_packet_info": true, "jitter_clock": uint32(777), "has_server_frame_time": true}, without(v, "frame_time"))
			require.Equal(t, server, v["frame_time"] == uint32(16))
		}
	}
}

func without(v record, key string) record {
	c := record{}
	for k, x := range v {
		if k != key {
			c[k] = x
		}
	}
	return c
}
