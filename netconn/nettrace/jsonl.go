package nettrace

import (
	"io"
	"strconv"
)

// JSONL is a Sink that writes events as lines of JSON. Use it in the goroutine that ticks the connection.
type JSONL struct {
	w   io.Writer
	buf []byte
	err error
}

const jsonlBuffer = 32 << 10

// NewJSONL returns a sink that writes to w. Call Flush at the end.
func NewJSONL(w io.Writer) *JSONL { return &JSONL{w: w, buf: make([]byte, 0, jsonlBuffer)} }

// Trace implements Sink. After an error of the writer nothing more is written.
func (j *JSONL) Trace(e *Event) {
	if j.err != nil {
		return
	}
	j.buf = append(e.AppendJSON(j.buf), '\n')
	if len(j.buf) > jsonlBuffer-maxJSON {
		j.Flush()
	}
}

// Flush writes the buffered lines and returns the first error of the writer.
func (j *JSONL) Flush() error {
	if j.err == nil && len(j.buf) > 0 {
		_, j.err = j.w.Write(j.buf)
		j.buf = j.buf[:0]
	}
	return j.err
}

// maxJSON is more than an event takes as JSON.
const maxJSON = 256

// AppendJSON appends the event to b as a JSON object.
func (e *Event) AppendJSON(b []byte) []byte {
	b = append(b, `{"at":`...)
	b = strconv.AppendFloat(b, e.At.Seconds(), 'f', 6, 64)
	b = append(b, `,"conn":`...)
	b = strconv.AppendUint(b, uint64(e.Conn), 10)
	b = append(b, `,"kind":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, '"')
	if e.PacketID != 0 {
		b = append(b, `,"packet":`...)
		b = strconv.AppendInt(b, e.PacketID, 10)
	}
	b = appendNonZero(b, `,"ch":`, uint64(e.ChIndex))
	if e.ChSequence != 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, e.ChSequence, 10)
	}
	b = appendNonZero(b, `,"bits":`, uint64(e.Bits))
	b = appendNonZero(b, `,"a":`, e.A)
	b = appendNonZero(b, `,"b":`, e.B)
	return append(b, '}')
}

func appendNonZero(b []byte, name string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), v, 10)
}

// String returns the event as JSON.
func (e Event) String() string { return string(e.AppendJSON(nil)) }
