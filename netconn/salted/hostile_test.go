package salted

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var frame = newFramer(protocol)

func request(salt uint64) []byte {
	p := make([]byte, PaddedSize)
	putFirst(p, salt)
	return frame.close(p, typeRequest)
}

func response(prefix, salt uint64) []byte {
	p := make([]byte, PaddedSize)
	putFirst(p, prefix)
	putSecond(p, salt)
	return frame.close(p, typeResponse)
}

// capture connects a client and returns all it sent.
func capture(t *testing.T) (w *world, c *testClient, sent [][]byte) {
	w = newWorld(t, 5, ServerConfig{Slots: 4})
	w.cut = func(d *datagram) bool {
		if d.to == serverAddr {
			sent = append(sent, bytes.Clone(d.p))
		}
		return false
	}
	c = w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(300 * time.Millisecond)
	require.NoError(t, c.SendPayload(w.now, payload("payload")))
	w.run(100 * time.Millisecond)
	require.Equal(t, Connected, c.State())
	return w, c, sent
}

// heap is the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHostileSpoofedFloods(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	s := w.server
	s.send = nil
	rng := rand.New(rand.NewPCG(1, 1))
	p, r := request(0), response(0, 0)
	before := heap()
	for i := range 100_000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), uint16(i))
		putFirst(p, rng.Uint64())
		s.receive(w.now, from, frame.close(p, typeRequest))
		putFirst(r, rng.Uint64())
		putSecond(r, rng.Uint64())
		s.receive(w.now, from, frame.close(r, typeResponse))
	}
	require.Zero(t, s.Clients())
	require.EqualValues(t, 100_000, s.Counters.Requests)
	require.EqualValues(t, 100_000, s.Counters.BadSalt)
	require.Less(t, int64(heap())-int64(before), int64(64<<10), "memory is flat")

	s.send = func(to netip.AddrPort, p []byte) { w.push(serverAddr, to, p) }
	c := w.client(1)
	require.NoError(t, c.Connect(w.now, serverAddr))
	w.run(200 * time.Millisecond)
	require.Equal(t, Connected, c.State())
}

// A challenge is good for one address and one salt.
func TestHostileStolenChallenge(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	var challenge []byte
	w.server.send = func(_ netip.AddrPort, p []byte) { challenge = bytes.Clone(p) }
	w.server.receive(0, clientAddr(1), request(77))
	prefix := first(challenge) ^ second(challenge)
	port := netip.AddrPortFrom(clientAddr(1).Addr(), 9)
	w.server.receive(0, clientAddr(2), response(prefix, 77))
	w.server.receive(0, port, response(prefix, 77))
	w.server.receive(0, clientAddr(1), response(prefix^1, 77))
	w.server.receive(0, clientAddr(1), response(prefix, 78))
	require.EqualValues(t, 4, w.server.Counters.BadSalt)
	w.server.receive(21*time.Second, clientAddr(1), response(prefix, 77))
	require.EqualValues(t, 5, w.server.Counters.BadSalt, "and for 20 s at most")
	require.Zero(t, w.server.Clients())
}

func TestChallengeOutlivesRotation(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	var challenge []byte
	w.server.send = func(_ netip.AddrPort, p []byte) { challenge = bytes.Clone(p) }
	w.server.receive(9*time.Second, clientAddr(1), request(77))
	prefix := first(challenge) ^ second(challenge)
	w.server.receive(11*time.Second, clientAddr(2), request(1))
	w.server.receive(14*time.Second, clientAddr(1), response(prefix, 77))
	require.Equal(t, 1, w.server.Clients())
}

func TestHostileReplays(t *testing.T) {
	w, c, sent := capture(t)
	for i := range 8 {
		for _, p := range sent {
			w.server.receive(w.now, clientAddr(100+i), bytes.Clone(p))
		}
	}
	require.Equal(t, 1, w.server.Clients(), "from elsewhere nothing is worth anything")
	for _, p := range sent {
		w.server.receive(w.now, c.addr, bytes.Clone(p))
	}
	require.Equal(t, 1, w.server.Clients())
	require.Empty(t, w.server.left)

	c.Disconnect(w.now)
	w.run(100 * time.Millisecond)
	c.gone = true
	for _, p := range sent {
		w.server.receive(w.now, c.addr, bytes.Clone(p))
	}
	require.Zero(t, w.server.Clients(), "the response of a past connection")
	require.EqualValues(t, 1, w.server.Counters.Replayed)
}

// A late response of the old connection doesn't replace the new one.
func TestHostileOldResponseAfterReplace(t *testing.T) {
	w, c, sent := capture(t)
	c.gone = true
	again := w.client(1)
	require.NoError(t, again.Connect(w.now, serverAddr))
	w.run(300 * time.Millisecond)
	require.Equal(t, Connected, again.State())
	for _, p := range sent {
		w.server.receive(w.now, c.addr, bytes.Clone(p))
	}
	require.EqualValues(t, 1, w.server.Counters.Replaced)
	require.Equal(t, 1, w.server.Clients())
}

// Every bit of every packet, flipped alone, and every length, cut off.
func TestHostileFlipsAndTruncations(t *testing.T) {
	w, c, sent := capture(t)
	seen := map[packetType]bool{}
	for _, p := range sent {
		if seen[packetType(p[4])] {
			continue
		}
		seen[packetType(p[4])] = true
		payloads, clients := len(w.server.got), w.server.Clients()
		for bit := range len(p) * 8 {
			q := bytes.Clone(p)
			q[bit/8] ^= 1 << (bit % 8)
			w.server.receive(w.now, c.addr, q)
			w.server.receive(w.now, clientAddr(50), q)
		}
		for n := range len(p) {
			w.server.receive(w.now, c.addr, bytes.Clone(p[:n]))
			w.server.receive(w.now, clientAddr(50), bytes.Clone(p[:n]))
		}
		require.Len(t, w.server.got, payloads)
		require.Equal(t, clients, w.server.Clients())
	}
	require.Len(t, seen, 4)
	require.Positive(t, w.server.Counters.BadChecksum)
	require.Positive(t, w.server.Counters.TooShort)
}

// Well-framed packets of wrong sizes and paddings.
func TestHostileShapes(t *testing.T) {
	w, c, _ := capture(t)
	s := w.server
	prefix := s.slots[0].prefix
	shape := func(kind packetType, size int, prefix uint64) []byte {
		p := make([]byte, size)
		putFirst(p, prefix)
		return frame.close(p, kind)
	}
	for size := Overhead; size <= MaxPacket+1; size++ {
		for kind := packetType(0); kind < 10; kind++ {
			if size == disconnectSize && kind == typeDisconnect || kind == typePayload && size > Overhead {
				continue
			}
			s.receive(w.now, c.addr, shape(kind, size, prefix))
			s.receive(w.now, c.addr, shape(kind, size, prefix+1))
		}
	}
	s.receive(w.now, c.addr, shape(typePayload, MaxPacket, prefix^1<<63))
	s.receive(w.now, c.addr, shape(typeDisconnect, disconnectSize, prefix^1<<63))
	p := request(1)
	p[PaddedSize-1] = 1
	s.receive(w.now, clientAddr(9), frame.close(p, typeRequest))
	require.EqualValues(t, 1, s.Counters.BadPadding)
	require.Len(t, s.got, 1)
	require.Empty(t, s.left)
	require.Equal(t, 1, s.Clients())
}

// What a client gets from people who don't know its salt does nothing.
func TestHostileToClient(t *testing.T) {
	w := newWorld(t, 1, ServerConfig{})
	c := w.client(1)
	w.loss = 1
	require.NoError(t, c.Connect(w.now, serverAddr))
	rng := rand.New(rand.NewPCG(1, 1))
	attack := func() {
		for kind := packetType(0); kind < 10; kind++ {
			for _, size := range []int{13, 14, 17, 21, 100, 1000, MaxPacket} {
				p := make([]byte, size)
				putFirst(p, rng.Uint64())
				c.Receive(w.now, serverAddr, frame.close(p, kind))
			}
		}
	}
	attack()
	require.Equal(t, SendingRequest, c.State())
	w.loss = 0
	w.cut = func(d *datagram) bool { return packetType(d.p[4]) == typeKeepAlive }
	w.run(300 * time.Millisecond)
	require.Equal(t, SendingResponse, c.State())
	attack()
	require.Equal(t, SendingResponse, c.State())
	w.cut = nil
	w.run(300 * time.Millisecond)
	require.Equal(t, Connected, c.State())
	attack()
	require.Equal(t, Connected, c.State())
	require.Empty(t, c.got)
	c.Receive(w.now, clientAddr(3), []byte("from elsewhere"))
	require.EqualValues(t, 1, c.Counters.NoSession)
}

func TestHostileRandom(t *testing.T) {
	w, c, _ := capture(t)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 100_000 {
		p := make([]byte, rng.IntN(60))
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		w.server.receive(w.now, c.addr, p)
		c.Receive(w.now, serverAddr, p)
	}
	require.Equal(t, 1, w.server.Clients())
	require.Equal(t, Connected, c.State())
}

// FuzzServer feeds packets, with right checksums or not, from a few addresses.
func FuzzServer(f *testing.F) {
	f.Add([]byte{1, 2, 3}, true, uint8(0))
	f.Add(request(5), false, uint8(1))
	f.Add(response(5, 6), true, uint8(2))
	w := newWorld(f, 1, ServerConfig{Slots: 2})
	f.Fuzz(func(t *testing.T, p []byte, sum bool, from uint8) {
		w.server.t = t
		if sum && len(p) >= Overhead {
			frame.close(p, packetType(p[4]))
		}
		w.server.receive(w.now, clientAddr(int(from%4)), p)
		w.server.Tick(w.now)
	})
}

// FuzzClient does the same to a client in each state.
func FuzzClient(f *testing.F) {
	f.Add([]byte{1, 2, 3}, true, uint8(0))
	f.Add(make([]byte, challengeSize), true, uint8(typeChallenge))
	f.Add(make([]byte, serverKeepAliveSize), true, uint8(typeKeepAlive))
	f.Fuzz(func(t *testing.T, p []byte, sum bool, kind uint8) {
		w := newWorld(t, 1, ServerConfig{})
		c := w.client(1)
		require.NoError(t, c.Connect(w.now, serverAddr))
		for range 3 {
			q := bytes.Clone(p)
			if sum && len(q) >= Overhead {
				putFirst(q, c.prefix)
				if c.state == SendingRequest {
					putFirst(q, c.salt)
				}
				frame.close(q, packetType(kind))
			}
			c.Receive(w.now, serverAddr, q)
			c.Tick(w.now)
			w.run(50 * time.Millisecond)
		}
	})
}
