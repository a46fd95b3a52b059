package netcode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// handed is a server and a client between which packets go by hand.
type handed struct {
	t      *testing.T
	now    time.Duration
	server *Server
	client *Client
	up     relay
	down   recorder
}

// recorder is a server's handler that keeps all it is told.
type recorder struct {
	sent     [][]byte
	to       []netip.AddrPort
	payloads []string
	slots    []int
	gone     []Reason
}

func (h *recorder) Send(to netip.AddrPort, p []byte) {
	h.sent, h.to = append(h.sent, bytes.Clone(p)), append(h.to, to)
}
func (h *recorder) Connected(slot int, _ ClientInfo)  { h.slots = append(h.slots, slot) }
func (h *recorder) Disconnected(_ int, reason Reason) { h.gone = append(h.gone, reason) }
func (h *recorder) Payload(slot int, p []byte) {
	h.payloads = append(h.payloads, fmt.Sprintf("%d: %s", slot, p))
}

func newHanded(t *testing.T, slots int) *handed {
	l := &handed{t: t, now: time.Minute}
	var err error
	l.server, err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: slots, Handler: &l.down, UnixAtZero: unixStart - 60})
	require.NoError(t, err)
	l.client = newClient(t, &l.up)
	return l
}

// request has the client send its first request.
func (l *handed) request(seed uint64, edit func(*TokenConfig)) {
	require.NoError(l.t, l.client.Connect(l.now, token(l.t, seed, edit)))
}

// toServer and toClient hand over what was sent.
func (l *handed) toServer() {
	for _, p := range l.up.up {
		l.server.Receive(l.now, clientAddr, p)
	}
	l.up.up = nil
}

func (l *handed) toClient() {
	for _, p := range l.down.sent {
		l.client.Receive(l.now, serverAddr, p)
	}
	l.down.sent = nil
}

// connect has the client connect; the server doesn't know yet that it knows.
func (l *handed) connect() {
	l.request(1, nil)
	for range 2 {
		l.toServer()
		l.toClient()
	}
	require.Equal(l.t, Connected, l.client.State())
}

func payload(text string) []byte {
	return append(make([]byte, Headroom, Headroom+len(text)+Tailroom), text...)
}

// TestCountersOfASession: what both ends count of a client that joins, plays and leaves.
func TestCountersOfASession(t *testing.T) {
	l := newHanded(t, 2)
	l.connect()
	l.toServer()
	require.NoError(t, l.client.SendPayload(l.now, payload("hello")))
	l.toServer()
	require.NoError(t, l.server.SendPayload(l.now, 0, payload("welcome")))
	l.toClient()
	require.Equal(t, ClientCounters{Payloads: 1, KeepAlives: 1}, l.client.Counters)
	l.client.Disconnect(l.now)
	l.toServer()
	require.Equal(t, ServerCounters{Requests: 1, Challenges: 1, Responses: 1, Connected: 1, Payloads: 1, KeepAlives: 1, Disconnects: 1, LateDisconnects: disconnectSent - 1}, l.server.Counters)
	require.Equal(t, []string{"0: hello"}, l.down.payloads)
	require.Equal(t, []Reason{ClientLeft}, l.down.gone)
}

// TestServerRefusals: each packet that a server refuses is counted, once and by its reason, and gets no answer but the denials.
func TestServerRefusals(t *testing.T) {
	other := netip.MustParseAddrPort("10.0.0.9:1")
	sealed := func(typ packetType, n int) []byte { // by the client of token 1
		var pub public
		require.NoError(t, pub.read(token(t, 1, nil)))
		return newSealer(&pub.c2s, 7).seal(typ, 1<<20, make([]byte, Headroom+n, Headroom+n+Tailroom))
	}
	short := requestOf(t, token(t, 1, nil))[:RequestBytes-1]
	for _, v := range []struct {
		name      string
		mapped    bool // the client has shown its token
		connected bool // and has a slot
		p         []byte
		want      ServerCounters
		sent      int
	}{
		{"empty", false, false, nil, ServerCounters{BadSize: 1}, 0},
		{"17 bytes", false, false, append([]byte{0x16}, make([]byte, 16)...), ServerCounters{BadSize: 1}, 0},
		{"18 bytes, from nowhere", false, false, append([]byte{0x16}, make([]byte, 17)...), ServerCounters{LateDisconnects: 1}, 0},
		{"response, from nowhere", false, false, sealed(typeResponse, 8+challengeBytes), ServerCounters{NoMapping: 1}, 0},
		{"short request", false, false, short, ServerCounters{Requests: 1, BadSize: 1}, 0},
		{"request type with a sequence", false, false, append([]byte{0x10}, make([]byte, 40)...), ServerCounters{BadType: 1}, 0},
		{"type 7", false, false, append([]byte{0x17}, make([]byte, 40)...), ServerCounters{BadType: 1}, 0},
		{"denial", false, false, append([]byte{0x11}, make([]byte, 40)...), ServerCounters{BadType: 1}, 0},
		{"challenge", false, false, append([]byte{0x12}, make([]byte, 40)...), ServerCounters{BadType: 1}, 0},
		{"no sequence", false, false, append([]byte{0x05}, make([]byte, 40)...), ServerCounters{BadSequence: 1}, 0},
		{"sequence of 9", false, false, append([]byte{0x95}, make([]byte, 40)...), ServerCounters{BadSequence: 1}, 0},
		{"sequence of 8, cut", false, false, append([]byte{0x85}, make([]byte, 23)...), ServerCounters{BadSequence: 1}, 0},
		{"sequence of 8", false, false, append([]byte{0x85}, make([]byte, 24)...), ServerCounters{NoMapping: 1}, 0},
		{"another server's", false, false, requestOf(t, token(t, 1, func(c *TokenConfig) { c.Internal = []netip.AddrPort{other} })), ServerCounters{Requests: 1, OtherServer: 1}, 0},
		{"another protocol's", false, false, requestOf(t, token(t, 1, func(c *TokenConfig) { c.ProtocolID = 8 })), ServerCounters{Requests: 1, BadProtocol: 1}, 1},
		{"without a timeout", false, false, forged(t, func(b []byte) { clear(b[8:12]) }), ServerCounters{Requests: 1, BadToken: 1}, 0},
		{"without servers", false, false, forged(t, func(b []byte) { clear(b[12:16]) }), ServerCounters{Requests: 1, BadToken: 1}, 0},
		{"keep-alive before the slot", true, false, sealed(typeKeepAlive, 8), ServerCounters{NoMapping: 1}, 0},
		{"response of another size", true, false, sealed(typeResponse, 7+challengeBytes), ServerCounters{NotSealed: 1}, 0},
		{"response without a challenge", true, false, sealed(typeResponse, 8+challengeBytes), ServerCounters{Responses: 1, BadChallenge: 1}, 0},
		{"its own request, again", true, true, requestOf(t, token(t, 1, nil)), ServerCounters{Requests: 1, Unexpected: 1}, 0},
		{"request of the connected", true, true, requestOf(t, token(t, 2, nil)), ServerCounters{Requests: 1, AddrConnected: 1}, 0},
		{"empty payload", true, true, sealed(typePayload, 0), ServerCounters{NotSealed: 1}, 0},
		{"large payload", true, true, sealed(typePayload, MaxPayload+1), ServerCounters{NotSealed: 1}, 0},
		{"short keep-alive", true, true, sealed(typeKeepAlive, 7), ServerCounters{NotSealed: 1}, 0},
		{"long disconnect", true, true, sealed(typeDisconnect, 1), ServerCounters{NotSealed: 1}, 0},
	} {
		l := newHanded(t, 2)
		if v.connected {
			l.connect()
		} else if v.mapped {
			l.request(1, nil)
			l.toServer()
		}
		l.server.Counters, l.down.sent = ServerCounters{}, nil
		l.server.Receive(l.now, clientAddr, bytes.Clone(v.p))
		require.Equal(t, v.want, l.server.Counters, v.name)
		require.Len(t, l.down.sent, v.sent, v.name)
		require.Empty(t, l.down.payloads, v.name)
		require.Empty(t, l.down.gone, v.name)
	}

	l := newHanded(t, 1)
	l.connect()
	l.server.Counters = ServerCounters{}
	l.server.Receive(l.now, other, requestOf(t, token(t, 2, nil)))
	require.Equal(t, ServerCounters{Requests: 1, IDConnected: 1}, l.server.Counters)
	l.server.Receive(l.now, other, requestOf(t, token(t, 3, func(c *TokenConfig) { c.ClientID = 3 })))
	require.Equal(t, ServerCounters{Requests: 2, IDConnected: 1, Full: 1}, l.server.Counters)
}

// forged is a request whose private part was changed by somebody with the key.
func forged(t *testing.T, change func(private []byte)) []byte {
	tok := token(t, 1, nil)
	var pub public
	require.NoError(t, pub.read(tok))
	key := Key{1}
	a, err := chacha20poly1305.NewX(key[:])
	require.NoError(t, err)
	plain, err := openPrivate(a, pub.sealed[:], pub.nonce[:], appendPrivateAD(nil, 7, pub.expire))
	require.NoError(t, err)
	change(plain)
	b := append(bytes.Clone(plain), make([]byte, macBytes)...)
	require.NoError(t, sealPrivate(pub.sealed[:], b, 7, pub.expire, &pub.nonce, &key))
	return appendRequest(nil, &pub)
}

// TestOvertakenWelcome: a client hears that its slot is gone though it hasn't heard of it yet, and a client that gives up while it answers a challenge
// gives its slot back.
func TestOvertakenWelcome(t *testing.T) {
	l := newHanded(t, 2)
	l.request(1, nil)
	l.toServer()
	l.toClient()
	l.toServer()
	require.Equal(t, 1, l.server.Clients())
	welcome := l.down.sent
	l.down.sent = nil
	l.server.Disconnect(l.now, 0)
	require.Equal(t, SendingResponse, l.client.State())
	l.toClient()
	require.Equal(t, Disconnected, l.client.State())
	l.down.sent = welcome
	l.toClient()
	require.Equal(t, Disconnected, l.client.State())

	l = newHanded(t, 2)
	l.request(1, nil)
	l.toServer()
	l.toClient()
	l.client.Disconnect(l.now)
	require.Len(t, l.up.up, 1+disconnectSent, "behind its response")
	l.toServer()
	require.Zero(t, l.server.Clients())
	require.EqualValues(t, 1, l.server.Counters.Connected)
}

// TestClientRefusals: each packet that a client refuses is counted, once and by its reason, and changes nothing.
func TestClientRefusals(t *testing.T) {
	sealed := func(typ packetType, n int) []byte { // by the server
		var pub public
		require.NoError(t, pub.read(token(t, 1, nil)))
		return newSealer(&pub.s2c, 7).seal(typ, 1<<20, make([]byte, Headroom+n, Headroom+n+Tailroom))
	}
	broken := sealed(typePayload, 5)
	broken[10] ^= 1
	welcome := func(slot, slots uint32) []byte {
		var pub public
		require.NoError(t, pub.read(token(t, 1, nil)))
		b := binary.LittleEndian.AppendUint32(make([]byte, Headroom, Headroom+8+Tailroom), slot)
		return newSealer(&pub.s2c, 7).seal(typeKeepAlive, 1<<20, binary.LittleEndian.AppendUint32(b, slots))
	}
	for _, v := range []struct {
		name  string
		state State
		from  netip.AddrPort
		p     []byte
		want  ClientCounters
	}{
		{"of somebody else", Connected, netip.MustParseAddrPort("10.0.0.1:40001"), sealed(typePayload, 5), ClientCounters{OtherSource: 1}},
		{"after the end", Disconnected, serverAddr, sealed(typePayload, 5), ClientCounters{Unexpected: 1}},
		{"empty", Connected, serverAddr, nil, ClientCounters{BadFormat: 1}},
		{"response", Connected, serverAddr, sealed(typeResponse, 8+challengeBytes), ClientCounters{BadFormat: 1}},
		{"broken", Connected, serverAddr, broken, ClientCounters{NotSealed: 1}},
		{"keep-alive before the challenge", SendingRequest, serverAddr, sealed(typeKeepAlive, 8), ClientCounters{Unexpected: 1}},
		{"a slot that there isn't", SendingResponse, serverAddr, welcome(4, 4), ClientCounters{BadFormat: 1}},
		{"more slots than there can be", SendingResponse, serverAddr, welcome(1<<31, 1<<32-1), ClientCounters{BadFormat: 1}},
		{"payload before the slot", SendingResponse, serverAddr, sealed(typePayload, 5), ClientCounters{Unexpected: 1}},
		{"second challenge", SendingResponse, serverAddr, sealed(typeChallenge, 8+challengeBytes), ClientCounters{Unexpected: 1}},
		{"late challenge", Connected, serverAddr, sealed(typeChallenge, 8+challengeBytes), ClientCounters{Unexpected: 1}},
		{"early disconnect", SendingRequest, serverAddr, sealed(typeDisconnect, 0), ClientCounters{Unexpected: 1}},
		{"late denial", Connected, serverAddr, sealed(typeDenied, 0), ClientCounters{Unexpected: 1}},
	} {
		l := newHanded(t, 2)
		l.request(1, nil)
		l.client.state, l.client.challenged, l.up.up = v.state, l.now, nil
		l.client.Receive(l.now, v.from, bytes.Clone(v.p))
		require.Equal(t, v.want, l.client.Counters, v.name)
		require.Equal(t, v.state, l.client.State(), v.name)
		require.Empty(t, l.up.up, v.name)
	}
}

// TestReplayedToClient: what a server sent once counts once.
func TestReplayedToClient(t *testing.T) {
	l := newHanded(t, 2)
	l.connect()
	require.NoError(t, l.server.SendPayload(l.now, 0, payload("once")))
	sent := l.down.sent
	require.Len(t, sent, 2, "with a keep-alive, as the server doesn't know yet that the client knows")
	for range 3 {
		for _, p := range sent {
			l.client.Receive(l.now, serverAddr, bytes.Clone(p))
		}
	}
	require.Equal(t, ClientCounters{Payloads: 1, KeepAlives: 2, Replayed: 4}, l.client.Counters)
}

// TestServerRepeatsItsAnswer: until a client is heard, its response is answered again and a keep-alive goes before payloads; a keep-alive
// or a payload of it ends that.
func TestServerRepeatsItsAnswer(t *testing.T) {
	for _, confirm := range []string{"keep-alive", "payload"} {
		l := newHanded(t, 2)
		l.request(1, nil)
		l.toServer()
		l.toClient()
		response := bytes.Clone(l.up.up[0])
		l.toServer()
		require.Len(t, l.down.sent, 1)
		l.server.Receive(l.now, clientAddr, bytes.Clone(response))
		require.Len(t, l.down.sent, 2, "the first may be lost")
		require.NoError(t, l.server.SendPayload(l.now, 0, payload("x")))
		require.Len(t, l.down.sent, 4)
		l.toClient()
		if confirm == "payload" {
			l.up.up = nil // the keep-alive is lost
			require.NoError(t, l.client.SendPayload(l.now, payload("y")))
		}
		l.toServer()
		require.NoError(t, l.server.SendPayload(l.now, 0, payload("x")))
		require.Len(t, l.down.sent, 1, confirm)
		l.server.Receive(l.now, clientAddr, response)
		require.Len(t, l.down.sent, 1, confirm)
		require.EqualValues(t, 1, l.server.Counters.Unexpected, confirm)
	}
}

// TestChallengeIsBound: to the address, the port and the token that it was made for.
func TestChallengeIsBound(t *testing.T) {
	mac := [macBytes]byte{1}
	all := map[[challengePad]byte]bool{}
	for _, addr := range []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.1:2", "10.0.0.1:257", "[2001:db8::1]:1"} {
		for _, m := range []byte{0, 1} {
			mac[15] = m
			all[bind(netip.MustParseAddrPort(addr), &mac)] = true
		}
	}
	require.Len(t, all, 10)

	for _, from := range []string{"10.0.0.77:1000", "10.0.0.2:1001"} { // one id at two addresses
		l := newHanded(t, 2)
		other := netip.MustParseAddrPort(from)
		h := &relay{}
		second := newClient(t, h)
		l.request(1, nil)
		l.toServer()
		l.toClient()
		require.NoError(t, second.Connect(l.now, token(t, 2, nil)))
		l.server.Receive(l.now, other, h.up[0])
		second.Receive(l.now, serverAddr, l.down.sent[0])
		l.client.challenge, l.up.up = second.challenge, nil
		l.client.transmit(l.now)
		l.toServer()
		require.EqualValues(t, 1, l.server.Counters.NotBound, from)
		require.Zero(t, l.server.Clients())
	}
}

// TestIDConnectsOnce: of two tokens of one id under way at once, the second to answer is denied.
func TestIDConnectsOnce(t *testing.T) {
	l := newHanded(t, 2)
	other := netip.MustParseAddrPort("10.0.0.77:5")
	h := &relay{}
	second := newClient(t, h)
	require.NoError(t, second.Connect(l.now, token(t, 2, nil)))
	l.server.Receive(l.now, other, h.up[0])
	second.Receive(l.now, serverAddr, l.down.sent[0])
	l.down.sent = nil
	l.connect()
	l.down.sent = nil
	l.server.Receive(l.now, other, h.up[1])
	require.EqualValues(t, 1, l.server.Counters.IDConnected)
	require.Equal(t, 1, l.server.Clients())
	second.Receive(l.now, serverAddr, l.down.sent[0])
	require.Equal(t, Denied, second.State())
	require.Equal(t, AlreadyConnected, second.Denial())
}

// TestLastSlotIsTakenOnce: of two that are under way at once, the second to answer finds the server full.
func TestLastSlotIsTakenOnce(t *testing.T) {
	l := newHanded(t, 1)
	other := netip.MustParseAddrPort("10.0.0.77:5")
	h := &relay{}
	second := newClient(t, h)
	require.NoError(t, second.Connect(l.now, token(t, 2, func(c *TokenConfig) { c.ClientID = 5 })))
	l.server.Receive(l.now, other, h.up[0])
	second.Receive(l.now, serverAddr, l.down.sent[0])
	l.down.sent = nil
	l.connect()
	l.down.sent = nil
	l.server.Receive(l.now, other, h.up[1])
	require.EqualValues(t, 1, l.server.Counters.Full)
	second.Receive(l.now, serverAddr, l.down.sent[0])
	require.Equal(t, Denied, second.State())
	require.Equal(t, Full, second.Denial())
	for _, p := range h.up[2:] {
		l.server.Receive(l.now, other, p)
	}
	require.EqualValues(t, disconnectSent, l.server.Counters.LateDisconnects, "it says that it leaves, as a later answer may have found a slot")
}

// TestSlots: each client has a slot of its own, the lowest that is free.
func TestSlots(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 3)
	for i := range 3 {
		r.join(addrOf(i), uint64(10+i))
		slot, ok := r.server.SlotOf(addrOf(i))
		require.True(t, ok)
		require.Equal(t, i, slot)
	}
	require.Equal(t, 3, r.server.Clients())
	r.server.Disconnect(r.now, 1)
	require.Equal(t, []Reason{Kicked}, r.gone)
	_, ok := r.server.SlotOf(addrOf(1))
	require.False(t, ok)
	r.join(addrOf(7), 17)
	slot, _ := r.server.SlotOf(addrOf(7))
	require.Equal(t, 1, slot)
	for _, slot := range []int{-1, 3, 1 << 30} {
		r.server.Disconnect(r.now, slot)
		require.ErrorIs(t, r.server.SendPayload(r.now, slot, payload("x")), ErrNoClient)
		require.Zero(t, r.server.Fetch(slot))
	}
	r.server.Disconnect(r.now, 2)
	r.server.Disconnect(r.now, 2)
	require.Len(t, r.gone, 2)
	require.ErrorIs(t, r.server.SendPayload(r.now, 2, payload("x")), ErrNoClient)
}

// TestSequencesCountUp: by one for each packet, from FirstSequence, those of the client, and those of challenges and denials.
func TestSequencesCountUp(t *testing.T) {
	l := newHanded(t, 2)
	l.server.cfg.FirstSequence = 1 << 40
	var up, down, global []uint64
	note := func(list [][]byte, seqs *[]uint64) {
		for _, p := range list {
			if p[0] != 0 {
				_, seq, _, err := header(p)
				require.NoError(t, err)
				*seqs = append(*seqs, seq)
			}
		}
	}
	l.request(1, nil)
	request := bytes.Clone(l.up.up[0])
	for range 3 {
		l.server.Receive(l.now, clientAddr, bytes.Clone(request))
	}
	note(l.down.sent, &global)
	require.Len(t, global, 3)
	require.EqualValues(t, 3, l.server.challengeSeq)
	l.up.up = nil
	l.toClient()
	for range 20 {
		note(l.up.up, &up)
		l.toServer()
		note(l.down.sent, &down)
		l.toClient()
		l.now += sendInterval
		l.client.Tick(l.now)
		l.server.Tick(l.now)
	}
	require.Greater(t, len(up), 15)
	require.Greater(t, len(down), 15)
	for i := range up {
		require.EqualValues(t, 1+i, up[i], "the request was number 0")
	}
	for i := range global {
		require.Equal(t, global[0]+uint64(i), global[i])
	}
	for i := range down {
		require.Equal(t, 1<<40+uint64(i), down[i])
	}
}

// TestSendsTenTimesASecond: what isn't answered, and keep-alives, from both ends, exactly when NextDeadline says; a payload
// stands for a keep-alive.
func TestSendsTenTimesASecond(t *testing.T) {
	l := newHanded(t, 2)
	due := func(m interface {
		NextDeadline() (time.Duration, bool)
		Tick(time.Duration)
	}, n func() int) {
		t.Helper()
		at, ok := m.NextDeadline()
		require.True(t, ok)
		require.Equal(t, l.now+sendInterval, at)
		before := n()
		m.Tick(at - 1)
		require.Equal(t, before, n(), "too early")
		m.Tick(at)
		require.Equal(t, before+1, n())
		l.now = at
	}
	client, server := func() int { return len(l.up.up) }, func() int { return len(l.down.sent) }
	l.request(1, nil)
	due(l.client, client)
	due(l.client, client)
	l.toServer()
	l.toClient()
	due(l.client, client)
	l.toServer()
	l.toClient()
	due(l.client, client)
	l.toServer()
	for range 3 {
		l.server.Tick(l.now)
		due(l.client, client)
		l.toServer()
	}
	l.now += 70 * time.Millisecond
	require.NoError(t, l.client.SendPayload(l.now, payload("x")))
	due(l.client, client)
	require.NoError(t, l.server.SendPayload(l.now, 0, payload("x")))
	due(l.server, server)
	due(l.server, server)

	l.up.up = nil
	l.now += sendInterval
	l.client.Tick(l.now)
	plain, err := l.client.send.open(l.up.up[0][0], l.client.seq-1, bytes.Clone(l.up.up[0][2:]))
	require.NoError(t, err)
	require.Equal(t, make([]byte, 8), plain, "a client's keep-alive says nothing")
}

// TestSilenceEnds: at exactly the token's timeout on the server, and NextDeadline knows.
func TestSilenceEnds(t *testing.T) {
	l := newHanded(t, 2)
	_, ok := l.server.NextDeadline()
	require.False(t, ok, "nobody is there")
	l.connect()
	l.toServer()
	heard := l.now
	l.now += 5*time.Second - 30*time.Millisecond
	l.server.Tick(l.now)
	at, ok := l.server.NextDeadline()
	require.True(t, ok)
	require.Equal(t, heard+5*time.Second, at)
	l.server.Tick(at - 1)
	require.Empty(t, l.down.gone)
	l.server.Tick(at)
	require.Equal(t, []Reason{TimedOut}, l.down.gone)

	l = newHanded(t, 2)
	l.server.cfg.Timeout = -1
	l.connect()
	l.toServer()
	l.now += time.Hour
	l.server.Tick(l.now)
	at, _ = l.server.NextDeadline()
	require.Equal(t, l.now+sendInterval, at)
}

// TestClientHearsInEveryState: a challenge, keep-alives and payloads each put the time-out off.
func TestClientHearsInEveryState(t *testing.T) {
	l := newHanded(t, 2)
	wait := func(what string) {
		t.Helper()
		before := l.client.State()
		l.now += 4 * time.Second // of 5
		l.client.Tick(l.now)
		require.Equal(t, before, l.client.State(), what)
	}
	l.request(1, nil)
	wait("request")
	l.up.up = l.up.up[:1]
	l.toServer()
	l.toClient()
	wait("challenge")
	l.up.up = l.up.up[:1]
	l.toServer()
	l.toClient()
	require.Equal(t, Connected, l.client.State())
	wait("slot")
	l.toServer()
	for range 3 {
		require.NoError(t, l.server.SendPayload(l.now, 0, payload("x")))
		l.down.sent = l.down.sent[len(l.down.sent)-1:]
		l.toClient()
		wait("payload")
	}
	for range 3 {
		l.server.keepAlive(l.now, 0)
		l.down.sent = l.down.sent[len(l.down.sent)-1:]
		l.toClient()
		wait("keep-alive")
	}
}

// TestDisconnectWhileConnecting: nothing is sent and no server tried any more; a failure stays what it is.
func TestDisconnectWhileConnecting(t *testing.T) {
	l := newHanded(t, 2)
	l.client.Tick(l.now)
	require.Equal(t, Disconnected, l.client.State(), "it never began")
	l.request(1, nil)
	l.up.up = nil
	l.client.Disconnect(l.now)
	require.Equal(t, Disconnected, l.client.State())
	l.client.Tick(l.now + time.Minute)
	require.Empty(t, l.up.up)
	l.client.state = Denied
	l.client.Disconnect(l.now)
	require.Equal(t, Denied, l.client.State())
}

// TestFailureIsOfTheLastServer: a client that a server denied, and the next one doesn't answer, says so; and one that
// is denied after its challenge tries the next.
func TestFailureIsOfTheLastServer(t *testing.T) {
	next := netip.MustParseAddrPort("10.0.0.8:1")
	for _, after := range []State{SendingRequest, SendingResponse} {
		l := newHanded(t, 1)
		l.request(1, func(c *TokenConfig) { c.Servers = []netip.AddrPort{serverAddr, next} })
		if after == SendingResponse {
			l.toServer()
			l.toClient()
		}
		require.Equal(t, after, l.client.State())
		var pub public
		require.NoError(t, pub.read(token(t, 1, nil)))
		denied := newSealer(&pub.s2c, 7).seal(typeDenied, 1<<20, make([]byte, Headroom, Headroom+Tailroom))
		l.client.Receive(l.now, serverAddr, denied)
		require.Equal(t, SendingRequest, l.client.State())
		require.Equal(t, next, l.client.addr())
		l.client.Tick(l.now + 6*time.Second)
		require.Equal(t, RequestTimedOut, l.client.State())
	}
}

// TestUsedTokensAreTheNewest: as many as there is room for, whatever was before.
func TestUsedTokensAreTheNewest(t *testing.T) {
	u := newUsedTokens(10)
	mac := func(i int) [macBytes]byte { return [macBytes]byte{byte(i)} }
	for i := range 37 {
		u.add(mac(i), clientAddr)
		u.add(mac(i), addrOf(1))
		for j := range 37 {
			require.Equal(t, j <= i && j > i-10, u.refuses(mac(j), addrOf(2)), "%d after %d", j, i)
			require.False(t, u.refuses(mac(j), clientAddr))
		}
		require.LessOrEqual(t, len(u.byMAC), 10)
	}
}

// TestTokenLimits: 1 to 32 servers, in the public part and the private; Create may be Expire.
func TestTokenLimits(t *testing.T) {
	var servers []netip.AddrPort
	for i := range MaxServers + 1 {
		servers = append(servers, netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i)}), uint16(1+i)))
	}
	cfg := TokenConfig{Create: 5, Expire: 5, Timeout: 1, PrivateKey: Key{1}, Servers: servers[:MaxServers]}
	cfg.UserData[UserDataBytes-1] = 9
	tok, err := GenerateConnectToken(cfg)
	require.NoError(t, err)
	var pub public
	require.NoError(t, pub.read(tok))
	require.Equal(t, servers[:MaxServers], pub.servers)
	a, err := chacha20poly1305.NewX(cfg.PrivateKey[:])
	require.NoError(t, err)
	plain, err := openPrivate(a, pub.sealed[:], pub.nonce[:], appendPrivateAD(nil, 0, 5))
	require.NoError(t, err)
	var priv private
	require.NoError(t, priv.read(plain))
	require.Equal(t, servers[:MaxServers], priv.servers)
	require.Equal(t, cfg.UserData, priv.userData)
	require.Equal(t, pub.c2s, priv.c2s)
	require.Equal(t, pub.s2c, priv.s2c)

	for _, bad := range [][]netip.AddrPort{servers, {}, {netip.AddrPort{}}, {netip.AddrPortFrom(serverAddr.Addr(), 0)}} {
		c := cfg
		c.Internal = bad
		_, err := GenerateConnectToken(c)
		require.ErrorIs(t, err, ErrServers, "internal")
		c = cfg
		c.Servers, c.Internal = bad, servers[:1]
		_, err = GenerateConnectToken(c)
		require.ErrorIs(t, err, ErrServers)
	}
	c := cfg
	c.Servers, c.Internal = servers[:2], servers[:1]
	_, err = GenerateConnectToken(c)
	require.ErrorIs(t, err, ErrServers, "Internal has one for each of Servers")
	list, err := appendServers(nil, servers[:2])
	require.NoError(t, err)
	_, _, err = readServers(list)
	require.NoError(t, err)
	clear(list[len(list)-2:]) // the last one's port
	_, _, err = readServers(list)
	require.ErrorIs(t, err, ErrServers)
}

type noRandomness struct{}

func (noRandomness) Read([]byte) (int, error) { return 0, errors.New("no randomness") }

// TestNoRandomness: without it there is neither a token nor a server.
func TestNoRandomness(t *testing.T) {
	_, err := GenerateConnectToken(TokenConfig{Timeout: 1, PrivateKey: Key{1}, Servers: []netip.AddrPort{serverAddr}, Rand: noRandomness{}})
	require.ErrorContains(t, err, "no randomness")
	_, err = NewServer(ServerConfig{PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Handler: &recorder{}, Rand: noRandomness{}})
	require.ErrorContains(t, err, "no randomness")
	_, err = GenerateKey(noRandomness{})
	require.ErrorContains(t, err, "no randomness")
}

// TestKeysOfNoSource: without a source keys are crypto/rand's.
func TestKeysOfNoSource(t *testing.T) {
	a, err := GenerateKey(nil)
	require.NoError(t, err)
	b, err := GenerateKey(nil)
	require.NoError(t, err)
	require.False(t, a.IsZero())
	require.False(t, a == b, "two keys are alike")
}

// TestSettings: what is needed and what is allowed; the caller's list of addresses stays as it is.
func TestSettings(t *testing.T) {
	_, err := NewClient(ClientConfig{})
	require.ErrorContains(t, err, "Handler")
	mapped := netip.AddrPortFrom(netip.AddrFrom16(serverAddr.Addr().As16()), serverAddr.Port())
	addrs := []netip.AddrPort{mapped}
	s, err := NewServer(ServerConfig{PrivateKey: Key{1}, Addrs: addrs, Handler: &recorder{}, Slots: MaxSlots})
	require.NoError(t, err)
	require.Equal(t, MaxSlots, s.Slots())
	require.Equal(t, []netip.AddrPort{mapped}, addrs)
	require.Equal(t, fmt.Sprintf("netcode.Server(0 of %d slots)", MaxSlots), fmt.Sprint(s))
	require.Equal(t, "netcode.Client(disconnected)", fmt.Sprint(newClient(t, &relay{})))
	require.Equal(t, redacted, fmt.Sprintf("%x", Key{1}))
	require.Equal(t, redactedToken, fmt.Sprintf("%x", Token{1}))
}

// TestNextDeadlineIsTheEarliest: of all clients, wherever their slots are.
func TestNextDeadlineIsTheEarliest(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 4)
	for i := range 4 {
		r.join(addrOf(i), uint64(10+i))
	}
	r.server.free(0, ClientLeft)
	for first := 1; first < 4; first++ {
		for i := 1; i < 4; i++ {
			r.server.slots[i].sent = time.Second + time.Duration((i-first+3)%3)*time.Millisecond
		}
		at, ok := r.server.NextDeadline()
		require.True(t, ok)
		require.Equal(t, time.Second+sendInterval, at, "slot %d", first)
	}
}

// TestPayloadSizes: 1 byte to MaxPayload behind Headroom, with room for what seals it; what is sent arrives.
func TestPayloadSizes(t *testing.T) {
	l := newHanded(t, 1)
	l.connect()
	l.toServer()
	for _, v := range []struct {
		size, room int
		ok         bool
	}{{0, Tailroom, false}, {1, Tailroom, true}, {1, Tailroom - 1, false}, {1, 0, false}, {MaxPayload, Tailroom, true}, {MaxPayload, Tailroom - 1, false},
		{MaxPayload + 1, Tailroom, false}, {-1, Tailroom, false}, {-Headroom, Headroom + Tailroom, false}} {
		buf := func() []byte { return make([]byte, Headroom+v.size, Headroom+v.size+v.room) }
		c, s := l.client.SendPayload(l.now, buf()), l.server.SendPayload(l.now, 0, buf())
		if !v.ok {
			require.ErrorIs(t, c, ErrSize, "%+v", v)
			require.ErrorIs(t, s, ErrSize, "%+v", v)
			continue
		}
		require.NoError(t, c, "%+v", v)
		require.NoError(t, s, "%+v", v)
		before := l.server.Counters.Payloads
		l.toServer()
		require.Equal(t, before+1, l.server.Counters.Payloads, "%+v", v)
		before = l.client.Counters.Payloads
		l.toClient()
		require.Equal(t, before+1, l.client.Counters.Payloads, "%+v", v)
	}
}

// TestServerNeedsBoth: a handler and an address.
func TestServerNeedsBoth(t *testing.T) {
	for _, c := range []ServerConfig{{Handler: &recorder{}}, {Addrs: []netip.AddrPort{serverAddr}}} {
		c.PrivateKey, c.Slots = Key{1}, 1
		_, err := NewServer(c)
		require.ErrorContains(t, err, "needs a Handler and Addrs")
	}
}
