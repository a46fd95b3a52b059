//go:build !wasm

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// plain reads and writes one datagram a call, on systems other than Linux.
type plain struct {
	conn *net.UDPConn

	mu       sync.Mutex // the connection's deadline is ReadBatch's, or TryReadBatch's own
	deadline time.Time  // of ReadBatch
}

func (s *plain) LocalAddr() netip.AddrPort {
	return unmap(s.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}
func (s *plain) BatchSize() int { return batchSize }
func (s *plain) Close() error   { return s.conn.Close() }

func (s *plain) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	return s.conn.SetReadDeadline(t)
}

func (s *plain) ReadBatch(msgs []Message) (int, error) {
	if len(msgs) == 0 {
		return 0, nil
	}
	if err := s.await(); err != nil {
		return 0, err
	}
	if err := s.read(&msgs[0]); err != nil {
		return 0, err
	}
	n, err := s.TryReadBatch(msgs[1:])
	return n + 1, err
}

// await gives the connection ReadBatch's deadline. From then on SetReadDeadline ends the read.
func (s *plain) await() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.SetReadDeadline(s.deadline)
}

func (s *plain) read(m *Message) (err error) {
	m.N, m.Addr, err = s.conn.ReadFromUDPAddrPort(m.Buf)
	m.Addr, m.lent = unmap(m.Addr), nil
	return err
}

func (s *plain) TryReadBatch(msgs []Message) (int, error) {
	s.mu.Lock() // nobody sets another deadline meanwhile
	defer s.mu.Unlock()
	for i := range msgs {
		if err := s.conn.SetReadDeadline(time.Now().Add(time.Microsecond)); err != nil {
			return i, err
		}
		if err := s.read(&msgs[i]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return i, nil
			}
			return i, err
		}
	}
	return len(msgs), nil
}

func (s *plain) WriteBatch(msgs []Message) (int, error) {
	for i := range msgs {
		if _, err := s.conn.WriteToUDPAddrPort(msgs[i].Buf, msgs[i].Addr); err != nil {
			return i, err
		}
	}
	return len(msgs), nil
}
