package actorrep

import (
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type fuzzed struct {
	Base
	Pos   struct{ X, Y, Z float64 } `net:"q=0.01"`
	Name  string                    `net:""`
	List  []struct{ A, B uint16 }   `net:""`
	Bytes []byte                    `net:""`
	Few   uint8                     `net:"max=7"`
	Rot   [3]float32                `net:"rot=16"`
	V     Var[int32]                `net:""`
	More  bool                      `net:""`
	Bag   fastarray.List[uint16]    `net:""`
}

var fuzzCall = ServerRPC(func(Call, *fuzzed, struct {
	A []uint8
	B string
}) error {
	return nil
}, Reliable)

var fuzzNote = MulticastRPC(func(Call, *fuzzed, int32) error { return nil })

func fuzzWorld(t testing.TB, server bool) *World {
	w := NewClient(Config{})
	if server {
		w = NewServer(Config{})
	}
	if err := w.Register("fuzzed", (*fuzzed)(nil), RPCs{"Call": fuzzCall, "Note": fuzzNote}); err != nil {
		t.Fatal(err)
	}
	return w
}

// FuzzClient gives a client that knows the classes arbitrary bunches: an opening one, messages, records.
func FuzzClient(f *testing.F) {
	var buf [64]byte
	w := bitio.NewWriter(buf[:])
	w.WriteIntPacked(2)
	w.WriteIntPacked(0)
	w.WriteIntPacked(0)
	w.WriteUint32(5)
	w.WriteBits(0, 3+9)
	f.Add(w.Bytes(), []byte{1, 2, 3}, []byte{5, 0, 1, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, open, messages, records []byte) {
		server := fuzzWorld(t, true)
		data, n := server.encodeSchema()
		client := fuzzWorld(t, false)
		h := &replicationHandler{client: client.client}
		if err := h.message(bitio.NewReader(data, n)); err != nil {
			t.Fatal(err)
		}
		m := &mirror{world: client}
		client.client.mirrors = []*mirror{nil, m}
		for range 2 {
			in := &bunch.In{}
			in.Data.Reset(open, len(open)*8)
			m.ReceivedBunch(nil, in)
			in.Data.Reset(messages, len(messages)*8)
			m.ReceivedBunch(nil, in)
			in.PacketID++
			in.Data.Reset(records, len(records)*8)
			h.ReceivedBunch(nil, in)
			client.Step(0)
		}
		if client.Len() > 2 {
			t.Fatal("actors from nowhere")
		}
	})
}

// FuzzSchema reads arbitrary descriptions of classes.
func FuzzSchema(f *testing.F) {
	data, _ := fuzzWorld(f, true).encodeSchema()
	f.Add(data)
	f.Fuzz(func(t *testing.T, b []byte) {
		w := fuzzWorld(t, false)
		_, _ = w.readSchema(bitio.NewReader(b, len(b)*8))
		r := bitio.NewReader(b, len(b)*8)
		if m := layout.ReadSchema(r); m != nil {
			_ = m.Match(w.classes[0].layout)
		}
	})
}

// noOutlet is a connection that knows the time, and that nothing is sent on.
type noOutlet struct{ outlet }

func (noOutlet) now() time.Duration { return 0 }

// FuzzCalls gives a server what a client may send on an actor's channel.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{1, 4, 0})
	f.Add([]byte{1, 0x80, 0, 0, 0}) // a call that is right
	f.Fuzz(func(t *testing.T, b []byte) {
		w := fuzzWorld(t, true)
		a := &fuzzed{}
		if err := w.Spawn(a); err != nil {
			t.Fatal(err)
		}
		p := w.newPeer()
		p.out = noOutlet{}
		a.SetOwner(p)
		v := newView(p, &a.Base)
		_ = p.receiveCalls(v, bitio.NewReader(b, len(b)*8), nil)
	})
}
