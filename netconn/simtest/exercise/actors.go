package exercise

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// thing is an actor. What has no tag is memory that nothing may write.
type thing struct {
	actorrep.Base
	Kind   uint16  `net:"initial"`
	Level  uint8   `net:"max=200"`
	Count  int32   `net:""`
	X, Y   float64 `net:"q=0.5"`
	Name   string  `net:""`
	Slots  [4]uint16
	Purse  [3]uint32           `net:""`
	Secret uint32              `net:"owner"`     // says whose it is
	Public uint32              `net:"skipowner"` // all but the owner
	List   []uint16            `net:"cap=30"`
	Pushed actorrep.Var[int32] `net:""`
	Guard  [16]uint64

	end     *end    // on a client whose world it is in
	calls   *stream // what this end calls there
	granted uint32  // the secret with which those calls began
	known   *known  // on a server
	sight   *simtest.Sight
	shouted uint32 // on a client: the newest shout
}

// part is a component of a thing.
type part struct {
	actorrep.Base
	Value uint32 `net:""`
	Mine  uint32 `net:"owner"` // as Secret
	Guard [16]uint64
}

// things is the actors of a server's world.
type things struct {
	all     []*thing
	counter uint32
	known   map[netguid.GUID]*known // of all there ever were
}

func (p *program) newWorld() error {
	p.world = nil
	if p.g.opt.actors == 0 {
		return nil
	}
	if p.server {
		p.things = &things{known: map[netguid.GUID]*known{}}
		p.world = actorrep.NewServer(actorrep.Config{Failed: p.told, Relevant: p.relevant, RelevantTimeout: 300 * time.Millisecond})
	} else {
		p.world = actorrep.NewClient(actorrep.Config{Failed: p.told, Spawned: p.spawned})
	}
	p.world.User = p
	return register(p.world)
}

func register(w *actorrep.World) error {
	if err := w.Register("thing", (*thing)(nil), actorrep.RPCs{"ask": ask, "shout": shout, "tell": tell}); err != nil {
		return err
	}
	return w.Register("part", (*part)(nil))
}

// spawned is told of a client's actors.
func (p *program) spawned(a actorrep.Actor) {
	t, ok := a.(*thing)
	if !ok || p.client == nil || p.client.peer == nil {
		return
	}
	t.end = p.client
	if k := p.client.peer.p.things.known[t.GUID()]; k != nil {
		t.sight = k.values.NewSight(p.client.String())
	}
}

// relevant hides some actors from some connections for a while.
func (p *program) relevant(peer *actorrep.Peer, a actorrep.Actor) bool {
	if p.g.calm {
		return true
	}
	e := peer.User.(*end)
	kind := uint32(0)
	if t, ok := a.(*thing); ok {
		kind = uint32(t.Kind)
	}
	return noise(uint32(e.id), kind, int(p.g.w.Now()/(2*time.Second)))%4 != 0
}

// actors is what a server's end shows its client.
type actors struct {
	e    *end
	peer *actorrep.Peer
}

func (e *end) startActors() {
	if e.p.world == nil {
		return
	}
	a := &actors{e: e}
	e.due, e.toldOf = map[netguid.GUID][]uint32{}, map[netguid.GUID]int{}
	if e.p.server {
		a.peer = e.p.world.AddConn(e.conn)
		a.peer.User = e
	}
	e.actors = a
	e.works = append(e.works, a)
}

// stepWorld lets things happen on a server, and checks a client for what it mustn't see.
func (p *program) stepWorld(now time.Duration) {
	if p.world == nil {
		return
	}
	if p.server && !p.g.calm {
		p.change()
	}
	p.world.Step(now)
	if p.server {
		p.checkTold()
	}
	if !p.server && p.client != nil && p.client.peer != nil {
		p.look()
	}
}

// look checks what a client sees for what it mustn't, and lets it call.
func (p *program) look() {
	n := p.odd.IntN(max(1, p.world.Len())) // whose values are compared with what they were
	for a := range p.world.All {
		secret := uint32(0)
		switch a := a.(type) {
		case *thing:
			secret = a.Secret
			if n == 0 {
				a.look()
			}
			if a.IsOwned() && !p.g.calm && p.client.alive() && p.rng.IntN(20) == 0 {
				p.client.call(a)
			}
		case *part:
			secret = a.Mine
		}
		n--
		if secret != 0 && secret>>12 != uint32(p.client.peer.id)+1 {
			p.g.w.Failf("leak", "%v sees the secret of end %d", p.client, secret>>12-1)
		}
	}
}

// change is a tick of the server's game.
func (p *program) change() {
	r, ts := p.rng, p.things
	p.unfit()
	if len(ts.all) < p.g.opt.actors && r.IntN(4) == 0 {
		t := &thing{Kind: uint16(1 + r.IntN(1000)), Level: uint8(r.IntN(201))}
		p.give(t)
		if err := p.world.Spawn(t); err != nil {
			p.g.w.Failf("converge", "%s: %v", p.h.Name(), err)
		}
		ts.all = append(ts.all, t)
		p.know(t)
	}
	for range min(len(ts.all), r.IntN(6)) {
		i := r.IntN(len(ts.all))
		t := ts.all[i]
		switch r.IntN(18) {
		case 12:
			t.List = append(t.List, uint16(r.Uint32()))
			if len(t.List) > maxList {
				t.List = t.List[:r.IntN(maxList)]
			}
		case 13:
			t.Pushed.Set(int32(r.Uint32()))
		case 14, 15:
			p.part(t)
		case 16:
			p.check(t.SetDormant(!t.Dormant()))
		case 17:
			if t.calls != nil && t.calls.from.alive() {
				t.calls.from.tell(t)
			}
			if p.odd.IntN(2) == 0 {
				p.shout(t)
			}
		case 0:
			p.check(p.world.Destroy(t))
			ts.all = append(ts.all[:i], ts.all[i+1:]...)
			if len(ts.all) == 0 {
				return
			}
		case 1:
			p.give(t)
		case 2:
			t.Name = fmt.Sprintf("name %d", r.IntN(100))
		case 3:
			t.Level = uint8(r.IntN(201))
		case 4, 5:
			t.Purse[r.IntN(3)] = r.Uint32()
		case 6:
			t.Count = int32(r.Uint32())
		case 7:
			t.Public = r.Uint32()
		default:
			t.X += float64(r.IntN(9)) / 2
			t.Y -= float64(r.IntN(9)) / 2
		}
		t.note()
		if t.Dormant() {
			t.FlushDormancy()
		}
	}
}

// check makes an error of the world a failure, but for a call's being told that the connection closes.
func (p *program) check(err error) {
	if err != nil && !errors.Is(err, channel.ErrClosed) {
		p.g.w.Failf("converge", "%s: %v", p.h.Name(), err)
	}
}

// part adds a component to a thing, changes one, or destroys one.
func (p *program) part(t *thing) {
	var parts []*part
	for c := range t.Children {
		parts = append(parts, c.(*part))
	}
	r := p.rng
	switch {
	case len(parts) < 2:
		p.check(p.world.SpawnIn(t, &part{Value: r.Uint32(), Mine: t.Secret}))
	case r.IntN(3) == 0:
		p.check(p.world.Destroy(parts[r.IntN(len(parts))]))
	default:
		parts[r.IntN(len(parts))].Value = r.Uint32()
	}
}

// give makes a thing somebody's, with a secret of his, or nobody's.
func (p *program) give(t *thing) {
	p.things.counter++
	t.SetOwner(nil)
	t.Secret, t.calls = 0, nil
	if n := len(p.ends); n > 0 {
		if e := p.ends[p.rng.IntN(n)]; e.actors != nil && e.alive() {
			t.SetOwner(e.actors.peer)
			t.Secret = (uint32(e.id)+1)<<12 | p.things.counter&0xfff
			t.calls = e.newStream("calls of a thing", simtest.OrTold)
			if e.tells = append(e.tells, t.calls); e.liar {
				t.calls.Void()
			}
		}
	}
	for c := range t.Children {
		c.(*part).Mine = t.Secret
	}
}

func (*actors) tick(time.Duration) {}

// pending compares a client's world with its server's.
func (a *actors) pending() string {
	e := a.e
	if e.p.server || e.peer == nil || e.peer.actors == nil {
		return ""
	}
	server, client := e.peer.p.world, e.p.world
	e.g.Counters.Compares++
	if what := e.callsPending(); what != "" {
		return what
	}
	if server.Len() != client.Len() {
		return fmt.Sprintf("%d actors of %d", client.Len(), server.Len())
	}
	for sa := range server.All {
		what := ""
		switch s := sa.(type) {
		case *thing:
			c, ok := client.Find(s.GUID()).(*thing)
			if what = "it isn't there"; ok {
				what = differs(s, c, s.Owner() == e.peer.actors.peer)
			}
		case *part:
			c, ok := client.Find(s.GUID()).(*part)
			switch {
			case !ok:
				what = "it isn't there"
			case c.Value != s.Value:
				what = fmt.Sprintf("Value is %v instead of %v", c.Value, s.Value)
			case c.Parent() == nil || c.Parent().(*thing).GUID() != s.Parent().(*thing).GUID():
				what = "it has another parent"
			case s.Owner() == e.peer.actors.peer && c.Mine != s.Mine:
				what = "the owner lacks its secret"
			}
		}
		if what != "" {
			return fmt.Sprintf("%T: %s", sa, what)
		}
	}
	return ""
}

// differs is what a client's copy of a thing has wrong.
func differs(s, c *thing, owner bool) string {
	for _, f := range []struct {
		name      string
		got, want any
		skip      bool
	}{
		{"Kind", c.Kind, s.Kind, false}, {"Level", c.Level, min(s.Level, maxLevel), false}, {"Count", c.Count, s.Count, false},
		{"X", c.X, s.X, false}, {"Y", c.Y, s.Y, false}, {"Name", c.Name, s.known.name, false}, {"Purse", c.Purse, s.Purse, false},
		{"Slots", c.Slots, [4]uint16{}, false}, {"Secret", c.Secret, s.Secret, !owner}, {"Public", c.Public, s.Public, owner},
		{"Pushed", c.Pushed.Get(), s.Pushed.Get(), false}, {"List", fmt.Sprint(c.List), fmt.Sprint(s.known.list), false},
		{"Guard", c.Guard, [16]uint64{}, false},
	} {
		if !f.skip && f.got != f.want {
			return fmt.Sprintf("%s is %v instead of %v", f.name, f.got, f.want)
		}
	}
	return ""
}

func (a *actors) over() {
	if a.peer != nil {
		a.e.g.Counters.ActorUpdates = a.e.p.world.Counters.Updates
		a.e.p.world.RemoveConn(a.peer)
	}
}
