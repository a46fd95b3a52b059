package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// Client ids of servers that connect with others' borders: this and their start.
const borderID = 1 << 32

const (
	quietFor    = 2 * time.Second // a connection that is silent for so long has ended
	reportEvery = 2               // ticks
	maxRoad     = 60000           // bytes of a packet between servers
)

// server is a game server.
type server struct {
	cfg     serverConfig
	rng     *mathrand.Rand
	began   time.Time // of the Keeper's clock
	out     told
	driver  *driver.Driver
	world   *actorrep.World
	zone    *mesh.Zone
	keeper  *mesh.Keeper
	store   *natskv.Store
	players *mesh.Server
	road    *net.UDPConn
	inbox   chan []byte
	nats    cutDialer
	cut     cuts
	peers   []peer
	borders map[int]*border    // by start
	again   map[int]time.Time  // not dialed before
	guests  map[uint64]*guest  // by client id
	pawns   map[uint32]*Walker // of players that play here
	spans   map[uint32]*span   // by actor
	told    map[uint32]span    // what was reported
	epoch   uint64             // of the table that was reported
	ready   map[string]bool    // zones with their strays
	steps   uint64
	late    time.Duration
	ticks   int
	wrong   string
}

// border is a connection with another server's border.
type border struct {
	peer   peer
	driver *driver.Driver
	world  *actorrep.World
	closed bool
}

// guest is a connection of a client, or of a server.
type guest struct {
	conn *driver.Conn
	peer *actorrep.Peer
	ch   *channel.Channel
}

// playServer is the life of a game server.
func playServer() error {
	s := &server{out: told{json.NewEncoder(os.Stdout)}, rng: mathrand.New(mathrand.NewPCG(mathrand.Uint64(), 1)), began: time.Now(), inbox: make(chan []byte, 4096), borders: map[int]*border{}, again: map[int]time.Time{},
		guests: map[uint64]*guest{}, pawns: map[uint32]*Walker{}, spans: map[uint32]*span{}, told: map[uint32]span{}, ready: map[string]bool{}}
	orders, err := orders[order](&s.cfg)
	if err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	opened := make(chan error, 1)
	var bucket *natskv.Bucket
	go func() {
		nc, err := connect(s.cfg.URL, nats.SetCustomDialer(&s.nats))
		if err == nil {
			bucket, err = openBucket(context.Background(), nc)
		}
		opened <- err
	}()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case o, more := <-orders:
			if !more {
				return nil
			}
			s.obey(o)
			continue
		case err := <-opened:
			if err != nil {
				return err
			}
			s.store = bucket.Store(s.keeper)
			continue
		case <-ticker.C:
		}
		now := time.Now() // the ticker's may be old
		s.late = max(s.late, now.Sub(last)-step)
		last = now
		if s.store == nil {
			continue // there is no store yet
		}
		over := s.tick(now)
		if s.ticks++; over || s.ticks%reportEvery == 0 {
			if err := s.report(over); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
	}
}

// begin opens the sockets and makes the machines.
func (s *server) begin() (err error) {
	s.world = actorrep.NewServer(actorrep.Config{IDs: shareOf(s.cfg.Start), Failed: func(error) {}}) // a connection whose other end was killed
	if err := register(s.world); err != nil {
		return err
	}
	own := plan()
	own.Epoch = 1
	for i := range own.Servers {
		own.Servers[i] = s.cfg.ID
	}
	s.zone, err = mesh.NewZone(mesh.ZoneConfig{ID: s.cfg.ID, World: s.world, Game: game{s}, Table: own, Margin: margin, Hysteresis: hysteresis, Key: s.cfg.MeshKey, Rand: rand.Reader,
		ToServer: func(to string, b []byte) { s.toServer('z', to, b) }})
	if err != nil {
		return err
	}
	s.players, err = mesh.NewServer(mesh.ServerConfig{ID: s.cfg.ID, Game: s, Key: s.cfg.MeshKey, Rand: rand.Reader,
		ToServer: func(to string, b []byte) { s.toServer('p', to, b) },
		ToClient: func(player uint64, b []byte) {
			if g := s.guests[player]; g != nil {
				mesh.SendOn(g.ch, b)
			}
		}})
	if err != nil {
		return err
	}
	s.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: s.zone, Plan: plan(), Zones: s.cfg.Zones, Deals: game{s}, Server: s.players, Lease: lease, Away: s.cfg.Away, Spread: spread, Weight: s.weight, Split: s.cfg.Split, Checkpoint: 2 * time.Second,
		Save: func(a mesh.Actor) []byte { return a.(*Walker).save().encode() }})
	if err != nil {
		return err
	}
	if s.road, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return err
	}
	_ = s.road.SetReadBuffer(4 << 20) // less will do
	go s.listen()
	socket, err := udp.Listen("127.0.0.1:0", udp.Config{})
	if err != nil {
		return err
	}
	s.driver, err = driver.Listen("", driver.Config{Socket: cutSocket{socket, func() bool { return s.cut.To.All }, func() bool { return s.cut.From.All }}, Timeout: quietFor, Channels: append(s.world.ChannelTypes(), mesh.ChannelType(nil)),
		Link: driver.Netcode{Key: netcode.Key(s.cfg.Key), TakeOver: true}, Joined: s.joined, Closed: func(c *driver.Conn, _ netconn.CloseResult) { s.left(c) }})
	if err != nil {
		return err
	}
	return s.out.say(report{Start: s.cfg.Start, Peer: &peer{s.cfg.Number, s.cfg.Start, s.cfg.ID, s.driver.LocalAddr().String(), s.road.LocalAddr().String()}})
}

// fail notes what went wrong first, for the verdict.
func (s *server) fail(err error) {
	if err != nil && s.wrong == "" {
		s.wrong = err.Error()
	}
}

func (s *server) obey(o order) {
	if o.Leave {
		s.keeper.Leave()
	}
	if o.Cuts != nil {
		s.cut = *o.Cuts
		s.nats.set(s.cut.To.store(), s.cut.From.store())
	}
	if o.Peers == nil {
		return
	}
	s.peers = o.Peers
	for start, b := range s.borders {
		if s.peer(b.peer.ID) == nil {
			b.closed = true
			s.endBorder(start)
		}
	}
}

func (s *server) peer(id string) *peer {
	if i := slices.IndexFunc(s.peers, func(p peer) bool { return p.ID == id }); i >= 0 {
		return &s.peers[i]
	}
	return nil
}

// A packet between servers is a letter that says for which machine it is, the length of the sender's ID, that ID, and what the machine has sealed. Where servers have larger states than these, the road is
// a carrier that splits packets.
func (s *server) toServer(what byte, to string, packet []byte) {
	p := s.peer(to)
	if p == nil || s.cut.To.server(p.Number) || len(packet) > maxRoad {
		return
	}
	addr, err := netip.ParseAddrPort(p.Road)
	if err != nil {
		return
	}
	b := append([]byte{what, byte(len(s.cfg.ID))}, s.cfg.ID...)
	_, _ = s.road.WriteToUDPAddrPort(append(b, packet...), addr) // what is lost is said again
}

// listen takes packets from the road; the tick handles them.
func (s *server) listen() {
	b := make([]byte, 1<<16)
	for {
		n, _, err := s.road.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < 2 || n < 2+int(b[1]) {
			continue
		}
		select {
		case s.inbox <- bytes.Clone(b[:n]):
		default: // too many: it is as if it were lost
		}
	}
}

func (s *server) receive() {
	for range len(s.inbox) {
		b := <-s.inbox
		id, packet := string(b[2:2+int(b[1])]), b[2+int(b[1]):]
		if p := s.peer(id); p != nil && s.cut.From.server(p.Number) {
			continue
		}
		receive := s.players.Receive
		if b[0] == 'z' {
			receive = s.zone.Receive
		}
		if err := receive(id, packet); !errors.Is(err, mesh.ErrForged) { // anybody may send to this port, as who had it before was sent to
			s.fail(err)
		}
	}
}

func (s *server) joined(c *driver.Conn) {
	id := c.ClientID()
	g := &guest{conn: c}
	s.guests[id] = g
	if id >= borderID {
		for _, p := range s.peers {
			if id == borderID+uint64(p.Start) {
				g.peer = s.zone.Accept(p.ID, c)
				return
			}
		}
		c.CloseWithReason("who are you?") // it begins before its name has come here
		return
	}
	g.peer = s.world.AddConn(c)
	ch, err := mesh.Open(c, func(packet []byte) error { return s.players.ReceiveClient(id, packet) })
	s.fail(err)
	g.ch = ch
	s.players.Connected(id)
	if c.UserData()[0] == 1 { // the token service says that it is new
		s.enter(uint32(id))
	}
}

func (s *server) left(c *driver.Conn) {
	id := c.ClientID()
	g := s.guests[id]
	if g == nil || g.conn != c {
		return // another one has taken its place
	}
	s.world.RemoveConn(g.peer)
	delete(s.guests, id)
	if id < borderID {
		s.players.Disconnected(id)
	}
}

// enter makes a new player's walker, in a square of this server's.
func (s *server) enter(player uint32) {
	at, t := -1, s.zone.Table()
	for i := range squares {
		if j := (i + int(player)) % squares; t.At(middle(j)) == s.cfg.ID {
			at = j
		}
	}
	if at < 0 || s.world.Find(playerActor(player)) != nil || s.players.Enter(uint64(player)) != nil {
		return
	}
	w := &Walker{Player: player, account: account{Gold: startGold, Gems: startGems}}
	s.place(w, at)
	if err := s.world.SpawnAs(w, nil, playerActor(player)); err != nil {
		s.fail(err)
		return
	}
	s.fail(s.zone.Own(w, 1))
	s.pawns[player] = w
	s.fail(s.keeper.Keep(w, func(err error) { w.kept = w.kept || err == nil }))
}

// place puts a walker into a square.
func (s *server) place(w *Walker, square int) {
	x, y := middle(square)
	w.X, w.Y = x+side*0.6*(s.rng.Float64()-0.5), y+side*0.6*(s.rng.Float64()-0.5)
	w.toX, w.toY = w.X, w.Y
}

// populate makes the strays of zones that nobody has held before.
func (s *server) populate() {
	for i, name := range plan().Servers {
		if s.ready[name] || !slices.Contains(s.cfg.Zones, name) || s.keeper.Holds(name) != 1 {
			continue
		}
		s.ready[name] = true
		for n := range strays {
			w := &Walker{}
			s.place(w, quarter(i, n%quarters))
			s.fail(s.world.Spawn(w))
			s.fail(s.zone.Own(w, 1))
		}
	}
}

// tick reports whether the server's lease is over.
func (s *server) tick(now time.Time) bool {
	began := now.UnixNano()
	kv.Tick(s.keeper, s.store, now.Sub(s.began)) // not the driver's Time: a lease runs out while the process stands still
	if s.keeper.Over() {
		return true
	}
	at := s.driver.Time(now)
	s.driver.TickDispatch(now)
	s.receive()
	for _, b := range s.borders {
		b.driver.TickDispatch(now)
		b.world.Step(at)
	}
	s.dial(now)
	s.populate()
	s.play(began)
	s.zone.Step(at)
	s.world.Step(at)
	s.players.Step(at)
	for start, b := range s.borders {
		b.driver.TickFlush(now)
		if b.closed {
			s.endBorder(start)
			s.again[start] = now.Add(200 * time.Millisecond)
		}
	}
	s.driver.TickFlush(now)
	s.fail(s.driver.Err())
	return false
}

// play is the game's step: each walker of this server's goes on.
func (s *server) play(began int64) {
	for a := range s.world.All {
		w, ok := a.(*Walker)
		if !ok || !s.zone.Owns(w) {
			continue
		}
		id := uint32(w.GUID())
		p := s.spans[id]
		if p == nil || p.Epoch != w.Epoch {
			p = &span{Actor: id, Epoch: w.Epoch, First: time.Now().UnixNano()} // not the tick's time: what gave it may have come since
			s.spans[id] = p
		}
		p.Last = began // this server's right to play it was looked at after that
		w.Who = who(s.cfg.Start, w.Epoch)
		w.walk(s.rng)
		s.pay(w)
		s.steps++
	}
}

// dial connects with the others' borders.
func (s *server) dial(now time.Time) {
	for _, p := range s.peers {
		if p.ID == s.cfg.ID || s.borders[p.Start] != nil || now.Before(s.again[p.Start]) {
			continue
		}
		b := &border{peer: p, world: actorrep.NewClient(actorrep.Config{Failed: func(error) {}})}
		s.fail(register(b.world))
		token, err := connectToken(netcode.Key(s.cfg.Key), borderID+uint64(s.cfg.Start), p.Game, false)
		s.fail(err)
		socket, err := udp.Listen("127.0.0.1:0", udp.Config{})
		if err != nil {
			s.fail(err)
			return
		}
		number := p.Number
		b.driver, err = driver.Dial("127.0.0.1:1", driver.Config{Socket: cutSocket{socket, func() bool { return s.cut.To.server(number) }, func() bool { return s.cut.From.server(number) }}, Timeout: quietFor, Link: driver.Netcode{Token: token}, // the token says where
			Channels: append(b.world.ChannelTypes(), mesh.ChannelType(func(*channel.Channel) func([]byte) error { return func([]byte) error { return nil } })),
			Closed:   func(*driver.Conn, netconn.CloseResult) { b.closed = true }})
		if err != nil {
			s.fail(err)
			return
		}
		s.borders[p.Start] = b
		s.zone.Mirror(p.ID, b.world)
	}
}

func (s *server) endBorder(start int) {
	b := s.borders[start]
	_ = b.driver.Close()
	s.zone.Mirror(b.peer.ID, nil)
	delete(s.borders, start)
}

// report tells the first process how it is here.
func (s *server) report(over bool) error {
	r := report{Start: s.cfg.Start, Over: over, Away: s.keeper.Away(), Late: s.late, Given: s.zone.Counters.Given, Travels: s.players.Counters.Moved,
		Restored: s.keeper.Counters.Restored, Steps: s.steps, Wrong: s.wrong}
	s.late = 0
	if t := s.zone.Table(); t.Epoch > 1 { // else it is the one of the beginning, of this server alone
		if r.Epoch = t.Epoch; s.epoch != t.Epoch {
			s.epoch, r.Table = t.Epoch, &t
		}
	}
	for player, w := range s.pawns {
		if w.kept && s.zone.Owns(w) && s.players.Plays(uint64(player)) {
			r.Plays = append(r.Plays, player)
		}
	}
	for a := range s.world.All {
		w, ok := a.(*Walker)
		if !ok || !s.zone.Owns(w) {
			continue
		}
		r.Dots = append(r.Dots, dot{uint32(w.GUID()), w.Player, w.X, w.Y})
		if !w.book.Idle() || len(w.account.Owed) > 0 || w.account.Buying != 0 {
			r.Unsettled++
		}
	}
	for id, p := range s.spans {
		if s.told[id] != *p {
			r.Spans, s.told[id] = append(r.Spans, *p), *p
		}
	}
	return s.out.say(r)
}

// connectToken makes a connect token for one server.
func connectToken(key netcode.Key, client uint64, addr string, enter bool) (netcode.Token, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("a server's address: %w", err)
	}
	now := uint64(time.Now().Unix())
	cfg := netcode.TokenConfig{ClientID: client, Create: now, Expire: now + 60, Timeout: 2, Servers: []netip.AddrPort{to}, PrivateKey: key}
	if enter {
		cfg.UserData[0] = 1
	}
	return netcode.GenerateConnectToken(cfg)
}

// The players' game: what package mesh asks.

// Ticket implements mesh.Game.
func (s *server) Ticket(player uint64) ([]byte, error) {
	return connectToken(netcode.Key(s.cfg.Key), player, s.driver.LocalAddr().String(), false)
}

// Save implements mesh.Game.
func (s *server) Save(player uint64) []byte {
	w := s.pawns[uint32(player)]
	st := w.save()
	w.released = s.zone.Release(w, w.to)
	st.Epoch = w.released
	return st.encode()
}

// Play implements mesh.Game.
func (s *server) Play(player uint64, b []byte) {
	st, err := decodeState(b)
	s.fail(err)
	w, _ := s.world.Find(playerActor(uint32(player))).(*Walker)
	if w == nil {
		w = &Walker{}
		s.fail(s.world.SpawnAs(w, nil, playerActor(uint32(player))))
	}
	s.fail(w.load(st))
	s.pawns[uint32(player)] = w
	s.fail(s.zone.Own(w, st.Epoch))
}

// Stays implements mesh.Game.
func (s *server) Stays(player uint64, _ error) {
	if w := s.pawns[uint32(player)]; w != nil && w.released != 0 {
		s.fail(s.zone.Own(w, w.released))
		w.released = 0
	}
}

// Moved implements mesh.Game.
func (s *server) Moved(player uint64) { delete(s.pawns, uint32(player)) }

// Message implements mesh.Game: what a bot wants.
func (s *server) Message(player uint64, m []byte) {
	w := s.pawns[uint32(player)]
	in := words{b: m[1:]}
	if w == nil || len(m) == 0 {
		return
	}
	switch m[0] {
	case 'w':
		x, y := in.signed(), in.signed()
		if !in.bad {
			w.toX, w.toY = min(max(float64(x), 0), columns*cell), min(max(float64(y), 0), rows*cell)
		}
	case 'b':
		trade, seller, price := in.unsigned(), in.unsigned(), in.signed()
		if !in.bad {
			s.buy(w, trade, uint32(seller), price)
		}
	case 'r':
		op, account, since := in.unsigned(), in.unsigned(), in.signed()
		if !in.bad {
			s.ask(w, op, uint32(account), since)
		}
	}
}

// answer tells a player's bot what came of an operation.
func (s *server) answer(player uint32, op uint64, r result, rest []byte) {
	flag := byte(0)
	if r == ok {
		flag = 1
	}
	b := append(binary.AppendUvarint(nil, op), flag)
	_ = s.players.Send(uint64(player), append(b, rest...)) // one whose player has gone on gets none, and its result is unknown
}
