package main

import (
	"net"

	"github.com/pion/logging"
	"github.com/pion/sctp"
	"github.com/pion/transport/v4/udp"
)

// sctpPeer is pion's SCTP over UDP, as under WebRTC but without DTLS.
func sctpPeer() *Peer {
	p := &Peer{Name: "sctp", Note: "pion, one ordered stream, over UDP without DTLS", Reliable: true}
	logs := logging.NewDefaultLoggerFactory()
	p.Listen = func(o Options, h Handler) (Server, error) {
		addr, err := net.ResolveUDPAddr("udp", o.addr())
		if err != nil {
			return nil, err
		}
		l, err := (&udp.ListenConfig{ReadBufferSize: socketBuffer, WriteBufferSize: socketBuffer}).Listen("udp", addr)
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					a, err := sctp.ServerWithOptions(sctp.WithNetConn(c), sctp.WithMaxReceiveBufferSize(socketBuffer), sctp.WithLoggerFactory(logs), sctp.WithBlockWrite(true))
					if err != nil {
						return
					}
					if s, err := a.AcceptStream(); err == nil {
						sctpConn{s, a}.read(h)
					}
				}()
			}
		}()
		return listener{l.Addr().String(), l.Close}, nil
	}
	p.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		c, err := net.Dial("udp", addr)
		if err != nil {
			return nil, err
		}
		_ = c.(*net.UDPConn).SetReadBuffer(o.buffer()) // the system's default serves too
		_ = c.(*net.UDPConn).SetWriteBuffer(o.buffer())
		a, err := sctp.ClientWithOptions(sctp.WithNetConn(c), sctp.WithMaxReceiveBufferSize(socketBuffer), sctp.WithLoggerFactory(logs), sctp.WithBlockWrite(true))
		if err != nil {
			return nil, err
		}
		s, err := a.OpenStream(1, sctp.PayloadTypeWebRTCBinary)
		if err != nil {
			return nil, err
		}
		m := sctpConn{s, a}
		go m.read(h)
		return m, nil
	}
	return p
}

// sctpConn sends each message as one of SCTP's own.
type sctpConn struct {
	s *sctp.Stream
	a *sctp.Association
}

func (c sctpConn) Send(msg []byte) error {
	_, err := c.s.WriteSCTP(msg, sctp.PayloadTypeWebRTCBinary)
	return err
}
func (c sctpConn) Flush() error { return nil }
func (c sctpConn) Close() error { return c.a.Close() }

func (c sctpConn) read(h Handler) {
	buf := make([]byte, maxMessage)
	for {
		n, _, err := c.s.ReadSCTP(buf)
		if err != nil {
			return
		}
		h(c, buf[:n])
	}
}
