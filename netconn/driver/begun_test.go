package driver

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// begins is a server of PlainUnreal, and those that ask it for connections.
type begins struct {
	t     *testing.T
	link  PlainUnreal
	s     *udptest.Wire
	d     *Driver
	clock time.Time
	acks  int // of the server's
}

func newBegins(t *testing.T, cfg Config) *begins {
	b := &begins{t: t, link: PlainUnreal51(), s: udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:1234")), clock: time.Unix(1_700_000_000, 0)}
	cfg.Link, cfg.Socket, cfg.Clock, cfg.Channels = b.link, b.s, func() time.Time { return b.clock }, chat(&echo{})
	var err error
	b.d, err = Listen("", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.d.Close() })
	return b
}

func (b *begins) write(p handshake.Packet) []byte {
	var w bitio.Writer
	w.Reset(make([]byte, 128))
	p.MinVersion, p.CurVersion = b.link.Handshake.MinVersion, b.link.Handshake.Version
	b.link.Handshake.Write(&w, &p, make([]byte, 8))
	return slices.Clone(w.Bytes())
}

// tick is a tick in which these addresses ask first. It returns what they would respond.
func (b *begins) tick(initials ...netip.AddrPort) (responses []udp.Message) {
	for _, a := range initials {
		b.s.In = append(b.s.In, udp.Message{Buf: b.write(handshake.Packet{Type: handshake.Initial}), Addr: a})
	}
	b.clock = b.clock.Add(time.Second / 60)
	b.s.Out = nil
	b.d.TickDispatch(b.clock)
	b.d.TickFlush(b.clock)
	for _, m := range b.s.Out {
		p, err := b.link.Handshake.Read(m.Buf, true)
		if err == nil && p.Type == handshake.Ack {
			b.acks++
		}
		if err != nil || p.Type != handshake.Challenge {
			continue
		}
		p.Type = handshake.Response
		responses = append(responses, udp.Message{Buf: b.write(p), Addr: m.Addr})
	}
	return responses
}

// arrive has these come, in as many ticks as it takes to read them.
func (b *begins) arrive(responses []udp.Message) {
	b.s.In = append(b.s.In, responses...)
	for len(b.s.In) > 0 {
		b.tick()
	}
}

// TestBeginsAnewAllTheTime: a stranger that proves its address again and again, at each of its ports, has few connections begin, and takes nobody's time. Who comes from elsewhere is let in
// meanwhile, however long his path is, and so is one of the same address a little later.
func TestBeginsAnewAllTheTime(t *testing.T) {
	begun, ended := map[netip.Addr]int{}, 0
	b := newBegins(t, Config{Accepted: func(c *Conn) { begun[c.RemoteAddr().Addr()]++ }, Closed: func(*Conn, netconn.CloseResult) { ended++ }})
	stranger, honest, neighbour := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddrPort("198.51.100.1:4242"), netip.MustParseAddrPort("192.0.2.7:99")
	var kept []udp.Message // responses of the stranger's
	var ports []netip.AddrPort
	for port := range uint16(64) {
		ports = append(ports, netip.AddrPortFrom(stranger, 1000+port))
	}
	for range 5 * 60 {
		kept = append(kept, b.tick(ports...)...)
	}
	slow := b.tick(honest)
	for range 30 {
		b.tick()
	}
	b.arrive(kept)
	require.LessOrEqual(t, begun[stranger], 2*minBegunPerAddr)
	require.Equal(t, begun[stranger], b.acks, "who has to ask again isn't told that it is let in")
	require.EqualValues(t, len(kept)-begun[stranger], b.d.Counters.NoRoom)
	require.LessOrEqual(t, ended, minBegunPerAddr)
	b.arrive(slow)
	require.Equal(t, 1, begun[honest.Addr()])

	before := begun[stranger]
	late := b.tick(neighbour)
	for range 90 {
		b.tick()
	}
	b.arrive(late)
	require.Equal(t, before, begun[stranger], "it has all places of its address")
	b.clock = b.clock.Add(time.Minute) // the stranger's time out
	for range 120 {
		b.clock = b.clock.Add(time.Second / 2)
		b.tick()
	}
	b.arrive(b.tick(neighbour))
	require.Equal(t, before+1, begun[stranger])
}

// TestLineOfIPv6BeginsAnew: who has one line of IPv6, and so 256 /64s, has hardly more connections begin than one of a single address, and who comes from elsewhere is let in meanwhile.
func TestLineOfIPv6BeginsAnew(t *testing.T) {
	begun := map[netip.AddrPort]int{}
	b := newBegins(t, Config{Accepted: func(c *Conn) { begun[c.RemoteAddr()]++ }})
	var line []netip.AddrPort
	for i := range byte(100) {
		line = append(line, netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 1, i, 15: 1}), 1000))
	}
	var kept []udp.Message
	for range 60 {
		kept = append(kept, b.tick(line...)...)
	}
	honest := netip.MustParseAddrPort("[2001:db8:2::1]:4242")
	slow := b.tick(honest)
	for range 18 {
		b.tick()
	}
	b.arrive(kept)
	b.arrive(slow)
	require.Equal(t, 1, begun[honest])
	n := 0
	for a, times := range begun {
		if a != honest {
			n += times
		}
	}
	require.LessOrEqual(t, n, 2*4*minBegunPerAddr)
	require.GreaterOrEqual(t, n, 4*minBegunPerAddr)
}

// TestAllAtOnce: as many clients as a server has room for begin in one tick, as after its restart, and all are let in at once, however large MaxPerAddr is.
func TestAllAtOnce(t *testing.T) {
	const many = 5000
	begun := 0
	b := newBegins(t, Config{MaxConns: many, MaxPerAddr: math.MaxInt, Accepted: func(*Conn) { begun++ }})
	var all []netip.AddrPort
	for i := range uint16(many) {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i), byte(i >> 8), 1}), 1000))
	}
	responses := b.tick(all...)
	for len(b.s.In) > 0 {
		responses = append(responses, b.tick()...)
	}
	b.arrive(responses)
	require.Equal(t, many, begun)
}
