package main

import (
	"errors"
	"net/netip"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// wire is a socket with a clock for one machine.
type wire struct {
	socket udp.Socket
	epoch  time.Time
	in     []udp.Message
	out    [1]udp.Message
	sealed []byte
	errs   int
}

func newWire(addr string) (*wire, error) {
	s, err := udp.Listen(addr, udp.Config{})
	if err != nil {
		return nil, err
	}
	w := &wire{socket: s, epoch: time.Now(), in: make([]udp.Message, s.BatchSize())}
	for i := range w.in {
		w.in[i].Buf = make([]byte, 1300)
	}
	return w, nil
}

func (w *wire) now() time.Duration { return time.Since(w.epoch) }

// Send writes a datagram; what the system refuses is lost, as on the network.
func (w *wire) Send(to netip.AddrPort, p []byte) {
	w.out[0] = udp.Message{Buf: p, Addr: to}
	if _, err := w.socket.WriteBatch(w.out[:]); err != nil {
		w.errs++
	}
}

// receive takes in what comes within d.
func (w *wire) receive(d time.Duration, f func(from netip.AddrPort, p []byte)) error {
	if err := w.socket.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	n, err := w.socket.ReadBatch(w.in)
	for _, m := range w.in[:n] {
		f(m.Addr, m.Data())
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) || udp.IsTemporary(err) {
		return nil
	}
	return err
}

// room is a copy of p with room to seal it.
func (w *wire) room(p []byte) []byte {
	w.sealed = append(w.sealed[:0], make([]byte, netcode.Headroom)...)
	w.sealed = append(w.sealed, p...)
	w.sealed = append(w.sealed, make([]byte, netcode.Tailroom)...)
	return w.sealed[:netcode.Headroom+len(p)]
}
