package salted

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connecting is a client that has answered its challenge and has no slot yet.
func connecting(t *testing.T) (w *world, c *testClient) {
	w = newWorld(t, 5, ServerConfig{Slots: 4})
	c = w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	for c.State() != SendingResponse {
		w.run(10 * time.Millisecond)
	}
	w.wire = nil
	return w, c
}

// lastSent is the packets on their way, of which there are n.
func (w *world) lastSent(n int) []datagram {
	require.Len(w.t, w.wire, n)
	return w.wire
}

// TestGoodbye: who ends a connection, or times out, says so ten times, with the connection's prefix and the reason, whatever was sent before.
func TestGoodbye(t *testing.T) {
	check := func(w *world, prefix uint64) {
		for _, d := range w.lastSent(disconnectCopies) {
			typ, why := frame.open(d.p)
			require.Equal(t, accepted, why)
			require.Equal(t, typeDisconnect, typ)
			require.Equal(t, prefix, first(d.p))
			require.Equal(t, byte(Closed), d.p[13])
		}
	}
	w, c := connecting(t)
	for i := range c.out {
		c.out[i] = 0xaa
	}
	c.Disconnect(w.now)
	check(w, c.prefix)
	for _, kick := range []bool{false, true} {
		w, _, _ = capture(t)
		w.wire = nil
		w.server.out = [challengeSize]byte{5: 0xaa, 13: 0xaa}
		prefix := w.server.slots[0].prefix
		if kick {
			w.server.Disconnect(w.now, 0)
		} else {
			w.server.Tick(w.server.slots[0].heard + w.server.cfg.Timeout)
			require.EqualValues(t, 1, w.server.Counters.TimedOut)
		}
		check(w, prefix)
	}
}

// TestTimesOutOnTime: at its deadline and not before, in each state; who isn't connected never does.
func TestTimesOutOnTime(t *testing.T) {
	_, c := connecting(t)
	c.cfg.ConnectTimeout, c.cfg.Timeout = time.Second, 3*time.Second
	ends := func(at time.Duration, want State) {
		before := c.State()
		c.sent = at
		next, ok := c.NextDeadline()
		require.True(t, ok)
		require.Equal(t, at, next)
		c.Tick(at - 1)
		require.Equal(t, before, c.State())
		c.Tick(at)
		require.Equal(t, want, c.State())
	}
	ends(c.heard+time.Second, ResponseTimedOut)
	_, c, _ = capture(t)
	c.cfg.ConnectTimeout, c.cfg.Timeout = time.Second, 3*time.Second
	ends(c.heard+3*time.Second, ConnectionTimedOut)

	w, c, _ := capture(t)
	states := len(c.states)
	c.Disconnect(w.now)
	c.Tick(w.now + time.Hour)
	require.Len(t, c.states, states+1)
	require.Zero(t, c.Counters.TimedOut)

	w, _, _ = capture(t)
	s := w.server
	require.NoError(t, s.SendPayload(s.slots[0].heard+4*time.Second, 0, payload("x")))
	at, _ := s.NextDeadline()
	require.Equal(t, s.slots[0].heard+4*time.Second+s.cfg.Interval, at, "a payload is as good as a keep-alive")
	s.slots[0].sent = s.slots[0].heard + s.cfg.Timeout
	s.slots[2] = s.slots[0] // and others are free
	s.slots[0] = free
	at, ok := s.NextDeadline()
	require.True(t, ok)
	require.Equal(t, s.slots[2].heard+s.cfg.Timeout, at)
	s.cfg.Timeout = never
	at, _ = s.NextDeadline()
	require.Equal(t, s.slots[2].sent+s.cfg.Interval, at)
}

// TestChallengeBeginsTheWaitAnew: a client whose request was answered late has ConnectTimeout from then on.
func TestChallengeBeginsTheWaitAnew(t *testing.T) {
	w := newWorld(t, 5, ServerConfig{})
	c := w.client(1)
	w.cut = func(d *datagram) bool {
		return packetType(d.p[4]) != typeRequest && packetType(d.p[4]) != typeChallenge || w.now < 4500*time.Millisecond
	}
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(9 * time.Second)
	require.Equal(t, SendingResponse, c.State())
	w.run(time.Second)
	require.Equal(t, ResponseTimedOut, c.State())
}

// TestClientRefuses: a client takes no damaged packet, none of another protocol, type or size, and no payload before it has its slot; each has its counter.
func TestClientRefuses(t *testing.T) {
	w, c := connecting(t)
	packet := func(typ packetType, first uint64, size int, edit func(p []byte)) []byte {
		p := make([]byte, size)
		putFirst(p, first)
		if edit != nil {
			edit(p)
		}
		return frame.close(p, typ)
	}
	early := packet(typePayload, c.prefix, Overhead+5, nil)
	c.Receive(w.now, serverAddr, early)
	require.EqualValues(t, 1, c.Counters.Unexpected)
	require.Empty(t, c.got)
	full := packet(typeKeepAlive, c.prefix, serverKeepAliveSize, func(p []byte) { p[13], p[15] = 4, 4 })
	c.Receive(w.now, serverAddr, full)
	require.EqualValues(t, 1, c.Counters.BadSize, "slot 4 of 4")
	sent := c.Counters.Sent
	c.Receive(w.now, serverAddr, packet(typeKeepAlive, c.prefix, serverKeepAliveSize, func(p []byte) { p[13], p[15] = 3, 4 }))
	require.Equal(t, Connected, c.State())
	require.EqualValues(t, 1, c.Counters.Connected)
	require.Equal(t, sent+1, c.Counters.Sent, "it confirms its slot at once")
	c.Receive(w.now, serverAddr, packet(typeKeepAlive, c.prefix, serverKeepAliveSize, func(p []byte) { p[13], p[15] = 3, 4 }))
	require.Equal(t, sent+1, c.Counters.Sent, "and once")

	before := c.Counters
	damaged := bytes.Clone(early)
	damaged[Headroom] ^= 1
	other := newFramer(protocol+1).close(bytes.Clone(early), typePayload)
	for _, p := range [][]byte{damaged, other, early[:Overhead-1], packet(typePayload, c.prefix, MaxPacket+1, nil), packet(typePayload, c.prefix, Overhead, nil),
		packet(typeDisconnect, c.prefix, disconnectSize+1, nil), packet(typeRequest, c.prefix, PaddedSize, nil), packet(0, c.prefix, Overhead+1, nil), packet(8, c.prefix, Overhead+1, nil)} {
		c.Receive(w.now, serverAddr, p)
	}
	require.Equal(t, [4]uint64{2, 1, 3, 3}, [4]uint64{c.Counters.BadChecksum - before.BadChecksum, c.Counters.TooShort - before.TooShort,
		c.Counters.BadSize - before.BadSize, c.Counters.BadType - before.BadType})
	require.Equal(t, Connected, c.State())
	require.Empty(t, c.got)
	c.Receive(w.now, serverAddr, packet(typePayload, c.prefix, MaxPacket, nil))
	require.Len(t, c.got, 1)
	require.EqualValues(t, 1, c.Counters.Payloads)
}

// TestServerRefuses: the same of a server, which takes none of its own types.
func TestServerRefuses(t *testing.T) {
	w, c, sent := capture(t)
	s := w.server
	before := s.Counters
	packet := func(typ packetType, size int) []byte {
		p := make([]byte, size)
		putFirst(p, c.prefix)
		return frame.close(p, typ)
	}
	s.Receive(w.now, c.addr, packet(typeChallenge, challengeSize))
	s.Receive(w.now, c.addr, packet(0, 100))
	require.EqualValues(t, 2, s.Counters.BadType)
	s.Receive(w.now, c.addr, packet(typeKeepAlive, clientKeepAliveSize+1))
	require.EqualValues(t, 1, s.Counters.BadSize)
	s.Receive(w.now, c.addr, sent[0])
	require.EqualValues(t, before.Unexpected+1, s.Counters.Unexpected, "its request comes late")
	require.Equal(t, before.Requests, s.Counters.Requests)
	require.Equal(t, before.Received+4, s.Counters.Received)
	for range 3 {
		s.Receive(w.now, clientAddr(7), packet(typeDisconnect, disconnectSize))
	}
	require.EqualValues(t, 3, s.Counters.LateDisconnects)
	require.EqualValues(t, 1, s.Counters.Connected)

	s.slots[0].heard = 0
	s.Receive(w.now, c.addr, response(c.prefix, c.salt))
	require.Equal(t, w.now, s.slots[0].heard, "who repeats its response is there")
	require.NoError(t, s.SendPayload(w.now, 0, make([]byte, MaxPacket)))
	require.ErrorIs(t, s.SendPayload(w.now, 0, make([]byte, MaxPacket+1)), ErrPayloadSize)
}

// TestResponseOfNobody: a response without a challenge, or with the challenge of another address, another salt or another protocol, gets no slot, also while
// the server has had one secret only.
func TestResponseOfNobody(t *testing.T) {
	w, c := connecting(t)
	s := w.server
	s.Receive(w.now, c.addr, response(77, 77)) // a server salt of 0
	samePort := netip.AddrPortFrom(clientAddr(2).Addr(), c.addr.Port())
	s.Receive(w.now, samePort, response(c.prefix, c.salt))
	s.Receive(w.now, c.addr, response(c.prefix^c.salt^5, 5))
	require.EqualValues(t, 3, s.Counters.BadSalt)
	require.Empty(t, s.joined)
	s.Receive(w.now, c.addr, response(c.prefix, c.salt))
	require.Len(t, s.joined, 1)
}

// TestChallengesAcrossRotations: a challenge is valid for as long as its secret makes challenges, and as long again.
func TestChallengesAcrossRotations(t *testing.T) {
	k := cookies{rand: chacha(3), life: 10 * time.Second}
	require.NoError(t, k.rotate(0))
	require.NoError(t, k.rotate(10*time.Second))
	salt, ok := k.salt(0, serverAddr, 9)
	require.True(t, ok)
	require.NoError(t, k.rotate(20*time.Second))
	require.True(t, k.valid(serverAddr, 9, 9^salt))
	require.NoError(t, k.rotate(40*time.Second))
	require.False(t, k.valid(serverAddr, 9, 9^salt))
}

// TestSecretsOfASeldomAskedServer: a secret is over after two lives, though nobody asks in time for it to be replaced, and whatever the clock counts from.
func TestSecretsOfASeldomAskedServer(t *testing.T) {
	for _, from := range []time.Duration{0, -time.Hour} {
		k := cookies{rand: chacha(3), life: 10 * time.Second}
		require.NoError(t, k.rotate(0))
		require.NoError(t, k.rotate(from))
		salt, _ := k.salt(0, serverAddr, 9)
		require.NoError(t, k.rotate(from+19*time.Second))
		require.True(t, k.valid(serverAddr, 9, 9^salt))
		again, _ := k.salt(0, serverAddr, 9)
		require.NoError(t, k.rotate(from+20*time.Second))
		require.False(t, k.valid(serverAddr, 9, 9^salt))
		require.NoError(t, k.rotate(from+29*time.Second))
		require.True(t, k.valid(serverAddr, 9, 9^again))
		require.NoError(t, k.rotate(from+31*time.Second))
		require.False(t, k.valid(serverAddr, 9, 9^again))
	}
}

// TestPerAddr: an address has MaxPerAddr slots, by default a quarter of them and at least four, and the next client is told why.
func TestPerAddr(t *testing.T) {
	for slots, most := range map[int]int{8: 4, 64: 16} {
		w := newWorld(t, 5, ServerConfig{Slots: slots})
		for i := range most + 1 {
			c := w.client(i)
			c.addr = netip.AddrPortFrom(clientAddr(0).Addr(), uint16(1000+i))
			require.NoError(t, c.Connect(w.now, serverAddr))
			w.run(200 * time.Millisecond)
			require.Equal(t, i < most, c.State() == Connected, "%d of %d", i, slots)
			if i == most {
				require.Equal(t, TooMany, c.Reason())
				require.EqualValues(t, 1, c.Counters.Denied)
			}
		}
		require.EqualValues(t, 1, w.server.Counters.TooMany)
		require.EqualValues(t, 1, w.server.Counters.Denied)
		require.NotZero(t, w.server.Counters.Sent)
	}
}

// TestAliveFor: a client that is heard of holds its slot against another attempt from its address for three intervals.
func TestAliveFor(t *testing.T) {
	w, _, _ := capture(t)
	s := w.server
	require.True(t, s.alive(s.slots[0].heard+3*s.cfg.Interval-1, 0))
	require.False(t, s.alive(s.slots[0].heard+3*s.cfg.Interval, 0))
}

// TestTimesAtTheirEnds: an Interval as long as Timeout is refused, and ConnectTimeout is Timeout unless that is never.
func TestTimesAtTheirEnds(t *testing.T) {
	_, err := NewServer(ServerConfig{Handler: &testServer{}, Timeout: time.Second, Interval: time.Second})
	require.ErrorIs(t, err, ErrConfig)
	for timeout, want := range map[time.Duration]time.Duration{-1: defaultTimeout, 0: defaultTimeout, 7 * time.Second: 7 * time.Second} {
		require.Equal(t, want, ClientConfig{Timeout: timeout}.filled().ConnectTimeout)
	}
}

// TestConfirmsWithItsPrefix: the keep-alives and payloads of a client have its prefix, whatever was sent before.
func TestConfirmsWithItsPrefix(t *testing.T) {
	w, c, _ := capture(t)
	w.wire = nil
	for i := range c.out {
		c.out[i] = 0xaa
	}
	c.say(w.now)
	require.Equal(t, c.prefix, first(w.lastSent(1)[0].p))
}
