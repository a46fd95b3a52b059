//go:build !js

package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestBriefSessions: a server, or what is before it, that ends each session as soon as something has come by it is dialed ever more seldom.
func TestBriefSessions(t *testing.T) {
	var sessions atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		sessions.Add(1)
		defer func() { _ = c.CloseNow() }()
		for {
			_, p, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if isProbe(p, probeAsk) || isProbe(p, probeMove) {
				_ = c.Write(r.Context(), websocket.MessageBinary, answerTo(nil, p))
				time.Sleep(20 * time.Millisecond) // until the client has read that
				_ = c.Write(r.Context(), websocket.MessageBinary, []byte("a packet"))
				time.Sleep(5 * time.Millisecond)
				return
			}
		}
	}))
	defer s.Close()
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: 1, Create: 1, Expire: 60, Timeout: 5, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:1")}, PrivateKey: netcode.Key{1}})
	require.NoError(t, err)
	l, err := DialBest(t.Context(), LadderConfig{WebSocketURL: s.URL, Ways: []Way{WebSocket}, Token: token})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		msgs := make([]udp.Message, 64)
		for i := range msgs {
			msgs[i].Buf = make([]byte, 1500)
		}
		for {
			if _, err := l.ReadBatch(msgs); err != nil {
				return
			}
		}
	}()
	time.Sleep(4 * time.Second)
	t.Log(sessions.Load(), l.String())
	require.LessOrEqual(t, sessions.Load(), int64(12))
	require.NoError(t, l.Close())
	<-done
}

// TestBriefOnce: brief sessions are forgotten when one has been of use.
func TestBriefOnce(t *testing.T) {
	m := mover{moved: time.Unix(1, 0), brief: fewBrief + 1}
	require.Equal(t, brokenPause, m.pause(m.moved.Add(briefTime-1), true))
	require.Zero(t, m.pause(m.moved.Add(briefTime), true))
	m.brief = fewBrief
	require.Zero(t, m.pause(m.moved, true))
	m.rounds = 2
	require.Equal(t, 2*roundPause, m.pause(m.moved, false))
}
