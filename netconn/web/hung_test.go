//go:build !js

package web

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// hung is a server of WebTransport that never answers a request, as one behind a path that went dark with it. It returns the URL, and asked gets each request.
func hung(t *testing.T) (url string, asked chan struct{}, cfg DialConfig) {
	cert, hash, err := NewCertificate(time.Now())
	require.NoError(t, err)
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	asked = make(chan struct{}, 100)
	over := make(chan struct{})
	h3 := &http3.Server{TLSConfig: http3.ConfigureTLSConfig(tlsOf(cert)), QUICConfig: quicConfig(),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			asked <- struct{}{}
			<-over
		})}
	webtransport.ConfigureHTTP3Server(h3)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = h3.Serve(pc)
	}()
	t.Cleanup(func() {
		close(over)
		_ = h3.Close()
		_ = pc.Close()
		<-served
	})
	return "https://" + pc.LocalAddr().String() + "/bunchnet", asked, DialConfig{CertificateHash: hash}
}

// await waits for a request.
func await(t *testing.T, asked <-chan struct{}) {
	select {
	case <-asked:
	case <-time.After(patience):
		t.Error("nobody asks")
	}
}

// TestCloseAmidARequest: an attempt whose request nobody answers ends with Close, and after dialTime.
func TestCloseAmidARequest(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		url, asked, cfg := hung(t)
		c, err := Dial(t.Context(), url, cfg)
		require.NoError(t, err)
		await(t, asked)
		began := time.Now()
		require.NoError(t, c.Close())
		require.Less(t, time.Since(began), 3*time.Second)
	})
	t.Run("ladder", func(t *testing.T) {
		t.Parallel()
		url, asked, cfg := hung(t)
		l, err := DialBest(t.Context(), LadderConfig{URL: url, Ways: []Way{WebTransport}, Dial: cfg})
		require.NoError(t, err)
		await(t, asked)
		began := time.Now()
		require.NoError(t, l.Close())
		require.Less(t, time.Since(began), 3*time.Second)
	})
	t.Run("nobody answers", func(t *testing.T) {
		t.Parallel()
		url, _, cfg := hung(t)
		c, err := Dial(t.Context(), url, cfg)
		require.NoError(t, err)
		select {
		case <-c.settled:
		case <-time.After(dialTime + 3*time.Second):
			t.Error("still no ErrNoSession")
		}
		require.NoError(t, c.Close())
	})
}

// TestMovesBesideAHungRequest: a ladder whose WebTransport nobody answers moves as soon as its WebSocket breaks.
func TestMovesBesideAHungRequest(t *testing.T) {
	m := newMoving(t)
	url, asked, cfg := hung(t)
	m.cfg.Ways, m.cfg.URL = []Way{WebTransport, WebSocket}, url
	m.cfg.Token, m.cfg.Dial = m.token(7), cfg
	m.tcp.mu.Lock() // who answers by WebSocket earlier ends the attempt before it asks
	l, err := DialBest(t.Context(), m.cfg)
	if err == nil {
		await(t, asked)
	}
	m.tcp.mu.Unlock()
	require.NoError(t, err)
	p := m.dialOver(l, driver.Config{Link: driver.Netcode{Token: m.cfg.Token}})
	m.until("it plays", func() bool { return p.conn != nil && p.own() != nil })
	m.tcp.reset()
	began := time.Now()
	m.until("it has moved", func() bool { return l.Moved() > 0 })
	require.Less(t, time.Since(began), 3*time.Second)
	m.echoed(p, func() {})
}
