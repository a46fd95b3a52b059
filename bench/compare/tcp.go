package main

import "net"

// tcpPeer is TCP as the system has it, with NoDelay (Go's default).
func tcpPeer() *Peer {
	p := &Peer{Name: "tcp", Note: "NoDelay, the system's congestion control", Reliable: true, TCP: true}
	p.Listen = func(o Options, h Handler) (Server, error) {
		l, err := net.Listen("tcp", o.addr())
		if err != nil {
			return nil, err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go newServerStream(c, o).read(h)
			}
		}()
		return listener{l.Addr().String(), l.Close}, nil
	}
	p.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		s := newStream(c)
		go s.read(h)
		return s, nil
	}
	return p
}
