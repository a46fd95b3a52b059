package handshake

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// done is a rig whose client is connected.
func done(t *testing.T, p Protocol) *rig {
	r := newRig(t, p, 9, 0)
	r.client.Start(0)
	for range 5 {
		r.step(100 * time.Millisecond)
	}
	require.Equal(t, Done, r.client.State())
	return r
}

// TestNeedlessRestartEnds: a client that restarted for silence alone, and whose server has it where it is, stops asking: when the
// server answers with the connection's own cookie at once, as others do, and when game packets come again.
func TestNeedlessRestartEnds(t *testing.T) {
	for name, p := range protocols() {
		for _, by := range []string{"ack", "game packet"} {
			r := done(t, p)
			first := r.client.Result()
			sent := r.client.Counters.Sent
			r.now += time.Minute
			r.client.Restart(r.now)
			require.Equal(t, SendingInitial, r.client.State(), name)
			require.Equal(t, sent+1, r.client.Counters.Sent)
			if by == "ack" {
				w := bitio.NewWriter(make([]byte, 128))
				p.Write(w, &Packet{Type: Ack, MinVersion: p.MinVersion, CurVersion: p.Version, SessionID: 2, ClientID: 5, SecretID: true, Timestamp: -1, Cookie: Cookie{1, 2}}, make([]byte, 8))
				r.client.Receive(r.now, w.Bytes())
				require.Equal(t, SendingInitial, r.client.State(), "%s: another's cookie", name)
				w.Reset(make([]byte, 128))
				p.Write(w, &Packet{Type: Ack, MinVersion: p.MinVersion, CurVersion: p.Version, SessionID: 2, ClientID: 5, SecretID: true, Timestamp: -1, Cookie: first.Cookie}, make([]byte, 8))
				r.client.Receive(r.now, w.Bytes())
			} else {
				r.client.GamePacket(r.now)
			}
			require.Equal(t, Done, r.client.State(), "%s, %s", name, by)
			require.Equal(t, first, r.client.Result(), name)
			for range 600 { // a minute in which it asks no more
				r.now += 100 * time.Millisecond
				r.client.Tick(r.now)
			}
			require.LessOrEqual(t, r.client.Counters.Sent, sent+1, "%s, %s", name, by)
			r.client.Restart(r.now)
			require.Equal(t, SendingInitial, r.client.State(), "%s: it can again", name)
		}
	}
}

// TestSmallKeepAlivesBringARequest: a peer at a new address whose keep-alives are smaller than a restart request gets one after some
// of them, in no more bytes than it sent.
func TestSmallKeepAlivesBringARequest(t *testing.T) {
	for name, p := range protocols() {
		for _, size := range []int{4, 9, 14} {
			h := &testHandler{}
			s, err := NewServer(ServerConfig{Protocol: p, Handler: h, SessionID: 2})
			require.NoError(t, err)
			game := bitio.NewWriter(make([]byte, 100))
			(&Component{Protocol: p, SessionID: 2, ClientID: 5}).WritePrefix(game)
			game.WriteBytes(make([]byte, size-2))
			game.WriteBool(true)
			keepAlive := game.Bytes()
			now := time.Hour
			var in, out, requests [2]int
			for i := range 100 { // two peers in turn
				of := i % 2
				s.UnknownGame(now, netip.AddrPortFrom(here.Addr(), uint16(of)), keepAlive)
				in[of] += len(keepAlive)
				requests[of] += len(h.sent)
				for _, b := range h.sent {
					out[of] += len(b)
				}
				h.sent = nil
				require.LessOrEqual(t, out[of], in[of], "%s, %d bytes: amplified", name, size)
				now += 100 * time.Millisecond
			}
			require.NotZero(t, requests[0], "%s, %d bytes", name, size)
			require.NotZero(t, requests[1], "%s, %d bytes", name, size)
			require.EqualValues(t, requests[0]+requests[1], s.Counters.RestartRequests)
		}
	}
}

// TestOldBytesDontCount: what came long ago, or from others, doesn't make room for an answer.
func TestOldBytesDontCount(t *testing.T) {
	h := &testHandler{}
	s, err := NewServer(ServerConfig{Protocol: Unreal51(), Handler: h})
	require.NoError(t, err)
	for i := range 1000 {
		s.UnknownGame(time.Duration(i)*creditLife, here, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1})
	}
	for i := range 10_000 {
		s.UnknownGame(time.Hour*2, netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), 9), []byte{0, 0, 0, 0, 0, 0, 0, 1})
	}
	require.Empty(t, h.sent)
	require.EqualValues(t, 11_000, s.Counters.TooSmall)
}

// TestEndlessTimeout: with the longest timeout there is a client asks once a second, not in every tick.
func TestEndlessTimeout(t *testing.T) {
	sent := 0
	c, err := NewClient(ClientConfig{Timeout: setting.Longest, Send: func([]byte) { sent++ }})
	require.NoError(t, err)
	now := time.Hour
	c.Start(now)
	for range 600 {
		now += time.Second / 60
		c.Tick(now)
	}
	require.InDelta(t, 11, sent, 1)
	require.Equal(t, SendingInitial, c.State())
}
