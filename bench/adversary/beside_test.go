package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/salted"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

var (
	besideSeeds = flag.Int("beside", 0, "seeds of TestBesideTurncoats; 0 a few")
	besideFirst = flag.Uint64("besidefirst", 0, "the first of them")
)

// hall is a driver's server in virtual time, players of other drivers, and turncoats: ends that hold valid tokens and speak each link, and whose packets are
// rewritten on their way to the server.
type hall struct {
	setting   hallSetting
	now       time.Duration
	server    *driver.Driver
	guests    map[netip.AddrPort]*guest
	order     []*guest
	players   []*hallPlayer
	newcomers []*hallPlayer
	turncoats []*hallLiar
	reads     uint64 // of randomness
	games     map[*driver.Conn]*busybody
	ended     map[netip.AddrPort][]netconn.CloseResult // at the server, by address
	log       hallLog
	wrong     string // the first thing
	socket    *hallSocket
	seen      func(g *guest, up bool, p []byte) // an observer's; nil: nobody observes
}

// hallSetting is a run's, drawn from its seed.
type hallSetting struct {
	seed     uint64
	link     string
	takeOver bool // the server's, and two turncoats each have the same id
	protocol netconn.Protocol
	net      netsim.Settings
	netSpeed int // 0 is the adaptive controller
	memory   int
	liars    []hallProgram
	attack   time.Duration // when the liars come
	length   time.Duration
}

// hallProgram is what a turncoat does.
type hallProgram struct {
	seed    uint64
	program []deviation // times are since it came
	times   int         // each packet is sent so often
	raw     float64     // the chance that a packet is followed by payloads of random bytes
	leaves  bool        // again and again, and comes back
	spoofs  bool        // what it hears and says, sent again from other addresses
}

func drawHall(seed uint64) (s hallSetting) {
	rng := rand.New(rand.NewPCG(seed, 31))
	s.seed = seed
	s.link = []string{"netcode", "salted", "unreal"}[rng.IntN(3)]
	s.protocol = netconn.Bunchnet()
	if s.link == "unreal" {
		switch rng.IntN(4) {
		case 0:
			s.protocol = netconn.Unreal51()
		case 1:
			s.link, s.protocol = "unreal53", netconn.Unreal53(rng.IntN(2) == 0)
		case 2:
			s.link, s.protocol = "unreal427", netconn.Unreal427()
		}
	}
	s.protocol.FirstFree, s.protocol.CloseOnOverflow = false, false // both ends open channels, and say much
	low := time.Duration(rng.IntN(60)) * time.Millisecond
	s.net = netsim.Settings{Loss: []float64{0, 0, 2, 10}[rng.IntN(4)], LagMin: low, LagMax: low + time.Duration(1+rng.IntN(20))*time.Millisecond}
	s.netSpeed = []int{0, 100_000, 1_000_000}[rng.IntN(3)]
	s.memory = []int{0, 256 << 10}[rng.IntN(2)]
	s.takeOver = s.link == "netcode" && rng.IntN(2) == 0
	s.attack, s.length = 3*time.Second, 15*time.Second
	names := slices.Sorted(maps.Keys(deviations))
	for range 1 + rng.IntN(4) {
		p := hallProgram{seed: rng.Uint64(), times: []int{1, 1, 1, 20}[rng.IntN(4)], raw: []float64{0, 0, 0.1, 1}[rng.IntN(4)], leaves: rng.IntN(4) == 0, spoofs: rng.IntN(4) == 0}
		for range 1 + rng.IntN(3) {
			from := time.Duration(rng.IntN(6000)) * time.Millisecond
			p.program = append(p.program, deviation{names[rng.IntN(len(names))], from, from + time.Duration(1+rng.IntN(8))*time.Second, []float64{0.01, 0.1, 1}[rng.IntN(3)]})
		}
		s.liars = append(s.liars, p)
	}
	return s
}

func (s hallSetting) String() string {
	return fmt.Sprintf("seed %d: %s %s %+v NetSpeed %d MaxMemory %d, turncoats %+v", s.seed, s.link, s.protocol.Name, s.net, s.netSpeed, s.memory, s.liars)
}

// handshake is the release of Unreal's, on its links.
func (s *hallSetting) handshake() handshake.Protocol {
	switch s.link {
	case "unreal53":
		return handshake.Unreal53()
	case "unreal427":
		return handshake.Unreal427()
	}
	return handshake.Unreal51()
}

func (s *hallSetting) driverLink(token []byte) driver.Link {
	if s.link == "netcode" && token != nil {
		return driver.Netcode{ProtocolID: 42, Token: token}
	}
	switch s.link {
	case "netcode":
		return driver.Netcode{ProtocolID: 42, Key: gameKey, TakeOver: s.takeOver}
	case "unreal53":
		return driver.PlainUnreal53()
	case "unreal427":
		return driver.PlainUnreal427()
	}
	return links[s.link]()
}

// hallEpoch is the time of day at the beginning.
var hallEpoch = time.Unix(1_700_000_000, 0)

func (h *hall) clock() time.Time { return hallEpoch.Add(h.now) }

// Read is randomness that is the same in every run.
func (h *hall) Read(p []byte) (int, error) {
	h.reads++
	rng := rand.New(rand.NewPCG(h.setting.seed, 1000+h.reads))
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return len(p), nil
}

func (h *hall) faultf(format string, args ...any) {
	if h.wrong == "" {
		h.wrong = fmt.Sprintf("%v: ", h.now) + fmt.Sprintf(format, args...)
	}
}

// guest is an address with a path to the server and back.
type guest struct {
	hall     *hall
	addr     netip.AddrPort
	up, down *netsim.Link
	heard    []byte // the sum of what came from the server
	got      int    // bytes that the server sent there
}

func (h *hall) guest(addr netip.AddrPort, seed uint64, set netsim.Settings) *guest {
	g := &guest{hall: h, addr: addr}
	var err error
	if g.up, err = netsim.NewLink(set, seed*2); err == nil {
		g.down, err = netsim.NewLink(set, seed*2+1)
	}
	if err != nil {
		panic(err) // the settings are ours
	}
	h.guests[addr] = g
	h.order = append(h.order, g)
	return g
}

// take counts what the server sends to it.
func (g *guest) take(p []byte) {
	g.got += len(p)
	sum := fnv.New128a()
	_, _ = sum.Write(g.heard)
	_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(g.hall.now)))
	_, _ = sum.Write(p)
	g.heard = sum.Sum(nil)
	g.down.Push(g.hall.now, p)
	if g.hall.seen != nil {
		g.hall.seen(g, false, p)
	}
}

// guest is a player's socket.
func (g *guest) TryReadBatch(msgs []udp.Message) (n int, err error) {
	for n < len(msgs) {
		p, ok := g.down.Pop(g.hall.now)
		if !ok {
			break
		}
		msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, p), gameAddr
		n++
	}
	return n, nil
}

func (g *guest) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		g.up.Push(g.hall.now, msgs[i].Buf)
	}
	return len(msgs), nil
}

func (g *guest) ReadBatch(msgs []udp.Message) (int, error) { return g.TryReadBatch(msgs) }
func (*guest) BatchSize() int                              { return 64 }
func (g *guest) LocalAddr() netip.AddrPort                 { return g.addr }
func (*guest) SetReadDeadline(time.Time) error             { return nil }
func (*guest) Close() error                                { return nil }

// hallSocket is the server's.
type hallSocket struct {
	hall    *hall
	forged  []udp.Message
	answers int // bytes to addresses that nobody has
	asked   int // bytes from them
}

func (s *hallSocket) TryReadBatch(msgs []udp.Message) (n int, err error) {
	for _, g := range s.hall.order {
		for n < len(msgs) {
			p, ok := g.up.Pop(s.hall.now)
			if !ok {
				break
			}
			msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, p), g.addr
			n++
			if s.hall.seen != nil {
				s.hall.seen(g, true, p)
			}
		}
	}
	for n < len(msgs) && len(s.forged) > 0 {
		m := s.forged[0]
		s.forged = s.forged[1:]
		s.asked += len(m.Buf)
		msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, m.Buf), m.Addr
		n++
	}
	return n, nil
}

func (s *hallSocket) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		if g := s.hall.guests[msgs[i].Addr]; g != nil {
			g.take(msgs[i].Buf)
		} else {
			s.answers += len(msgs[i].Buf)
		}
	}
	return len(msgs), nil
}

func (s *hallSocket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }
func (*hallSocket) BatchSize() int                              { return 64 }
func (*hallSocket) LocalAddr() netip.AddrPort                   { return gameAddr }
func (*hallSocket) SetReadDeadline(time.Time) error             { return nil }
func (*hallSocket) Close() error                                { return nil }

// hallLog is the server's log.
type hallLog struct {
	lines, bytes int
	text         []string
}

func (*hallLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *hallLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.lines++
	l.bytes += len(text)
	l.text = append(l.text, text)
	return nil
}
func (l *hallLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *hallLog) WithGroup(string) slog.Handler      { return l }

// hallPing is the type of the players' channel.
var hallPing = bunch.Name{Index: 310}

// hallPlayer is an honest player: it sends a number each tick, which the server echoes, and does a little of everything besides.
type hallPlayer struct {
	channel.Nop
	*guest
	driver *driver.Driver
	game   *busybody
	conn   *driver.Conn
	pings  *channel.Channel
	sent   uint64
	next   uint64
	at     []time.Duration // when each number was sent
	slow   time.Duration   // the slowest echo
	joined time.Duration
	result *netconn.CloseResult
}

// ReceivedBunch is an echo.
func (p *hallPlayer) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	n := in.Data.ReadUint64()
	if n < p.next || n >= p.sent { // the server leaves some out when it has no room
		p.hall.faultf("%v got the echo %d behind %d of %d", p.addr, n, p.next, p.sent)
		return
	}
	p.slow = max(p.slow, p.hall.now-p.at[n])
	p.next = n + 1
}

// hallEcho is the server's end.
type hallEcho struct{ channel.Nop }

func (hallEcho) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	_, _ = ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, in.Data.ReadUint64()), Reliable: true, NoMerge: true})
}

// types is the channels of an end, whose handlers get returns.
func hallTypes(get func(ch *channel.Channel) channel.Handler) (types []channel.Type) {
	for _, name := range []bunch.Name{dataName, queueName, blockName, unorderedName, sequencedName, hallPing} {
		types = append(types, channel.Type{Name: name, ClientOpen: true, ServerOpen: true, Accept: get})
	}
	return types
}

func hallSeed(addr netip.AddrPort) uint64 {
	b := addr.Addr().As4()
	return uint64(binary.BigEndian.Uint32(b[:]))<<16 | uint64(addr.Port())
}

func (h *hall) config(get func(ch *channel.Channel) channel.Handler) driver.Config {
	return driver.Config{Protocol: h.setting.protocol, Channels: hallTypes(get), Clock: h.clock, Rand: h, NetSpeed: h.setting.netSpeed, MaxMemory: h.setting.memory,
		Timeout: 5 * time.Second, LoginTimeout: 5 * time.Second}
}

func newHall(s hallSetting) (*hall, error) {
	h := &hall{setting: s, guests: map[netip.AddrPort]*guest{}, games: map[*driver.Conn]*busybody{}, ended: map[netip.AddrPort][]netconn.CloseResult{}}
	cfg := h.config(func(ch *channel.Channel) channel.Handler {
		if ch.Name() == hallPing {
			return hallEcho{}
		}
		return h.gameOf(driver.ConnOf(ch)).take(ch.Name())
	})
	h.socket = &hallSocket{hall: h}
	cfg.Socket, cfg.Link, cfg.MaxConns, cfg.Logger = h.socket, s.driverLink(nil), 16, slog.New(&h.log)
	cfg.Joined = func(c *driver.Conn) { h.gameOf(c) }
	cfg.Closed = func(c *driver.Conn, r netconn.CloseResult) {
		delete(h.games, c)
		h.ended[c.RemoteAddr()] = append(h.ended[c.RemoteAddr()], r)
	}
	var err error
	h.server, err = driver.Listen("", cfg)
	return h, err
}

// gameOf is the server's game with a connection.
func (h *hall) gameOf(c *driver.Conn) *busybody {
	if h.games[c] == nil {
		g := newBusybody(rand.New(rand.NewPCG(hallSeed(c.RemoteAddr()), 1)))
		g.conn = c.Conn
		h.games[c] = g
	}
	return h.games[c]
}

// token is a fresh one.
func (h *hall) token(id uint64) []byte {
	unix := uint64(h.clock().Unix())
	b, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 42, ClientID: id, Create: unix, Expire: unix + 60, Timeout: 5, Servers: []netip.AddrPort{gameAddr}, PrivateKey: gameKey, Rand: h})
	if err != nil {
		panic(err) // the settings are ours
	}
	return b
}

// player dials.
func (h *hall) player(addr netip.AddrPort, id uint64, net netsim.Settings) (*hallPlayer, error) {
	p := &hallPlayer{guest: h.guest(addr, h.setting.seed*1000+id, net), game: newBusybody(rand.New(rand.NewPCG(hallSeed(addr), 2)))}
	cfg := h.config(func(ch *channel.Channel) channel.Handler { return p.game.take(ch.Name()) })
	cfg.Socket, cfg.Link = p.guest, h.setting.driverLink(h.token(id))
	cfg.Joined = func(c *driver.Conn) {
		p.conn, p.game.conn, p.joined = c, c.Conn, h.now
		p.pings, _ = c.Open(hallPing, p) // a new connection has room
	}
	cfg.Closed = func(_ *driver.Conn, r netconn.CloseResult) { p.result = &r }
	var err error
	p.driver, err = driver.Dial(gameAddr.String(), cfg)
	return p, err
}

func (p *hallPlayer) step() {
	p.driver.TickDispatch(p.hall.clock())
	if p.pings != nil && p.result == nil {
		p.game.step(p.driver.Time(p.hall.clock()))
		if p.sent < p.next+60 {
			p.ping()
		}
	}
	p.driver.TickFlush(p.hall.clock())
}

func (p *hallPlayer) ping() {
	if _, err := p.pings.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, p.sent), Reliable: true, NoMerge: true}); err == nil {
		p.sent++
		p.at = append(p.at, p.hall.now)
	}
}

// hallLiar is a turncoat with its link.
type hallLiar struct {
	*guest
	hallProgram
	rng   *rand.Rand
	id    uint64
	came  time.Duration
	until time.Duration // when it leaves, or comes back
	coat  *turncoat
	game  *busybody
	conn  *netconn.Conn
	login *control.Client
	in    bool // it is logged in
	ins   int  // how often

	// one of these is its link
	netcode *netcode.Client
	salted  *salted.Client
	unreal  *handshake.Client
}

const hallRoom = 64 // before and behind packets, for links

// come begins a connection.
func (l *hallLiar) come() {
	h := l.hall
	l.conn, l.login, l.in, l.netcode, l.salted, l.unreal = nil, nil, false, nil, nil, nil
	l.came, l.until = h.now, h.now+time.Hour
	if l.leaves {
		l.until = h.now + time.Duration(200+l.rng.IntN(2000))*time.Millisecond
	}
	l.coat = newTurncoat(l.rng)
	l.coat.program = l.program
	l.coat.proto = h.setting.protocol.Bunch
	l.coat.largest = l.coat.proto.PacketBytes()
	l.game = newBusybody(l.rng)
	var err error
	switch h.setting.link {
	case "netcode":
		if l.netcode, err = netcode.NewClient(netcode.ClientConfig{Handler: netcodeLiar{l}, ProtocolID: 42, Timeout: -1}); err == nil {
			err = l.netcode.Connect(h.now, h.token(l.id))
		}
	case "salted":
		if l.salted, err = salted.NewClient(salted.ClientConfig{Handler: saltedLiar{l}, ProtocolID: 42, Rand: h}); err == nil {
			err = l.salted.Connect(h.now, gameAddr)
		}
	default:
		if l.unreal, err = handshake.NewClient(handshake.ClientConfig{Protocol: h.setting.handshake(), Send: l.put, ClientID: 3, Rand: h}); err == nil {
			l.unreal.Start(h.now)
		}
	}
	if err != nil {
		panic(err) // the settings are ours
	}
}

// leave ends it without a word, or with the link's.
func (l *hallLiar) leave() {
	switch {
	case l.rng.IntN(2) == 0:
	case l.netcode != nil:
		l.netcode.Disconnect(l.hall.now)
	case l.salted != nil:
		l.salted.Disconnect(l.hall.now)
	}
	l.netcode, l.salted, l.unreal, l.conn = nil, nil, nil, nil
	l.until = l.hall.now + time.Duration(100+l.rng.IntN(1500))*time.Millisecond
}

type (
	netcodeLiar struct{ *hallLiar }
	saltedLiar  struct{ *hallLiar }
)

func (l netcodeLiar) Send(_ netip.AddrPort, p []byte) { l.put(p) }
func (l netcodeLiar) Payload(p []byte)                { l.hear(p) }
func (l netcodeLiar) StateChanged(_, to netcode.State) {
	if to == netcode.Connected {
		l.begin(1, 1)
	}
}
func (l saltedLiar) Send(_ netip.AddrPort, p []byte) { l.put(p) }
func (l saltedLiar) Payload(p []byte)                { l.hear(p) }
func (l saltedLiar) StateChanged(_, to salted.State) {
	if to == salted.Connected {
		l.begin(1, 1)
	}
}

// put sends a datagram, and perhaps once more from another address.
func (l *hallLiar) put(p []byte) {
	l.up.Push(l.hall.now, p)
	if l.spoofs && l.rng.IntN(3) == 0 {
		l.forge(p)
	}
}

func (l *hallLiar) forge(p []byte) {
	s := l.hall.socket
	s.forged = append(s.forged, udp.Message{Buf: bytes.Clone(p), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, byte(l.rng.IntN(3)), byte(l.rng.IntN(256))}), uint16(l.rng.IntN(1<<16)))})
}

// begin makes the connection, when the link has one.
func (l *hallLiar) begin(in, out uint16) {
	l.coat.last, l.coat.heard = int64(out)-1, int64(in)-1
	types := append([]channel.Type{{Name: bunch.Control, ClientOpen: true, Static: true}}, hallTypes(func(ch *channel.Channel) channel.Handler { return l.game.take(ch.Name()) })...)
	c, err := netconn.New(netconn.Config{Protocol: l.hall.setting.protocol, Channels: types, NetSpeed: 1_000_000, Timeout: -1, Headroom: hallRoom, LowLevelSend: func(p []byte) { l.say(p[hallRoom:], l.payload) }},
		l.hall.now, in, out)
	if err != nil {
		panic(err) // the settings are ours
	}
	l.conn, l.game.conn = c, c
	l.coat.nameOf, l.coat.first = namesOf(c), int64(out)
	l.login = control.NewClient(control.ClientConfig{Entered: func(*control.Welcome) { l.in = true; l.ins++ }}, sendLogin(c))
	if _, err := c.Open(bunch.Control, (*hallLogin)(l)); err == nil {
		_ = l.login.Start() // a lie may be in the way
	}
}

// hallLogin is the handler of a turncoat's control channel.
type hallLogin hallLiar

func (l *hallLogin) ReceivedBunch(_ *channel.Channel, in *bunch.In) { _ = l.login.Receive(&in.Data) }
func (*hallLogin) ReceivedAck(*channel.Channel, int64)              {}
func (*hallLogin) ReceivedNak(*channel.Channel, int64)              {}
func (*hallLogin) Closed(*channel.Channel, channel.CloseReason)     {}
func (l *hallLiar) hear(p []byte) {
	if l.conn == nil {
		return
	}
	if q := l.coat.told(p); q != nil {
		_ = l.conn.ReceivedPacket(l.hall.now, q) // it may have ended
	}
}

// say rewrites a packet and has what has become of it sent.
func (l *hallLiar) say(p []byte, payload func(q []byte)) {
	l.coat.now = l.hall.now - l.came
	for _, q := range l.coat.send(p) {
		for range l.times {
			payload(q)
		}
	}
	for l.raw > 0 && l.rng.Float64() < l.raw/2 {
		q := make([]byte, 1+l.rng.IntN(1000>>l.rng.IntN(8)))
		for i := range q {
			q[i] = byte(l.rng.Uint32())
		}
		payload(q)
	}
}

func (l *hallLiar) payload(q []byte) {
	room := func(head, tail int) []byte { return append(make([]byte, head, head+len(q)+tail), q...) }
	switch {
	case l.netcode != nil:
		_ = l.netcode.SendPayload(l.hall.now, room(netcode.Headroom, netcode.Tailroom)) // too large, perhaps
	case l.salted != nil:
		_ = l.salted.SendPayload(l.hall.now, room(salted.Headroom, 0))
	case l.unreal != nil:
		l.put(prefixed(l.prefix(), q))
	}
}

func (l *hallLiar) prefix() *handshake.Component {
	return &handshake.Component{Protocol: l.hall.setting.handshake(), SessionID: l.unreal.Result().SessionID, ClientID: 3}
}

func (l *hallLiar) step() {
	h := l.hall
	if h.now >= l.until {
		if l.netcode == nil && l.salted == nil && l.unreal == nil {
			l.come()
		} else {
			l.leave()
		}
	}
	for p, ok := l.down.Pop(h.now); ok; p, ok = l.down.Pop(h.now) {
		switch {
		case l.netcode != nil:
			l.netcode.Receive(h.now, gameAddr, p)
		case l.salted != nil:
			l.salted.Receive(h.now, gameAddr, p)
		case l.unreal != nil:
			l.hearUnreal(p)
		}
	}
	if l.conn != nil && !l.conn.Closed() {
		l.conn.PostTickDispatch(h.now)
		if l.in {
			l.game.step(h.now)
		}
		l.conn.Tick(h.now)
	}
	switch {
	case l.netcode != nil:
		l.netcode.Tick(h.now)
	case l.salted != nil:
		l.salted.Tick(h.now)
	case l.unreal != nil:
		l.unreal.Tick(h.now)
	}
}

func (l *hallLiar) hearUnreal(p []byte) {
	if pr := l.hall.setting.handshake(); pr.IsHandshake(p) {
		if l.unreal.Receive(l.hall.now, p); l.unreal.State() == handshake.Done && l.conn == nil {
			a := l.unreal.Result()
			l.begin(a.ServerSeq, a.ClientSeq)
		}
		return
	}
	l.hearPrefixed(l.prefix(), p)
}

func (h *hall) step() {
	h.now += tick
	for _, p := range h.players {
		p.step()
	}
	for _, p := range h.newcomers {
		p.step()
	}
	for _, l := range h.turncoats {
		l.step()
	}
	now := h.clock()
	h.server.TickDispatch(now)
	for c := range h.server.Conns {
		if g := h.games[c]; g != nil && c.Joined() {
			g.step(h.server.Time(now))
			if g.wrong != "" {
				h.faultf("%v: %s", c.RemoteAddr(), g.wrong)
			}
		}
		if most := cmp.Or(h.setting.memory, 4<<20); c.Table().Held() > most {
			h.faultf("%v has the server hold %d bytes", c.RemoteAddr(), c.Table().Held())
		}
	}
	h.server.TickFlush(now)
}

func hallAddr(net, i byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, net, i}), 4000)
}

const hallPlayers = 8

// playHall is a run; without its turncoats if peace.
func playHall(s hallSetting, peace bool) (h *hall, err error) {
	if h, err = newHall(s); err != nil {
		return nil, err
	}
	for i := range hallPlayers {
		p, err := h.player(hallAddr(1, byte(i)), uint64(1+i), s.net)
		if err != nil {
			return nil, err
		}
		h.players = append(h.players, p)
	}
	for h.now < s.length && h.wrong == "" {
		if h.now >= s.attack && h.now < s.attack+tick {
			for i, program := range s.liars {
				if !peace {
					id := uint64(100 + i)
					if s.takeOver {
						id = uint64(100 + i/2)
					}
					l := &hallLiar{guest: h.guest(hallAddr(2, byte(i)), s.seed*1000+500+uint64(i), netsim.Settings{Lag: 5 * time.Millisecond}), hallProgram: program, rng: rand.New(rand.NewPCG(program.seed, 1)), id: id}
					h.turncoats = append(h.turncoats, l)
				}
			}
		}
		if n := len(h.newcomers); n < 2 && h.now >= s.attack+time.Duration(n+1)*4*time.Second {
			p, err := h.player(hallAddr(3, byte(n)), uint64(50+n), netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond})
			if err != nil {
				return nil, err
			}
			h.newcomers = append(h.newcomers, p)
		}
		h.step()
	}
	return h, nil
}

// TestBesideTurncoats: a server's players hear from it, byte by byte and at the same times, what they hear without the turncoats beside them; newcomers join, nothing that a turncoat does
// ends anybody else or takes more than its rate and MaxMemory, and once they are silent the server is rid of them.
func TestBesideTurncoats(t *testing.T) {
	seeds := cmp.Or(*besideSeeds, 1)
	if os.Getenv("CI") != "" {
		seeds = max(seeds, 4)
	}
	ends := map[string]int{}
	for seed := *besideFirst; seed < *besideFirst+uint64(seeds); seed++ {
		s := drawHall(seed)
		calm, err := playHall(s, true)
		require.NoError(t, err, s)
		require.Empty(t, calm.wrong, s)
		for _, q := range calm.players {
			require.Nil(t, q.result, "without turncoats, %v", s)
		}
		h, err := playHall(s, false)
		require.NoError(t, err, s)
		require.Empty(t, h.wrong, s)
		for i, p := range h.players {
			q := calm.players[i]
			require.Nil(t, p.result, s)
			require.NotZero(t, p.next, s)
			require.Equal(t, q.next, p.next, "%v: player %d, slowest echo %v, %v without", s, i, p.slow, q.slow)
			if q.joined < s.attack { // or its keys are others
				require.Equal(t, q.heard, p.heard, "%v: player %d, joined after %v", s, i, q.joined)
			}
		}
		for i, p := range h.newcomers {
			q := calm.newcomers[i] // which may be unlucky too
			require.Equal(t, q.joined > 0, p.joined > 0, "%v: newcomer %d: %v", s, i, p.result)
			require.Less(t, p.joined, q.joined+time.Second, "%v: newcomer %d", s, i)
			require.Equal(t, q.result == nil, p.result == nil, "%v: newcomer %d: %v", s, i, p.result)
		}
		for addr, all := range h.ended {
			for _, r := range all {
				ends[fmt.Sprint(r.Code)]++
				require.Equal(t, byte(2), addr.Addr().As4()[2], "%v: %v ended: %v", s, addr, r)
				require.False(t, r.Code == netconn.PeerBroke && r.Err == nil, s)
				require.NotEqual(t, netconn.WeBroke, r.Code, "%v: %v", s, r)
			}
		}
		for _, line := range h.log.text {
			require.False(t, strings.HasPrefix(line, "connection closed") && !strings.Contains(line, "addr=10.1.2."), "%v: %s", s, line)
			require.Less(t, len(line), 2000, s)
		}
		require.Less(t, h.log.lines, 24*int(s.length/time.Second), s)
		sock := h.socket
		require.LessOrEqual(t, sock.answers, sock.asked, s)
		for _, l := range h.turncoats {
			if rate := s.netSpeed; rate > 0 {
				require.LessOrEqual(t, l.got, rate*6/5*int((s.length-s.attack)/time.Second)+200_000, "%v: %v", s, l.addr)
			}
			ends["joined"] += l.ins
			ends["lies"] += l.coat.did
		}
		h.turncoats = nil // silence
		for end := h.now + 13*time.Second; h.now < end; {
			h.step()
		}
		require.Empty(t, h.wrong, s)
		there := hallPlayers
		for _, p := range h.newcomers {
			if p.joined > 0 && p.result == nil {
				there++
			}
		}
		require.Equal(t, there, h.server.Len(), s)
		require.Equal(t, uint64(h.server.Len()), h.server.Counters.Accepted-h.server.Counters.Closed, "%v: %+v", s, h.server.Counters)
	}
	require.NotZero(t, ends["lies"])
	t.Log(ends)
}

// observer sees all that goes to and from the server, and sends it again at once and later, from its address and from others, to the server and to the players; and begins handshakes that
// it doesn't end.
type observer struct {
	hall *hall
	rng  *rand.Rand
	ups  []udp.Message // Addr is who said it
	down []udp.Message // Addr is who heard it
	half []udp.Message // requests
}

func (o *observer) saw(g *guest, up bool, p []byte) {
	list := &o.ups
	if !up {
		list = &o.down
	}
	m := udp.Message{Buf: bytes.Clone(p), Addr: g.addr}
	if len(*list) < 20_000 {
		*list = append(*list, m)
	} else {
		(*list)[o.rng.IntN(len(*list))] = m
	}
	if up && o.rng.IntN(2) == 0 {
		o.forge(m, o.anywhere())
	}
}

func (o *observer) anywhere() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, byte(o.rng.IntN(256)), byte(o.rng.IntN(256))}), uint16(o.rng.IntN(1<<16)))
}

func (o *observer) forge(m udp.Message, from netip.AddrPort) {
	o.hall.socket.forged = append(o.hall.socket.forged, udp.Message{Buf: m.Buf, Addr: from})
}

// step is a tick's worth of replays.
func (o *observer) step(times int) {
	for range times {
		if len(o.ups) == 0 || len(o.down) == 0 {
			return
		}
		m := o.ups[o.rng.IntN(len(o.ups))]
		switch o.rng.IntN(4) {
		case 0:
			o.forge(m, m.Addr)
		case 1:
			o.forge(m, o.anywhere())
		case 2:
			m = o.down[o.rng.IntN(len(o.down))]
			o.hall.guests[m.Addr].down.Push(o.hall.now, m.Buf)
		case 3: // what the server says, to itself and to others
			m = o.down[o.rng.IntN(len(o.down))]
			o.forge(m, gameAddr)
			if g := o.hall.order[o.rng.IntN(len(o.hall.order))]; o.hall.setting.link != "unreal" { // whose packets anybody can forge
				g.down.Push(o.hall.now, m.Buf)
			}
		}
		if len(o.half) > 0 {
			m := o.half[o.rng.IntN(len(o.half))]
			o.forge(m, m.Addr)
		}
	}
}

// TestJoinBesideAnObserver: players join and play at 10 % loss, leave and come back at the same addresses, while who sees all sends everything again, from everywhere, and thousands of handshakes are
// begun and not ended. Nobody is kept out or ended, there is no connection but theirs, and no address gets more than it sent.
func TestJoinBesideAnObserver(t *testing.T) {
	seeds := cmp.Or(*besideSeeds, 1)
	if os.Getenv("CI") != "" {
		seeds = max(seeds, 3) // each link
	}
	for seed := *besideFirst; seed < *besideFirst+uint64(seeds); seed++ {
		s := hallSetting{seed: seed, link: []string{"netcode", "salted", "unreal"}[seed%3], protocol: netconn.Bunchnet()}
		s.protocol.FirstFree = false
		net := netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}
		h, err := newHall(s)
		require.NoError(t, err)
		o := &observer{hall: h, rng: rand.New(rand.NewPCG(seed, 3))}
		o.half = h.halfOpen(o)
		h.seen = o.saw
		for round := range 3 {
			h.players = nil
			for i := range hallPlayers {
				p, err := h.player(hallAddr(1, byte(i)), uint64(100*round+1+i), net)
				require.NoError(t, err)
				h.players = append(h.players, p)
			}
			for end := h.now + 12*time.Second; h.now < end; {
				o.step(40)
				h.step()
				require.LessOrEqual(t, h.server.Len(), hallPlayers, "seed %d", seed)
			}
			require.Empty(t, h.wrong, "seed %d", seed)
			for i, p := range h.players {
				require.NotZero(t, p.joined, "seed %d, round %d: %d: %v", seed, round, i, p.result)
				require.Nil(t, p.result, "seed %d, round %d: %d", seed, round, i)
				require.Greater(t, p.next, uint64(100), "seed %d, round %d: %d", seed, round, i)
				t.Logf("seed %d %s round %d: %d joined after %v, %d echoes, the slowest %v", seed, s.link, round, i, p.joined-time.Duration(round)*14*time.Second, p.next, p.slow)
				p.conn.CloseWithReason("enough")
			}
			for end := h.now + 2*time.Second; h.now < end; {
				o.step(40)
				h.step()
			}
			require.Zero(t, h.server.Len(), "seed %d, round %d", seed, round)
			for _, p := range h.players {
				require.NoError(t, p.driver.Close())
				delete(h.guests, p.addr)
			}
			h.order = nil
			if s.link == "unreal" { // packets of a former connection can be taken for those of the next
				o.ups, o.down = nil, nil
			}
		}
		require.EqualValues(t, 3*hallPlayers, h.server.Counters.Accepted, "seed %d", seed)
		require.LessOrEqual(t, h.socket.answers, h.socket.asked, "seed %d", seed)
		h.server.Refusals(func(reason string, n uint64) bool {
			if n > 0 {
				t.Logf("%s %d", reason, n)
			}
			return true
		})
	}
}

// halfOpen is requests that nobody goes on with.
func (h *hall) halfOpen(o *observer) (list []udp.Message) {
	n := 3000
	if h.setting.link == "netcode" {
		n = 300 // tokens
	}
	for i := range n {
		var first []byte
		keep := func(p []byte) { first = bytes.Clone(p) }
		switch h.setting.link {
		case "netcode":
			c, err := netcode.NewClient(netcode.ClientConfig{Handler: keeper{keep}, ProtocolID: 42})
			if err == nil {
				err = c.Connect(0, h.token(uint64(10_000+i)))
			}
			if err != nil {
				panic(err) // the settings are ours
			}
		case "salted":
			c, err := salted.NewClient(salted.ClientConfig{Handler: saltedKeeper{keeper{keep}}, ProtocolID: 42, Rand: h})
			if err == nil {
				err = c.Connect(0, gameAddr)
			}
			if err != nil {
				panic(err)
			}
		default:
			c, err := handshake.NewClient(handshake.ClientConfig{Protocol: handshake.Unreal51(), Send: keep, ClientID: 3, Rand: h})
			if err != nil {
				panic(err)
			}
			c.Start(0)
		}
		list = append(list, udp.Message{Buf: first, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 98, byte(i >> 8), byte(i)}), 777)})
	}
	return list
}

type keeper struct{ keep func(p []byte) }
type saltedKeeper struct{ keeper }

func (k keeper) Send(_ netip.AddrPort, p []byte)    { k.keep(p) }
func (keeper) Payload([]byte)                       {}
func (keeper) StateChanged(_, _ netcode.State)      {}
func (saltedKeeper) StateChanged(_, _ salted.State) {}
