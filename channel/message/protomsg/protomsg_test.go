package protomsg

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
)

// end is a queue with three kinds, one of them not protobuf.
type end struct {
	q     *message.Queue
	notes *Kind[*structpb.Struct]
	times *Kind[*timestamppb.Timestamp]
	plain *message.Kind
}

type plain struct{ n int32 }

func (p *plain) Serialize(s *message.Stream) { s.Int(&p.n, 0, 100) }

func newEnd() *end {
	r := new(message.Registry)
	e := &end{notes: Add[*structpb.Struct](r, 300), times: Add[*timestamppb.Timestamp](r, 0)}
	e.plain = r.Add("plain", func() message.Message { return new(plain) })
	e.q = message.New(message.Config{Kinds: r})
	return e
}

// packet carries what is due from one end to the other.
func packet(from, to *end, id int64) error {
	buf := make([]byte, 1000)
	var w bitio.Writer
	w.Reset(buf)
	from.q.Write(time.Duration(id)*time.Second, &w)
	from.q.Sent(id)
	var r bitio.Reader
	r.Reset(w.Bytes(), w.Len())
	err := to.q.Read(&r)
	from.q.Acked(id)
	return err
}

func TestBothWays(t *testing.T) {
	a, b := newEnd(), newEnd()
	note, err := structpb.NewStruct(map[string]any{"name": "Ann", "points": 7})
	require.NoError(t, err)
	at := &timestamppb.Timestamp{Seconds: 12, Nanos: 34}
	for i := range int64(3) { // the second time with messages used before
		require.NoError(t, Send(a.q, a.notes, note))
		require.NoError(t, Send(a.q, a.times, at))
		require.NoError(t, a.q.Send(a.plain, &plain{42}))
		require.NoError(t, packet(a, b, i))

		m, _ := b.q.Receive()
		got := m.(*Message[*structpb.Struct])
		require.True(t, proto.Equal(note, got.Proto), got.Proto)
		got.Free()
		m, kind := b.q.Receive()
		require.True(t, proto.Equal(at, m.(*Message[*timestamppb.Timestamp]).Proto))
		require.Equal(t, "google.protobuf.Timestamp", kind.Name())
		m, _ = b.q.Receive()
		require.Equal(t, &plain{42}, m)
	}
}

func TestRefused(t *testing.T) {
	a := newEnd()
	long, err := structpb.NewStruct(map[string]any{"x": strings.Repeat("y", 300)})
	require.NoError(t, err)
	require.ErrorIs(t, Send(a.q, a.notes, long), ErrTooLong)
	require.ErrorContains(t, a.q.Send(a.notes.Kind, &Message[*structpb.Struct]{kind: a.notes}), "protomsg.Send")
	require.Zero(t, a.q.Pending())

	r := new(message.Registry)
	r.Add("other", func() message.Message { return new(plain) })
	other := &end{q: message.New(message.Config{Kinds: r})}
	require.ErrorIs(t, Send(other.q, a.times, &timestamppb.Timestamp{}), message.ErrKind)
}

// TestForeign: the peer's registry says another type than ours.
func TestForeign(t *testing.T) {
	r := new(message.Registry)
	d := Add[*structpb.Struct](r, 300)
	r.Add("x", func() message.Message { return new(plain) })
	r.Add("y", func() message.Message { return new(plain) })
	a, b := &end{q: message.New(message.Config{Kinds: r})}, newEnd()
	w := d.New().(*Message[*structpb.Struct])
	w.buf, w.made = []byte{0x0a, 0xff}, true // a field longer than the message
	require.NoError(t, a.q.Send(d.Kind, w))
	err := packet(a, b, 1)
	require.ErrorIs(t, err, ErrDecode)
	require.ErrorIs(t, err, message.ErrFormat)
}

func FuzzRead(f *testing.F) {
	d, _ := proto.Marshal(durationpb.New(time.Hour))
	f.Add(d)
	f.Fuzz(func(_ *testing.T, p []byte) {
		var r bitio.Reader
		r.Reset(p, len(p)*8)
		_ = newEnd().q.Read(&r)
	})
}
