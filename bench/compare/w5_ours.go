package main

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// connEnds is two connections with a channel. Each packet reaches the other in the call that sends it.
type connEnds struct {
	channel.Nop
	m     *memoryEnds
	now   time.Duration
	conns [2]*netconn.Conn
	chans [2]*channel.Channel
	err   error
}

// lower is what carries packets below connEnds: send has end i's packet reach the other.
type lower struct {
	headroom, tailroom int
	send               func(i int, p []byte)
}

// connect opens the channel, whose handlers are given by end.
func (e *connEnds) connect(l lower, coding netconn.Coding, handlers [2]channel.Handler) (err error) {
	types := []channel.Type{{Name: oursName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		e.chans[1] = ch
		return handlers[1]
	}}}
	for i := range e.conns {
		e.conns[i], err = netconn.New(netconn.Config{Server: i == 1, Channels: types, Headroom: l.headroom, Tailroom: l.tailroom, Coding: coding, NetSpeed: 100_000,
			LowLevelSend: func(p []byte) { l.send(i, p) }}, 0, 5, 5)
		if err != nil {
			return err
		}
	}
	e.chans[0], err = e.conns[0].Open(oursName, handlers[0])
	return err
}

// receive is a packet at end i.
func (e *connEnds) receive(i int, p []byte) {
	if err := e.conns[i].ReceivedPacket(e.now, p); err != nil {
		e.err = err
	}
}

// tick has both ends send what was written.
func (e *connEnds) tick() {
	for _, c := range e.conns {
		c.Tick(e.now)
	}
}

// ReceivedBunch counts. It is the handler of both ends.
func (e *connEnds) ReceivedBunch(*channel.Channel, *bunch.In) { e.m.got++ }
func (e *connEnds) direct(i int, p []byte)                    { e.m.wire += len(p); e.receive(1-i, p) }

// bunches makes a trip of one reliable bunch each way.
func (e *connEnds) bunches(l lower, coding netconn.Coding) error {
	if err := e.connect(l, coding, [2]channel.Handler{e, e}); err != nil {
		return err
	}
	out := bunch.Out{Data: make([]byte, w5Size), Reliable: true}
	e.m.trip = func() error {
		e.now += w5Tick
		for _, ch := range e.chans {
			if ch == nil {
				continue // the first bunch opens it
			}
			if _, err := ch.SendBunch(&out); err != nil {
				return err
			}
		}
		e.tick()
		return e.err
	}
	return e.m.trip()
}

func plainEnds(m *memoryEnds) error {
	e := &connEnds{m: m}
	return e.bunches(lower{send: e.direct}, netconn.Coding{})
}

// w5Flight is the packets under way where they aren't at the other end at once.
const w5Flight = 5

// delayedEnds has w5Flight packets of each end under way, which the symbols of coding cover.
func delayedEnds(coding netconn.Coding) func(m *memoryEnds) error {
	return func(m *memoryEnds) error {
		e := &connEnds{m: m}
		var under [2][w5Flight][]byte
		var sent [2]int
		at := func(i int) *[]byte { return &under[i][sent[i]%w5Flight] }
		return e.bunches(lower{send: func(i int, p []byte) {
			m.wire += len(p)
			if old := *at(i); len(old) > 0 {
				e.receive(1-i, old)
			}
			*at(i) = append((*at(i))[:0], p...)
			sent[i]++
		}}, coding)
	}
}

func sealedEnds(m *memoryEnds) error {
	e := &connEnds{m: m}
	s, err := newSealed(m, e.receive)
	if err != nil {
		return err
	}
	return e.bunches(lower{netcode.Headroom, netcode.Tailroom, func(i int, p []byte) {
		if err := s.send(e.now, i, p); err != nil {
			e.err = err
		}
	}}, netconn.Coding{})
}

// netcodeEnds is the encryption and nothing else.
func netcodeEnds(m *memoryEnds) error {
	s, err := newSealed(m, func(int, []byte) { m.got++ })
	buf := make([]byte, netcode.Headroom+w5Size, netcode.Headroom+w5Size+netcode.Tailroom)
	now := time.Duration(0)
	m.trip = func() error {
		now += w5Tick
		for i := range 2 {
			if err := s.send(now, i, buf); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}

// sealed is a netcode server and its client, end 0. What one sends waits for send to hand it over.
type sealed struct {
	m       *memoryEnds
	server  *netcode.Server
	client  *netcode.Client
	slot    int
	payload func(to int, p []byte)
	packets [2][]byte // the last to each end
}

var w5Client = netip.MustParseAddrPort("127.0.0.1:7")

const w5Unix = 1_700_000_000 // when a sealed begins

func newSealed(m *memoryEnds, payload func(to int, p []byte)) (*sealed, error) {
	s := &sealed{m: m, payload: payload}
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: oursID, ClientID: 1, Create: w5Unix, Expire: w5Unix + 60,
		Timeout: 60, Servers: []netip.AddrPort{tokenAddr}, PrivateKey: oursKey})
	if err != nil {
		return nil, err
	}
	s.server, err = netcode.NewServer(netcode.ServerConfig{ProtocolID: oursID, PrivateKey: oursKey, Addrs: []netip.AddrPort{tokenAddr}, Slots: 1,
		Handler: sealedServer{s}, UnixAtZero: w5Unix})
	if err != nil {
		return nil, err
	}
	if s.client, err = netcode.NewClient(netcode.ClientConfig{ProtocolID: oursID, Handler: sealedClient{s}}); err != nil {
		return nil, err
	}
	if err := s.client.Connect(0, token); err != nil {
		return nil, err
	}
	for range 2 { // request and challenge, response and keep-alive
		s.server.Receive(0, w5Client, s.packets[1])
		s.client.Receive(0, tokenAddr, s.packets[0])
	}
	if s.client.State() != netcode.Connected {
		return nil, errDial
	}
	return s, nil
}

// send has end i's p[Headroom:] reach the other.
func (s *sealed) send(now time.Duration, i int, p []byte) error {
	if i == 0 {
		err := s.client.SendPayload(now, p)
		s.m.wire += len(s.packets[1])
		s.server.Receive(now, w5Client, s.packets[1])
		return err
	}
	err := s.server.SendPayload(now, s.slot, p)
	s.m.wire += len(s.packets[0])
	s.client.Receive(now, tokenAddr, s.packets[0])
	return err
}

func (s *sealed) keep(to int, p []byte) { s.packets[to] = append(s.packets[to][:0], p...) }

type sealedServer struct{ *sealed }

func (s sealedServer) Send(_ netip.AddrPort, p []byte)          { s.keep(0, p) }
func (s sealedServer) Connected(slot int, _ netcode.ClientInfo) { s.slot = slot }
func (s sealedServer) Disconnected(int, netcode.Reason)         {}
func (s sealedServer) Payload(_ int, p []byte)                  { s.payload(1, p) }

type sealedClient struct{ *sealed }

func (s sealedClient) Send(_ netip.AddrPort, p []byte)           { s.keep(1, p) }
func (s sealedClient) StateChanged(netcode.State, netcode.State) {}
func (s sealedClient) Payload(p []byte)                          { s.payload(0, p) }

// blob is a message of a queue.
type blob struct{ data []byte }

func (b *blob) Serialize(s *message.Stream) { s.Bytes(&b.data, w5Size) }

// queueEnds is the message layer: ordered messages on a channel's unreliable bunches.
func queueEnds(m *memoryEnds) error {
	e := &connEnds{m: m}
	var kinds message.Registry
	kind := kinds.Add("blob", func() message.Message { return &blob{data: make([]byte, w5Size)} })
	queues := [2]*message.Attached{}
	for i := range queues {
		queues[i] = message.Attach(message.New(message.Config{Kinds: &kinds}))
	}
	if err := e.connect(lower{send: e.direct}, netconn.Coding{}, [2]channel.Handler{queues[0], queues[1]}); err != nil {
		return err
	}
	m.trip = func() error {
		e.now += w5Tick
		for i, q := range queues {
			sent := kind.New()
			if err := q.Send(kind, sent); err != nil {
				return err
			}
			kind.Free(sent)
			q.Tick(e.now)
			e.conns[i].Tick(e.now)
		}
		for _, q := range queues {
			for msg, k := q.Receive(); msg != nil; msg, k = q.Receive() {
				m.got++
				k.Free(msg)
			}
		}
		return e.err
	}
	return m.trip()
}
