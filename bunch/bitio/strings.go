package bitio

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteString writes s as an FString: 8-bit characters when it is all ASCII,
// UTF-16LE otherwise. Bytes of s that are no UTF-8 become U+FFFD. A NUL in s,
// which would end it early at the reader, is ErrValue.
func (w *Writer) WriteString(s string) {
	if s == "" {
		w.WriteUint32(0)
		return
	}
	if strings.IndexByte(s, 0) >= 0 {
		w.fail(ErrValue)
		return
	}
	ascii, units := true, 0
	for _, r := range s {
		ascii = ascii && r < utf8.RuneSelf
		units += max(1, utf16.RuneLen(r))
	}
	if ascii {
		w.WriteUint32(uint32(len(s) + 1))
		for i := range len(s) {
			w.WriteUint8(s[i])
		}
		w.WriteUint8(0)
		return
	}
	w.WriteUint32(uint32(-int32(units + 1)))
	for _, r := range s {
		if utf16.RuneLen(r) == 2 {
			hi, lo := utf16.EncodeRune(r)
			w.WriteUint16(uint16(hi))
			w.WriteUint16(uint16(lo))
		} else {
			w.WriteUint16(uint16(r))
		}
	}
	w.WriteUint16(0)
}

// ReadString reads an FString of at most maxLen characters or UTF-16 units, its
// NUL not counted. A longer one, or one that doesn't end in its only NUL, is
// ErrFormat. 8-bit characters from 0x80 up are read as Latin-1. The memory it takes
// is bounded by maxLen and by the bits that are really there.
func (r *Reader) ReadString(maxLen int) string {
	count, width := int64(int32(r.ReadUint32())), 8
	if count < 0 {
		count, width = -count, 16
	}
	if count == 0 || r.err != nil {
		return ""
	}
	if count-1 > int64(maxLen) {
		r.Fail(ErrFormat)
		return ""
	}
	if count*int64(width) > int64(r.Remaining()) {
		r.Fail(ErrShort)
		return ""
	}
	units := make([]uint16, count)
	for i := range units {
		units[i] = uint16(r.ReadBits(width))
		if (units[i] == 0) != (i == len(units)-1) {
			r.Fail(ErrFormat)
			return ""
		}
	}
	return string(utf16.Decode(units[:len(units)-1]))
}

// Printable returns a text that a peer said with a ? for each character that isn't printable: what a terminal obeys, ends a line, or turns
// the rest of it around. Errors and descriptions hold such texts in this form.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
