package mesh

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// post is a lamp's zone and what it has sent; the game is what it was asked.
type post struct {
	t       testing.TB
	id      string
	now     time.Duration
	world   *actorrep.World
	zone    *Zone
	sent    []packetOf
	refuse  bool
	stay    bool
	state   []byte
	taken   []string
	calls   []string
	back    []string
	unknown bool // it makes nothing
}

type packetOf struct {
	from, to string
	b        []byte
}

type lamp struct {
	Body
	X     float64           `net:"q=0.01"`
	Light actorrep.Var[int] `net:""`
	Text  string            `net:""`
	List  []uint32          `net:"cap=8"`
	rang  int
}

func (l *lamp) Location() (x, y, z float64) { return l.X, 50, 0 }

// other is of another class.
type other struct {
	Body
	X float64 `net:"q=0.01"`
}

func (o *other) Location() (x, y, z float64) { return o.X, 50, 0 }

var ring = actorrep.MulticastRPC(func(_ actorrep.Call, l *lamp, n int) error {
	l.rang += n
	return nil
}, actorrep.Reliable)

func registerLamps(w *actorrep.World) error {
	return errors.Join(w.Register("Lamp", (*lamp)(nil), actorrep.AlwaysRelevant(), actorrep.RPCs{"Ring": ring}), w.Register("Other", (*other)(nil), actorrep.AlwaysRelevant(), actorrep.Manual()))
}

func newPost(t testing.TB, i int, change func(c *ZoneConfig)) *post {
	p := &post{t: t, id: name(i), state: []byte("state")}
	p.world = actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: 3}})
	require.NoError(t, registerLamps(p.world))
	cfg := ZoneConfig{ID: p.id, World: p.world, Game: p, Table: Table{Epoch: 1, Cell: 100, Columns: 3, Servers: []string{name(0), name(1), name(2)}}, Margin: 20, Hysteresis: 2,
		Key: [32]byte{1}, Rand: &counted{}, ToServer: func(id string, b []byte) { p.sent = append(p.sent, packetOf{p.id, id, slices.Clone(b)}) }}
	if change != nil {
		change(&cfg)
	}
	var err error
	p.zone, err = NewZone(cfg)
	require.NoError(t, err)
	return p
}

func (p *post) Make(class string) Actor {
	switch {
	case p.unknown:
		return nil
	case class == "Lamp":
		return &lamp{}
	}
	return &other{}
}
func (p *post) Give(a Actor, to string) ([]byte, bool) { return p.state, !p.stay }
func (p *post) Take(a Actor, state []byte) error {
	p.taken = append(p.taken, string(state))
	if p.refuse {
		return errPacket
	}
	switch a := a.(type) {
	case *lamp:
		a.X = 150
	case *other:
		a.X = 90
	}
	return nil
}
func (p *post) Call(a Actor, from string, call []byte) {
	require.True(p.t, a.body().World() == p.world, "it was destroyed")
	p.calls = append(p.calls, from+": "+string(call))
}
func (p *post) Undelivered(id netguid.GUID, call []byte) { p.back = append(p.back, string(call)) }

func (p *post) step() {
	p.now += 50 * time.Millisecond
	p.zone.Step(p.now)
	p.world.Step(p.now)
}

// lit is a lamp of this server's.
func (p *post) lit(x float64) *lamp {
	a := &lamp{X: x}
	require.NoError(p.t, p.world.Spawn(a))
	require.NoError(p.t, p.zone.Own(a, 1))
	return a
}

// deliver steps posts and carries their packets, so many times.
func deliver(n int, posts ...*post) {
	for range n {
		for _, p := range posts {
			p.step()
		}
		for _, p := range posts {
			sent := p.sent
			p.sent = nil
			for _, s := range sent {
				for _, to := range posts {
					if to.id == s.to {
						require.NoError(p.t, to.zone.Receive(s.from, s.b))
					}
				}
			}
		}
	}
}

// says has a post hear a message of another server.
func (p *post) says(from int, messages ...zoneMessage) error {
	s, err := newSeal([32]byte{1}, name(from), &counted{}, zoneSeal)
	require.NoError(p.t, err)
	n := p.zone.neighbour(name(from))
	b := []byte{1} // it has heard nothing
	b = append(b, byte(n.next))
	for _, m := range messages {
		b = appendLong(b, m.append(nil))
	}
	return p.zone.Receive(name(from), s.close(p.id, append(b, 0)))
}

func appendLong(b, m []byte) []byte {
	n := uint64(len(m)) + 1
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(append(b, byte(n)), m...)
}

// TestZoneGives: an actor beyond the border and the hysteresis is the neighbour's, with a higher epoch, and when that one refuses it stays. A call follows it, and one of an
// actor that is no more comes back.
func TestZoneGives(t *testing.T) {
	a, b := newPost(t, 0, nil), newPost(t, 1, nil)
	l := a.lit(101.9)
	deliver(3, a, b)
	require.True(t, a.zone.Owns(l), "within the hysteresis")
	l.X = 102.1
	a.stay = true
	deliver(3, a, b)
	require.True(t, a.zone.Owns(l), "the game wants to keep it")
	a.stay = false
	deliver(1, a, b)
	require.False(t, a.zone.Owns(l))
	got, _ := b.world.Find(l.GUID()).(*lamp)
	require.True(t, got != nil && b.zone.Owns(got))
	require.EqualValues(t, 2, got.Epoch)
	require.Equal(t, []string{"state"}, b.taken)
	require.ErrorIs(t, a.zone.Own(l, 2), ErrOwned)
	require.ErrorIs(t, a.zone.Call(77, nil), ErrNoActor)
	require.ErrorIs(t, a.zone.Call(l.GUID(), make([]byte, MaxMessage+1)), ErrTooLong)
	require.NoError(t, a.zone.Call(l.GUID(), []byte("hello")))
	deliver(2, a, b)
	require.Equal(t, []string{"server0: hello"}, b.calls)
	require.True(t, b.zone.Simulates(got, got) && !a.zone.Simulates(l, l))

	require.NoError(t, b.world.Destroy(got))
	require.NoError(t, a.zone.Call(l.GUID(), []byte("too late")))
	deliver(3, a, b)
	require.Equal(t, []string{"too late"}, a.back)
	deliver(50, a, b) // it is forgotten
	require.Zero(t, a.world.Len()+len(a.zone.list)+len(b.zone.list))

	b.refuse = true
	l = a.lit(150)
	deliver(3, a, b)
	require.True(t, a.zone.Owns(l), "it was refused")
	require.EqualValues(t, 3, l.Epoch)
	require.EqualValues(t, 1, a.zone.Counters.Returned)
	require.Zero(t, b.world.Len())
	require.Equal(t, []string{"state"}, a.taken)
	b.refuse = false
	deliver(5, a, b)
	require.True(t, a.zone.Owns(l), "it isn't given again at once")
	deliver(20, a, b)
	require.False(t, a.zone.Owns(l))
}

// TestZoneMirrors: a neighbour's actors of the margin are here with all their values, as long as they are shown, and for Forget.
func TestZoneMirrors(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerLamps)
	line := r.Join(registerLamps)
	p := newPost(t, 0, nil)
	p.zone.Mirror(name(1), line.World)
	theirs := &lamp{Body: Body{Epoch: 1}, X: 110, Text: "long", List: []uint32{1, 2}}
	theirs.Light.Set(5)
	require.NoError(t, r.Server.Spawn(theirs))
	both := func(n int) {
		for range n {
			r.Step()
			p.step()
		}
	}
	both(10)
	mine, _ := p.world.Find(theirs.GUID()).(*lamp)
	require.True(t, mine != nil && !p.zone.Owns(mine))
	theirs.Light.Set(6)
	theirs.List = []uint32{3}
	both(10)
	require.Equal(t, []any{theirs.X, "long", []uint32{3}, 6}, []any{mine.X, mine.Text, mine.List, mine.Light.Get()})

	require.NoError(t, p.world.Destroy(mine))
	theirs.X = 111
	both(10)
	again, _ := p.world.Find(theirs.GUID()).(*lamp)
	require.True(t, again != nil && again.X == 111, "what the game destroyed comes back with the next values")

	far := &lamp{Body: Body{Epoch: 1}, X: 125}
	require.NoError(t, r.Server.Spawn(far))
	both(10)
	require.Equal(t, 2, p.world.Len())
	require.NoError(t, r.Server.Destroy(far))
	both(10)
	require.Equal(t, 1, p.world.Len(), "what was beyond the margin goes at once")

	p.zone.Mirror(name(1), nil)
	both(30)
	require.Equal(t, 1, p.world.Len())
	both(20)
	require.Zero(t, p.world.Len())
	require.Empty(t, p.zone.list)
}

// shelfOf has fast arrays, and more numbers than there are units.
type shelfOf struct {
	Body
	X     float64                       `net:"q=0.01"`
	Books fastarray.List[book]          `net:""`
	Loans fastarray.Map[uint32, string] `net:""`
	Marks [80]uint16                    `net:""`
	Pages [50]struct{ A, B int8 }       `net:""`
}

type book struct {
	Title string
	Tags  []uint8 `net:"cap=4"`
	N     uint32
}

func (s *shelfOf) Location() (x, y, z float64) { return s.X, 50, 0 }

func registerShelves(w *actorrep.World) error {
	return w.Register("Shelf", (*shelfOf)(nil), actorrep.AlwaysRelevant())
}

// contents is all that is replicated of it.
func (s *shelfOf) contents() string {
	all := fmt.Sprint(s.Epoch, s.X, s.Marks, s.Pages)
	for id, b := range s.Books.All {
		all += fmt.Sprint(id, b)
	}
	for k, v := range s.Loans.All {
		all += fmt.Sprint(k, v)
	}
	return all
}

// shake changes something of it.
func (s *shelfOf) shake(t *testing.T, rng *rand.Rand) {
	ids := []fastarray.ID{}
	for id := range s.Books.All {
		ids = append(ids, id)
	}
	switch n := rng.IntN(12); {
	case n == 0:
		require.NoError(t, s.Books.Clear())
	case n < 3 && len(ids) > 0:
		require.NoError(t, s.Books.Remove(ids[rng.IntN(len(ids))]))
	case n < 5 && len(ids) > 0:
		require.NoError(t, s.Books.Set(ids[rng.IntN(len(ids))], book{Title: fmt.Sprint(rng.IntN(100)), N: rng.Uint32()}))
	case n < 7:
		_, err := s.Books.Add(book{Tags: []uint8{uint8(rng.IntN(9))}, N: rng.Uint32()})
		require.NoError(t, err)
	case n < 9:
		require.NoError(t, s.Loans.Set(rng.Uint32N(20), fmt.Sprint(rng.IntN(9))))
	case n < 10:
		require.NoError(t, s.Loans.Delete(rng.Uint32N(20)))
	default:
		s.Marks[rng.IntN(80)], s.Pages[rng.IntN(50)].B = uint16(rng.IntN(999)), int8(rng.IntN(100))
	}
}

// TestZoneFastArrays: of an actor near the border, the mirror at the neighbour has all that its fast arrays and large arrays have, also when these grow, shrink and are emptied, at 20 % loss; and so
// have clients of the neighbour. When the actor becomes the neighbour's, and comes back, the lists go on.
func TestZoneFastArrays(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 2))
		lossy := netsim.Settings{Lag: 20 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 20}
		a := rig.New(t, seed+1, lossy, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerShelves) // the other server
		line := a.Join(registerShelves)
		b := rig.New(t, seed+50, lossy, actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 3}}, registerShelves) // this one, and its client
		client := b.Join(registerShelves)
		zone, err := NewZone(ZoneConfig{ID: name(0), World: b.Server, Game: shelves{}, Table: Table{Epoch: 1, Cell: 100, Columns: 2, Servers: []string{name(0), name(1)}}, Margin: 20, Hysteresis: 2,
			Key: [32]byte{1}, Rand: &counted{}, ToServer: func(string, []byte) {}})
		require.NoError(t, err)
		zone.Mirror(name(1), line.World)
		now := time.Duration(0)
		both := func(n int) {
			for range n {
				now += 50 * time.Millisecond
				a.Step()
				zone.Step(now)
				b.Step()
			}
		}
		theirs := &shelfOf{Body: Body{Epoch: 1}, X: 101}
		theirs.Marks[3] = 7
		require.NoError(t, a.Server.Spawn(theirs))
		same := func(what string, of *shelfOf) {
			t.Helper()
			both(200)
			mine, _ := b.Server.Find(theirs.GUID()).(*shelfOf)
			seen, _ := client.World.Find(theirs.GUID()).(*shelfOf)
			require.True(t, mine != nil && seen != nil, "seed %d, %s", seed, what)
			require.Equal(t, of.contents(), mine.contents(), "seed %d, %s", seed, what)
			require.Equal(t, of.contents(), seen.contents(), "seed %d, %s: at the client", seed, what)
		}
		for round := range 4 {
			for range 100 {
				theirs.shake(t, rng)
				both(rng.IntN(3))
			}
			same("mirrored", theirs)
			mine := b.Server.Find(theirs.GUID()).(*shelfOf)
			require.NoError(t, zone.Own(mine, theirs.Epoch+1)) // it has come here, with this state
			for range 50 {
				mine.shake(t, rng)
				both(rng.IntN(3))
			}
			same("this server's", mine)
			epoch := zone.Release(mine, name(1))
			if round%2 == 0 { // it goes back, to one that has known it
				require.NoError(t, theirs.Books.NetCopy(&mine.Books))
				require.NoError(t, theirs.Loans.NetCopy(&mine.Loans))
				theirs.Marks, theirs.Pages = mine.Marks, mine.Pages
			} else { // to one that makes it anew
				require.NoError(t, theirs.Books.Clear())
				for _, v := range mine.Books.All {
					_, err := theirs.Books.Add(v)
					require.NoError(t, err)
				}
				require.NoError(t, theirs.Loans.Clear())
				theirs.Marks[0]++
			}
			theirs.Epoch = epoch
			same("given back", theirs)
		}
	}
}

// shelves is a ZoneGame of shelves.
type shelves struct{ ZoneGame }

func (shelves) Make(string) Actor { return &shelfOf{} }

// TestZoneManual: what is copied, and what is taken, is sent to clients also when the class is compared only after MarkDirty. A mirror that the game has destroyed meanwhile is made anew.
func TestZoneManual(t *testing.T) {
	theirs := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerLamps)
	ours := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Servers: 3}}, registerLamps)
	border, client := theirs.Join(registerLamps), ours.Join(registerLamps)
	p := newPost(t, 0, func(c *ZoneConfig) { c.World = ours.Server })
	p.world = ours.Server
	p.zone.Mirror(name(1), border.World)
	run := func(n int) {
		for range n {
			theirs.Step()
			p.now += rig.Tick
			p.zone.Step(p.now)
			ours.Step()
		}
	}
	o := &other{Body: Body{Epoch: 1}, X: 110}
	require.NoError(t, theirs.Server.Spawn(o))
	sees := func(x float64, epoch uint32) {
		t.Helper()
		run(10)
		c, _ := client.World.Find(o.GUID()).(*other)
		require.True(t, c != nil && c.X == x && c.Epoch == epoch, "%+v", c)
	}
	sees(110, 1)
	o.X = 115
	o.MarkDirty()
	sees(115, 1)

	o.X = 116
	o.MarkDirty()
	for len(p.zone.neighbours[0].fresh) == 0 {
		theirs.Step()
	}
	require.NoError(t, p.world.Destroy(p.world.Find(o.GUID())))
	sees(116, 1)

	require.NoError(t, p.says(1, zoneMessage{kind: zoneGive, id: o.GUID(), epoch: 2, class: "Other"}))
	sees(90, 2)
	m := p.world.Find(o.GUID()).(*other)
	require.True(t, p.zone.Owns(m))
	require.EqualValues(t, 3, p.zone.Release(m, ""))
	require.NoError(t, p.world.Destroy(m))
	require.NoError(t, p.says(1, zoneMessage{kind: zoneGive, id: o.GUID(), epoch: 3, class: "Other"}))
	sees(90, 3)
}

// TestZoneLyingNeighbour: whatever a server of the mesh says, this one's actors stay what they are, and its memory is bounded.
func TestZoneLyingNeighbour(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerLamps)
	line := r.Join(registerLamps)
	p := newPost(t, 0, func(c *ZoneConfig) { c.MaxActors = 100 })
	p.zone.Mirror(name(1), line.World)
	l := p.lit(50)
	l.Light.Set(7)
	id := l.GUID()
	check := func(what string) {
		t.Helper()
		require.True(t, p.zone.Owns(l) && l.X == 50 && l.Light.Get() == 7 && l.Epoch == 1 && l.World() == p.world, what)
		require.LessOrEqual(t, len(p.zone.list), 100, what)
		require.LessOrEqual(t, p.world.Len(), 100, what)
	}
	// By replication: ours, without an epoch, and too many.
	fake := &lamp{Body: Body{Epoch: 99}, X: 1}
	require.NoError(t, r.Server.SpawnAs(fake, nil, id))
	require.NoError(t, r.Server.Spawn(&lamp{X: 2}))
	for range 300 {
		require.NoError(t, r.Server.Spawn(&lamp{Body: Body{Epoch: 1}, X: 3}))
	}
	for range 30 {
		r.Step()
		p.step()
	}
	check("values")
	require.Greater(t, p.zone.Counters.Refused, uint64(200))

	// By messages.
	refused := p.zone.Counters.Refused
	require.NoError(t, p.says(2, zoneMessage{kind: zoneGive, id: id, epoch: maxEpoch - 2, class: "Lamp"}, zoneMessage{kind: zoneNo, id: id, epoch: 1, class: "Lamp"},
		zoneMessage{kind: zoneEnded, id: id, epoch: 1}, zoneMessage{kind: zoneGive, id: 3000, epoch: 1, class: "Lamp"}))
	check("messages")
	require.Equal(t, refused+3, p.zone.Counters.Refused)
	require.Empty(t, p.taken)
	for _, m := range []zoneMessage{{kind: zoneGive, id: 3000, class: "Lamp"}, {kind: zoneGive, id: 3000, epoch: maxEpoch - 1, class: "Lamp"}, {kind: zoneGive, id: 3000, epoch: 1, state: make([]byte, MaxActorState+1)}, {kind: zoneCall, id: id}, {kind: 77, id: id}, {kind: zoneEnded},
		{kind: zoneCall, id: id, origin: "x", call: make([]byte, MaxMessage+1)}} {
		was := p.zone.Counters.Malformed
		require.Error(t, p.says(2, m), "%+v", m.kind)
		require.Equal(t, was+1, p.zone.Counters.Malformed)
	}
	require.ErrorIs(t, p.zone.Receive(name(1), []byte("nonsense")), ErrForged)
	travels, err := newSeal([32]byte{1}, name(1), &counted{}, 0)
	require.NoError(t, err)
	require.ErrorIs(t, p.zone.Receive(name(1), travels.close(p.id, []byte{1, 1, 0})), ErrForged, "a packet of a Server")

	// A call that goes round, and one for nobody.
	q := newPost(t, 0, nil)
	require.NoError(t, q.says(1, zoneMessage{kind: zoneCall, id: 3000, origin: name(2), call: []byte("x")}))
	require.NoError(t, q.says(1, zoneMessage{kind: zoneCall, id: 3000, origin: name(0), call: []byte("y")}))
	require.Equal(t, []string{"y"}, q.back)
	i, _ := q.zone.find(name(2))
	require.Len(t, q.zone.neighbours[i].out.waiting, 1)
}

// TestZoneShows: a neighbour's connection is sent this server's actors within the margin and a little beyond, and their multicasts, but no mirrors and nothing that is given away. A new
// connection takes the place of the former.
func TestZoneShows(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Servers: 3}}, registerLamps)
	p := newPost(t, 0, func(c *ZoneConfig) { c.World = r.Server })
	p.world = r.Server
	accept := func() *rig.Line {
		l := r.Join(registerLamps)
		r.Server.RemoveConn(l.Peer)
		l.Peer = p.zone.Accept(name(1), l.S)
		return l
	}
	run := func() {
		for range 20 {
			p.now += rig.Tick
			p.zone.Step(p.now)
			r.Step()
		}
	}
	l, a := accept(), p.lit(50)
	require.NoError(t, r.Server.Spawn(&lamp{X: 99})) // a mirror, or nobody's
	for _, step := range []struct {
		x    float64
		sees int
	}{{50, 0}, {79, 0}, {81, 1}, {79, 1}, {77, 0}, {101.9, 1}} {
		a.X = step.x
		run()
		require.Equal(t, step.sees, l.World.Len(), "at %v", step.x)
	}
	taken := p.lit(79) // as if it had been another server's
	run()
	require.Equal(t, 2, l.World.Len(), "who mirrors it goes on")
	taken.X = 50
	require.NoError(t, ring.Call(a, 3))
	run()
	require.Equal(t, 3, l.World.Find(a.GUID()).(*lamp).rang)

	former := l
	l = accept()
	run()
	require.Zero(t, former.World.Len())
	require.Equal(t, 1, l.World.Len())
	r.Server.RemoveConn(l.Peer)
	r.Lines = r.Lines[:1]
	run()
	require.Nil(t, p.zone.neighbours[0].peer)
	l = accept()
	run()
	require.Equal(t, 1, l.World.Len())
	a.X = 103
	run()
	require.False(t, p.zone.Owns(a))
	require.Zero(t, l.World.Len())

	torn := p.lit(95)
	run()
	require.NoError(t, torn.TearOff())
	run()
	require.False(t, p.zone.Owns(torn))
	ended := slices.ContainsFunc(p.zone.neighbours[0].out.waiting, func(b []byte) bool { return zoneKind(b[0]) == zoneEnded })
	require.True(t, ended, "who mirrors it destroys that")
}

// TestZoneStale: values of a former authority are refused, also when nobody shows the actor any more but one who is behind; so are those of another who claims the same
// epoch, and an epoch that can't be.
func TestZoneStale(t *testing.T) {
	p := newPost(t, 0, nil)
	var rigs []*rig.Rig
	for i := range 2 {
		r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerLamps)
		line := r.Join(registerLamps)
		p.zone.Mirror(name(1+i), line.World)
		rigs = append(rigs, r)
	}
	run := func(n int) {
		for range n {
			for _, r := range rigs {
				r.Step()
			}
			p.step()
		}
	}
	a := &lamp{Body: Body{Epoch: 3}, X: 110}
	require.NoError(t, rigs[0].Server.SpawnAs(a, nil, 2000))
	run(10)
	m, _ := p.world.Find(2000).(*lamp)
	require.True(t, m != nil && m.X == 110)
	b := &lamp{Body: Body{Epoch: 2}, X: 210}
	require.NoError(t, rigs[1].Server.SpawnAs(b, nil, 2000))
	run(10)
	require.EqualValues(t, 110, m.X)
	require.EqualValues(t, 1, p.zone.Counters.Stale)
	b.Epoch, b.X = 3, 211
	run(10)
	require.EqualValues(t, 110, m.X)
	require.EqualValues(t, 1, p.zone.Counters.Refused)
	b.Epoch, b.X = maxEpoch, 212
	run(10)
	require.EqualValues(t, 110, m.X)
	require.EqualValues(t, 2, p.zone.Counters.Refused)
	refused := p.zone.Counters.Refused
	require.NoError(t, p.says(2, zoneMessage{kind: zoneGive, id: 2000, epoch: 3, class: "Lamp"}, zoneMessage{kind: zoneEnded, id: 2000, epoch: 3}))
	require.NoError(t, p.says(1, zoneMessage{kind: zoneEnded, id: 2000, epoch: 2}))
	require.Equal(t, refused+1, p.zone.Counters.Refused)
	require.True(t, !p.zone.Owns(m) && m.World() != nil)
	b.Epoch, b.X = 2, 213
	require.NoError(t, rigs[0].Server.Destroy(a))
	run(60)
	require.Zero(t, p.world.Len(), "nobody shows it")
	b.X = 214
	run(60)
	require.Zero(t, p.world.Len(), "what is behind doesn't bring it back")
	b.Epoch = 4
	run(10)
	m, _ = p.world.Find(2000).(*lamp)
	require.True(t, m != nil && m.X == 214)
	require.NoError(t, p.says(2, zoneMessage{kind: zoneEnded, id: 2000, epoch: 4}))
	require.Zero(t, p.world.Len(), "its authority has destroyed it")
	b.X = 115 // under way, and within the margin
	run(5)
	require.Zero(t, p.world.Len())
	require.NoError(t, rigs[1].Server.Destroy(b))
	run(60)
	require.Empty(t, p.zone.list)
}

// TestZoneHeldCalls: a call to a player's actor waits while the player is on its way, goes on to where it is then, and comes back when that isn't known in time.
func TestZoneHeldCalls(t *testing.T) {
	a, b := newPost(t, 0, nil), newPost(t, 1, nil)
	l := a.lit(99)
	id := l.GUID()
	epoch := a.zone.Release(l, "")
	require.EqualValues(t, 2, epoch)
	require.Zero(t, a.zone.Release(l, ""))
	require.NoError(t, a.zone.Call(id, []byte("stays")))
	deliver(3, a, b)
	require.Empty(t, a.calls)
	require.NoError(t, a.zone.Own(l, epoch))
	deliver(1, a, b)
	require.Equal(t, []string{"server0: stays"}, a.calls)

	epoch = a.zone.Release(l, "")
	for i := range maxHeldCalls + 1 {
		err := a.zone.Call(id, []byte("lost"))
		require.Equal(t, i == maxHeldCalls, errors.Is(err, ErrFull), "%v", err)
	}
	deliver(60, a, b)
	require.Len(t, a.back, maxHeldCalls)
	require.Empty(t, b.calls)
	require.EqualValues(t, 3, epoch)
}

// TestZoneNonsense: messages of a server that were changed or made up do nothing to this one's actors.
func TestZoneNonsense(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := newPost(t, 0, func(c *ZoneConfig) { c.MaxActors = 50 })
		l := p.lit(50)
		for range 300 {
			m := zoneMessage{kind: zoneKind(rng.IntN(7)), id: netguid.GUID(2 * rng.IntN(60)), epoch: uint32(rng.IntN(4)), class: []string{"Lamp", "Other", "None"}[rng.IntN(3)], state: make([]byte, rng.IntN(20)),
				hops: uint8(rng.IntN(20)), origin: name(rng.IntN(4)), call: make([]byte, rng.IntN(20))}
			_ = p.says(1+rng.IntN(2), m)
			if p.refuse = rng.IntN(3) == 0; rng.IntN(5) == 0 {
				p.step()
			}
			p.unknown = rng.IntN(4) == 0
			require.True(t, p.zone.Owns(l) && l.Epoch == 1, "seed %d", seed)
			require.LessOrEqual(t, len(p.zone.list), 50)
		}
	}
}

// TestZoneBounds: a server that doesn't answer is given no more, calls wait up to a bound, and a state that is too long stays.
func TestZoneBounds(t *testing.T) {
	p := newPost(t, 0, nil)
	first, second := p.lit(150), p.lit(50)
	deliver(1, p)
	require.False(t, p.zone.Owns(first))
	for range 10 {
		p.step()
	}
	second.X = 150
	p.step()
	require.True(t, p.zone.Owns(second))
	n := 0
	for ; n < 100000; n++ {
		if err := p.zone.Call(first.GUID(), make([]byte, 20)); err != nil {
			require.ErrorIs(t, err, ErrFull)
			break
		}
	}
	require.Equal(t, maxZoneWaiting/2, n)
	p.zone.Gone(name(1))
	require.Len(t, p.back, n)
	require.EqualValues(t, 1, p.zone.Counters.Lost)
	p.step()
	require.True(t, p.zone.Owns(second), "nobody is given to a server that is gone")
	require.Error(t, p.zone.Call(first.GUID(), nil))

	p = newPost(t, 0, nil)
	p.state = make([]byte, MaxActorState+1)
	first = p.lit(150)
	p.step()
	require.True(t, p.zone.Owns(first))
	require.EqualValues(t, 1, p.zone.Counters.TooLong)
	require.Len(t, p.taken, 1)
}

// TestZoneTable: a table is checked, and says whose each place is.
func TestZoneTable(t *testing.T) {
	good := Table{Epoch: 1, X: -10, Y: 5, Cell: 10, Columns: 2, Servers: []string{"a", "b", "c", "d"}}
	for at, want := range map[[2]float64]string{{-10, 5}: "a", {-99, -99}: "a", {0, 5}: "b", {99, 5}: "b", {-1, 15}: "c", {0, 15}: "d", {99, math.Inf(1)}: "d", {math.NaN(), 15}: "c"} {
		require.Equal(t, want, good.At(at[0], at[1]), "%v", at)
	}
	near := func(x, y, r float64) (s string) {
		for _, n := range good.near(nil, x, y, r) {
			s += fmt.Sprintf("%s %.0f ", n.server, n.d)
		}
		return s
	}
	require.Equal(t, "a 0 ", near(-8, 7, 1))
	require.Equal(t, "a 0 b 2 ", near(-2, 7, 3))
	require.Equal(t, "a 0 b 2 c 2 d 3 ", near(-2, 13, 4))
	require.Equal(t, "a 0 c 2 ", near(-500, 13, 4), "beyond the edge it is as at the edge")
	p := newPost(t, 0, nil)
	for what, change := range map[string]func(c *Table){
		"no epoch": func(c *Table) { c.Epoch = 0 }, "no cells": func(c *Table) { c.Servers = nil }, "half a row": func(c *Table) { c.Servers = c.Servers[:3] }, "no columns": func(c *Table) { c.Columns = 0 },
		"no size": func(c *Table) { c.Cell = math.NaN() }, "no place": func(c *Table) { c.X = math.Inf(1) }, "no server": func(c *Table) { c.Servers[1] = "" }, "an old epoch": func(*Table) {},
		"too small": func(c *Table) { c.Epoch, c.Cell = 2, 5 }, "many": func(c *Table) { c.Servers = make([]string, 2*maxCells) }} {
		c := good
		c.Servers = slices.Clone(good.Servers)
		change(&c)
		require.ErrorIs(t, p.zone.SetTable(c), ErrConfig, what)
	}
	require.Equal(t, "server2", p.zone.table.At(250, 0))
}

// TestZoneLingers: for Linger after a new table a server is shown what is in its former zone and about it, so that its players who haven't travelled see no hole. A fifth table of another grid has the oldest
// of four forgotten, and what was whose in its grid before.
func TestZoneLingers(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Servers: 3}}, registerLamps)
	p := newPost(t, 0, func(c *ZoneConfig) { c.World, c.Linger = r.Server, 2*time.Second })
	p.world = r.Server
	l := r.Join(registerLamps)
	r.Server.RemoveConn(l.Peer)
	l.Peer = p.zone.Accept(name(1), l.S)
	run := func(d time.Duration) {
		for end := p.now + d; p.now < end; {
			p.now += rig.Tick
			p.zone.Step(p.now)
			r.Step()
		}
	}
	table := p.zone.table
	retable := func(servers ...int) {
		table.Epoch++
		table.Servers = nil
		for _, i := range servers {
			table.Servers = append(table.Servers, name(i))
		}
		require.NoError(t, p.zone.SetTable(table))
	}
	retable(1, 1, 2)
	p.lit(50) // goes to server1 at once
	run(4 * time.Second)
	require.Zero(t, l.World.Len())

	retable(0, 0, 1) // server1's zone was 0 to 200, and is 200 to 300
	p.lit(50)
	p.lit(150)
	p.lit(185)
	run(1900 * time.Millisecond)
	require.Equal(t, 3, l.World.Len())
	run(200 * time.Millisecond)
	require.Equal(t, 1, l.World.Len(), "what is beyond the margin goes")

	retable(0, 1, 1)
	retable(0, 0, 1)
	p.lit(85)
	run(time.Second)
	require.Equal(t, 3, l.World.Len(), "85, 150 and 185, but not 50")
	for range maxFormers {
		table.X -= 1e-6
		retable(0, 0, 1)
	}
	run(100 * time.Millisecond)
	require.Equal(t, 3, l.World.Len())
	table.X -= 1e-6
	retable(0, 0, 1)
	run(100 * time.Millisecond)
	require.Equal(t, 1, l.World.Len(), "185")
	require.Len(t, p.zone.formers, maxFormers)
	run(3 * time.Second)
	require.Empty(t, p.zone.formers)

	// A mirror of the former zone stays as long.
	q := newPost(t, 1, func(c *ZoneConfig) { c.Linger = 10 * time.Second })
	q.zone.Mirror(name(0), l.World)
	table.Epoch, table.Servers = 2, []string{name(0), name(0), name(2)}
	require.NoError(t, q.zone.SetTable(table))
	require.False(t, q.zone.beyond(&lamp{X: 150}))
	require.True(t, q.zone.beyond(&lamp{X: 50}))
	q.now = 11 * time.Second
	q.step()
	require.True(t, q.zone.beyond(&lamp{X: 150}))
}

// TestZoneBurst: more than goes into a packet, or may wait, goes on as fast as it is acknowledged.
func TestZoneBurst(t *testing.T) {
	slow := func(c *ZoneConfig) { c.Resend = 10 * time.Second }
	a, b := newPost(t, 0, slow), newPost(t, 1, slow)
	a.state = make([]byte, 4<<10)
	for range 100 {
		a.lit(150)
	}
	rounds := 0
	for ; len(b.taken) < 100; rounds++ {
		require.Less(t, rounds, 100)
		deliver(1, a, b)
		n, _ := a.zone.find(name(1))
		require.LessOrEqual(t, a.zone.neighbours[n].out.bytes, maxZoneWaitingBytes)
	}
	require.Less(t, rounds, 30)
}

// TestZoneTables: who is given an actor by a newer table than its own keeps it until it has that one.
func TestZoneTables(t *testing.T) {
	p := newPost(t, 0, nil)
	require.NoError(t, p.says(1, zoneMessage{kind: zoneGive, id: 2000, epoch: 1, table: 2, class: "Lamp"}))
	l, _ := p.world.Find(2000).(*lamp)
	require.True(t, l != nil && l.X == 150)
	table := p.zone.table
	for i, server := range []int{0, 0, 1} {
		deliver(3, p)
		require.True(t, p.zone.Owns(l), "%d", i)
		table.Epoch = uint64(2 + i)
		table.Servers = []string{name(0), name(server), name(2)}
		require.NoError(t, p.zone.SetTable(table))
	}
	deliver(3, p)
	require.False(t, p.zone.Owns(l))

	// A call that has gone round isn't forwarded any more.
	n, _ := p.zone.find(name(1))
	waiting := len(p.zone.neighbours[n].out.waiting)
	require.NoError(t, p.says(1, zoneMessage{kind: zoneCall, id: 2000, hops: maxHops - 1, origin: name(0), call: []byte("on")}))
	require.Len(t, p.zone.neighbours[n].out.waiting, waiting+1)
	require.NoError(t, p.says(1, zoneMessage{kind: zoneCall, id: 2000, hops: maxHops, origin: name(0), call: []byte("off")}))
	require.Equal(t, []string{"off"}, p.back)
}

// TestZoneAllocs: a tick in which an actor moves, here and at a neighbour, allocates nothing in the Zone.
func TestZoneAllocs(t *testing.T) {
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 1, Servers: 3}}, registerLamps)
	line := r.Join(registerLamps)
	p := newPost(t, 0, nil)
	p.zone.Mirror(name(1), line.World)
	own := p.lit(99)
	theirs := &other{Body: Body{Epoch: 1}, X: 110}
	require.NoError(t, r.Server.Spawn(theirs))
	for range 30 {
		r.Step()
		p.step()
	}
	mirrored := line.World.Find(theirs.GUID())
	n := p.zone.neighbours[0]
	require.Zero(t, testing.AllocsPerRun(100, func() {
		own.X += 0.01
		p.now += time.Millisecond
		n.fresh = append(n.fresh, mirrored)
		p.zone.Step(p.now)
	}))
}

// TestZoneLyingCaller: a neighbour that calls in the names of servers that aren't there costs no memory for each, and leaves room for those that are.
func TestZoneLyingCaller(t *testing.T) {
	p := newPost(t, 0, nil)
	for i := range 2 * maxNeighbours {
		require.NoError(t, p.says(1, zoneMessage{kind: zoneCall, id: 3000, origin: fmt.Sprint("nobody", i), call: []byte("x")}))
		p.zone.neighbour(name(1)).next = 1 // says knows one byte of it
	}
	require.Len(t, p.zone.neighbours, 1)
	require.EqualValues(t, 2*maxNeighbours, p.zone.Counters.CallsLost)
	require.NoError(t, p.says(1, zoneMessage{kind: zoneCall, id: 3000, origin: name(2), call: []byte("x")}))
	require.NotNil(t, p.zone.neighbour(name(2)))
}

// TestZoneLyingReturns: a neighbour that returns what it was never given is bound by MaxActors, as with what it gives.
func TestZoneLyingReturns(t *testing.T) {
	p := newPost(t, 0, func(c *ZoneConfig) { c.MaxActors = 10 })
	for i := range 100 {
		require.NoError(t, p.says(1, zoneMessage{kind: zoneNo, id: netguid.GUID(3000 + 2*i), epoch: 1, class: "Lamp"}))
		p.zone.neighbour(name(1)).next = 1
	}
	require.LessOrEqual(t, len(p.zone.list), 10)
	require.LessOrEqual(t, p.world.Len(), 10)
}

// TestZoneLyingFlood: a neighbour that calls a third server's actors, and in that one's name, without end leaves room to return an actor to it.
func TestZoneLyingFlood(t *testing.T) {
	p := newPost(t, 0, nil)
	p.unknown = true
	p.zone.add(4000)
	p.zone.records[4000].owner, p.zone.records[4000].epoch = name(2), 1
	third := p.zone.neighbour(name(2))
	for _, call := range [][]byte{{}, make([]byte, MaxMessage)} {
		for _, id := range []netguid.GUID{4000, 3000} { // to the third's actor, and to one that isn't there
			for range maxZoneWaiting + 1 {
				require.NoError(t, p.says(1, zoneMessage{kind: zoneCall, id: id, origin: name(2), call: call}))
				p.zone.neighbour(name(1)).next = 1
			}
		}
		waiting := len(third.out.waiting)
		require.NoError(t, p.says(2, zoneMessage{kind: zoneGive, id: 5000, epoch: 1, class: "Lamp", state: make([]byte, MaxActorState)}))
		require.Zero(t, p.zone.Counters.Lost)
		require.Len(t, third.out.waiting, waiting+1)
		third.next, third.out = 1, stream{servers: true, first: 1}
	}
}

// TestZoneLies: whatever a neighbour says and shows, amid whatever the game does, an actor of this server's is its own until this server gives it away, and bounds hold.
func TestZoneLies(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 20))
		p := newPost(t, 0, func(c *ZoneConfig) { c.MaxActors = 40 })
		own := map[netguid.GUID]*lamp{}
		pick := func() netguid.GUID { return netguid.GUID(2 * (1 + rng.IntN(40))) }
		edges := []uint32{0, 1, 2, 5, maxEpoch - 3, maxEpoch - 2, maxEpoch - 1, maxEpoch, math.MaxUint32}
		for range 1000 {
			m := zoneMessage{kind: zoneKind(rng.IntN(7)), id: pick(), epoch: edges[rng.IntN(len(edges))], table: rng.Uint64() >> rng.IntN(64), class: []string{"Lamp", "Other", "", "Cow"}[rng.IntN(4)],
				hops: uint8(rng.IntN(12)), origin: name(rng.IntN(5)), call: make([]byte, rng.IntN(20))}
			from := 1 + rng.IntN(2)
			switch a := own[m.id]; rng.IntN(12) {
			case 0:
				p.step()
				p.sent = nil
			case 1:
				if l := (&lamp{X: 50}); len(own) < 10 && p.world.Spawn(l) == nil {
					if p.zone.Own(l, 1) == nil {
						own[l.GUID()] = l
					} else {
						require.NoError(t, p.world.Destroy(l))
					}
				}
			case 2:
				if a != nil {
					_ = p.world.Destroy(a)
					delete(own, m.id)
				}
			case 3:
				if a != nil && rng.IntN(2) == 0 {
					p.zone.Release(a, m.origin)
					delete(own, m.id)
				} else if a != nil {
					a.X = 150
					delete(own, m.id)
				}
			case 4:
				p.refuse, p.unknown, p.stay = rng.IntN(3) == 0, rng.IntN(3) == 0, rng.IntN(3) == 0
			case 5:
				_ = p.zone.Call(m.id, m.call)
			case 6:
				if rng.IntN(100) == 0 {
					p.zone.Gone(name(2))
				}
			default:
				n := p.zone.neighbour(name(from))
				if n == nil {
					continue
				}
				n.next = 1
				_ = p.says(from, m)
			}
			for id, a := range own {
				require.True(t, p.zone.Owns(a) && a.Epoch == 1 && a.X == 50 && a.World() == p.world, "seed %d: %d", seed, id)
			}
			require.LessOrEqual(t, len(p.zone.list), 40+10, "seed %d", seed)
			for i, r := range p.zone.list {
				require.True(t, r.index == i && p.zone.records[r.id] == r && (r.owner != p.id || r.a != nil), "seed %d: %d: %+v, %v", seed, i, r, p.zone.records[r.id] == r)
			}
		}
	}
}
