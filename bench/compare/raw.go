package main

import (
	"net"
	"net/netip"
)

// rawPeer is datagrams without anything: the floor.
func rawPeer() *Peer {
	p := &Peer{Name: "udp", Note: "net.UDPConn, no protocol: the floor", Unreliable: true}
	p.Listen = func(o Options, h Handler) (Server, error) {
		conn, err := rawSocket(o, socketBuffer)
		if err != nil {
			return nil, err
		}
		go func() {
			buf := make([]byte, maxMessage)
			for {
				n, from, err := conn.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				h(rawConn{conn, from}, buf[:n])
			}
		}()
		return listener{conn.LocalAddr().String(), conn.Close}, nil
	}
	p.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		to, err := netip.ParseAddrPort(addr)
		if err != nil {
			return nil, err
		}
		conn, err := rawSocket(o, o.buffer())
		if err != nil {
			return nil, err
		}
		c := rawConn{conn, to}
		go func() {
			buf := make([]byte, 2048)
			for {
				n, _, err := conn.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				h(c, buf[:n])
			}
		}()
		return c, nil
	}
	return p
}

func rawSocket(o Options, buffer int) (*net.UDPConn, error) {
	addr, err := net.ResolveUDPAddr("udp", o.addr())
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err == nil {
		_ = conn.SetReadBuffer(buffer) // the system's default serves too
		_ = conn.SetWriteBuffer(buffer)
	}
	return conn, err
}

type rawConn struct {
	conn *net.UDPConn
	to   netip.AddrPort
}

func (c rawConn) Send(msg []byte) error {
	_, err := c.conn.WriteToUDPAddrPort(msg, c.to)
	return err
}
func (c rawConn) Flush() error { return nil }
func (c rawConn) Close() error { return c.conn.Close() }
