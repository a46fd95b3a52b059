package packetnotify

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A fact is what the handler heard.
type fact struct {
	id    int64
	acked bool
}

// A simple is the model of one end: all it got, without any history, records or
// windows.
type simple struct {
	next, newest, known int64 // the id to send, the newest accepted, the newest of ours known
	got                 map[int64]bool
}

// A letter is a packet under way; the model's header is the whole truth.
type letter struct {
	b         []byte
	id, acked int64
	got       map[int64]bool // never changed once there
}

func (s *simple) accept(l *letter, ok bool) (heard []fact, accepted bool) {
	if l.id <= s.newest || l.acked < s.known {
		return nil, false
	}
	for ; s.known < l.acked; s.known++ {
		heard = append(heard, fact{s.known + 1, l.got[s.known+1]})
	}
	got := map[int64]bool{l.id: ok}
	for id := range s.got {
		got[id] = s.got[id]
	}
	s.newest, s.got = l.id, got
	return heard, true
}

type facts []fact

func (f *facts) PacketAcked(id int64) { *f = append(*f, fact{id, true}) }
func (f *facts) PacketLost(id int64)  { *f = append(*f, fact{id, false}) }

// A state is both ends, their models, and the letters to each. Copying it and the
// slices is enough to try two futures.
type state struct {
	ends   [2]Notify
	models [2]simple
	mail   [2][]letter
	story  string
}

func (s *state) clone() *state {
	c := *s
	for i := range c.ends {
		c.ends[i].records.acks = slices.Clone(c.ends[i].records.acks)
		c.mail[i] = slices.Clone(c.mail[i])
	}
	return &c
}

func (s *state) send(from int) {
	m := &s.models[from]
	w := bitio.NewWriter(make([]byte, 40))
	s.ends[from].WriteHeader(w)
	s.ends[from].Commit()
	s.mail[1-from] = append(s.mail[1-from], letter{w.Bytes(), m.next, m.newest, m.got})
	s.story += fmt.Sprintf(" send%d:%d", from, m.next)
	m.next++
}

// deliver hands letter i to an end. It stays in the mail, to be delivered again, or
// never: that is a loss.
func (s *state) deliver(t *testing.T, to, i int, ok bool) {
	l := &s.mail[to][i]
	s.story += fmt.Sprintf(" deliver%d:%d,%v", to, l.id, ok)
	r := bitio.NewReader(l.b, len(l.b)*8)
	var h Header
	err := h.Read(r)
	if err != nil {
		t.Fatal(s.story, err)
	}
	want, accepted := s.models[to].accept(l, ok)
	var got facts
	n := &s.ends[to]
	_, process := n.Update(&h, &got)
	if process != accepted {
		t.Fatalf("%s: accepted %v, want %v", s.story, process, accepted)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: heard %v, want %v", s.story, got, want)
	}
	if process {
		n.AckSeq(ok)
	}
	if n.InID() != s.models[to].newest || n.OutAckID() != s.models[to].known {
		t.Fatalf("%s: newest %d, known %d; want %d, %d", s.story, n.InID(), n.OutAckID(), s.models[to].newest, s.models[to].known)
	}
	checkInvariants(t, n, s.story)
}

func (s *state) explore(t *testing.T, depth int, count *int) {
	*count++
	if depth == 0 {
		return
	}
	for end := range s.ends {
		next := s.clone()
		next.send(end)
		next.explore(t, depth-1, count)
		for i := range s.mail[end] {
			next := s.clone()
			next.deliver(t, end, i, true)
			next.explore(t, depth-1, count)
		}
		if i := len(s.mail[end]) - 1; i >= 0 { // refuse only the newest: it is what acks wait for
			next := s.clone()
			next.deliver(t, end, i, false)
			next.explore(t, depth-1, count)
		}
	}
}

// Every order of sends and deliveries by both ends up to a depth: losses, duplicates
// and reorder are all among them, and so is the wrap of both sequences.
func TestExhaustive(t *testing.T) {
	depth := 7
	switch {
	case testing.Short():
		depth = 6
	case os.Getenv("CI") != "":
		depth = 8
	}
	for name, cfg := range worlds {
		s := &state{}
		for i, seqs := range [2][2]uint16{{16382, 0}, {0, 16382}} {
			s.ends[i].Init(cfg, seqs[0], seqs[1])
			in, out := int64(seqs[0]), int64(seqs[1])
			s.models[i] = simple{next: out, newest: in - 1, known: out - 1}
		}
		count := 0
		s.explore(t, depth, &count)
		t.Logf("%s: %d states", name, count)
	}
}
