package salted

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConnect(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	require.ErrorIs(t, c.Connect(w.now, serverAddr), ErrBusy)
	w.run(200 * time.Millisecond)
	require.Equal(t, []State{SendingRequest, SendingResponse, Connected}, c.states)
	require.Equal(t, []int{0}, w.server.joined)
	slot, slots := c.Slot()
	require.Equal(t, [2]int{0, 64}, [2]int{slot, slots})
	info, ok := w.server.Client(0)
	require.True(t, ok)
	require.Equal(t, c.addr, info.Addr)
	got, ok := w.server.SlotOf(c.addr)
	require.True(t, ok)
	require.Zero(t, got)

	require.NoError(t, c.SendPayload(w.now, payload("up")))
	require.NoError(t, w.server.SendPayload(w.now, 0, payload("down")))
	w.run(100 * time.Millisecond)
	require.Equal(t, [][]byte{[]byte("up")}, w.server.got)
	require.Equal(t, [][]byte{[]byte("down")}, c.got)

	w.run(30 * time.Second)
	require.Equal(t, Connected, c.State(), "keep-alives keep it alive")
	c.Disconnect(w.now)
	w.run(100 * time.Millisecond)
	require.Equal(t, []Reason{Closed}, w.server.left)
	require.Zero(t, w.server.Clients())
	require.Equal(t, Disconnected, c.State())
	require.Zero(t, c.Reason())
}

func TestServerDisconnects(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	w.server.Close(w.now)
	require.Equal(t, []Reason{Kicked}, w.server.left)
	w.run(100 * time.Millisecond)
	require.Equal(t, Disconnected, c.State())
	require.Equal(t, Closed, c.Reason())
	_, ok := w.server.NextDeadline()
	require.False(t, ok)
}

func TestFull(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{Slots: 2})
	for i := range 3 {
		c := w.client(i)
		require.NoError(t, c.Connect(w.now, serverAddr))
		w.run(200 * time.Millisecond)
	}
	c := w.clients[2]
	require.Equal(t, []State{SendingRequest, Denied}, c.states)
	require.Equal(t, Full, c.Reason())
	w.clients[0].Disconnect(w.now)
	w.run(100 * time.Millisecond)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	require.Equal(t, Connected, c.State())
	slot, _ := c.Slot()
	require.Zero(t, slot, "the lowest free slot")
}

// The last slot goes while a client is on its way to it.
func TestFullAtResponse(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{Slots: 1})
	a, b := w.client(1), w.client(2)
	require.NoError(t, a.Connect(w.now, serverAddr))
	require.NoError(t, b.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	require.Equal(t, Connected, a.State())
	require.Equal(t, []State{SendingRequest, SendingResponse, Denied}, b.states)
	require.EqualValues(t, disconnectCopies, w.server.Counters.LateDisconnects, "it says that it leaves, as a later answer may have found a slot")
}

func TestTimeouts(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	w.loss = 1
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(5100 * time.Millisecond)
	require.Equal(t, RequestTimedOut, c.State())
	require.InDelta(t, 50, c.Counters.Sent, 2, "10 requests a second")

	w.loss = 0
	w.cut = func(d *datagram) bool { return packetType(d.p[4]) == typeResponse }
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(6 * time.Second)
	require.Equal(t, ResponseTimedOut, c.State())

	w.cut = nil
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(time.Second)
	require.Equal(t, Connected, c.State())
	w.loss = 1
	w.run(4900 * time.Millisecond)
	require.Equal(t, 1, w.server.Clients())
	w.run(200 * time.Millisecond)
	require.Equal(t, ConnectionTimedOut, c.State())
	require.Equal(t, TimedOut, c.Reason())
	require.Equal(t, []Reason{TimedOut}, w.server.left)
	_, ok := c.NextDeadline()
	require.False(t, ok)
}

// A client whose process died comes back from its old port before the server has noticed.
func TestReconnectReplaces(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{Slots: 1})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(500 * time.Millisecond)
	c.gone = true
	again := w.client(1)
	require.NoError(t, again.Connect(w.now, serverAddr))
	w.run(400 * time.Millisecond)
	require.Equal(t, Connected, again.State(), "even though the server is full")
	require.Equal(t, []int{0, 0}, w.server.joined)
	require.Equal(t, []Reason{Replaced}, w.server.left)
	require.Equal(t, 1, w.server.Clients())
}

// TestConnectsAfterDarkness: a path that goes dark at any step of connecting, one way or both, for less than ConnectTimeout, costs nothing but that
// time; also for longer than a challenge is valid, or than the server keeps a slot.
func TestConnectsAfterDarkness(t *testing.T) {
	for _, dark := range []time.Duration{time.Second, 6 * time.Second, 11 * time.Second, 24 * time.Second} {
		for step := range 10 { // of 10 ms; the path takes 20
			for ways := 1; ways < 4; ways++ {
				w := newWorld(t, 1, ServerConfig{Slots: 1})
				c := w.client(1)
				c.cfg.ConnectTimeout = 30 * time.Second
				require.NoError(t, c.Connect(w.now, serverAddr))
				w.run(time.Duration(step) * 10 * time.Millisecond)
				w.cut = func(d *datagram) bool { return d.to == serverAddr && ways&1 > 0 || d.from == serverAddr && ways&2 > 0 }
				w.run(dark)
				if slices.Contains(c.states, Connected) {
					continue // before that
				}
				w.cut = nil
				w.run(askAgain + time.Second)
				require.Equal(t, Connected, c.State(), "dark for %v after %d steps, ways %b: %+v", dark, step, ways, w.server.Counters)
				require.Equal(t, 1, w.server.Clients())
			}
		}
	}
}

// TestAsksAgain: while responses go unanswered every other packet is a request again, from askAgain on; a challenge that nobody asked for is refused until
// then; and who only challenges is given up after ConnectTimeout all the same.
func TestAsksAgain(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	var sent []packetType
	w.cut = func(d *datagram) bool {
		if d.from != serverAddr {
			sent = append(sent, packetType(d.p[4]))
		}
		return packetType(d.p[4]) == typeResponse
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(100 * time.Millisecond)
	require.Equal(t, SendingResponse, c.State())
	before := c.prefix
	challenge := make([]byte, challengeSize)
	putFirst(challenge, c.salt)
	c.Receive(w.now, serverAddr, frame.close(challenge, typeChallenge))
	require.EqualValues(t, 1, c.Counters.Unexpected)
	require.Equal(t, before, c.prefix)
	w.run(6 * time.Second)
	require.Equal(t, ResponseTimedOut, c.State())
	require.EqualValues(t, 3, w.server.Counters.Requests, "the first, and one each two seconds")
	requests := 0
	for _, kind := range sent[2:20] {
		if kind == typeRequest {
			requests++
		}
	}
	require.Zero(t, requests, "it waits before that")
}

// TestLateResponse: the response of an attempt that was given up, held back by the network, ends no connection that is alive.
func TestLateResponse(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	var late []byte
	w.cut = func(d *datagram) bool {
		if packetType(d.p[4]) == typeResponse {
			late = d.p
			return true
		}
		return false
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(100 * time.Millisecond)
	c.Disconnect(w.now)
	w.cut = nil
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(300 * time.Millisecond)
	require.Equal(t, Connected, c.State())
	for range 5 {
		w.server.receive(w.now, c.addr, bytes.Clone(late))
		w.run(time.Second)
	}
	require.Equal(t, Connected, c.State())
	require.Empty(t, w.server.left)
	require.EqualValues(t, 5, w.server.Counters.Unexpected)
}

// TestLateResponseBeforeTheConfirmation: nor one whose client has its slot and doesn't know it yet; a client that comes back then waits for three Intervals.
func TestLateResponseBeforeTheConfirmation(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	var late []byte
	w.cut = func(d *datagram) bool {
		if packetType(d.p[4]) == typeResponse {
			late = d.p
			return true
		}
		return false
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(100 * time.Millisecond)
	c.Disconnect(w.now)
	w.run(100 * time.Millisecond)
	w.cut = nil
	require.NoError(t, c.Connect(w.now, serverAddr))
	for w.server.Clients() == 0 {
		w.run(10 * time.Millisecond)
	}
	require.Equal(t, SendingResponse, c.State())
	w.server.receive(w.now, c.addr, late)
	w.run(10 * time.Second)
	require.Equal(t, Connected, c.State())
	require.Empty(t, w.server.left)

	c.Disconnect(w.now)
	w.run(100 * time.Millisecond)
	require.NoError(t, c.Connect(w.now, serverAddr))
	for w.server.Clients() == 0 {
		w.run(10 * time.Millisecond)
	}
	c.gone = true // before it knows
	again := w.client(1)
	require.NoError(t, again.Connect(w.now, serverAddr))
	w.run(600 * time.Millisecond)
	require.Equal(t, Connected, again.State())
}

// TestLateAnswerToAnOlderChallenge: a response of the same attempt, to the challenge before the one that gave the client its slot, moves a connection to another
// prefix never, however long that was silent: its client has one prefix, that of its slot.
func TestLateAnswerToAnOlderChallenge(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	c.cfg.ConnectTimeout = 30 * time.Second
	var late []byte
	w.cut = func(d *datagram) bool {
		hold := packetType(d.p[4]) == typeResponse && w.now < 11*time.Second
		if hold && late == nil {
			late = d.p
		}
		return hold
	}
	w.now = 8 * time.Second
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(5 * time.Second)
	require.Equal(t, Connected, c.State())
	require.NotEqual(t, first(late), c.prefix, "the secret was replaced amid it")
	w.loss = 1
	w.run(time.Second)
	w.loss = 0
	w.server.receive(w.now, c.addr, late)
	w.run(10 * time.Second)
	require.Equal(t, Connected, c.State())
	require.Empty(t, w.server.left)
	require.EqualValues(t, 1, w.server.Counters.Unexpected)
}

// TestLateAnswerOfWhoHasLeft: the same response, once its client has left, takes no slot.
func TestLateAnswerOfWhoHasLeft(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	c.cfg.ConnectTimeout = 30 * time.Second
	var late []byte
	w.cut = func(d *datagram) bool {
		hold := packetType(d.p[4]) == typeResponse && w.now < 11*time.Second
		if hold && late == nil {
			late = d.p
		}
		return hold
	}
	w.now = 8 * time.Second
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(5 * time.Second)
	require.Equal(t, Connected, c.State())
	require.NotEqual(t, first(late), c.prefix)
	c.Disconnect(w.now)
	w.run(time.Second)
	require.Zero(t, w.server.Clients())
	w.server.receive(w.now, c.addr, late)
	require.Zero(t, w.server.Clients())
	require.EqualValues(t, 1, w.server.Counters.Replayed)
}

// TestLateAnswerBeforeTheConfirmation: the same response, between the one that gives the client its slot and the client's first packet from there, costs neither
// end the connection.
func TestLateAnswerBeforeTheConfirmation(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	c.cfg.ConnectTimeout = 30 * time.Second
	var late []byte
	w.cut = func(d *datagram) bool {
		hold := packetType(d.p[4]) == typeResponse && w.now < 11*time.Second
		if hold && late == nil {
			late = d.p
		}
		return hold
	}
	w.now = 8 * time.Second
	require.NoError(t, c.Connect(w.now, serverAddr))
	for w.server.Clients() == 0 && w.now < 13*time.Second {
		w.run(10 * time.Millisecond)
	}
	require.NotEqual(t, first(late), c.prefix)
	require.False(t, w.server.slots[0].confirmed)
	w.server.receive(w.now, c.addr, late)
	require.Equal(t, first(late), w.server.slots[0].prefix, "the client may have answered that one last")
	w.run(10 * time.Second)
	require.Equal(t, Connected, c.State())
	require.Empty(t, w.server.left)
	require.Equal(t, c.prefix, w.server.slots[0].prefix)
	w.server.receive(w.now, c.addr, w.server.frame.close(keepAliveOf(first(late)), typeKeepAlive))
	require.Equal(t, c.prefix, w.server.slots[0].prefix, "and then it has one")
}

// keepAliveOf is a client's keep-alive without a checksum.
func keepAliveOf(prefix uint64) []byte {
	p := make([]byte, clientKeepAliveSize)
	putFirst(p, prefix)
	return p
}

// TestAnotherChallenge: a client that answers a second challenge as the server takes its answer to the first one has the same slot, and nobody leaves.
func TestAnotherChallenge(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	var prefixes []uint64
	var last []byte
	w.server.send = func(_ netip.AddrPort, p []byte) {
		if last = bytes.Clone(p); packetType(p[4]) == typeChallenge {
			prefixes = append(prefixes, first(p)^second(p))
		}
	}
	w.server.receive(9*time.Second, clientAddr(1), request(77))
	w.server.receive(11*time.Second, clientAddr(1), request(77))
	require.NotEqual(t, prefixes[0], prefixes[1])
	for i, prefix := range []uint64{prefixes[0], prefixes[1], prefixes[0]} {
		w.server.receive(11*time.Second, clientAddr(1), response(prefix, 77))
		require.Equal(t, []int{0}, w.server.joined, "response %d", i)
		require.Empty(t, w.server.left)
		require.Equal(t, prefix, first(last), "it is told its slot")
	}
}

// TestMissedGoodbye: a client whose connection ended before it knew of its slot hears of that with its next response, and a stranger's replay of it costs
// the server a smaller packet.
func TestMissedGoodbye(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.cut = func(d *datagram) bool {
		return packetType(d.p[4]) == typeKeepAlive || packetType(d.p[4]) == typeDisconnect
	}
	w.run(100 * time.Millisecond)
	w.server.Disconnect(w.now, 0)
	w.cut = nil
	w.run(200 * time.Millisecond)
	require.Equal(t, Disconnected, c.State())
	require.Equal(t, Closed, c.Reason())
	require.NotZero(t, w.server.Counters.Replayed)
}

// From another port it is another client.
func TestReconnectFromAnotherPort(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{Slots: 1})
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(500 * time.Millisecond)
	c.gone = true
	again := w.client(2)
	require.NoError(t, again.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	require.Equal(t, Denied, again.State())
	w.run(5 * time.Second)
	require.NoError(t, again.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	require.Equal(t, Connected, again.State())
}

func TestDisconnectSurvivesLoss(t *testing.T) {
	lost := 0
	for seed := range uint64(50) {
		w := newWorld(t, seed, ServerConfig{})
		c := w.client(1)
		require.NoError(t, c.Connect(w.now, serverAddr))
		w.run(time.Second)
		w.loss = 0.5
		c.Disconnect(w.now)
		w.run(100 * time.Millisecond)
		lost += w.server.Clients()
	}
	require.LessOrEqual(t, lost, 1)
}

func TestPayloadToClientThatMissedItsAcceptance(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	first := true
	w.cut = func(d *datagram) bool {
		drop := first && packetType(d.p[4]) == typeKeepAlive
		first = first && !drop
		return drop
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(70 * time.Millisecond)
	require.Equal(t, 1, w.server.Clients())
	require.Equal(t, SendingResponse, c.State())
	require.NoError(t, w.server.SendPayload(w.now, 0, payload("welcome")))
	w.run(30 * time.Millisecond)
	require.Equal(t, Connected, c.State(), "the payload came with another acceptance")
	require.Equal(t, [][]byte{[]byte("welcome")}, c.got)
}

func TestMisuse(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	require.ErrorIs(t, c.SendPayload(0, payload("x")), ErrNotConnected)
	for _, slot := range []int{-1, 0, 64, 1 << 30} {
		require.ErrorIs(t, w.server.SendPayload(0, slot, payload("x")), ErrNotConnected)
		w.server.Disconnect(0, slot)
		_, ok := w.server.Client(slot)
		require.False(t, ok)
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(time.Second)
	for _, size := range []int{0, Headroom, MaxPacket + 1} {
		require.ErrorIs(t, c.SendPayload(w.now, make([]byte, size)), ErrPayloadSize)
		require.ErrorIs(t, w.server.SendPayload(w.now, 0, make([]byte, size)), ErrPayloadSize)
	}
	require.NoError(t, c.SendPayload(w.now, make([]byte, MaxPacket)))
}

type brokenRand struct{ fail bool }

func (b *brokenRand) Read(p []byte) (int, error) {
	if b.fail {
		return 0, errors.New("no entropy")
	}
	return len(p), nil
}

func TestBrokenRand(t *testing.T) {
	b := &brokenRand{fail: true}
	_, err := NewServer(ServerConfig{Handler: &testServer{}, Rand: b})
	require.ErrorContains(t, err, "no entropy")
	c, err := NewClient(ClientConfig{Handler: &testClient{}, Rand: b})
	require.NoError(t, err)
	require.ErrorContains(t, c.Connect(0, serverAddr), "no entropy")

	b.fail = false
	w := newWorld(t, 1, ServerConfig{Rand: b})
	b.fail = true
	w.now = time.Minute
	d := w.client(1)
	require.NoError(t, d.Connect(w.now, serverAddr))
	w.run(time.Second)
	require.Equal(t, Connected, d.State(), "the old secret serves on")
	require.Positive(t, w.server.Counters.RandErrors)
	require.Less(t, w.server.Counters.RandErrors, uint64(100))
}

func TestConfig(t *testing.T) {
	for _, cfg := range []ServerConfig{
		{}, {Handler: &testServer{}, Slots: -1}, {Handler: &testServer{}, Slots: 1025},
		{Handler: &testServer{}, Interval: time.Minute}, {Handler: &testServer{}, Interval: -1},
		{Handler: &testServer{}, SecretLife: -1},
	} {
		_, err := NewServer(cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
	for _, cfg := range []ClientConfig{{}, {Handler: &testClient{}, Interval: time.Minute}} {
		_, err := NewClient(cfg)
		require.ErrorIs(t, err, ErrConfig)
	}
	s, err := NewServer(ServerConfig{Handler: &testServer{}, Timeout: -1})
	require.NoError(t, err)
	require.Equal(t, never, s.cfg.Timeout)
	require.Equal(t, 64, s.Slots())
}

// Clients come and go on a bad network. At the end, all that want to be are connected and
// nobody else is.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, ServerConfig{Slots: 6})
		w.loss, w.dup, w.jitter = 0.25, 0.1, 60*time.Millisecond
		for i := range 8 {
			w.client(i)
		}
		for range 300 {
			c := w.clients[w.rng.IntN(len(w.clients))]
			switch {
			case c.State() <= Disconnected:
				require.NoError(t, c.Connect(w.now, serverAddr))
			case w.rng.IntN(3) == 0:
				c.Disconnect(w.now)
			case c.State() == Connected:
				require.NoError(t, c.SendPayload(w.now, payload("hello")))
			}
			w.run(time.Duration(w.rng.IntN(300)) * time.Millisecond)
		}
		for _, c := range w.clients {
			c.Disconnect(w.now)
		}
		w.run(6 * time.Second)
		require.Zero(t, w.server.Clients(), "seed %d", seed)
		require.Empty(t, w.server.present, "seed %d", seed)
		for _, c := range w.clients[:6] {
			require.NoError(t, c.Connect(w.now, serverAddr))
		}
		w.run(3 * time.Second)
		for _, c := range w.clients[:6] {
			require.Equal(t, Connected, c.State(), "seed %d", seed)
		}
		require.Equal(t, 6, w.server.Clients(), "seed %d", seed)
	}
}
