package actorrep_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

type vec3 struct{ X, Y, Z float32 }

type item struct {
	Kind  uint8 `net:"max=20"`
	Count uint16
	Label string
}

// hero has a field of every kind and of most conditions.
type hero struct {
	actorrep.Base
	Pos      vec3                  `net:"q=0.01,notify=OnPos"`
	Rot      [3]float32            `net:"rot=16"`
	Health   actorrep.Var[uint8]   `net:"max=100,notify=OnHealth"`
	Title    actorrep.Var[string]  `net:"cap=40"`
	Secret   uint32                `net:"owner"`
	Outside  uint32                `net:"skipowner"`
	Birth    uint32                `net:"initial"`
	Puppet   uint16                `net:"simulated"`
	Control  uint16                `net:"autonomous"`
	Both     uint16                `net:"initialorowner"`
	Switched int32                 `net:"custom"`
	Nobody   uint32                `net:"never"`
	Recorded uint32                `net:"replay"`
	Bag      []item                `net:"cap=32,notify=OnBag"`
	Numbers  []int32               `net:""`
	Raw      []byte                `net:"cap=100"`
	Friend   netguid.GUID          `net:"notify=OnFriend"`
	Nested   struct{ A, B int16 }  `net:""`
	Big      actorrep.Var[float64] `net:""`

	bags, friends int
}

func (h *hero) OnPos(vec3)     {}
func (h *hero) OnHealth(uint8) {}
func (h *hero) OnBag([]item)   { h.bags++ }
func (h *hero) OnFriend()      { h.friends++ }
func (h *hero) Location() (x, y, z float64) {
	return float64(h.Pos.X), float64(h.Pos.Y), float64(h.Pos.Z)
}

// part is a component.
type part struct {
	actorrep.Base
	Level actorrep.Var[uint16] `net:""`
	Name  string               `net:"owner"`
}

func registerHeroes(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("part", (*part)(nil)))
	require.NoError(t, w.Register("hero", (*hero)(nil), actorrep.CullDistance(100)))
}

// drama is a server's world of heroes that everything happens to.
type drama struct {
	*world
	heroes []*hero
	parts  []*part
	// seen is what each client was ever allowed, by its conditions that change.
	seen map[*rig.Line]map[netguid.GUID]*allowed
	last map[*rig.Line]map[netguid.GUID]time.Duration // when an actor was relevant last
}

type allowed struct{ secret, outside, control bool }

const relevantTimeout = 500 * time.Millisecond

func newDrama(t *testing.T, seed uint64, set netsim.Settings, cfg actorrep.Config) *drama {
	cfg.RelevantTimeout = relevantTimeout
	d := &drama{world: newWorld(t, seed, set, cfg, registerHeroes), seen: map[*rig.Line]map[netguid.GUID]*allowed{}, last: map[*rig.Line]map[netguid.GUID]time.Duration{}}
	return d
}

func (d *drama) join() *rig.Line {
	l := d.world.join()
	l.Peer.SetViewpoint(d.Rand.Float64()*200, d.Rand.Float64()*200, 0)
	d.seen[l], d.last[l] = map[netguid.GUID]*allowed{}, map[netguid.GUID]time.Duration{}
	return l
}

func (d *drama) leave(i int) {
	l := d.Lines[i]
	d.Server.RemoveConn(l.Peer)
	d.Lines = slices.Delete(d.Lines, i, i+1)
}

func (d *drama) spawn() {
	h := &hero{Birth: 7, Secret: 5, Outside: 6, Puppet: 1, Control: 2, Both: 3, Nobody: 99, Recorded: 98, Switched: 4}
	h.Pos = vec3{d.Rand.Float32() * 200, d.Rand.Float32() * 200, 0}
	h.Title.Set(fmt.Sprintf("hero\x00 %d", d.Rand.IntN(100))) // a NUL is a character like any other
	if len(d.Lines) > 0 && d.Rand.IntN(2) == 0 {
		h.SetOwner(d.Lines[d.Rand.IntN(len(d.Lines))].Peer)
		h.SetAutonomous(d.Rand.IntN(2) == 0)
	}
	require.NoError(d.T, d.Server.Spawn(h))
	d.heroes = append(d.heroes, h)
}

// happen changes something.
func (d *drama) happen() {
	rng := d.Rand
	pick := func() *hero { return d.heroes[rng.IntN(len(d.heroes))] }
	switch r := rng.IntN(40); {
	case r < 2 && len(d.heroes) < 30 || len(d.heroes) == 0:
		d.spawn()
	case r == 2 && len(d.heroes) > 3:
		i := rng.IntN(len(d.heroes))
		require.NoError(d.T, d.Server.Destroy(d.heroes[i]))
		d.heroes = slices.Delete(d.heroes, i, i+1)
		d.parts = slices.DeleteFunc(d.parts, func(p *part) bool { return p.World() == nil })
	case r == 3:
		p := &part{Name: "n"}
		require.NoError(d.T, d.Server.SpawnIn(pick(), p))
		d.parts = append(d.parts, p)
	case r == 4 && len(d.parts) > 0:
		i := rng.IntN(len(d.parts))
		require.NoError(d.T, d.Server.Destroy(d.parts[i]))
		d.parts = slices.Delete(d.parts, i, i+1)
	case r == 5 && len(d.Lines) > 0:
		pick().SetOwner(d.Lines[rng.IntN(len(d.Lines))].Peer)
	case r == 6:
		pick().SetOwner(nil)
	case r == 7:
		h := pick()
		require.NoError(d.T, h.SetDormant(!h.Dormant()))
	case r == 8:
		pick().SetAutonomous(rng.IntN(2) == 0)
	case r == 9:
		require.NoError(d.T, pick().SetCondition("Switched", rng.IntN(2) == 0))
	case r == 10 && len(d.Lines) > 0:
		d.Lines[rng.IntN(len(d.Lines))].Peer.SetViewpoint(rng.Float64()*200, rng.Float64()*200, 0)
	case r == 11:
		require.NoError(d.T, pick().SetUpdateFrequency(float64(rng.IntN(3)*10)))
	case r == 12:
		pick().SetOnlyOwner(rng.IntN(4) == 0)
	case r == 13:
		pick().SetAlwaysRelevant(rng.IntN(4) == 0)
	case r == 14 && len(d.parts) > 0:
		d.parts[rng.IntN(len(d.parts))].Level.Set(uint16(rng.IntN(1000)))
	}
	for _, h := range d.heroes {
		d.mutate(h)
	}
}

func (d *drama) mutate(h *hero) {
	rng := d.Rand
	if rng.IntN(2) == 0 {
		h.Pos.X += rng.Float32()*4 - 2
		h.Rot[1] += 3
	}
	switch rng.IntN(20) {
	case 0:
		h.Health.Set(uint8(rng.IntN(101)))
	case 1:
		h.Secret, h.Outside = rng.Uint32N(1000)+1, rng.Uint32N(1000)+1
	case 2:
		h.Puppet, h.Control = uint16(rng.UintN(100)+1), uint16(rng.UintN(100)+1)
		h.Both++
	case 3:
		h.Bag = append(h.Bag, item{uint8(rng.IntN(21)), uint16(rng.UintN(100)), strings.Repeat("x", rng.IntN(9))})
	case 4: // shrinks
		h.Bag = h.Bag[:rng.IntN(len(h.Bag)+1)]
	case 5:
		h.Numbers = append(h.Numbers[:rng.IntN(len(h.Numbers)+1)], rng.Int32())
		if len(h.Numbers) > 20 {
			h.Numbers = nil
		}
	case 6:
		h.Raw = []byte(strings.Repeat("r", rng.IntN(100)))
	case 7:
		h.Friend = d.heroes[rng.IntN(len(d.heroes))].GUID()
	case 8:
		h.Nested.A, h.Nested.B = int16(rng.IntN(100)), int16(-rng.IntN(100))
		h.Big.Set(rng.NormFloat64())
	case 9:
		h.Switched++
	}
	if h.Dormant() && rng.IntN(30) == 0 {
		h.FlushDormancy()
	}
}

// shows is a hero as a client should have it. was is what it was ever allowed: values stay when a condition ends.
func shows(h, mirror *hero, owner, autonomous bool) string {
	secret, outside, puppet, control := h.Secret, h.Outside, h.Puppet, h.Control
	both := h.Both
	if !owner {
		secret, both = mirror.Secret, mirror.Both
	} else {
		outside = mirror.Outside
	}
	if autonomous {
		puppet = mirror.Puppet
	} else {
		control = mirror.Control
	}
	return fmt.Sprintf("%.2f %.2f %d %q %d %d %d %d %d %v %v %q %v %v %v", h.Pos, h.Rot[1], h.Health.Get(), h.Title.Get(), secret, outside, puppet, control, both,
		h.Bag, h.Numbers, h.Raw, h.Friend, h.Nested, h.Big.Get())
}

// differs says how a client's state isn't what it should be, or "".
func (d *drama) differs(l *rig.Line) string {
	for _, h := range d.heroes {
		relevant := l.Peer.IsRelevant(h)
		found := l.World.Find(h.GUID())
		switch {
		case relevant != (found != nil):
			return fmt.Sprintf("%v relevant %v, there %v: %s", h.GUID(), relevant, found != nil, d.Server.Explain(l.Peer, h).Text)
		case !relevant:
			continue
		}
		m := found.(*hero)
		owner := h.Owner() == l.Peer
		if m.IsOwned() != owner {
			return fmt.Sprintf("%v owned %v", h.GUID(), m.IsOwned())
		}
		auto := owner && m.Role() == actorrep.AutonomousProxy
		if d := near(h, m); d != "" {
			return d
		}
		want, got := shows(h, m, owner, auto), shows(m, m, owner, auto)
		// floats were compared by near
		want, got = want[strings.Index(want, "}")+1:], got[strings.Index(got, "}")+1:]
		want, got = cutFloat(want), cutFloat(got)
		if want != got {
			return fmt.Sprintf("%v:\n got %s\nwant %s", h.GUID(), got, want)
		}
		if m.Nobody != 0 || m.Recorded != 0 {
			return "a value that is for nobody"
		}
	}
	for _, p := range d.parts {
		parent := p.Parent()
		found := l.World.Find(p.GUID())
		if relevant := l.Peer.IsRelevant(parent); relevant != (found != nil) {
			return fmt.Sprintf("part %v of %v: relevant %v, there %v", p.GUID(), parent.(*hero).GUID(), relevant, found != nil)
		}
		if found == nil {
			continue
		}
		m := found.(*part)
		if m.Level.Get() != p.Level.Get() || m.Parent() == nil || m.Parent().(*hero).GUID() != parent.(*hero).GUID() {
			return fmt.Sprintf("part %v: level %d, not %d; parent %v", p.GUID(), m.Level.Get(), p.Level.Get(), m.Parent())
		}
	}
	if n := len(d.heroes) + len(d.parts); l.World.Len() > n {
		return fmt.Sprintf("%d actors, the server has %d", l.World.Len(), n)
	}
	return ""
}

func cutFloat(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.Index(s, " ")+1:]
}

func near(h, m *hero) string {
	for i, v := range [][2]float32{{h.Pos.X, m.Pos.X}, {h.Pos.Y, m.Pos.Y}, {h.Pos.Z, m.Pos.Z}} {
		if d := v[0] - v[1]; d > 0.0051 || d < -0.0051 {
			return fmt.Sprintf("%v axis %d: %v, not %v", h.GUID(), i, v[1], v[0])
		}
	}
	turn := float64(h.Rot[1]-m.Rot[1]) / 360
	if turn -= float64(int(turn)); turn > 0.001 && turn < 0.999 || turn < -0.001 && turn > -0.999 {
		return fmt.Sprintf("%v rotation %v, not %v", h.GUID(), m.Rot[1], h.Rot[1])
	}
	return ""
}

// forbidden checks, after every step, that no client has what it was never allowed, and sees nothing that hasn't been relevant
// for the timeout and the time that the news takes.
func (d *drama) forbidden() {
	const news = 8 * time.Second // a close that is lost again and again
	for _, l := range d.Lines {
		for _, h := range d.heroes {
			a := d.seen[l][h.GUID()]
			if a == nil {
				a = &allowed{}
				d.seen[l][h.GUID()] = a
			}
			owner := h.Owner() == l.Peer
			a.secret = a.secret || owner
			a.outside = a.outside || !owner
			a.control = a.control || owner // autonomous or not may have changed within the step
			if l.Peer.IsRelevant(h) {
				d.last[l][h.GUID()] = d.Now
			}
			found := l.World.Find(h.GUID())
			if found == nil {
				continue
			}
			m := found.(*hero)
			require.False(d.T, m.Secret != 0 && !a.secret, "the owner's secret at another client")
			require.False(d.T, m.Outside != 0 && !a.outside, "what isn't for the owner at the owner")
			require.False(d.T, m.Control != 0 && !a.control)
			require.Zero(d.T, m.Nobody)
			require.Zero(d.T, m.Recorded)
			require.Less(d.T, d.Now-d.last[l][h.GUID()], relevantTimeout+news, "%v is seen, but irrelevant: %s", h.GUID(), d.Server.Explain(l.Peer, h).Text)
		}
	}
}

// quiet ends all dormancy of changes that weren't flushed, and steps until all clients are right.
func (d *drama) quiet() {
	d.T.Helper()
	for _, h := range d.heroes {
		require.NoError(d.T, h.SetCondition("Switched", true))
		h.FlushDormancy()
	}
	diff := ""
	for range 30 * 60 {
		d.Step()
		d.forbidden()
		diff = ""
		for _, l := range d.Lines {
			if diff = d.differs(l); diff != "" {
				break
			}
		}
		if diff == "" {
			return
		}
	}
	d.T.Fatalf("no convergence in a minute: %s", diff)
}

// TestEverything is the invariant of replication: whatever happens, to the world and to the network, every client ends with
// the server's relevant state, and never has what isn't for it.
func TestEverything(t *testing.T) {
	nets := map[string]netsim.Settings{
		"clean": {},
		"bad":   {Loss: 10, Dup: 5, Order: 5, LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond},
		"worse": {Loss: 35, Dup: 10, Order: 20, LagMin: 10 * time.Millisecond, LagMax: 150 * time.Millisecond},
	}
	seeds := uint64(15)
	if testing.Short() {
		seeds = 3
	}
	for name, set := range nets {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				d := newDrama(t, seed, set, actorrep.Config{})
				d.join()
				for i := range 400 {
					d.happen()
					switch {
					case i%90 == 60:
						d.join()
					case i%170 == 160:
						d.leave(d.Rand.IntN(len(d.Lines)))
					}
					d.Step()
					d.forbidden()
				}
				d.quiet()
			})
		}
	}
}

// boulder is an actor that is compared at the same time as others.
type boulder struct {
	actorrep.Base
	Pos  vec3                `net:"q=0.01"`
	Name string              `net:"cap=20"`
	Hard actorrep.Var[uint8] `net:"max=100"`
	Sign uint16              `net:"group=miners"`
	Mine float32             `net:"owner,q=0.01"`
}

func (r *boulder) Location() (x, y, z float64) {
	return float64(r.Pos.X), float64(r.Pos.Y), float64(r.Pos.Z)
}

// quarry is 150 boulders that move, sleep, are compared now and then, and have values that don't fit.
type quarry struct {
	*world
	rocks       []*boulder
	crack, dust *actorrep.RPC[*boulder, uint16]
}

func newQuarry(t *testing.T, seed uint64, cfg actorrep.Config) *quarry {
	cfg.RelevantTimeout = relevantTimeout
	nothing := func(actorrep.Call, *boulder, uint16) error { return nil }
	q := &quarry{crack: actorrep.MulticastRPC(nothing, actorrep.Reliable), dust: actorrep.MulticastRPC(nothing)}
	q.world = newWorld(t, seed, netsim.Settings{Loss: 5, LagMin: 20 * time.Millisecond, LagMax: 40 * time.Millisecond}, cfg, func(t testing.TB, w *actorrep.World) {
		registerHeroes(t, w)
		require.NoError(t, w.Register("boulder", (*boulder)(nil), actorrep.CullDistance(150), actorrep.RPCs{"Crack": q.crack, "Dust": q.dust}))
		require.NoError(t, w.Register("slow", (*glacier)(nil), actorrep.Adaptive(2)))
	})
	for range 150 {
		q.rocks = append(q.rocks, q.fall())
	}
	return q
}

func (q *quarry) fall() *boulder {
	r := &boulder{Pos: vec3{q.Rand.Float32() * 200, q.Rand.Float32() * 200, 0}}
	require.NoError(q.T, q.Server.Spawn(r))
	return r
}

// amid does what a game may do when acks have been received and the Step is next. It returns what the game sees.
func (q *quarry) amid() string {
	i := q.Rand.IntN(len(q.rocks))
	r, p := q.rocks[i], q.Lines[q.Rand.IntN(len(q.Lines))].Peer
	n := uint16(q.Rand.IntN(1000))
	switch q.Rand.IntN(14) {
	case 0, 1:
		return fmt.Sprint(q.crack.Call(r, n))
	case 2, 3, 4:
		return fmt.Sprint(q.dust.Call(r, n))
	case 5:
		p.SetUpdateEvery(r, 1+int(n%6))
	case 6:
		return fmt.Sprint(p.JoinGroup("miners"))
	case 7:
		p.LeaveGroup("miners")
	case 8:
		if r.Owner() == p {
			p = nil
		}
		r.SetOwner(p)
	case 9, 10:
		if n%2 == 0 {
			_ = q.crack.Call(r, n) // it goes with the last values
		}
		if n%3 == 0 {
			require.NoError(q.T, r.TearOff())
		}
		require.NoError(q.T, q.Server.Destroy(r))
		q.rocks[i] = q.fall()
	default:
		return q.Server.Explain(p, r).Text + q.Server.Explain(p, r, "Pos").Text
	}
	return ""
}

type glacier struct {
	actorrep.Base
	Size float32 `net:"q=0.1"`
}

// TestCores: whatever happens, a Step on several cores sends the same bytes in the same order, and tells and counts the
// same, as on one.
func TestCores(t *testing.T) {
	run := func(seed uint64, cfg actorrep.Config) string {
		trace := fnv.New64a()
		note := func(format string, args ...any) { fmt.Fprintf(trace, format, args...) }
		cfg.Failed = func(err error) { note("failed %v\n", err) }
		q := newQuarry(t, seed, cfg)
		if seed%2 == 1 { // not everything fits
			q.Speed = 10 << 10
		}
		q.Server.CompareOnCoresFrom(300) // most Steps have more
		q.Server.OnValues(func(a actorrep.Actor) { note("values %v\n", a.(interface{ GUID() netguid.GUID }).GUID()) })
		d := &drama{world: q.world, seen: map[*rig.Line]map[netguid.GUID]*allowed{}, last: map[*rig.Line]map[netguid.GUID]time.Duration{}}
		q.Sent = func(p []byte) { note("sent %x\n", p) }
		q.Heard = func() {
			for range q.Rand.IntN(4) {
				note("%s\n", q.amid())
			}
			if q.Rand.IntN(30) == 0 {
				d.leave(q.Rand.IntN(len(q.Lines)))
				d.join()
			}
		}
		var slow []*glacier
		for range 20 {
			s := &glacier{}
			require.NoError(t, q.Server.Spawn(s))
			slow = append(slow, s)
		}
		for range 6 {
			d.join()
		}
		for step := range 100 {
			d.happen()
			for _, r := range q.rocks {
				switch n := q.Rand.IntN(40); {
				case n == 0:
					r.Name = strings.Repeat("é", q.Rand.IntN(20)) // some are too long
				case n == 4:
					r.Sign++
				case n == 1:
					r.Hard.Set(uint8(q.Rand.IntN(120)))
				case n == 2 && q.Rand.IntN(4) == 0:
					require.NoError(t, r.SetDormant(!r.Dormant()))
				case n == 3 && r.Dormant():
					r.FlushDormancy()
				case n < 30:
					r.Pos.X += q.Rand.Float32()
					r.Mine += float32(n % 2)
				}
			}
			for _, s := range slow[:step%len(slow)] {
				s.Size += q.Rand.Float32()
			}
			d.Step()
		}
		note("%+v\n", q.Server.Counters)
		return fmt.Sprintf("%x, %+v", trace.Sum64(), q.Server.Counters)
	}
	seeds, all := uint64(2), []driver.Cores{1, 2, 4, 8}
	if testing.Short() {
		seeds, all = 1, []driver.Cores{2, 8}
	}
	for seed := range seeds {
		one := run(seed, actorrep.Config{})
		for _, cores := range all {
			require.Equal(t, one, run(seed, actorrep.Config{Parallel: cores}), "seed %d, %d cores", seed, cores)
		}
	}
	goleak.VerifyNone(t)
}
