package link

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tap keeps what a Link puts out.
type tap struct {
	datagrams [][]byte
	messages  []string
}

func (t *tap) Datagram(p []byte) { t.datagrams = append(t.datagrams, append([]byte(nil), p...)) }
func (t *tap) Message(m []byte)  { t.messages = append(t.messages, string(m)) }
func (t *tap) take() [][]byte    { d := t.datagrams; t.datagrams = nil; return d }

func newLink(t testing.TB, c Config) (*Link, *tap) {
	h := &tap{}
	l, err := New(c, h)
	require.NoError(t, err)
	return l, h
}

const noPing = -1

func TestBytes(t *testing.T) {
	l, h := newLink(t, Config{PingInterval: noPing})
	require.NoError(t, l.Send(0, []byte("go")))
	require.NoError(t, l.Send(0, []byte("!")))
	l.Tick(0)
	d := h.take()
	require.Len(t, d, 1)
	// type 1 and L | ACK none | SEQ 0, 2 bytes | SEQ 1, 1 byte
	require.Equal(t, "11ffff"+"000002676f"+"01000121", hex.EncodeToString(d[0][2:]))
	require.Equal(t, slowCRC(d[0][2:]), binary.LittleEndian.Uint16(d[0]))

	peer, heard := newLink(t, Config{AckDelay: -1})
	require.NoError(t, peer.Receive(0, d[0]))
	require.Equal(t, []string{"go", "!"}, heard.messages)
	peer.Tick(0)
	d = heard.take()
	require.Len(t, d, 2)
	require.Equal(t, "1301000000"+"00", hex.EncodeToString(d[0][2:]), "pure ack")
	require.Equal(t, "1201000100"+"00", hex.EncodeToString(d[1][2:]), "ping 1")
	require.NoError(t, l.Receive(10*time.Millisecond, d[0]))
	require.NoError(t, l.Receive(10*time.Millisecond, d[1]))
	l.Tick(10 * time.Millisecond)
	d = h.take()
	require.Len(t, d, 1)
	require.Equal(t, "13ffff010000", hex.EncodeToString(d[0][2:]), "ack that answers ping 1")
	require.NoError(t, peer.Receive(20*time.Millisecond, d[0]))
	require.Equal(t, 20*time.Millisecond, peer.Stats().SRTT)
	require.Equal(t, 10*time.Millisecond, l.Stats().SRTT)
}

// bigEndian is the datagram as a peer of the other byte order writes it.
func bigEndian(p []byte) []byte {
	q := append([]byte(nil), p...)
	swap := func(i int) { q[i], q[i+1] = q[i+1], q[i] }
	q[2] &^= littleEndian
	swap(3)
	for i := 5; i < len(q); i += packedBytes + int(q[i+2]) {
		swap(i)
	}
	binary.BigEndian.PutUint16(q, crc16(crcInit, q[2:]))
	return q
}

func TestBigEndianPeer(t *testing.T) {
	l, h := newLink(t, Config{PingInterval: noPing})
	for i := range 200 {
		require.NoError(t, l.Send(0, []byte(fmt.Sprint(i))))
		l.Tick(0)
	}
	peer, heard := newLink(t, Config{})
	for _, d := range h.take() {
		require.NoError(t, peer.Receive(0, bigEndian(d)))
	}
	require.Len(t, heard.messages, 200)
	require.Equal(t, "199", heard.messages[199])
}

func TestRefusals(t *testing.T) {
	l, h := newLink(t, Config{PingInterval: noPing})
	for _, m := range []string{"", "a", "bc"} {
		require.NoError(t, l.Send(0, []byte(m)))
	}
	l.Tick(0)
	whole := h.take()[0]
	peer, heard := newLink(t, Config{})
	reseal := func(p []byte) []byte {
		binary.LittleEndian.PutUint16(p, crc16(crcInit, p[2:]))
		return p
	}
	clone := func() []byte { return append([]byte(nil), whole...) }
	for n := range whole {
		require.Error(t, peer.Receive(0, whole[:n]), "prefix of %d", n)
		if n > HeaderBytes {
			p := reseal(clone()[:n])
			if err := peer.Receive(0, p); err == nil {
				require.Equal(t, 12, n, "only a prefix that ends with a message is a datagram")
			} else {
				require.ErrorIs(t, err, ErrLength)
			}
		}
	}
	heard.messages = nil
	for bit := range len(whole) * 8 {
		p := clone()
		p[bit>>3] ^= 1 << (bit & 7)
		require.Error(t, peer.Receive(0, p))
	}
	for _, typ := range []byte{0x10, 0x14, 0x1f, 0x31, 0x51, 0x91} {
		p := clone()
		p[2] = typ
		require.ErrorIs(t, peer.Receive(0, reseal(p)), ErrHeader)
	}
	p := clone()
	p[2] = 0x12
	require.ErrorIs(t, peer.Receive(0, reseal(p)), ErrLength, "a ping with data")
	ping0 := reseal([]byte{0, 0, 0x12, 0xff, 0xff, 0, 0, 0})
	require.ErrorIs(t, peer.Receive(0, ping0), ErrHeader)
	ahead := reseal([]byte{0, 0, 0x13, 0, 0, 0, 0, 0})
	require.ErrorIs(t, peer.Receive(0, ahead), ErrAckAhead)
	require.NoError(t, peer.Send(0, []byte("queued")))
	require.ErrorIs(t, peer.Receive(0, ahead), ErrAckAhead, "queued isn't sent")
	s := peer.Stats()
	require.NotZero(t, s.RefusedShort)
	require.EqualValues(t, 7, s.RefusedHeader)
	require.EqualValues(t, 2, s.RefusedAckAhead)
}

func TestBounds(t *testing.T) {
	l, h := newLink(t, Config{Window: 4, PingInterval: noPing})
	require.ErrorIs(t, l.Send(0, make([]byte, 256)), ErrTooLarge)
	for i := range 4 {
		require.NoError(t, l.Send(0, []byte{byte(i)}))
	}
	require.ErrorIs(t, l.Send(0, nil), ErrFull)
	require.Zero(t, l.Free())
	l.Tick(0)
	d := h.take()
	narrow, heard := newLink(t, Config{Window: 2})
	p := d[0]
	// Without message 0, message 2 is beyond a window of 2.
	p = append(p[:5:5], p[9:]...)
	binary.LittleEndian.PutUint16(p, crc16(crcInit, p[2:]))
	require.NoError(t, narrow.Receive(0, p))
	require.Empty(t, heard.messages)
	require.EqualValues(t, 2, narrow.Stats().DroppedBeyond)
	require.NoError(t, narrow.Receive(0, d[0]))
	require.Len(t, heard.messages, 4)
	require.EqualValues(t, 1, narrow.Stats().DroppedDuplicate)
}

// TestConversation: a datagram of another conversation is refused.
func TestConversation(t *testing.T) {
	first, h := newLink(t, Config{Conversation: 1, PingInterval: noPing})
	require.NoError(t, first.Send(0, []byte("late")))
	first.Tick(0)
	d := h.take()[0]
	for n, want := range map[uint32]error{0: ErrChecksum, 1: nil, 2: ErrChecksum} {
		l, _ := newLink(t, Config{Conversation: n})
		require.ErrorIs(t, l.Receive(0, d), want)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{Window: 3}, {Window: 1 << 15}, {MTU: 100}, {MTU: 70000}, {MinRTO: time.Hour}, {Backoff: 0.5}, {Backoff: 9}, {InitialRTO: -1}} {
		_, err := New(c, &tap{})
		require.ErrorIs(t, err, ErrConfig)
	}
}

// TestPacking compares with the bytes there are to carry: first-fit never wastes
// a whole smallest message in any datagram but the last ones.
func TestPacking(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		l, h := newLink(t, Config{MTU: 600, PingInterval: noPing})
		total := 0
		for range 200 {
			n := rng.IntN(256)
			require.NoError(t, l.Send(0, make([]byte, n)))
			total += n + packedBytes
		}
		l.Tick(0)
		d := h.take()
		room := 600 - (HeaderBytes - packedBytes)
		least := (total + room - 1) / room
		require.LessOrEqual(t, len(d), least+2)
		for _, p := range d {
			require.LessOrEqual(t, len(p), 600)
		}
	}
}

// TestTimers is one message on a dead path, then Karn's rule on a live one.
func TestTimers(t *testing.T) {
	l, h := newLink(t, Config{PingInterval: noPing})
	require.NoError(t, l.Send(0, []byte("x")))
	var times []time.Duration
	for now := time.Duration(0); now < 5*time.Second; now += time.Millisecond {
		l.Tick(now)
		for range h.take() {
			times = append(times, now.Round(time.Millisecond))
		}
	}
	ms := time.Millisecond
	// 250 * 1.5^n up to MaxRTO.
	require.Equal(t, []time.Duration{0, 250 * ms, 625 * ms, 1188 * ms, 2032 * ms, 3032 * ms, 4032 * ms}, times)
	ack := []byte{0, 0, 0x13, 0, 0, 0, 0, 0}
	binary.LittleEndian.PutUint16(ack, crc16(crcInit, ack[2:]))
	require.NoError(t, l.Receive(5*time.Second, ack))
	require.Zero(t, l.Stats().SRTT, "resent: no sample")
	require.Zero(t, l.Stats().Unacked)
}

func loop(t testing.TB, size int) func() {
	a, b := &pipeEnd{}, &pipeEnd{}
	var err error
	a.l, err = New(Config{}, a)
	require.NoError(t, err)
	b.l, err = New(Config{}, b)
	require.NoError(t, err)
	a.peer, b.peer = b, a
	msg := make([]byte, size)
	return func() {
		a.now += 10 * time.Millisecond
		b.now = a.now
		for range 8 {
			if err := a.l.Send(a.now, msg); err != nil {
				t.Fatal(err)
			}
		}
		a.l.Tick(a.now)
		b.l.Tick(a.now + 5*time.Millisecond)
		if a.l.Stats().Unacked != 0 {
			t.Fatal("not acked")
		}
	}
}

// pipeEnd delivers at once.
type pipeEnd struct {
	l    *Link
	peer *pipeEnd
	now  time.Duration
}

func (e *pipeEnd) Datagram(p []byte) { _ = e.peer.l.Receive(e.now, p) }
func (e *pipeEnd) Message([]byte)    {}

func TestAllocs(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(1000, loop(t, 20)))
}

// BenchmarkEightMessages sends, packs, receives and acks eight messages of 20 bytes.
func BenchmarkEightMessages(b *testing.B) {
	f := loop(b, 20)
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

// FuzzReceive plays datagrams, each led by its length and sealed so that the checksum
// isn't all there is to test.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{11, 0, 0, 0x11, 0xff, 0xff, 0, 0, 3, 'a', 'b', 'c'})
	f.Add([]byte{8, 0, 0, 0x12, 0xff, 0xff, 1, 0, 0, 8, 0, 0, 0x13, 0, 0, 1, 0, 0})
	f.Add([]byte{8, 0, 0, 0x01, 0xff, 0xff, 0, 9, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		l, h := newLink(t, Config{Window: 8})
		var now time.Duration
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			p := data[1 : 1+n : 1+n]
			data = data[1+n:]
			now += 20 * time.Millisecond
			_ = l.Send(now, []byte{1})
			_ = l.Receive(now, p)
			if n >= HeaderBytes {
				var c [2]byte
				binary.LittleEndian.PutUint16(c[:], crc16(crcInit, p[2:]))
				if p[2]&littleEndian == 0 {
					c[0], c[1] = c[1], c[0]
				}
				_ = l.Receive(now, append(c[:], p[2:]...))
			}
			l.Tick(now)
			h.take()
		}
		require.EqualValues(t, len(h.messages), l.Stats().MessagesReceived)
		require.LessOrEqual(t, l.Stats().Unacked, 8)
	})
}

type console struct{ name string }

var network = map[string][][]byte{}

func (c console) Datagram(p []byte) {
	network[c.name] = append(network[c.name], append([]byte(nil), p...))
}
func (c console) Message(m []byte) { fmt.Printf("%s heard %q\n", c.name, m) }

func Example() {
	a, _ := New(Config{}, console{"a"})
	b, _ := New(Config{}, console{"b"})

	_ = a.Send(0, []byte("move 7"))
	_ = a.Send(0, []byte("attack"))
	a.Tick(0)
	network["a"] = network["a"][1:] // the datagram with both is lost; the ping isn't
	a.Tick(250 * time.Millisecond)
	for _, p := range network["a"] {
		_ = b.Receive(260*time.Millisecond, p)
	}
	fmt.Println("resent", a.Stats().MessagesResent)
	// Output:
	// b heard "move 7"
	// b heard "attack"
	// resent 2
}

// TestClockFromAnywhere: before the first Tick a ping is due, whatever the clock counts from.
func TestClockFromAnywhere(t *testing.T) {
	for _, from := range []time.Duration{-10 * time.Hour, 0, 1_800_000_000 * time.Second} {
		l, h := newLink(t, Config{})
		at, ok := l.NextDeadline()
		require.True(t, ok)
		require.LessOrEqual(t, at, from)
		l.Tick(from)
		require.Len(t, h.take(), 1, "%v", from)
		at, _ = l.NextDeadline()
		require.Greater(t, at, from)
	}
}

// TestClockSetBack: a message that was lost is sent again in time, and pings go on, when the clock is set back.
func TestClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{500 * time.Millisecond, 10 * time.Second, 24 * time.Hour} {
		l, h := newLink(t, Config{})
		now := 1_800_000_000 * time.Second
		require.NoError(t, l.Send(now, []byte("lost")))
		l.Tick(now)
		require.Zero(t, l.LastHeard(), "by %v", back)
		peer, heard := newLink(t, Config{})
		peer.Tick(now)
		for _, d := range heard.take() {
			require.NoError(t, l.Receive(now, d))
		}
		h.take()
		now -= back
		require.NoError(t, l.Send(now, []byte("new")))
		require.Equal(t, now, l.LastHeard(), "by %v", back) // none of the time since has passed
		for range 200 {
			now += 10 * time.Millisecond
			l.Tick(now)
			at, ok := l.NextDeadline()
			require.True(t, ok)
			require.InDelta(t, now, at, float64(1100*time.Millisecond), "by %v", back)
		}
		require.GreaterOrEqual(t, l.Stats().MessagesResent, uint64(3), "by %v", back)
		require.GreaterOrEqual(t, l.Stats().PingsSent, uint64(4), "by %v", back)
	}
}
