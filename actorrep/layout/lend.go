package layout

import (
	"reflect"
	"unsafe"
)

// Memory is where ReadValue puts the strings and slices of a value that is used for a while and then read anew. Slices within slices
// aren't in it. The zero Memory is empty.
type Memory struct {
	text   []byte // of strings and byte slices
	slices []reflect.Value
	size   int
	depth  int // of the slices that are read
}

// minText is the room for strings that is made at first, in bytes.
const minText = 64

// bytes is memory for n bytes. What was lent before stays as it is, even when there is no room beside it.
func (m *Memory) bytes(n int) []byte {
	at := len(m.text)
	if cap(m.text)-at < n {
		m.text, at = make([]byte, 0, max(2*cap(m.text), n, minText)), 0
	}
	m.text = m.text[:at+n]
	return m.text[at : at+n : at+n]
}

// slice is zero memory for n elements of a slice unit.
func (m *Memory) slice(u *Unit, n int) sliceHeader {
	for len(m.slices) <= u.blob {
		m.slices = append(m.slices, reflect.Value{})
	}
	v := m.slices[u.blob]
	if !v.IsValid() {
		v = reflect.New(u.typ).Elem()
		m.slices[u.blob] = v
	}
	if v.Cap() < n {
		v.Set(reflect.MakeSlice(u.typ, n, n))
	}
	v.SetLen(n)
	h := *(*sliceHeader)(unsafe.Pointer(v.UnsafeAddr()))
	h.cap = n // who appends gets other memory
	return h
}

// Keep ends the use of the value: its strings and slices become zeros, and their memory is used for the next.
func (m *Memory) Keep() {
	clear(m.text)
	m.text, m.size = m.text[:0], cap(m.text)
	for _, v := range m.slices {
		if v.IsValid() {
			v.Clear()
			m.size += v.Cap() * int(v.Type().Elem().Size())
		}
	}
}

// Size is the bytes that were kept last.
func (m *Memory) Size() int { return m.size }
