package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// kind is the first three bits of a datagram.
type kind uint8

const (
	moves kind = iota
	reply
	snapshot
	clockRequest
	clockReply
	shot
	kinds
)

// path is a client's way to the server and back.
type path struct {
	up, down *netsim.Link
	sent     [kinds]int // bytes
	buf      [256]byte
}

func newPath(s netsim.Settings, seed uint64) (*path, error) {
	up, err := netsim.NewLink(s, 2*seed)
	if err != nil {
		return nil, err
	}
	down, err := netsim.NewLink(s, 2*seed+1)
	return &path{up: up, down: down}, err
}

// send makes a datagram of what write writes, if it writes anything.
func (p *path) send(now time.Duration, l *netsim.Link, k kind, write func(w *bitio.Writer) (bool, error)) error {
	w := bitio.NewWriter(p.buf[:])
	w.WriteBits(uint64(k), 3)
	ok, err := write(w)
	if err == nil {
		err = w.Err()
	}
	if err != nil || !ok {
		return err
	}
	p.sent[k] += len(w.Bytes())
	l.Push(now, w.Bytes())
	return nil
}

// receive hands out what has arrived.
func receive(now time.Duration, l *netsim.Link, f func(k kind, r *bitio.Reader) error) error {
	for d, ok := l.Pop(now); ok; d, ok = l.Pop(now) {
		r := bitio.NewReader(d, 8*len(d))
		k := kind(r.ReadBits(3))
		if k >= kinds {
			return fmt.Errorf("a datagram of kind %d", k)
		}
		if err := f(k, r); err != nil {
			return err
		}
	}
	return nil
}
