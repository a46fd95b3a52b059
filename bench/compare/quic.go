package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/quic-go/quic-go"
)

func quicPeers() []*Peer {
	streams := &Peer{Name: "quic", Note: "quic-go, one stream", Reliable: true}
	streams.Listen = func(o Options, h Handler) (Server, error) {
		return quicListen(o, func(c *quic.Conn) {
			s, err := c.AcceptStream(context.Background())
			if err == nil {
				newServerStream(s, o).read(h)
			}
		})
	}
	streams.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		c, err := quicDial(addr)
		if err != nil {
			return nil, err
		}
		s, err := c.OpenStream()
		if err != nil {
			return nil, err
		}
		m := newStream(quicStream{s, c})
		go m.read(h)
		return m, nil
	}
	datagrams := &Peer{Name: "quic-dgram", Note: "quic-go, datagrams", Unreliable: true}
	datagrams.Listen = func(o Options, h Handler) (Server, error) {
		return quicListen(o, func(c *quic.Conn) { quicDatagrams{c}.read(h) })
	}
	datagrams.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		c, err := quicDial(addr)
		if err != nil {
			return nil, err
		}
		go quicDatagrams{c}.read(h)
		return quicDatagrams{c}, nil
	}
	return []*Peer{streams, datagrams}
}

// quicStream is the only stream of a connection. Close ends the connection with it, and so every Write that waits for room:
// a stream's own Close must not be called beside a Write.
type quicStream struct {
	*quic.Stream
	c *quic.Conn
}

func (s quicStream) Close() error { return s.c.CloseWithError(0, "") }

func quicConfig() *quic.Config {
	return &quic.Config{EnableDatagrams: true, HandshakeIdleTimeout: dialTimeout, MaxIdleTimeout: time.Minute, MaxIncomingStreams: 8,
		InitialStreamReceiveWindow: 6 << 20, InitialConnectionReceiveWindow: 15 << 20} // what they would grow to; its sockets' buffers it sets to 7 MiB, or what the system allows
}

func quicListen(o Options, serve func(c *quic.Conn)) (Server, error) {
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	l, err := quic.ListenAddr(o.addr(), &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"compare"}, MinVersion: tls.VersionTLS13}, quicConfig())
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return listener{l.Addr().String(), l.Close}, nil
}

func quicDial(addr string) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	return quic.DialAddr(ctx, addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"compare"}, MinVersion: tls.VersionTLS13}, quicConfig())
}

// quicDatagrams is a connection on which a message is a datagram.
type quicDatagrams struct{ c *quic.Conn }

func (q quicDatagrams) Send(msg []byte) error { return q.c.SendDatagram(msg) }
func (q quicDatagrams) Flush() error          { return nil }
func (q quicDatagrams) Close() error          { return q.c.CloseWithError(0, "") }

func (q quicDatagrams) read(h Handler) {
	for {
		msg, err := q.c.ReceiveDatagram(context.Background())
		if err != nil {
			return
		}
		h(q, msg)
	}
}

// certificate makes one that nobody need trust.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
