//go:build !js

package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestCapsules: strangers who speak HTTP/3 and WebTransport's capsules wrongly, without end, or with settings of their own end with their session or
// connection, keep no place, and disturb no player.
func TestCapsules(t *testing.T) {
	s, err := NewServer(ServerConfig{HalfOpen: 500 * time.Millisecond, Idle: 2 * patience, Burst: 1000})
	require.NoError(t, err)
	s.idle = time.Second
	d := s.door(t, nil)
	player := d.dial(WebTransport)
	from := hello(t, d, player)
	_, err = d.WriteBatch([]udp.Message{{Buf: []byte("welcome"), Addr: from}})
	require.NoError(t, err)
	at, err := url.Parse(d.url)
	require.NoError(t, err)
	varints := func(all ...uint64) (p []byte) {
		for _, v := range all {
			p = quicvarint.Append(p, v)
		}
		return p
	}
	const (
		webTransport = 0x2c7cf000 // the setting
		closeSession = 0x2843
		maxData      = 0x190b4d3d
		streamsLimit = 0x190b4d3f
		blocked      = 0x190b4d43
	)
	right := map[uint64]uint64{webTransport: 1}
	var strangers sync.WaitGroup
	for name, c := range map[string]struct {
		settings map[uint64]uint64
		capsules []byte // one data frame of HTTP/3's, or of none
		again    bool   // until the session has ended
		streams  []byte // on each stream that it may open
	}{
		"no setting of WebTransport":       {settings: map[uint64]uint64{}},
		"settings of everything":           {settings: map[uint64]uint64{webTransport: 1 << 60, 0x2b61: 1<<62 - 1, 0x2b64: 1<<62 - 1, 0x2b65: 1<<62 - 1, 0x21: 7}},
		"capsules nobody knows":            {settings: right, capsules: bytes.Repeat(varints(0x17, 0), 500), again: true},
		"a capsule of 4 EiB":               {settings: right, capsules: append(varints(0x17, 1<<62-1), make([]byte, 1000)...), again: true},
		"a close of 4 EiB":                 {settings: right, capsules: append(varints(closeSession, 1<<62-1), make([]byte, 1000)...), again: true},
		"a close without its number":       {settings: right, capsules: varints(closeSession, 0)},
		"a close of bytes that are none":   {settings: right, capsules: append(varints(closeSession, 8, 1), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		"a close, and more":                {settings: right, capsules: bytes.Repeat(append(varints(closeSession, 5), 0, 0, 0, 1, 'x'), 100), again: true},
		"data beyond all numbers":          {settings: right, capsules: bytes.Repeat(varints(maxData, 8, 1<<62-1), 100), again: true},
		"streams that go down":             {settings: right, capsules: varints(streamsLimit, 4, 1<<29, streamsLimit, 1, 0), again: true},
		"blocked without end":              {settings: right, capsules: bytes.Repeat(varints(blocked, 1, 1), 300), again: true},
		"half a capsule":                   {settings: right, capsules: varints(maxData, 8)},
		"streams of sessions there aren't": {settings: right, streams: varints(0x41, 4000)},
		"streams of no session's number":   {settings: right, streams: varints(0x41, 3)},
		"streams that say nothing":         {settings: right, streams: []byte{0x40}},
	} {
		conf := tlsConfig(d.hash)
		conf.NextProtos = []string{"h3"}
		conn, err := quic.DialAddr(t.Context(), at.Host, conf, &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, KeepAlivePeriod: 50 * time.Millisecond})
		require.NoError(t, err, name)
		defer func() { _ = conn.CloseWithError(0, "") }()
		client := (&http3.Transport{EnableDatagrams: true, AdditionalSettings: c.settings}).NewClientConn(conn)
		str, err := client.OpenRequestStream(t.Context())
		require.NoError(t, err, name)
		require.NoError(t, str.SendRequestHeader(&http.Request{Method: http.MethodConnect, Proto: "webtransport-h3", Host: at.Host, URL: at, Header: http.Header{}}), name)
		strangers.Go(func() {
			for i := 0; c.streams != nil && i < 2*maxStreams; i++ {
				opening, done := context.WithTimeout(t.Context(), 200*time.Millisecond)
				s, err := conn.OpenStreamSync(opening)
				done()
				if err != nil {
					break
				}
				_, _ = s.Write(c.streams)
			}
			for err := error(nil); err == nil && c.capsules != nil; {
				if _, err = str.Write(c.capsules); !c.again {
					break
				}
			}
			_ = str.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, str); errors.Is(err, os.ErrDeadlineExceeded) { // the server ends it, and not the stranger
				t.Error("it is kept for ever: ", name)
			}
			select { // what isn't kept for a session is of no use
			case <-conn.Context().Done():
			case <-time.After(patience):
				t.Error("its connection is kept for ever: ", name)
			}
		})
	}
	strangers.Wait()
	eventually(t, "all have ended", func() bool { return d.Len() == 1 })
	require.Zero(t, d.Counters().NoPeer)
	_, err = player.WriteBatch([]udp.Message{{Buf: []byte("play"), Addr: from}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, mailbox.MaxDatagram)}}
	eventually(t, "the player plays on", func() bool {
		n, err := d.TryReadBatch(in)
		require.NoError(t, err)
		return n == 1 && strings.HasPrefix(string(in[0].Data()), "play")
	})
}
