package driver

import (
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

// TestBeginsAnewAllTheTime: a stranger that proves its address again and again, at each of its ports, has few connections begin, and takes nobody's time. Who comes from elsewhere is let in
// meanwhile, however long his path is, and so is one of the same address a little later.
func TestBeginsAnewAllTheTime(t *testing.T) {
	link := PlainUnreal51()
	s := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:1234"))
	clock := time.Unix(1_700_000_000, 0)
	begun, ended := map[netip.Addr]int{}, 0
	d, err := Listen("", Config{Link: link, Socket: s, Clock: func() time.Time { return clock }, Channels: chat(&echo{}),
		Accepted: func(c *Conn) { begun[c.RemoteAddr().Addr()]++ }, Closed: func(*Conn, netconn.CloseResult) { ended++ }})
	require.NoError(t, err)
	defer d.Close()
	write := func(p handshake.Packet) []byte {
		var w bitio.Writer
		w.Reset(make([]byte, 128))
		p.MinVersion, p.CurVersion = link.Handshake.MinVersion, link.Handshake.Version
		link.Handshake.Write(&w, &p, make([]byte, 8))
		return slices.Clone(w.Bytes())
	}
	stranger, honest, neighbour := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddrPort("198.51.100.1:4242"), netip.MustParseAddrPort("192.0.2.7:99")
	var kept []udp.Message // responses of the stranger's
	tick := func(initials ...netip.AddrPort) (responses []udp.Message) {
		for _, a := range initials {
			s.In = append(s.In, udp.Message{Buf: write(handshake.Packet{Type: handshake.Initial}), Addr: a})
		}
		clock = clock.Add(time.Second / 60)
		s.Out = nil
		d.TickDispatch(clock)
		d.TickFlush(clock)
		for _, m := range s.Out {
			p, err := link.Handshake.Read(m.Buf, true)
			if err != nil || p.Type != handshake.Challenge {
				continue
			}
			p.Type = handshake.Response
			responses = append(responses, udp.Message{Buf: write(p), Addr: m.Addr})
		}
		return responses
	}
	var ports []netip.AddrPort
	for port := range uint16(64) {
		ports = append(ports, netip.AddrPortFrom(stranger, 1000+port))
	}
	for range 5 * 60 {
		kept = append(kept, tick(ports...)...)
	}
	slow := tick(honest)
	for range 30 {
		tick()
	}
	s.In = append(s.In, kept...)
	for len(s.In) > 0 {
		tick()
	}
	require.LessOrEqual(t, begun[stranger], 2*minBegunPerAddr)
	require.LessOrEqual(t, ended, minBegunPerAddr)
	s.In = append(s.In, slow...)
	tick()
	require.Equal(t, 1, begun[honest.Addr()])

	before := begun[stranger]
	late := tick(neighbour)
	for range 90 {
		tick()
	}
	s.In = append(s.In, late...)
	tick()
	require.Equal(t, before, begun[stranger], "it has all places of its address")
	clock = clock.Add(time.Minute) // the stranger's time out
	for range 120 {
		clock = clock.Add(time.Second / 2)
		tick()
	}
	late = tick(neighbour)
	s.In = append(s.In, late...)
	tick()
	require.Equal(t, before+1, begun[stranger])
}
