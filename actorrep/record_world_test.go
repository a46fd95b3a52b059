package actorrep_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// probe has a field of every condition.
type probe struct {
	actorrep.Base
	Pos     vec                     `net:"q=0.01,notify=OnPos"`
	Number  int32                   `net:"notify=OnNumber"`
	Text    string                  `net:""`
	List    []uint16                `net:""`
	Prey    netguid.GUID            `net:""`
	Set     actorrep.Var[int8]      `net:""`
	Simul   int32                   `net:"simulated"`
	First   int32                   `net:"initial"` // changed later, so that late joiners know another
	Own     int32                   `net:"owner"`
	Skip    int32                   `net:"skipowner"`
	Tape    int32                   `net:"replay"`
	TapeOwn int32                   `net:"replayorowner"`
	NoTape  int32                   `net:"skipreplay"`
	Now     int32                   `net:"custom"`
	Secret  int32                   `net:"never"`
	Bag     fastarray.List[bagItem] `net:"notify=OnBag"`

	on    bool // Now is active
	moved int
	bags  int
	olds  []int32
	hits  []int32
}

// bagItem is an element of a fast array.
type bagItem struct {
	Name  string
	Count uint16
}

func (p *probe) OnBag() { p.bags++ }

func (p *probe) OnPos()             { p.moved++ }
func (p *probe) OnNumber(old int32) { p.olds = append(p.olds, old) }

type limb struct {
	actorrep.Base
	Length uint16 `net:""`
	Name   string `net:"initial"`
}

var hit = actorrep.MulticastRPC(func(c actorrep.Call, p *probe, n int32) error {
	p.hits = append(p.hits, n)
	return nil
})

var loud = actorrep.MulticastRPC(func(c actorrep.Call, p *probe, n int32) error {
	p.hits = append(p.hits, -n)
	return nil
}, actorrep.Reliable)

func registerProbes(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("probe", (*probe)(nil), actorrep.RPCs{"Hit": hit, "Loud": loud}))
	require.NoError(t, w.Register("limb", (*limb)(nil)))
}

// tape is a server's world, clients of it over connections without loss, and a recording, in virtual time.
type tape struct {
	t      testing.TB
	rng    *rand.Rand
	now    time.Duration
	server *actorrep.World
	rec    *replay.Recorder
	file   bytes.Buffer
	joined []*joiner
	torn   map[netguid.GUID]bool
}

type joiner struct {
	world      *actorrep.World
	s, c       *netconn.Conn
	down, back [][]byte
	peer       *actorrep.Peer
}

func newTape(t testing.TB, seed uint64, cfg replay.Config) *tape {
	t.Logf("seed %d", seed)
	w := &tape{t: t, rng: rand.New(rand.NewPCG(seed, 9)), server: actorrep.NewServer(actorrep.Config{}), torn: map[netguid.GUID]bool{}}
	registerProbes(t, w.server)
	var err error
	w.rec, err = replay.Record(w.server, &w.file, cfg)
	require.NoError(t, err)
	return w
}

func newViewer(t testing.TB) *actorrep.World {
	w := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	registerProbes(t, w)
	return w
}

func (w *tape) join() *joiner { return w.joinAs(newViewer(w.t)) }

func (w *tape) joinAs(client *actorrep.World) *joiner {
	j := &joiner{world: client}
	var err error
	j.s, err = netconn.New(netconn.Config{Server: true, NetSpeed: 1 << 24, Channels: w.server.ChannelTypes(),
		LowLevelSend: func(p []byte) { j.down = append(j.down, bytes.Clone(p)) }}, w.now, 1, 2)
	require.NoError(w.t, err)
	j.c, err = netconn.New(netconn.Config{Channels: j.world.ChannelTypes(),
		LowLevelSend: func(p []byte) { j.back = append(j.back, bytes.Clone(p)) }}, w.now, 2, 1)
	require.NoError(w.t, err)
	j.peer = w.server.AddConn(j.s)
	w.joined = append(w.joined, j)
	return j
}

func (w *tape) step() {
	w.now += tick
	for _, j := range w.joined {
		for _, p := range j.back {
			_ = j.s.ReceivedPacket(w.now, p)
		}
		for _, p := range j.down {
			_ = j.c.ReceivedPacket(w.now, p)
		}
		j.back, j.down = j.back[:0], j.down[:0]
		j.s.PostTickDispatch(w.now)
		j.c.PostTickDispatch(w.now)
		j.world.Step(w.now)
	}
	w.server.Step(w.now)
	require.NoError(w.t, w.rec.Err())
	for _, j := range w.joined {
		j.s.Tick(w.now)
		j.c.Tick(w.now)
		require.False(w.t, j.s.Closed() || j.c.Closed())
	}
}

// eye is for whom a state is told.
type eye uint8

const (
	other eye = iota
	owner
	camera
)

// text is what someone should see of an actor; from a server, the conditions are applied here.
func (e eye) text(a actorrep.Actor, deep bool) string {
	p, ok := a.(*probe)
	if !ok {
		l := a.(*limb)
		s := fmt.Sprintf("limb %d %q", l.Length, l.Name)
		if q, ok := l.Parent().(*probe); ok {
			s += fmt.Sprint(" of ", q.GUID())
		}
		return s
	}
	q := probe{Own: p.Own, Skip: p.Skip, Tape: p.Tape, TapeOwn: p.TapeOwn, NoTape: p.NoTape}
	if e != camera || p.Role() == actorrep.Authority { // a client keeps what it was allowed once; a recording never was
		if e != owner {
			q.Own = 0
		} else {
			q.Skip = 0
		}
		if e != camera {
			q.Tape = 0
		} else {
			q.NoTape = 0
		}
		if e == other {
			q.TapeOwn = 0
		}
	}
	s := fmt.Sprintf("probe %v %v %d %q %v %v %d %d own %d skip %d tape %d %d no %d", math.Round(p.Pos.X*100)+0, math.Round(p.Pos.Y*100)+0, p.Number, p.Text, p.List, p.Prey, p.Set.Get(), p.Simul,
		q.Own, q.Skip, q.Tape, q.TapeOwn, q.NoTape)
	for id, it := range p.Bag.All {
		s += fmt.Sprintf(" %d:%s*%d", id, it.Name, it.Count)
	}
	if deep {
		s += fmt.Sprintf(" first %d now %d", p.First, p.Now)
	}
	return s
}

// state is a world as text, without what was torn off until then. Deep is with the fields that late joiners know differently.
func state(of *actorrep.World, torn map[netguid.GUID]bool, e func(a actorrep.Actor) eye, deep bool) string {
	var lines []string
	for a := range of.All {
		id := a.(interface{ GUID() netguid.GUID }).GUID()
		if !torn[id] {
			lines = append(lines, fmt.Sprintf("%5d %s", id, e(a).text(a, deep)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func always(e eye) func(actorrep.Actor) eye { return func(actorrep.Actor) eye { return e } }

func (j *joiner) eye(a actorrep.Actor) eye {
	p, ok := a.(*probe)
	if ok && (p.Owner() == j.peer || p.IsOwned()) {
		return owner
	}
	return other
}

// mutate changes the server's world at random.
func (w *tape) mutate() {
	var probes []*probe
	var limbs []*limb
	for a := range w.server.All {
		switch a := a.(type) {
		case *probe:
			if !a.TornOff() {
				probes = append(probes, a)
			}
		case *limb:
			if !a.TornOff() {
				limbs = append(limbs, a)
			}
		}
	}
	if len(probes) == 0 || w.rng.IntN(12) == 0 && len(probes) < 30 {
		p := &probe{on: true, First: int32(w.rng.IntN(9))}
		w.change(p, probes)
		require.NoError(w.t, w.server.Spawn(p))
		probes = append(probes, p)
	}
	any := probes[w.rng.IntN(len(probes))]
	switch w.rng.IntN(16) {
	case 0:
		require.NoError(w.t, w.server.SpawnIn(any, &limb{Length: uint16(w.rng.IntN(100)), Name: fmt.Sprint(w.rng.IntN(3))}))
	case 1:
		if len(limbs) > 3 {
			require.NoError(w.t, w.server.Destroy(limbs[w.rng.IntN(len(limbs))]))
		}
	case 2:
		if len(probes) > 4 {
			require.NoError(w.t, w.server.Destroy(any))
			return
		}
	case 3:
		require.NoError(w.t, any.SetDormant(!any.Dormant()))
	case 4:
		if w.rng.IntN(4) == 0 && len(probes) > 4 {
			require.NoError(w.t, any.TearOff())
			w.torn[any.GUID()] = true
			for c := range any.Children {
				w.torn[c.(*limb).GUID()] = true
			}
			return
		}
	case 5:
		var p *actorrep.Peer
		if n := len(w.joined); n > 0 && w.rng.IntN(3) > 0 {
			p = w.joined[w.rng.IntN(n)].peer
		}
		if !any.Dormant() {
			any.SetOwner(p)
		}
	case 6:
		if !any.Dormant() {
			any.on = !any.on
			require.NoError(w.t, any.SetCondition("Now", any.on))
		}
	case 7:
		require.NoError(w.t, hit.Call(any, int32(w.now/tick)))
	case 8:
		require.NoError(w.t, loud.Call(any, int32(w.now/tick)))
	case 9:
		for range len(limbs) {
			limbs[w.rng.IntN(len(limbs))].Length++
		}
	}
	for _, p := range probes {
		if w.rng.IntN(2) == 0 && p.World() != nil && !p.Dormant() {
			w.change(p, probes)
		} else if w.rng.IntN(20) == 0 && p.World() != nil && p.Dormant() {
			w.change(p, probes)
			p.FlushDormancy()
		}
	}
}

func (w *tape) change(p *probe, all []*probe) {
	p.Pos.X += w.rng.Float64()*4 - 2
	p.Pos.Y += w.rng.Float64()*4 - 2
	switch n := int32(w.rng.IntN(50)); w.rng.IntN(14) {
	case 0:
		p.Number = n
	case 1:
		p.Text = strings.Repeat("ü", int(n))
	case 2:
		p.List = make([]uint16, w.rng.IntN(5))
		for i := range p.List {
			p.List[i] = uint16(n)
		}
	case 3:
		if len(all) > 0 {
			p.Prey = all[w.rng.IntN(len(all))].GUID()
		}
	case 4:
		p.Set.Set(int8(n))
	case 5:
		p.Simul = n
	case 6:
		p.First = n
	case 7:
		p.Own, p.Secret = n, n
	case 8:
		p.Skip = n
	case 9:
		p.Tape = n
	case 10:
		p.TapeOwn = n
	case 11:
		p.NoTape = n
	default:
		p.Now = n
	}
	w.pack(p)
}

// pack changes the bag.
func (w *tape) pack(p *probe) {
	if p.World() == nil {
		return // it isn't bound yet
	}
	var ids []fastarray.ID
	for id := range p.Bag.All {
		ids = append(ids, id)
	}
	switch r := w.rng.IntN(12); {
	case r == 0 && len(ids) < 6:
		_, err := p.Bag.Add(bagItem{fmt.Sprint("thing ", w.rng.IntN(9)), uint16(w.rng.IntN(99))})
		require.NoError(w.t, err)
	case r == 1 && len(ids) > 0:
		require.NoError(w.t, p.Bag.Set(ids[w.rng.IntN(len(ids))], bagItem{"other", uint16(w.rng.IntN(99))}))
	case r == 2 && len(ids) > 0:
		require.NoError(w.t, p.Bag.Remove(ids[w.rng.IntN(len(ids))]))
	case r == 3 && w.rng.IntN(5) == 0:
		require.NoError(w.t, p.Bag.Clear())
	}
}

type crier struct {
	actorrep.Base
	Number int32 `net:""`
}

// TestComparedAmidAStep: a connection's last calls have an actor compared amid a Step, when another connection was sent values and a call of it
// already: that one takes the newer values for newer.
func TestComparedAmidAStep(t *testing.T) {
	hidden := map[*actorrep.Peer]bool{}
	cry := actorrep.MulticastRPC0(func(c actorrep.Call, a *crier) error { return nil }, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1, Relevant: func(p *actorrep.Peer, _ actorrep.Actor) bool { return !hidden[p] }}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("crier", (*crier)(nil), actorrep.UpdateFrequency(0.5), actorrep.RPCs{"Cry": cry}))
	})
	var file bytes.Buffer
	rec, err := replay.Record(w.Server, &file, replay.Config{Rate: 10})
	require.NoError(t, err)
	w.ReliableBuffer = 8
	l, a := w.join(), &crier{}
	require.NoError(t, w.Server.Spawn(a))
	for range 30 {
		w.Step()
	}
	require.NoError(t, l.Down.Set(netsim.Settings{Loss: 100})) // calls wait for room, and then the actor's leave for them
	for n := range 200 {
		hidden[l.Peer] = n > 60
		a.Number++
		if n < 60 || n%4 == 0 {
			require.NoError(t, cry.Call(a))
		}
		a.Number++
		w.Step()
	}
	require.NoError(t, rec.Close())

	r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	c := actorrep.NewClient(actorrep.Config{})
	require.NoError(t, w.register(c))
	require.NoError(t, r.Play(c))
	for now := time.Duration(0); !r.Done(); now += tick {
		require.NoError(t, r.Step(now))
	}
	require.Greater(t, c.Find(a.GUID()).(*crier).Number, int32(300))
	require.Zero(t, c.Counters.Stale, "nothing in a recording is older than what came before it")
}

// TestClosedBehindAStep: the last frame of a recording, which Close writes, has the values of that moment, each those of its actor.
func TestClosedBehindAStep(t *testing.T) {
	w := newWorld(t, 1, clean, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("rock", (*rock)(nil)))
	})
	var file bytes.Buffer
	rec, err := replay.Record(w.Server, &file, replay.Config{Rate: 1})
	require.NoError(t, err)
	w.join()
	var rocks []*rock
	for range 200 {
		r := &rock{}
		require.NoError(t, w.Server.Spawn(r))
		rocks = append(rocks, r)
	}
	for step := range 70 {
		for i, r := range rocks {
			r.Size = uint16(step*200 + i)
		}
		w.Step()
	}
	for _, r := range rocks[:150] {
		require.NoError(t, w.Server.Destroy(r))
	}
	require.NoError(t, rec.Close())

	r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	c := actorrep.NewClient(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	require.NoError(t, w.register(c))
	require.NoError(t, r.Play(c))
	for now := time.Duration(0); !r.Done(); now += tick {
		require.NoError(t, r.Step(now))
	}
	require.Equal(t, 50, c.Len())
	for _, r := range rocks[150:] {
		require.Equal(t, r.Size, c.Find(r.GUID()).(*rock).Size)
	}
}
