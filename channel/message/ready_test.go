package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// blob is a message of any length up to 800 bytes.
type blob struct{ data []byte }

func (b *blob) Serialize(s *Stream) { s.Bytes(&b.data, 800) }

// held counts what a queue holds for its peer.
type held struct {
	budget
	n int
}

func (h *held) Hold(n int) error { h.n += n; return nil }
func (h *held) Release(n int)    { h.n -= n }
func (h *held) MaxHold() int     { return 1 << 20 }

// pair is a queue that sends blobs of a size to another, one a packet.
type pair struct {
	t    *testing.T
	a, b *Queue
	kind *Kind
	id   int64
}

func newPair(t *testing.T, cfg Config, sizes *Registry) *pair {
	var reg Registry
	kind := reg.Add("blob", func() Message { return new(blob) })
	p := &pair{t: t, kind: kind}
	cfg.Kinds = &reg
	p.a = New(cfg)
	cfg.Kinds = sizes
	p.b = New(cfg)
	return p
}

// send has a message arrive, or be lost.
func (p *pair) send(size int, lost bool) {
	require.NoError(p.t, p.a.Send(p.kind, &blob{data: make([]byte, size)}))
	w := bitio.NewWriter(make([]byte, 1000))
	require.Equal(p.t, 1, p.a.Write(0, w))
	p.a.Sent(p.id)
	p.id++
	if !lost {
		require.NoError(p.t, p.b.Read(bitio.NewReader(w.Bytes(), w.Len())))
	}
}

// TestFullQueueMovesNothing: a message that comes while Window of them wait for Receive takes the place of the oldest one, or is dropped; the others
// stay where they are in memory, so that each of a flood costs the same, however large the Window is.
func TestFullQueueMovesNothing(t *testing.T) {
	for _, mode := range []Mode{Unordered, Sequenced} {
		var reg Registry
		reg.Add("blob", func() Message { return new(blob) })
		p := newPair(t, Config{Mode: mode, Window: 64}, &reg)
		for range 64 {
			p.send(10, false)
		}
		for range 200 {
			before := make([]incoming, len(p.b.ready))
			copy(before, p.b.ready)
			p.send(10, false)
			moved := 0
			for i := range before {
				if p.b.ready[i].m != before[i].m {
					moved++
				}
			}
			require.Len(t, p.b.ready, 64)
			require.LessOrEqual(t, moved, 1, "mode %d", mode)
		}
		n := 0
		for m, k := p.b.Receive(); m != nil; m, k = p.b.Receive() {
			k.Free(m)
			n++
		}
		require.Equal(t, 64, n)
	}
}

// TestReusedMessagesCount: a message that is read into a used one counts what that one has room for, or a peer could make small messages hold the
// memory of large ones that came before.
func TestReusedMessagesCount(t *testing.T) {
	for _, mode := range []Mode{Ordered, Unordered, Sequenced} {
		var reg Registry
		reg.Add("blob", func() Message { return new(blob) })
		p := newPair(t, Config{Mode: mode}, &reg)
		mem := new(held)
		p.b.memory = mem
		var used []Message
		for range 100 {
			p.send(700, false)
			m, _ := p.b.Receive()
			used = append(used, m)
		}
		for _, m := range used {
			p.b.cfg.Kinds.kinds[0].Free(m)
		}
		base := mem.n
		if mode == Ordered {
			p.send(1, true) // the others wait for it
		}
		for range 100 {
			p.send(1, false)
		}
		require.Greater(t, mem.n-base, 100*700, "mode %d", mode)
		for range 2 { // what is received is counted no more
			for m, k := p.b.Receive(); m != nil; m, k = p.b.Receive() {
				k.Free(m)
			}
		}
		if mode != Ordered {
			require.LessOrEqual(t, mem.n, base+128*incomingSize, "mode %d", mode)
		}
	}
}
