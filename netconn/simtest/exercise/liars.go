package exercise

import (
	"fmt"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/hostile"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// liars is the hosts of a game that keep no rules, and the client of one: a client that lies to an honest server which has
// honest clients, and a server that lies to a client of its own. Their connections are honest ones, so that what they say arrives.
type liars struct {
	g                      *Game
	client, server, victim *simtest.Host
}

// liarURL is what a client that lies logs in with.
const liarURL = "liar"

// addLiars adds them. None counts as a server, whose clients are told by their number.
func (g *Game) addLiars(net netsim.Settings) error {
	l := &liars{g: g}
	for _, add := range []struct {
		to   **simtest.Host
		name string
	}{{&l.client, "lying client"}, {&l.server, "lying server"}, {&l.victim, "victim"}} {
		h := g.w.AddHost(add.name, false)
		if err := h.SetNet(net, net); err != nil {
			return err
		}
		*add.to = h
	}
	g.liars = l
	return nil
}

// boot starts what runs on a liar's host, or on its victim's; nil on others.
func (l *liars) boot(h *simtest.Host) (simtest.Program, error) {
	switch h {
	case l.client:
		p := &lyingClient{outsider: l.outsider(h)}
		return p, p.dial()
	case l.server:
		p := &lyingServer{outsider: l.outsider(h)}
		return p, p.listen()
	case l.victim:
		p := &victim{outsider: l.outsider(h)}
		return p, p.dial()
	}
	return nil, nil
}

// outsider is a program that isn't one of the exercise's own.
type outsider struct {
	p      *program // for its settings only
	rng    simtest.Rand
	dice   *hostile.Dice
	d      *driver.Driver
	conn   *driver.Conn
	over   bool
	redial time.Duration
}

func (l *liars) outsider(h *simtest.Host) outsider {
	return outsider{p: &program{g: l.g, h: h, rng: h.Rand()}, rng: h.Rand(), dice: hostile.NewDice(nil, 16)}
}

// config is the settings of a connection that carries the channels of a world only.
func (o *outsider) config(w *actorrep.World) (cfg driver.Config, err error) {
	var token []byte
	if !o.p.server {
		if token, err = o.p.token(); err != nil {
			return cfg, err
		}
	}
	if cfg, err = o.p.config(token); err != nil {
		return cfg, err
	}
	o.conn, o.over, o.redial = nil, false, 0
	cfg.Channels, cfg.Accepted = w.ChannelTypes(), nil
	cfg.Joined = func(c *driver.Conn) { o.conn = c }
	cfg.Closed = func(*driver.Conn, netconn.CloseResult) { o.over = true }
	return cfg, nil
}

// dialTo connects with a server.
func (o *outsider) dialTo(h *simtest.Host, w *actorrep.World) error {
	o.p.to = h
	cfg, err := o.config(w)
	if err != nil {
		return err
	}
	cfg.Socket, cfg.Client = o.p.h.Open(), control.ClientConfig{URL: liarURL, NetSpeed: 100_000}
	o.d, err = driver.Dial(fmt.Sprintf("%v:%d", h.Addr(), port), cfg)
	return err
}

// hungUp reports whether a client's connection is over. Then it dials again, after a while.
func (o *outsider) hungUp(now time.Time) bool {
	if !o.over && o.d.Err() == nil {
		return false
	}
	o.d.TickFlush(now)
	_ = o.d.Close()
	o.redial = o.p.g.w.Now() + time.Duration(1+o.rng.IntN(500))*time.Millisecond
	return true
}

// refill gives the dice what they need for a message.
func (o *outsider) refill() {
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(o.rng.Uint32())
	}
	o.dice.Refill(b)
}

// classes is the exercise's, as liars have them.
func classes() []hostile.Class {
	t, c := &thing{}, &part{}
	args := func(d *hostile.Dice) any { return callArgs{uint32(d.N(50)), uint32(d.N(50)), uint32(d.N(200))} }
	return []hostile.Class{
		{Actor: t, Procedures: []func(*hostile.Dice) any{args, args, args}, Change: func(d *hostile.Dice) {
			t.Level, t.Count, t.Secret, t.Public = uint8(d.N(maxLevel+1)), int32(d.N(256))<<20, uint32(d.N(256)), uint32(d.N(256))
			t.X, t.Y = t.X+float64(d.N(100)), t.Y-float64(d.N(100))
			t.Name, t.List = fmt.Sprint("name ", d.N(100)), make([]uint16, d.N(maxList+1))
			t.Purse[d.N(3)]++
			t.Pushed.Set(int32(d.N(256)))
		}},
		{Actor: c, Change: func(d *hostile.Dice) { c.Value, c.Mine = uint32(d.N(256)), uint32(d.N(256)) }},
	}
}

// lyingClient calls what it likes on the channels of the actors that it sees.
type lyingClient struct {
	outsider
	liar     *hostile.Client
	channels []*channel.Channel
}

func (l *lyingClient) dial() error {
	w := actorrep.NewClient(actorrep.Config{})
	if err := register(w); err != nil {
		return err
	}
	var err error
	if l.liar, err = hostile.NewClient(l.dice, classes()...); err != nil {
		return err
	}
	l.channels = nil
	cfg, err := l.config(w)
	if err != nil {
		return err
	}
	for i := range cfg.Channels {
		if cfg.Channels[i].Name == bunch.Actor {
			cfg.Channels[i].Accept = func(ch *channel.Channel) channel.Handler {
				l.channels = append(l.channels, ch)
				return channel.Nop{}
			}
		}
	}
	cfg.Socket, cfg.Client = l.p.h.Open(), control.ClientConfig{URL: liarURL, NetSpeed: 100_000}
	l.d, err = driver.Dial(fmt.Sprintf("%v:%d", l.p.g.w.ServerOf(l.p.h).Addr(), port), cfg)
	return err
}

// Tick is simtest.Program's.
func (l *lyingClient) Tick(now time.Time) error {
	g := l.p.g
	switch {
	case g.parting && l.redial > 0:
		return nil
	case l.redial > 0 && g.w.Now() < l.redial:
		return nil
	case l.redial > 0:
		return l.dial()
	}
	l.d.TickDispatch(now)
	if l.conn != nil && !l.over && !g.calm && len(l.channels) > 0 {
		ch := l.channels[l.rng.IntN(len(l.channels))]
		l.refill()
		data, bits := l.liar.Calls(l.dice.N(2))
		if _, err := ch.SendBunch(&bunch.Out{Data: data, Bits: bits, Reliable: l.rng.IntN(8) > 0}); err == nil {
			g.Counters.Lies++
		}
	}
	if g.parting && l.conn != nil && !l.over && !l.conn.Closing() {
		l.conn.CloseWithReason("the liar goes")
	}
	l.d.TickFlush(now)
	l.hungUp(now)
	return nil
}

func (l *lyingClient) pending() string { return "" }

// lyingServer shows its client some things as it should, and lies between.
type lyingServer struct {
	outsider
	world *actorrep.World
	peer  *actorrep.Peer
	liar  *hostile.Server
	shown []*thing
	lies  []*channel.Channel
	calm  bool
}

func (l *lyingServer) listen() (err error) {
	l.world = actorrep.NewServer(actorrep.Config{})
	if err := register(l.world); err != nil {
		return err
	}
	if l.liar, err = hostile.NewServer(l.dice, classes()...); err != nil {
		return err
	}
	for i := range 4 {
		t := &thing{Kind: uint16(i)}
		if err := l.world.Spawn(t); err != nil {
			return err
		}
		l.shown = append(l.shown, t)
	}
	l.p.server = true
	cfg, err := l.config(l.world)
	if err != nil {
		return err
	}
	cfg.Joined = func(c *driver.Conn) { l.conn, l.peer, l.lies = c, l.world.AddConn(c), nil }
	cfg.Closed = func(c *driver.Conn, _ netconn.CloseResult) {
		if c != nil && c == l.conn {
			l.world.RemoveConn(l.peer)
			l.conn = nil
		}
	}
	s, err := l.p.h.Listen(port)
	if err != nil {
		return err
	}
	cfg.Socket = s
	l.d, err = driver.Listen(s.LocalAddr().String(), cfg)
	return err
}

// Tick is simtest.Program's.
func (l *lyingServer) Tick(now time.Time) error {
	l.d.TickDispatch(now)
	t := l.shown[l.rng.IntN(len(l.shown))]
	if !l.p.g.calm {
		t.Count, t.X, t.Name = int32(l.rng.Uint32()), t.X+1, fmt.Sprint("name ", l.rng.IntN(1000))
	}
	l.world.Step(l.d.Time(now))
	switch {
	case l.conn == nil || l.conn.Closing():
	case !l.p.g.calm:
		l.refill()
		l.lie()
	case !l.calm: // honest from now on, with a new connection
		l.calm = true
		l.conn.CloseWithReason("no more lies")
	}
	l.d.TickFlush(now)
	return l.d.Err()
}

func (l *lyingServer) lie() {
	d := l.dice
	send := func(ch *channel.Channel, data []byte, bits int, reliable bool) {
		if ch == nil || ch.Closing() {
			return
		}
		if _, err := ch.SendBunch(&bunch.Out{Data: data, Bits: bits, Reliable: reliable, NoMerge: d.N(2) == 0}); err == nil {
			l.p.g.Counters.Lies++
		}
	}
	var replication *channel.Channel
	var actors []uint32
	for ch := range l.conn.Table().All {
		switch ch.Name() {
		case actorrep.ReplicationName:
			replication = ch
		case bunch.Actor:
			actors = append(actors, ch.Index())
		}
	}
	slices.Sort(actors)
	l.liar.Frame = l.world.Frame()
	switch d.N(9) {
	case 0, 1:
		if len(l.lies) >= 60 {
			return
		}
		ch, err := l.conn.Open(bunch.Actor, channel.Nop{})
		if err != nil {
			return
		}
		l.lies = append(l.lies, ch)
		data, bits := l.liar.Opening(ch.Index())
		send(ch, data, bits, true)
	case 2, 3:
		if len(actors) == 0 {
			return
		}
		ch := l.conn.Table().Channel(actors[d.N(len(actors))])
		data, bits := l.liar.Messages(ch.Index())
		send(ch, data, bits, true)
	case 4, 5:
		data, bits := l.liar.Records(actors)
		send(replication, data, bits, false)
	case 6:
		data, bits := l.liar.Gone()
		send(replication, data, bits, true)
	case 8:
		data, bits := l.liar.Refused()
		send(replication, data, bits, true)
	case 7:
		if len(l.lies) > 0 {
			i := d.N(len(l.lies))
			_ = l.lies[i].Close([]channel.CloseReason{bunch.Destroyed, bunch.Dormancy, bunch.Relevancy, bunch.TearOff}[d.N(4)])
			l.lies = slices.Delete(l.lies, i, i+1)
		}
	}
}

func (l *lyingServer) pending() string { return "" }

// victim is the client of a server that lies.
type victim struct {
	outsider
	world  *actorrep.World
	honest bool // the connection came when the server had stopped
}

func (v *victim) dial() error {
	if v.world != nil {
		v.p.g.Counters.LiesTaken += v.world.Counters.Spawned
	}
	v.world, v.honest = actorrep.NewClient(actorrep.Config{}), v.p.g.calm
	if err := register(v.world); err != nil {
		return err
	}
	return v.dialTo(v.p.g.liars.server, v.world)
}

// Tick is simtest.Program's.
func (v *victim) Tick(now time.Time) error {
	if v.redial > 0 {
		if v.p.g.w.Now() < v.redial {
			return nil
		}
		return v.dial()
	}
	v.d.TickDispatch(now)
	v.world.Step(v.d.Time(now))
	v.d.TickFlush(now)
	v.check()
	v.hungUp(now)
	return nil
}

// based is an actor of any class.
type based interface {
	GUID() netguid.GUID
	ClassName() string
}

// check looks for what no server may do to a client.
func (v *victim) check() {
	w := v.p.g.w
	for a := range v.world.All {
		name, guard, slots := "", [16]uint64{}, [4]uint16{}
		switch a := a.(type) {
		case *thing:
			name, guard, slots = "thing", a.Guard, a.Slots
		case *part:
			name, guard = "part", a.Guard
		}
		if b := a.(based); b.ClassName() != name || guard != [16]uint64{} || slots != [4]uint16{} || v.world.Find(b.GUID()) != a {
			w.Failf("liar", "a server's lies changed %v of class %s: %v, %v", b.GUID(), b.ClassName(), guard, slots)
		}
	}
	if n := v.world.Len(); n > 200 {
		w.Failf("liar", "a server's lies made %d actors", n)
	}
	if v.conn != nil && v.conn.Table().Len() > maxChannels {
		w.Failf("liar", "a server's lies made %d channels", v.conn.Table().Len())
	}
}

// pending is what the victim waits for when the server lies no more.
func (v *victim) pending() string {
	if !v.honest || v.conn == nil || v.over {
		if v.p.g.calm && !v.honest && v.conn != nil && !v.over && !v.conn.Closing() {
			v.conn.CloseWithReason("enough lies") // the server had no reason to
		}
		return "the victim isn't connected with the server that lied"
	}
	server, _ := v.p.g.liars.server.Program().(*lyingServer)
	if server == nil || server.world.Len() != v.world.Len() {
		return "the victim lacks actors of the server that lied"
	}
	for _, t := range server.shown {
		c, ok := v.world.Find(t.GUID()).(*thing)
		if !ok || c.Count != t.Count || c.X != t.X || c.Name != t.Name {
			return "the victim hasn't the values of the server that lied"
		}
	}
	return ""
}
