package handshake

import (
	"math/rand/v2"
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

// gamePacket is a game packet of a client, of so many bytes.
func gamePacket(p Protocol, size int) []byte {
	w := bitio.NewWriter(make([]byte, 100))
	(&Component{Protocol: p, SessionID: 2, ClientID: 5}).WritePrefix(w)
	for range 8*size - w.Len() - 1 {
		w.WriteBool(false)
	}
	w.WriteBool(true)
	return w.Bytes()
}

// asker is a server, and what it has sent for game packets of unknown addresses.
type asker struct {
	*Server
	h       testHandler
	in, out int // bytes
}

func newAsker(t *testing.T, p Protocol, seed uint64) *asker {
	a := &asker{}
	var err error
	a.Server, err = NewServer(ServerConfig{Protocol: p, Handler: &a.h, SessionID: 2, Rand: rand.NewChaCha8([32]byte{byte(seed)})})
	require.NoError(t, err)
	return a
}

// game gives a game packet to the server, and returns how many bytes it answered.
func (a *asker) game(t *testing.T, now time.Duration, from netip.AddrPort, p []byte) (answered int) {
	a.UnknownGame(now, from, p)
	for _, b := range a.h.sent {
		answered += len(b)
	}
	a.h.sent = a.h.sent[:0]
	a.in, a.out = a.in+len(p), a.out+answered
	if a.out > a.in {
		require.FailNow(t, "amplified", "%d bytes for %d", a.out, a.in)
	}
	return answered
}

func unknown(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 9)
}

// TestSmallKeepAlivesBringARequest: a peer at a new address whose keep-alives are smaller than a restart request gets one after some
// of them, on average in no more bytes than it sent, whether others send as well or not. All requests together never have more bytes than the packets.
func TestSmallKeepAlivesBringARequest(t *testing.T) {
	for name, p := range protocols() {
		for _, others := range []int{0, 10} {
			for _, size := range []int{4, 9, 14} {
				a := newAsker(t, p, 1)
				keepAlive, of := gamePacket(p, size), gamePacket(p, 3)
				first, in, out := 0, 0, 0
				now := time.Hour
				for i := range 1000 {
					in += len(keepAlive)
					if out += a.game(t, now, here, keepAlive); out == 0 {
						first = i + 1
					}
					for j := range others {
						a.game(t, now, unknown(i*others+j), of)
					}
					now += 100 * time.Millisecond
				}
				require.Less(t, first, 60, "%s, %d bytes, %d others", name, size, others)
				require.LessOrEqual(t, out, in+in/5, "%s, %d bytes, %d others", name, size, others)
				require.Zero(t, a.Counters.RestartsLimited)
				require.EqualValues(t, a.out, int(a.Counters.RestartRequests)*a.restartBytes)
			}
		}
	}
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

// TestManyMovedPeersAreAsked: peers that have moved at once, as when a carrier's NAT starts again, and whose keep-alives are smaller than a restart request, are all
// asked to restart, however many, and also while somebody forges packets from any addresses, evenly or all at once in a second.
func TestManyMovedPeersAreAsked(t *testing.T) {
	p := Unreal51()
	keepAlive := gamePacket(p, 12)
	for _, v := range []struct {
		peers, forged, size, parts int // forged packets a second, in so many parts
		within                     time.Duration
	}{
		{1000, 0, 0, 5, 4 * time.Second}, {10, 340, 3, 5, 4 * time.Second}, {1000, 1000, 20, 5, 10 * time.Second}, {10, 20_000, 3, 5, 10 * time.Second}, {10, 20_000, 20, 5, 40 * time.Second},
		{10, 1024, 20, 1, 4 * time.Second}, {10, 20_000, 20, 1, 20 * time.Second},
	} {
		for seed := range uint64(3) {
			a := newAsker(t, p, seed)
			forged := gamePacket(p, max(v.size, 2))
			asked, next := make([]bool, v.peers), 0
			began := time.Hour
			now, left := began, v.peers
			for ; left > 0; now += 200 * time.Millisecond { // those that were asked are at their new address
				require.Less(t, now-began, v.within, "%+v: %d weren't asked", v, left)
				for range v.forged / v.parts {
					if (now-began)%time.Second >= time.Duration(v.parts)*200*time.Millisecond {
						break
					}
					next++
					a.game(t, now, unknown(1<<16+next), forged)
				}
				for i := range asked {
					if !asked[i] && a.game(t, now, unknown(i), keepAlive) > 0 {
						asked[i] = true
						left--
					}
				}
			}
			require.LessOrEqual(t, a.Counters.RestartRequests, uint64(1024*((now-began)/time.Second+1)))
		}
	}
}

// TestClockSetBack: a server whose now goes back still lets clients in.
func TestClockSetBack(t *testing.T) {
	for name, p := range protocols() {
		for _, back := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
			r := newRig(t, p, 1, 0)
			require.NoError(t, r.server.secrets.update(2*time.Hour))
			r.now = 2*time.Hour - back
			r.client.Start(r.now)
			for range 40 {
				r.step(100 * time.Millisecond)
			}
			require.Equal(t, Done, r.client.State(), "%s, %v back: %+v", name, back, r.server.Counters)
		}
	}
}
