package simtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name     string
		delivery Delivery
		received []uint32
		finds    string
		missing  int
	}{
		{"all in order", InOrder, []uint32{0, 1, 2, 3}, "", 0},
		{"the first ones", InOrder, []uint32{0, 1}, "", 2},
		{"a hole", InOrder, []uint32{0, 2}, "order", 0},
		{"twice", InOrder, []uint32{0, 0}, "order", 0},
		{"never sent", AtMostOnce, []uint32{4}, "order", 0},
		{"any order", ExactlyOnce, []uint32{3, 1, 0}, "", 1},
		{"once more", ExactlyOnce, []uint32{3, 1, 3}, "once", 0},
		{"some", AtMostOnce, []uint32{3, 1}, "", 0},
		{"one twice", AtMostOnce, []uint32{3, 3}, "once", 0},
		{"newer and newer", Newest, []uint32{1, 3}, "", 0},
		{"an older one", Newest, []uint32{3, 1}, "order", 0},
		{"all of which the sender isn't told", OrTold, []uint32{0, 1, 2, 3}, "", 0},
		{"not all, and nobody is told", OrTold, []uint32{0, 3}, "", 2},
		{"an older one though", OrTold, []uint32{3, 1}, "order", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewSimulation(1, nil)
			s := w.NewStream("stream", c.delivery)
			for range 4 {
				s.Sent()
			}
			for _, n := range c.received {
				s.Received(n)
			}
			if c.finds != "" {
				require.NotNil(t, w.Failure())
				require.Equal(t, c.finds, w.Failure().Checker)
				return
			}
			require.Nil(t, w.Failure())
			require.Equal(t, c.missing, s.Missing())
			s.Void()
			require.Zero(t, s.Missing())
		})
	}
}

// TestTold: what doesn't arrive is told, and what arrives isn't.
func TestTold(t *testing.T) {
	w := NewSimulation(1, nil)
	s := w.NewStream("stream", OrTold)
	for range 3 {
		s.Sent()
	}
	s.Received(1)
	s.Told()
	require.Equal(t, 1, s.Missing())
	s.Told()
	require.Zero(t, s.Missing())
	require.Nil(t, w.Failure())
	s.Told()
	require.Equal(t, "whole", w.Failure().Checker)
}

// TestValues: what others see of an object was set, is whole, doesn't grow older, and is there before calls that were made after it.
func TestValues(t *testing.T) {
	type look struct {
		field int
		value any
		mark  int // of a call; -1 for none
	}
	for _, c := range []struct {
		name  string
		looks []look
		finds string
	}{
		{"as they were set", []look{{0, 1, -1}, {1, "a", -1}, {0, 3, -1}, {1, "b", -1}}, ""},
		{"not all of them", []look{{0, 3, -1}, {0, 3, -1}}, ""},
		{"one that comes again", []look{{0, 2, -1}, {0, 1, -1}, {0, 3, -1}}, ""},
		{"an older one", []look{{0, 3, -1}, {0, 2, -1}}, "order"},
		{"half of one", []look{{1, "", -1}}, "whole"},
		{"never set", []look{{0, 9, -1}}, "whole"},
		{"before a call", []look{{0, 2, 3}, {1, "a", 3}}, ""},
		{"newer than a call", []look{{0, 3, 3}, {1, "b", 3}}, ""},
		{"a call before its value", []look{{0, 1, 3}}, ""}, // 1 was set again later
		{"a call too early", []look{{1, "a", 6}}, "calls"},
		{"an older one after a call", []look{{1, "b", 6}, {1, "a", -1}}, "order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewSimulation(1, nil)
			v := w.NewValues("thing", "Number", "Text")
			v.Set(0, 1)   // 1
			v.Set(1, "a") // 2
			v.Set(0, 2)   // 3
			v.Set(0, 2)
			require.EqualValues(t, 3, v.Mark())
			v.Set(0, 1)   // 4
			v.Set(0, 3)   // 5
			v.Set(1, "b") // 6
			s := v.NewSight("client1")
			for _, l := range c.looks {
				if l.mark < 0 {
					s.Sees(l.field, l.value)
				} else {
					s.Ran(uint32(l.mark), l.field, l.value)
				}
			}
			if c.finds == "" {
				require.Nil(t, w.Failure())
				return
			}
			require.NotNil(t, w.Failure())
			require.Equal(t, c.finds, w.Failure().Checker)
		})
	}
}

func TestFates(t *testing.T) {
	sent, acked, lost, got := nettrace.PacketSent, nettrace.PacketAcked, nettrace.PacketNak, nettrace.PacketReceived
	type event struct {
		kind nettrace.Kind
		id   int64
	}
	for _, c := range []struct {
		name    string
		events  []event // of one end
		peer    []event
		refused int
		ok      bool
	}{
		{"each once", []event{{sent, 7}, {sent, 8}, {acked, 7}, {lost, 8}}, []event{{got, 7}}, 0, true},
		{"refused", []event{{sent, 7}, {lost, 7}}, []event{{got, 7}}, 1, true},
		{"lost, but arrived", []event{{sent, 7}, {lost, 7}}, []event{{got, 7}}, 0, false},
		{"acked, but lost", []event{{sent, 7}, {acked, 7}}, nil, 0, false},
		{"twice", []event{{sent, 7}, {acked, 7}, {lost, 7}}, []event{{got, 7}}, 0, false},
		{"out of order", []event{{sent, 7}, {sent, 8}, {acked, 8}}, []event{{got, 8}}, 0, false},
		{"never sent", []event{{sent, 7}, {acked, 7}, {acked, 8}}, []event{{got, 7}, {got, 8}}, 0, false},
		{"id skipped", []event{{sent, 7}, {sent, 9}}, nil, 0, false},
		{"id skipped on purpose", []event{{sent, 7}, {nettrace.SequenceSkipped, 8}, {sent, 9}, {acked, 7}, {lost, 9}}, []event{{got, 7}}, 0, true},
		{"skipped, but acked", []event{{sent, 7}, {nettrace.SequenceSkipped, 8}, {acked, 7}, {acked, 8}}, []event{{got, 7}}, 0, false},
		{"processed twice", nil, []event{{got, 7}, {got, 9}, {got, 7}}, 0, false},
		{"late", nil, []event{{got, 700}, {got, 9}}, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewSimulation(1, nil)
			a, b := w.NewFates("a"), w.NewFates("b")
			for _, e := range c.events {
				a.Trace(&nettrace.Event{Kind: e.kind, PacketID: e.id})
			}
			for _, e := range c.peer {
				b.Trace(&nettrace.Event{Kind: e.kind, PacketID: e.id})
			}
			a.Compare(b, c.refused)
			require.Equal(t, c.ok, w.Failure() == nil, "%v", w.Failure())
		})
	}
}
