package main

import (
	"net"
	"sync"

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
					a, err := sctp.ServerWithOptions(sctp.WithNetConn(c), sctp.WithMTU(sctpMTU), sctp.WithMaxReceiveBufferSize(socketBuffer), sctp.WithLoggerFactory(logs))
					if err != nil {
						return
					}
					if s, err := a.AcceptStream(); err == nil {
						c := &sctpConn{s: s, a: a, closed: make(chan struct{})}
						if o.Rate == 0 {
							newServerStream(&sctpBytes{sctpConn: c}, o).read(h)
						} else {
							c.read(h)
						}
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
		a, err := sctp.ClientWithOptions(sctp.WithNetConn(c), sctp.WithMTU(sctpMTU), sctp.WithMaxReceiveBufferSize(socketBuffer), sctp.WithLoggerFactory(logs))
		if err != nil {
			return nil, err
		}
		s, err := a.OpenStream(1, sctp.PayloadTypeWebRTCBinary)
		if err != nil {
			return nil, err
		}
		m := &sctpConn{s: s, a: a, room: make(chan struct{}, 1), closed: make(chan struct{})}
		s.SetBufferedAmountLowThreshold(sctpBuffer / 2)
		s.OnBufferedAmountLow(func() {
			select {
			case m.room <- struct{}{}:
			default:
			}
		})
		if o.Rate == 0 {
			c := newStream(&sctpBytes{sctpConn: m})
			go c.read(h)
			return c, nil
		}
		go m.read(h)
		return m, nil
	}
	return p
}

const (
	sctpMTU = 1400 // as its peers
	// sctpBuffer is how many bytes a client may have written that aren't acked. Of blocking writes (WithBlockWrite) one is under way at a time,
	// so that small messages never share a packet.
	sctpBuffer = 4 << 20
)

// sctpConn sends each message as one of SCTP's own.
type sctpConn struct {
	s      *sctp.Stream
	a      *sctp.Association
	room   chan struct{} // a client's; nil at a server
	closed chan struct{}
	once   sync.Once
}

func (c *sctpConn) Send(msg []byte) error {
	for c.room != nil && c.s.BufferedAmount() > sctpBuffer {
		select {
		case <-c.room:
		case <-c.closed:
			return net.ErrClosed
		}
	}
	_, err := c.s.WriteSCTP(msg, sctp.PayloadTypeWebRTCBinary)
	return err
}

func (c *sctpConn) Flush() error { return nil }

func (c *sctpConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.a.Close()
}

func (c *sctpConn) read(h Handler) {
	buf := make([]byte, maxMessage)
	for {
		n, _, err := c.s.ReadSCTP(buf)
		if err != nil {
			return
		}
		h(c, buf[:n])
	}
}

// sctpBytes is messages of SCTP as a stream of bytes, for a stream of ours that gathers small messages in large ones.
type sctpBytes struct {
	*sctpConn
	buf, rest []byte
}

func (c *sctpBytes) Write(p []byte) (int, error) { return len(p), c.Send(p) }

func (c *sctpBytes) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.buf == nil {
			c.buf = make([]byte, maxMessage)
		}
		n, _, err := c.s.ReadSCTP(c.buf)
		if err != nil {
			return 0, err
		}
		c.rest = c.buf[:n]
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
