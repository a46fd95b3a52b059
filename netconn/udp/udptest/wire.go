package udptest

import (
	"net/netip"
	"slices"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Wire is a socket whose datagrams a test carries. TryReadBatch takes those of In, and WriteBatch appends to Out. Nothing comes to
// ReadBatch, which blocks.
type Wire struct {
	udp.Socket
	In, Out []udp.Message
}

// NewWire returns a Wire whose LocalAddr is addr.
func NewWire(addr netip.AddrPort) *Wire {
	s, _ := udp.Pair(addr, netip.MustParseAddrPort("127.0.0.1:9"))
	return &Wire{Socket: s}
}

// TryReadBatch implements udp.Socket.
func (w *Wire) TryReadBatch(msgs []udp.Message) (int, error) {
	n := min(len(msgs), len(w.In))
	for i, m := range w.In[:n] {
		msgs[i].Addr, msgs[i].N = m.Addr, copy(msgs[i].Buf, m.Buf)
	}
	w.In = w.In[n:]
	return n, nil
}

// WriteBatch implements udp.Socket.
func (w *Wire) WriteBatch(msgs []udp.Message) (int, error) {
	for _, m := range msgs {
		w.Out = append(w.Out, udp.Message{Buf: slices.Clone(m.Buf), Addr: m.Addr})
	}
	return len(msgs), nil
}
