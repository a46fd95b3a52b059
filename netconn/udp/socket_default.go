//go:build !linux && !wasm

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// Listen opens a socket at an address like ":7777", "127.0.0.1:0" (any free port) or "[::1]:7777".
func Listen(addr string, cfg Config) (Socket, error) {
	if cfg.ReusePort {
		return nil, ErrReusePort
	}
	cfg = cfg.filled()
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(cfg.ReadBuffer) // the system's default serves too
	_ = conn.SetWriteBuffer(cfg.WriteBuffer)
	return &plain{conn: conn}, nil
}

// plain reads and writes one datagram a call.
type plain struct {
	conn     *net.UDPConn
	deadline time.Time
}

func (s *plain) LocalAddr() netip.AddrPort {
	return unmap(s.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}
func (s *plain) BatchSize() int { return batchSize }
func (s *plain) Close() error   { return s.conn.Close() }

func (s *plain) SetReadDeadline(t time.Time) error {
	s.deadline = t
	return s.conn.SetReadDeadline(t)
}

func (s *plain) ReadBatch(msgs []Message) (int, error) {
	if len(msgs) == 0 {
		return 0, nil
	}
	if err := s.conn.SetReadDeadline(s.deadline); err != nil {
		return 0, err
	}
	if err := s.read(&msgs[0]); err != nil {
		return 0, err
	}
	n, err := s.TryReadBatch(msgs[1:])
	return n + 1, err
}

func (s *plain) read(m *Message) (err error) {
	m.N, m.Addr, err = s.conn.ReadFromUDPAddrPort(m.Buf)
	m.Addr, m.lent = unmap(m.Addr), nil
	return err
}

func (s *plain) TryReadBatch(msgs []Message) (int, error) {
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
