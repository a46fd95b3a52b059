package main

import "github.com/xtaci/kcp-go/v5"

// kcpWindow is how many packets kcp-go has in flight. With more it is faster over a long round trip, and slower over a short one, since an ack looks at all of them.
var kcpWindow = 1024

func kcpPeers() []*Peer {
	return []*Peer{
		kcpPeer("kcp", "turbo: nodelay 1, 10 ms, resend 2, no congestion window", 0, 0),
		kcpPeer("kcp-fec", "turbo with FEC 10+3", 10, 3),
	}
}

func kcpPeer(name, note string, data, parity int) *Peer {
	set := func(s *kcp.UDPSession, o Options) {
		s.SetNoDelay(1, 10, 2, 1)
		s.SetWindowSize(kcpWindow, kcpWindow)
		//lint:ignore SA1019 what waits shares packets; there is no other way to ask for that
		s.SetStreamMode(o.Rate == 0 || o.Batch || o.Together)
		_ = s.SetReadBuffer(o.buffer()) // a listener's sessions have the listener's socket
		_ = s.SetWriteBuffer(o.buffer())
		s.SetACKNoDelay(o.Rate > 0)
		s.SetWriteDelay(o.Rate == 0)
	}
	p := &Peer{Name: name, Note: note, Reliable: true}
	p.Listen = func(o Options, h Handler) (Server, error) {
		l, err := kcp.ListenWithOptions(o.addr(), nil, data, parity)
		if err != nil {
			return nil, err
		}
		_ = l.SetReadBuffer(socketBuffer) // the system's default serves too
		_ = l.SetWriteBuffer(socketBuffer)
		go func() {
			for {
				s, err := l.AcceptKCP()
				if err != nil {
					return
				}
				set(s, o)
				go newServerStream(s, o).read(h)
			}
		}()
		return listener{l.Addr().String(), l.Close}, nil
	}
	p.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		s, err := kcp.DialWithOptions(addr, nil, data, parity)
		if err != nil {
			return nil, err
		}
		set(s, o)
		c := newStream(s)
		go c.read(h)
		return c, nil
	}
	return p
}
