//go:build !js

package web

import (
	"fmt"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestCutMessage: a message whose session ends within it is no datagram.
func TestCutMessage(t *testing.T) {
	s, err := NewServer(ServerConfig{})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	site := httptest.NewServer(s)
	defer site.Close()
	addr := site.Listener.Addr().String()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", addr)
	_, err = c.Read(make([]byte, 500))
	require.NoError(t, err)
	_, err = c.Write([]byte{0x82, 0x80 | 100, 0, 0, 0, 0, 1, 2, 3})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return s.Len() == 0 }, 5*time.Second, time.Millisecond)
	msgs := []udp.Message{{Buf: make([]byte, 1500)}}
	n, err := s.TryReadBatch(msgs)
	require.NoError(t, err)
	require.Zero(t, n, "%x", msgs[0].Data())
}
