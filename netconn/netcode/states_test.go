package netcode

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestFailureStates reaches every state that a client can end in, by the shortest way.
func TestFailureStates(t *testing.T) {
	cut := netsim.Settings{Loss: 100}
	for _, c := range []struct {
		want State
		play func(r *rig)
	}{
		{Disconnected, func(r *rig) {
			r.run(10)
			r.server.Disconnect(r.now, 0)
			r.run(3)
		}},
		{Denied, func(r *rig) { // the only slot is taken while the client is on its way
			r.fill()
			r.run(10)
		}},
		{RequestTimedOut, func(r *rig) {
			_, sent := r.up.Pop(time.Hour)
			require.True(r.t, sent)
			require.NoError(r.t, r.up.Set(cut))
			r.run(400)
		}},
		{ResponseTimedOut, func(r *rig) {
			r.run(400)
		}},
		{ConnTimedOut, func(r *rig) {
			r.run(10)
			require.NoError(r.t, r.down.Set(cut))
			r.run(400)
		}},
		{TokenExpired, func(r *rig) {
			_, sent := r.up.Pop(time.Hour)
			require.True(r.t, sent)
			require.NoError(r.t, r.up.Set(cut))
			r.client.token.timeout = -1 // waits for ever
			r.run(2000)
		}},
	} {
		t.Run(c.want.String(), func(t *testing.T) {
			r := newRig(t, 1, netsim.Settings{}, 1)
			require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
			if c.want == ResponseTimedOut { // the challenge arrives, the response doesn't
				p, _ := r.up.Pop(r.now)
				r.server.Receive(r.now, clientAddr, bytes.Clone(p))
				require.NoError(t, r.up.Set(cut))
			}
			c.play(r)
			require.Equal(t, c.want, r.client.State(), "%+v", r.server.Counters)
			require.Equal(t, c.want, r.states[len(r.states)-1])
			_, waits := r.client.NextDeadline()
			require.False(t, waits, "a machine at its end has nothing to wake for")
			require.ErrorIs(t, r.client.SendPayload(r.now, make([]byte, Headroom+1, 100)), ErrNotConnected)
		})
	}
	t.Run(InvalidToken.String(), func(t *testing.T) {
		good := token(t, 1, nil)
		for name, edit := range map[string]func(b []byte) []byte{
			"short":          func(b []byte) []byte { return b[:2047] },
			"long":           func(b []byte) []byte { return append(b, 0) },
			"version":        func(b []byte) []byte { b[9] = '9'; return b },
			"create later":   func(b []byte) []byte { b[28] = 0xff; return b },
			"no servers":     func(b []byte) []byte { b[1089] = 0; return b },
			"33 servers":     func(b []byte) []byte { b[1089] = 33; return b },
			"address type 0": func(b []byte) []byte { b[1093] = 0; return b },
			"address type 3": func(b []byte) []byte { b[1093] = 3; return b },
		} {
			r := newRig(t, 1, netsim.Settings{}, 1)
			require.Error(t, r.client.Connect(0, edit(bytes.Clone(good))), name)
			require.Equal(t, InvalidToken, r.client.State(), name)
		}
	})
}

func (r *rig) run(steps int) {
	for range steps {
		r.step()
	}
}

// fill takes all slots with other clients.
func (r *rig) fill() {
	for i := range len(r.server.slots) {
		r.join(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), 9), uint64(1000+i))
	}
}

// relay is a client's handler that hands packets to a rig's server.
type relay struct {
	r    *rig
	addr netip.AddrPort
	up   [][]byte
}

func (h *relay) Send(_ netip.AddrPort, p []byte) { h.up = append(h.up, bytes.Clone(p)) }
func (*relay) StateChanged(State, State)         {}
func (*relay) Payload([]byte)                    {}

// capture is a server's handler that keeps what is sent.
type capture struct {
	ServerHandler
	sent [][]byte
}

func (h *capture) Send(_ netip.AddrPort, p []byte) { h.sent = append(h.sent, bytes.Clone(p)) }
func (*capture) Connected(int, ClientInfo)         {}
func (*capture) Disconnected(int, Reason)          {}

// join connects another client at once.
func (r *rig) join(addr netip.AddrPort, id uint64) *Client {
	h := &relay{r: r, addr: addr}
	c := newClient(r.t, h)
	require.NoError(r.t, c.Connect(r.now, token(r.t, id, func(cfg *TokenConfig) { cfg.ClientID = id })))
	old := r.server.cfg.Handler
	for range 3 {
		out := &capture{ServerHandler: old}
		r.server.cfg.Handler = out
		for _, p := range h.up {
			r.server.Receive(r.now, addr, p)
		}
		h.up = nil
		for _, p := range out.sent {
			c.Receive(r.now, serverAddr, p)
		}
	}
	r.server.cfg.Handler = old
	require.Equal(r.t, Connected, c.State())
	return c
}

// TestTampered flips each byte of each packet of an exchange, one at a time: nothing is taken, and the exchange
// goes on as if it hadn't been.
func TestTampered(t *testing.T) {
	for at, name := range []string{"request", "response"} {
		r := newRig(t, 1, netsim.Settings{}, 2)
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		if at == 1 {
			r.step()
		}
		p, ok := r.up.Pop(r.now + time.Second)
		require.True(t, ok, name)
		p = bytes.Clone(p)
		for i := range p {
			bad := bytes.Clone(p)
			bad[i] ^= 0x41
			if name == "request" && i == 0 {
				continue // then it is no request, and a packet from nowhere
			}
			before := refused(&r.server.Counters)
			r.server.Receive(r.now, clientAddr, bad)
			require.Zero(t, r.server.Clients(), "%s byte %d", name, i)
			require.Equal(t, before+1, refused(&r.server.Counters), "%s byte %d: %+v", name, i, r.server.Counters)
		}
		r.server.Receive(r.now, clientAddr, p)
		r.run(10)
		require.Equal(t, Connected, r.client.State(), name)
	}
}

func refused(c *ServerCounters) uint64 {
	return c.BadSize + c.BadType + c.BadSequence + c.BadVersion + c.BadProtocol + c.Expired + c.BadToken + c.OtherServer +
		c.AddrConnected + c.IDConnected + c.TokenUsed + c.Full + c.NoMapping + c.LateDisconnects + c.BadChallenge + c.NotBound +
		c.Replayed + c.NotSealed + c.NoRoom + c.Unexpected
}

// TestTamperedPayload: payloads, keep-alives and disconnects with any byte flipped are dropped, and so is
// each of them when it comes twice.
func TestTamperedPayload(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
	r.run(10)
	buf := append(make([]byte, Headroom, 200), "forty-two bytes"...)
	var sent []byte
	r.client.cfg.Handler = &relay{r: r}
	require.NoError(t, r.client.SendPayload(r.now, buf))
	sent = r.client.cfg.Handler.(*relay).up[0]
	for i := range sent {
		bad := bytes.Clone(sent)
		bad[i] ^= 0x10
		before := refused(&r.server.Counters)
		r.server.Receive(r.now, clientAddr, bad)
		require.Empty(t, r.got, "byte %d", i)
		require.Equal(t, before+1, refused(&r.server.Counters), "byte %d", i)
	}
	for i := range sent { // truncated anywhere
		r.server.Receive(r.now, clientAddr, bytes.Clone(sent[:i]))
		require.Empty(t, r.got)
	}
	r.server.Receive(r.now, clientAddr, bytes.Clone(sent))
	require.Len(t, r.got, 1)
	before := r.server.Counters.Replayed
	for range 10 {
		r.server.Receive(r.now, clientAddr, bytes.Clone(sent))
	}
	require.Len(t, r.got, 1, "replayed")
	require.Equal(t, before+10, r.server.Counters.Replayed)
}

// TestChallengeOfAnother: a response with the challenge of another address or token is refused.
func TestChallengeOfAnother(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	addrB := netip.MustParseAddrPort("10.0.0.77:5")
	a, b := &relay{r: r}, &relay{r: r}
	ca, cb := newClient(t, a), newClient(t, b)
	require.NoError(t, ca.Connect(0, token(t, 1, nil)))
	require.NoError(t, cb.Connect(0, token(t, 2, func(c *TokenConfig) { c.ClientID = 5 })))
	out := &capture{}
	r.server.cfg.Handler = out
	r.server.Receive(0, clientAddr, a.up[0])
	r.server.Receive(0, addrB, b.up[0])
	require.Len(t, out.sent, 2)
	ca.Receive(0, serverAddr, out.sent[0])
	cb.Receive(0, serverAddr, out.sent[1])
	cb.challenge = ca.challenge // B answers with A's challenge, sealed with its own key
	cb.transmit(0)
	r.server.Receive(0, addrB, b.up[len(b.up)-1])
	require.Zero(t, r.server.Clients())
	require.EqualValues(t, 1, r.server.Counters.NotBound)
}

// TestRestartedServer: a server that starts again begins its global sequence elsewhere, so no nonce comes twice.
func TestRestartedServer(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(100) {
		r := newRig(t, seed, netsim.Settings{}, 1)
		require.GreaterOrEqual(t, r.server.globalSeq, uint64(1)<<63)
		require.False(t, seen[r.server.globalSeq], "seed %d", seed)
		seen[r.server.globalSeq] = true
	}
}

// TestAnyAddress: a server at an unspecified address takes tokens for every address with its port, and for no
// other port.
func TestAnyAddress(t *testing.T) {
	for _, c := range []struct {
		addr string
		ok   bool
	}{{"0.0.0.0:40000", true}, {"[::]:40000", true}, {"0.0.0.0:40001", false}, {"10.0.0.3:40000", false}} {
		r := newRig(t, 1, netsim.Settings{}, 1)
		r.server.cfg.Addrs = []netip.AddrPort{netip.MustParseAddrPort(c.addr)}
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		r.run(10)
		require.Equal(t, c.ok, r.client.State() == Connected, c.addr)
	}
}

func TestKeyHidesItself(t *testing.T) {
	k, err := ParseKey("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	require.Equal(t, byte(0x11), k[1])
	cfg := TokenConfig{PrivateKey: k}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%d", "%q"} {
		for _, v := range []any{k, &k, cfg} {
			text := fmt.Sprintf(verb, v)
			for _, leak := range []string{"aabbcc", "AABBCC", "17 34", "0x11, 0x22", "170 187"} {
				require.NotContains(t, text, leak, verb)
			}
		}
	}
	_, err = k.MarshalText()
	require.Error(t, err)
	for _, bad := range []string{"", "00", k.Hex()[1:], k.Hex() + "0", "g" + k.Hex()[1:]} {
		_, err := ParseKey(bad)
		require.ErrorIs(t, err, ErrKey)
		require.NotContains(t, err.Error(), "aabb")
	}
	again, err := ParseKey(k.Hex())
	require.NoError(t, err)
	require.Equal(t, k, again)
}

// TestOneClock: the token's life runs over the whole attempt, not anew at each server.
func TestOneClock(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 1)
	var servers []netip.AddrPort
	for i := range 5 {
		servers = append(servers, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, 9, byte(i)}), 1))
	}
	require.NoError(t, r.client.Connect(0, token(t, 1, func(c *TokenConfig) { c.Servers, c.Timeout, c.Expire = servers, 3, unixStart+7 })))
	require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
	for r.client.State() > Disconnected {
		r.step()
	}
	require.Equal(t, TokenExpired, r.client.State())
	require.InDelta(t, 7, r.now.Seconds(), 0.1)
	require.Equal(t, 2, r.client.server, "two were tried for 3 s each, the third for the rest")
}
