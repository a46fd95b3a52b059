package actorrep_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// courier has a value of each kind; each only ever grows.
type courier struct {
	actorrep.Base
	Plain  uint32                 `net:""`
	Pushed actorrep.Var[uint32]   `net:""`
	Text   string                 `net:""`
	Place  vec                    `net:"q=1"`
	Secret uint32                 `net:"owner"`
	Others uint32                 `net:"skipowner"`
	Red    uint32                 `net:"group=red"`
	Cloak  uint32                 `net:"custom"`
	Runes  [20]uint32             `net:""`
	Parts  fastarray.List[uint32] `net:""`

	part    fastarray.ID
	cloaked bool // Cloak is switched off
}

// parcel is a call and what its actor's values were when it was called.
type parcel struct {
	N                                                                   uint32
	Plain, Pushed, Text, Place, Secret, Part, Others, Red, Runes, Cloak uint32
}

// values is what an actor has now.
func (c *courier) values() (p parcel) {
	text, _ := strconv.Atoi(c.Text)
	part := uint32(0)
	for _, v := range c.Parts.All {
		part = v
	}
	runes := uint32(0)
	for _, v := range c.Runes {
		runes += v
	}
	return parcel{0, c.Plain, c.Pushed.Get(), uint32(text), uint32(c.Place.X), c.Secret, part, c.Others, c.Red, runes, c.Cloak}
}

// behind names a value that is older in got than in want.
func behind(got, want parcel, owned, other, red, cloak bool) string {
	switch {
	case got.Plain < want.Plain:
		return fmt.Sprintf("Plain %d, want %d", got.Plain, want.Plain)
	case got.Pushed < want.Pushed:
		return fmt.Sprintf("Pushed %d, want %d", got.Pushed, want.Pushed)
	case got.Text < want.Text:
		return fmt.Sprintf("Text %d, want %d", got.Text, want.Text)
	case got.Place < want.Place:
		return fmt.Sprintf("Place %d, want %d", got.Place, want.Place)
	case got.Part < want.Part:
		return fmt.Sprintf("Parts %d, want %d", got.Part, want.Part)
	case got.Runes < want.Runes:
		return fmt.Sprintf("Runes %d, want %d", got.Runes, want.Runes)
	case owned && got.Secret < want.Secret:
		return fmt.Sprintf("Secret %d, want %d", got.Secret, want.Secret)
	case other && got.Others < want.Others:
		return fmt.Sprintf("Others %d, want %d", got.Others, want.Others)
	case red && got.Red < want.Red:
		return fmt.Sprintf("Red %d, want %d", got.Red, want.Red)
	case cloak && got.Cloak < want.Cloak:
		return fmt.Sprintf("Cloak %d, want %d", got.Cloak, want.Cloak)
	}
	return ""
}

// post is a world of couriers, what was called in it and what came.
type post struct {
	*world
	couriers []*courier
	stamp, n uint32
	called   map[uint32]bool // calls to an owner that were taken and haven't come
	last     map[string]uint32
	hidden   map[*actorrep.Peer]map[actorrep.Actor]bool
	may      map[uint32][2][3]bool // by call and client: whether its Others, Red and Cloak were for that one
	late     map[late]uint32       // the last call before the client had the actor, and lost the right to see some of it
	came     int
	errs     []string
	told     int // calls of which Failed told that they can't come

	deliver, shout *actorrep.RPC[*courier, parcel]
}

// late is a client and an actor.
type late struct {
	line  int
	actor netguid.GUID
}

// lose notes for which actors a client, which may see less of them now, still waits: their calls come without that.
func (p *post) lose(pe *actorrep.Peer, actors ...*courier) {
	for i, l := range p.Lines {
		for _, c := range actors {
			if l.Peer != pe {
				continue
			}
			switch p.Server.Explain(pe, c).Reason {
			case actorrep.ReasonNoSchema, actorrep.ReasonIrrelevant, actorrep.ReasonWaiting, actorrep.ReasonNoRoom, actorrep.ReasonNone:
				p.late[late{i, c.GUID()}] = p.n
			}
		}
	}
}

func (p *post) receive(kind string) func(c actorrep.Call, a *courier, got parcel) error {
	return func(c actorrep.Call, a *courier, got parcel) error {
		if c.World.IsServer() {
			return nil
		}
		p.came++
		n := slices.IndexFunc(p.Lines, func(l *rig.Line) bool { return l.World == c.World })
		may := p.may[got.N][n]
		if got.N <= p.late[late{n, a.GUID()}] {
			may = [3]bool{}
		}
		if b := behind(a.values(), got, kind == "deliver", may[0], may[1], may[2]); b != "" && len(p.errs) < 20 {
			p.errs = append(p.errs, fmt.Sprintf("%v: %s %d runs on %v with %s", p.Now, kind, got.N, a.GUID(), b))
		}
		key := fmt.Sprintf("%p %v", c.World, a.GUID())
		if got.N <= p.last[key] && len(p.errs) < 20 {
			p.errs = append(p.errs, fmt.Sprintf("%v: %s %d runs on %v behind %d", p.Now, kind, got.N, a.GUID(), p.last[key]))
		}
		p.last[key] = got.N
		if kind == "deliver" {
			if !p.called[got.N] {
				p.errs = append(p.errs, fmt.Sprintf("deliver %d wasn't called, or comes twice", got.N))
			}
			delete(p.called, got.N)
		}
		return nil
	}
}

func (p *post) set(c *courier) {
	p.stamp++
	switch p.Rand.IntN(10) {
	case 0:
		c.Plain = p.stamp
	case 1:
		c.Pushed.Set(p.stamp)
	case 2:
		c.Text = strconv.Itoa(int(p.stamp))
	case 3:
		c.Place.X = float64(p.stamp)
	case 4:
		c.Secret = p.stamp
	case 5:
		if c.part == 0 {
			c.part, _ = c.Parts.Add(p.stamp)
		} else {
			_ = c.Parts.Set(c.part, p.stamp)
		}
	case 6:
		c.Others = p.stamp
	case 7:
		c.Red = p.stamp
	case 9:
		c.Cloak = p.stamp
	case 8:
		c.Runes[p.Rand.IntN(len(c.Runes))] = p.stamp
	}
}

func (p *post) call(c *courier) {
	p.n++
	k := c.values()
	k.N = p.n
	var may [2][3]bool
	for i, l := range p.Lines {
		may[i] = [3]bool{c.Owner() != l.Peer, l.Peer.InGroup("red"), !c.cloaked}
	}
	p.may[k.N] = may
	if p.Rand.IntN(3) == 0 {
		_ = p.shout.Call(c, k)
	} else if p.deliver.Call(c, k) == nil && c.Owner() != nil {
		p.called[k.N] = true
	}
}

func (p *post) owner() *actorrep.Peer { return p.Lines[p.Rand.IntN(len(p.Lines))].Peer }

func (p *post) spawn() {
	c := &courier{}
	c.SetOwner(p.owner())
	p.set(c)
	require.NoError(p.T, p.Server.Spawn(c))
	p.couriers = append(p.couriers, c)
	for p.Rand.IntN(2) == 0 {
		p.set(c)
		p.call(c)
	}
}

// change does something to a courier that reorders what is on its way to clients.
func (p *post) change() {
	i := p.Rand.IntN(len(p.couriers))
	c := p.couriers[i]
	switch p.Rand.IntN(13) {
	case 0, 1, 2:
		o := p.owner()
		p.lose(o, c)
		c.SetOwner(o)
	case 3:
		require.NoError(p.T, c.SetDormant(!c.Dormant()))
	case 4, 5:
		hidden := p.hidden[p.owner()]
		hidden[c] = !hidden[c]
	case 6:
		require.NoError(p.T, c.SetUpdateFrequency(float64(p.Rand.IntN(3)*4)))
	case 7, 8:
		require.NoError(p.T, p.Server.Destroy(c))
		p.couriers = append(p.couriers[:i], p.couriers[i+1:]...)
		p.spawn()
	case 9:
		require.NoError(p.T, c.TearOff())
		p.couriers = append(p.couriers[:i], p.couriers[i+1:]...)
		p.spawn()
	case 10:
		p.owner().SetUpdateEvery(c, 1+p.Rand.IntN(8))
	case 12:
		if c.cloaked = !c.cloaked; c.cloaked {
			for _, l := range p.Lines {
				p.lose(l.Peer, c)
			}
		}
		require.NoError(p.T, c.SetCondition("Cloak", !c.cloaked))
	case 11:
		if o := p.owner(); o.InGroup("red") {
			p.lose(o, p.couriers...)
			o.LeaveGroup("red")
		} else {
			require.NoError(p.T, o.JoinGroup("red"))
		}
	}
}

func newPost(t *testing.T, seed uint64, set netsim.Settings) *post {
	p := &post{called: map[uint32]bool{}, last: map[string]uint32{}, hidden: map[*actorrep.Peer]map[actorrep.Actor]bool{}, may: map[uint32][2][3]bool{}, late: map[late]uint32{}}
	p.deliver = actorrep.ClientRPC(p.receive("deliver"), actorrep.Reliable)
	p.shout = actorrep.MulticastRPC(p.receive("shout"), actorrep.Reliable)
	cfg := actorrep.Config{RelevantTimeout: -1, Relevant: func(pe *actorrep.Peer, a actorrep.Actor) bool {
		return !p.hidden[pe][a]
	}, Failed: func(err error) {
		var e *actorrep.ActorError
		require.ErrorAs(t, err, &e)
		require.True(t, errors.Is(err, actorrep.ErrActorGone) || errors.Is(err, actorrep.ErrOwnerGone), err)
		if e.Name == "Deliver" {
			p.told++
		}
	}}
	p.world = newWorld(t, seed, set, cfg, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("courier", (*courier)(nil), actorrep.RPCs{"Deliver": p.deliver, "Shout": p.shout}))
	})
	for range 2 {
		p.hidden[p.join().Peer] = map[actorrep.Actor]bool{}
	}
	for range 6 {
		p.spawn()
	}
	return p
}

// TestCallsBehindValues: whatever was set before a reliable call on an actor is there when the call runs, also when the actor
// opens, sleeps, changes hands, stops being relevant, is torn off or destroyed meanwhile, and when the client loses the right to see some of it; a call that was taken runs once,
// in order, or is told as failed.
func TestCallsBehindValues(t *testing.T) {
	for seed, calls := range []uint32{2000, 1000, 1000, 1000} {
		if os.Getenv("CI") != "" {
			calls *= 8
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { callsBehindValues(t, uint64(seed), calls) })
	}
}

func callsBehindValues(t *testing.T, seed uint64, calls uint32) {
	p := newPost(t, seed, netsim.Settings{Loss: 20, Dup: 5, LagMin: 10 * time.Millisecond, LagMax: 90 * time.Millisecond})
	for p.n < calls && len(p.errs) == 0 {
		for range p.Rand.IntN(4) {
			c := p.couriers[p.Rand.IntN(len(p.couriers))]
			p.set(c)
			if p.Rand.IntN(3) == 0 {
				p.call(c)
			}
			if p.Rand.IntN(15) == 0 {
				p.change()
			}
		}
		p.Step()
	}
	for range 900 {
		p.Step()
	}
	require.Empty(t, p.errs)
	require.Greater(t, p.came, int(calls)/2)
	t.Logf("%d ran, %d of those to owners were told as failed", p.came, p.told)
	require.Less(t, p.told, int(calls)/20)
	require.Equal(t, p.told, len(p.called), "calls that were taken and neither came nor were told of: %v", p.called)
}

// TestCallsOfNewActor: a multicast right after Spawn reaches all who will see the actor, with its values; also when the actor is
// destroyed in the same tick, or in a tick of the opening: then it comes, is called and goes.
func TestCallsOfNewActor(t *testing.T) {
	for _, steps := range []int{0, 1, 2, 5, 1000} {
		t.Run(fmt.Sprint("destroyed after ", steps), func(t *testing.T) {
			came := map[*actorrep.World][]uint8{}
			note := actorrep.MulticastRPC(func(c actorrep.Call, s *soldier, n uint8) error {
				came[c.World] = append(came[c.World], n)
				if !c.World.IsServer() {
					require.GreaterOrEqual(t, s.Aim, []int32{0, 7, 8, 9}[n])
				}
				return nil
			}, actorrep.Reliable)
			w := newWorld(t, 3, netsim.Settings{Loss: 20}, actorrep.Config{}, func(t testing.TB, w *actorrep.World) {
				require.NoError(t, w.Register("soldier", (*soldier)(nil), actorrep.RPCs{"Note": note}))
			})
			for range 3 {
				w.join()
			}
			for range 60 {
				w.Step()
			}
			s := &soldier{Aim: 7}
			require.NoError(t, w.Server.Spawn(s))
			require.NoError(t, note.Call(s, 1))
			s.Aim = 8
			require.NoError(t, note.Call(s, 2))
			for range steps {
				w.Step()
			}
			s.Aim = 9
			require.NoError(t, note.Call(s, 3))
			require.NoError(t, w.Server.Destroy(s))
			for range 100 {
				w.Step()
			}
			for i, l := range w.Lines {
				if steps == 0 {
					require.Empty(t, came[l.World], "nobody had seen it")
				} else {
					require.Equal(t, []uint8{1, 2, 3}, came[l.World], i)
				}
				require.Zero(t, l.World.Len())
			}
		})
	}
}

// TestMulticastMissed: a reliable multicast that doesn't reach all says so, in any outage.
func TestMulticastMissed(t *testing.T) {
	w, s, m := soldiers(t, netsim.Settings{}, 2)
	require.NoError(t, w.Lines[0].Down.Set(netsim.Settings{Loss: 100}))
	missed := 0
	for i := range 1200 {
		err := anthem.Call(s, uint8(i))
		if err != nil {
			var e *actorrep.MissedError
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, actorrep.ErrFull)
			require.Equal(t, []*actorrep.Peer{w.Lines[0].Peer}, e.Peers)
			missed++
		}
		w.Step()
	}
	require.NotZero(t, missed)
	require.NoError(t, w.Lines[0].Down.Set(netsim.Settings{}))
	for range 400 {
		w.Step()
	}
	require.Len(t, m[0].calls, 1200-missed)
	require.Len(t, m[1].calls, 1200)
	require.Len(t, s.calls, 1200, "it ran here")
}
