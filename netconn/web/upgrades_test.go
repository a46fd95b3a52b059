//go:build !js

package web

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
)

// headers is a HEADERS frame of HTTP/3, its fields as literals.
func headers(fields ...[2]string) []byte {
	block := []byte{0, 0}
	for _, f := range fields {
		if n := len(f[0]); n < 7 {
			block = append(block, 0x20|byte(n))
		} else {
			block = append(block, 0x27, byte(n-7))
		}
		block = append(block, f[0]...)
		block = append(append(block, byte(len(f[1]))), f[1]...)
	}
	return append(quicvarint.Append([]byte{1}, uint64(len(block))), block...)
}

// TestRequestsWithoutSettings: requests for WebTransport on a connection that never says its SETTINGS, for which they wait, keep nobody out.
func TestRequestsWithoutSettings(t *testing.T) {
	const half = 8
	g := newGame(t, driver.Config{}, ServerConfig{MaxHalfOpen: half})
	host := strings.TrimSuffix(strings.TrimPrefix(g.door.url, "https://"), "/bunchnet")
	c, err := quic.DialAddr(t.Context(), host, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}},
		&quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, KeepAlivePeriod: time.Second})
	require.NoError(t, err)
	ask := headers([2]string{":method", "CONNECT"}, [2]string{":protocol", "webtransport"}, [2]string{":scheme", "https"}, [2]string{":authority", host}, [2]string{":path", "/bunchnet"})
	for range half {
		s, err := c.OpenStreamSync(t.Context())
		require.NoError(t, err)
		_, err = s.Write(ask)
		require.NoError(t, err)
	}
	time.Sleep(300 * time.Millisecond) // they are all there
	p, err := Dial(context.Background(), g.door.url, DialConfig{Way: WebSocket, CertificateHash: g.door.hash})
	require.NoError(t, err)
	eventually(t, "a player comes in, or hears that he doesn't", func() bool { return g.door.Len() == 1 || p.in.Failed() != nil })
	require.NoError(t, p.in.Failed())
	require.Zero(t, g.door.Counters().TooManyHalfOpen)
	require.NoError(t, p.Close())
	require.NoError(t, c.CloseWithError(0, ""))
}
