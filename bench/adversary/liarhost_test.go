package main

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/salted"
)

var (
	hostSeeds = flag.Int("hosts", 0, "seeds of TestLiarHosts; 0 a few")
	hostFirst = flag.Uint64("hostfirst", 0, "the first of them")
)

// liarHost is a server that speaks each link, and whose packets are rewritten on their way to its one client, a driver's.
type liarHost struct {
	hallLiar
	login *control.Server

	// one of these is its link
	netcode *netcode.Server
	salted  *salted.Server
	unreal  *handshake.Server
	accept  handshake.Accept
}

func newLiarHost(p *hallPlayer, program hallProgram) (l *liarHost, err error) {
	h := p.hall
	l = &liarHost{hallLiar: hallLiar{guest: p.guest, hallProgram: program, rng: rand.New(rand.NewPCG(program.seed, 1))}}
	for i := range l.program { // half of them from the beginning, in the login as well
		if d := &l.program[i]; l.rng.IntN(2) == 0 {
			d.from, d.until = 0, d.until-d.from
		}
	}
	l.coat, l.game = newTurncoat(l.rng), newBusybody(l.rng)
	l.coat.program, l.coat.server = l.program, true
	l.coat.proto = h.setting.protocol.Bunch
	l.coat.largest = l.coat.proto.PacketBytes()
	switch h.setting.link {
	case "netcode":
		l.netcode, err = netcode.NewServer(netcode.ServerConfig{ProtocolID: 42, PrivateKey: gameKey, Addrs: []netip.AddrPort{gameAddr}, Slots: 1, Handler: netcodeHost{l}, Timeout: -1,
			UnixAtZero: uint64(hallEpoch.Unix()), Rand: h})
	case "salted":
		l.salted, err = salted.NewServer(salted.ServerConfig{ProtocolID: 42, Slots: 1, Handler: saltedHost{l}, Rand: h})
	default:
		l.unreal, err = handshake.NewServer(handshake.ServerConfig{Protocol: h.setting.handshake(), Handler: unrealHost{l}, Rand: h})
	}
	return l, err
}

// Send and Payload are callbacks of the link's machine.
func (l *liarHost) Send(_ netip.AddrPort, p []byte) { l.down.Push(l.hall.now, p) }
func (l *liarHost) Payload(_ int, p []byte)         { l.hear(p) }

type (
	netcodeHost struct{ *liarHost }
	saltedHost  struct{ *liarHost }
	unrealHost  struct{ *liarHost }
)

func (l netcodeHost) Connected(int, netcode.ClientInfo) { l.begin(1, 1) }
func (l netcodeHost) Disconnected(int, netcode.Reason)  { l.conn = nil }
func (l saltedHost) Connected(int, salted.ClientInfo)   { l.begin(1, 1) }
func (l saltedHost) Disconnected(int, salted.Reason)    { l.conn = nil }
func (l unrealHost) Accepted(_ netip.AddrPort, a handshake.Accept) bool {
	l.accept = a
	l.begin(a.ClientSeq, a.ServerSeq)
	return true
}
func (l unrealHost) Restarted(netip.AddrPort, handshake.Cookie, float64) bool {
	return l.rng.IntN(2) == 0
}

// begin makes the connection.
func (l *liarHost) begin(in, out uint16) {
	l.coat.last, l.coat.heard = int64(out)-1, int64(in)-1
	types := append([]channel.Type{{Name: bunch.Control, ClientOpen: true, Static: true, Accept: func(*channel.Channel) channel.Handler { return (*hostLogin)(l) }}},
		hallTypes(func(ch *channel.Channel) channel.Handler {
			if ch.Name() == hallPing {
				return hallEcho{}
			}
			return l.game.take(ch.Name())
		})...)
	c, err := netconn.New(netconn.Config{Server: true, Protocol: l.hall.setting.protocol, Channels: types, NetSpeed: 1_000_000, Timeout: -1, Headroom: hallRoom,
		LowLevelSend: func(p []byte) { l.say(p[hallRoom:], l.payload) }}, l.hall.now, in, out)
	if err != nil {
		panic(err) // the settings are ours
	}
	l.conn, l.game.conn = c, c
	l.coat.nameOf, l.coat.first = namesOf(c), int64(out)
	l.login = control.NewServer(control.ServerConfig{Admitted: func() { l.in = true }}, sendLogin(c))
}

// hostLogin is the handler of its control channel.
type hostLogin liarHost

func (l *hostLogin) ReceivedBunch(_ *channel.Channel, in *bunch.In) { _ = l.login.Receive(&in.Data) }
func (*hostLogin) ReceivedAck(*channel.Channel, int64)              {}
func (*hostLogin) ReceivedNak(*channel.Channel, int64)              {}
func (*hostLogin) Closed(*channel.Channel, channel.CloseReason)     {}

func (l *liarHost) prefix() *handshake.Component {
	return &handshake.Component{Protocol: l.hall.setting.handshake(), SessionID: l.accept.SessionID, ClientID: l.accept.ClientID}
}

// payload sends what has become of a packet.
func (l *liarHost) payload(q []byte) {
	room := func(head, tail int) []byte { return append(make([]byte, head, head+len(q)+tail), q...) }
	switch {
	case l.netcode != nil:
		_ = l.netcode.SendPayload(l.hall.now, 0, room(netcode.Headroom, netcode.Tailroom)) // too large, perhaps
	case l.salted != nil:
		_ = l.salted.SendPayload(l.hall.now, 0, room(salted.Headroom, 0))
	default:
		l.down.Push(l.hall.now, prefixed(l.prefix(), q))
	}
}

func (l *liarHost) step() {
	now := l.hall.now
	for p, ok := l.up.Pop(now); ok; p, ok = l.up.Pop(now) {
		switch pr := l.hall.setting.handshake(); {
		case l.netcode != nil:
			l.netcode.Receive(now, l.addr, p)
		case l.salted != nil:
			l.salted.Receive(now, l.addr, p)
		case pr.IsHandshake(p):
			l.unreal.Receive(now, l.addr, p, nil)
		default:
			l.hearPrefixed(l.prefix(), p)
		}
	}
	if l.conn != nil && !l.conn.Closed() {
		l.conn.PostTickDispatch(now)
		if l.in {
			l.game.step(now)
		}
		l.conn.Tick(now)
	}
	switch {
	case l.netcode != nil:
		l.netcode.Tick(now)
	case l.salted != nil:
		l.salted.Tick(now)
	}
}

// TestLiarHosts: whatever a server says, over each link, in the login or after it, a driver's client holds no more than MaxMemory, ends with a reason that is a rule which the server broke, or works
// until it is closed, and then ends within LingerTimeout; and what its game sent as blocks is said to have arrived or failed, once.
func TestLiarHosts(t *testing.T) {
	seeds := cmp.Or(*hostSeeds, 4)
	if os.Getenv("CI") != "" {
		seeds = max(seeds, 8)
	}
	ends, lies := map[netconn.CloseCode]int{}, 0
	for seed := *hostFirst; seed < *hostFirst+uint64(seeds); seed++ {
		s := drawHall(seed)
		h := &hall{setting: s, guests: map[netip.AddrPort]*guest{}, games: map[*driver.Conn]*busybody{}}
		p, err := h.player(hallAddr(1, 1), 1, s.net)
		require.NoError(t, err)
		l, err := newLiarHost(p, s.liars[0])
		require.NoError(t, err)
		what := fmt.Sprintf("%v, as %+v", s, l.program)
		const closes = 15 * time.Second
		for h.now < closes+3*time.Second && p.result == nil {
			h.now += tick
			l.step()
			p.step()
			require.Empty(t, p.game.wrong, what)
			if p.conn == nil {
				continue
			}
			require.LessOrEqual(t, p.conn.Table().Held(), cmp.Or(s.memory, 64<<20), what)
			if h.now >= closes {
				p.conn.CloseWithReason("enough")
			}
		}
		r := p.result
		require.NotNil(t, r, what)
		ends[r.Code]++
		require.NotEqual(t, netconn.WeBroke, r.Code, "%s: %v", what, r)
		require.False(t, r.Code == netconn.PeerBroke && r.Err == nil, what)
		if p.conn != nil {
			require.Zero(t, p.conn.Table().Len()+p.conn.Table().Unacked()+p.conn.Table().Waiting(), what)
		}
		p.game.allTold(t, what)
		lies += l.coat.did
	}
	require.NotZero(t, lies)
	t.Log(lies, ends)
}

// sendLogin sends the messages of a login on a connection.
func sendLogin(c *netconn.Conn) control.Sender {
	return func(m control.Message) error {
		b, err := control.Encode(m, false)
		if ch := c.Channel(0); err == nil && ch != nil {
			_, err = ch.SendBunch(&bunch.Out{Data: b, Reliable: true})
		}
		return err
	}
}

// prefixed is a packet as Unreal's link has it.
func prefixed(prefix *handshake.Component, q []byte) []byte {
	var r bitio.Reader
	if handler.Open(&r, q) != nil {
		return q
	}
	w := bitio.NewWriter(make([]byte, len(q)+8))
	prefix.WritePrefix(w)
	w.WriteBitsFrom(q, 0, r.Remaining()+1) // with its own terminator
	handler.WriteTerminator(w)
	return w.Bytes()
}

// hearPrefixed is hear for a packet of Unreal's link.
func (l *hallLiar) hearPrefixed(prefix *handshake.Component, p []byte) {
	var r bitio.Reader
	if l.conn == nil || handler.Open(&r, p) != nil || prefix.ReadPrefix(&r) != nil {
		return
	}
	w := bitio.NewWriter(make([]byte, len(p)+8))
	rest, n := make([]byte, len(p)), r.Remaining()
	r.ReadBitsTo(rest, n)
	w.WriteBitsFrom(rest, 0, n)
	l.hear(w.Bytes())
}
