package dissector

import (
	"errors"
	"strings"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// prefs is the preferences of the naive decoder below.
type prefs map[string]uint32

// record is a bunch's or a packet's values by key; a repeated one's last.
type record map[string]any

// decode reads fields as the description says, with nothing of the engine but bits.
func decode(r *bitio.Reader, fields []Field, p prefs, v record) error {
	for _, f := range fields {
		if !present(f, p, v) {
			continue
		}
		n := 1
		if f.Repeat != "" {
			n = int(v[f.Repeat].(uint32)) + 1
		}
		for range n {
			v[f.Key] = value(r, f, p, v)
			if r.Err() != nil {
				return r.Err()
			}
		}
	}
	return nil
}

func value(r *bitio.Reader, f Field, p prefs, v record) any {
	size := f.Size
	switch size {
	case MaxPacketBits:
		size = 8 * int(p["max_packet"])
	case MagicBits:
		size = int(p["magic_bits"])
	case SequenceBits:
		size = int(p["sequence_bits"])
	}
	switch f.Encoding {
	case Bool:
		return r.ReadBool()
	case Bits:
		return uint32(r.ReadBits(size))
	case Int:
		return r.ReadInt(uint32(size))
	case Packed:
		return r.ReadIntPacked()
	case Text:
		return r.ReadString(64)
	case Signed:
		return int32(r.ReadUint32())
	}
	n := int(v["bits"].(uint32))
	b := make([]byte, (n+7)/8)
	if n > r.Remaining() {
		r.Fail(errors.New("cut"))
		return b
	}
	r.ReadBitsTo(b, n)
	return b
}

func present(f Field, p prefs, v record) bool {
	for _, c := range f.All {
		if !holds(c, p, v) {
			return false
		}
	}
	for _, c := range f.Any {
		if holds(c, p, v) {
			return true
		}
	}
	return len(f.Any) == 0
}

func holds(c string, p prefs, v record) bool {
	if rest, ok := strings.CutPrefix(c, "!"); ok {
		return !holds(rest, p, v)
	}
	if key, ok := strings.CutPrefix(c, "pref."); ok {
		return p[key] != 0
	}
	b, _ := v[c].(bool)
	return b
}
