//go:build !js

package web

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
)

const (
	dialTime  = 10 * time.Second
	keepAlive = 5 * time.Second
)

// page is nothing outside of a browser, but how Close is told.
type page struct{ closing chan struct{} }

// dial makes the session on goroutines of its own.
func (c *Client) dial(ctx context.Context, to *url.URL, cfg DialConfig) {
	c.closing = make(chan struct{})
	c.wg.Go(func() {
		dialing, stop := context.WithTimeout(ctx, dialTime)
		defer stop()
		l, err := open(dialing, to, cfg)
		if err != nil {
			c.broken(fmt.Errorf("%w by %v: %w", ErrNoSession, cfg.Way, err))
			return
		}
		c.begun()
		c.carry(ctx, l)
	})
}

// carry sends and receives until the session has ended, and ends it.
func (c *Client) carry(ctx context.Context, l link) {
	defer context.AfterFunc(ctx, func() { l.close(errLeft) })() // a send that waits ends by that
	ended := make(chan struct{})
	c.wg.Go(func() {
		defer close(ended)
		c.receive(l)
	})
	c.send(ctx, l, ended)
	l.close(errLeft)
}

var errLeft = errors.New("the client has left")

func (c *Client) receive(l link) {
	for {
		p, err := l.receive(c.in)
		if err != nil {
			c.broken(fmt.Errorf("%w by %v: %w", ErrEnded, c.way, err))
			return
		}
		if len(p) > 0 {
			c.came(p)
		}
	}
}

// send sends what is written, until the session ends or Close is called.
func (c *Client) send(ctx context.Context, l link, ended <-chan struct{}) {
	var room []byte
	for last := false; !last; {
		select {
		case <-c.out.Ready:
		case <-c.closing:
			last = true
		case <-ended:
			return
		case <-ctx.Done():
			c.broken(fmt.Errorf("%w: %w", ErrEnded, ctx.Err()))
			return
		}
		for p := c.out.Pop(room); p != nil; p = c.out.Pop(room) {
			room = p
			err := l.send(p)
			if errors.Is(err, errLarge) {
				c.n.tooLarge.Add(1)
				continue
			}
			if err != nil {
				hearOut(ended)
				c.broken(fmt.Errorf("%w by %v: %w", ErrEnded, c.way, err))
				return
			}
			c.n.sent.Add(1)
		}
	}
}

// wrote is the browser's.
func (c *Client) wrote() {}

// close ends the session, or the attempt.
func (c *Client) close() {
	select {
	case <-c.closing:
		return
	default:
		close(c.closing)
	}
	if c.n.webTransports.Load()+c.n.webSockets.Load() == 0 {
		c.cancel()
	}
	late := time.AfterFunc(closeTime, c.cancel)
	c.wg.Wait()
	late.Stop()
	c.cancel()
}

func open(ctx context.Context, to *url.URL, cfg DialConfig) (link, error) {
	conf := tlsConfig(cfg.CertificateHash)
	if cfg.Way == WebSocket {
		client := &http.Client{CheckRedirect: redirects.Check, Transport: &http.Transport{TLSClientConfig: conf, Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: headerBytes}}
		b := &below{}
		conn, _, err := websocket.Dial(b.trace(ctx), to.String(), &websocket.DialOptions{HTTPClient: client, CompressionMode: websocket.CompressionDisabled})
		if err != nil {
			client.CloseIdleConnections()
			return nil, err
		}
		return socketLink{conn, b}, nil
	}
	quicConf := quicConfig()
	quicConf.KeepAlivePeriod = keepAlive
	begun := func() bool { return true }
	t := &webtransport.Transport{TLSClientConfig: conf, QUICConfig: quicConf, DialAddr: func(ctx context.Context, addr string, tls *tls.Config, conf *quic.Config) (*quic.Conn, error) {
		c, err := quic.DialAddrEarly(ctx, addr, tls, conf)
		if err == nil { // Dial waits for the answer to its request whatever ctx is
			begun = context.AfterFunc(ctx, func() { _ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") })
		}
		return c, err
	}}
	defer t.Close()
	if to.Port() == "" {
		with := *to
		with.Host += ":443"
		to = &with
	}
	response, session, err := t.Dial(ctx, to.String(), http.Header{})
	if !begun() {
		err = context.Cause(ctx)
	}
	if err != nil {
		if response != nil {
			err = fmt.Errorf("%w: %s", err, response.Status)
		}
		return nil, err
	}
	return sessionLink{session}, nil
}

// errCertificate is returned to a game that set CertificateHash when the server has another certificate.
var errCertificate = errors.New("web: the server's certificate isn't the one of DialConfig.CertificateHash; fetch the hash anew")

func tlsConfig(hash [sha256.Size]byte) *tls.Config {
	if hash == ([sha256.Size]byte{}) {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { // the hash says more than a name
		now := time.Now()
		if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != hash {
			return errCertificate
		}
		if leaf := s.PeerCertificates[0]; now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
			return x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired}
		}
		return nil
	}}
}
