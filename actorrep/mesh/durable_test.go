package mesh

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// chest has durable fields of all kinds.
type chest struct {
	Body
	X     float64                    `net:"q=0.01"`
	Gold  actorrep.Var[uint32]       `net:"" mesh:"durable"`
	Owner actorrep.Ref[*chest]       `net:"" mesh:"durable"`
	Open  bool                       `net:"" mesh:"durable"`
	Items map[string]struct{ N int } `mesh:"durable"`
	list  []string                   `mesh:"durable"`
	price [2]float32                 `mesh:"durable"`
	seen  int
}

func (c *chest) Location() (x, y, z float64) { return c.X, 0, 0 }

// TestDurableKinds: a change of each kind of field has another sum, and of what isn't marked the same one; what can't be durable is refused.
func TestDurableKinds(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Chest", (*chest)(nil)))
	all, err := durables(classes(w))
	require.NoError(t, err)
	d := all["Chest"]
	require.Len(t, d.fields, 6)
	c := &chest{Items: map[string]struct{ N int }{"a": {1}, "b": {2}}}
	sums := map[uint64]string{d.sum(c): "nothing"}
	for what, change := range map[string]func(){
		"a Var": func() { c.Gold.Set(c.Gold.Get() + 1) }, "a bool": func() { c.Open = !c.Open }, "a map": func() { c.Items["c"] = struct{ N int }{3} },
		"a map's values": func() { c.Items["a"], c.Items["b"] = c.Items["b"], c.Items["a"] }, "a slice": func() { c.list = append(c.list, "x") }, "a text": func() { c.list = append(c.list, "y"); c.list[0] += "z" },
		"an array": func() { c.price[1]++ },
	} {
		change()
		s := d.sum(c)
		require.Empty(t, sums[s], what)
		sums[s] = what
		c.seen, c.X = c.seen+1, c.X+1
		require.Equal(t, s, d.sum(c), "what isn't marked")
	}

	for what, a := range map[string]actorrep.Actor{
		"a pointer": &struct {
			Body
			P *int `mesh:"durable"`
		}{},
		"a func in a struct": &struct {
			Body
			S struct{ F func() } `mesh:"durable"`
		}{},
		"another tag": &struct {
			Body
			N int `mesh:"durabel"`
		}{},
		"an embedded pointer's field": &struct {
			Body
			*purseOf
		}{},
	} {
		w := actorrep.NewServer(actorrep.Config{})
		require.NoError(t, w.Register("Bad", a), what)
		_, err := durables(classes(w))
		require.ErrorIs(t, err, ErrConfig, what)
	}
}

type purseOf struct {
	N int `mesh:"durable"`
}

// TestDurableWrites: a change of a durable field is written in the next Step, and no other change is before its checkpoint.
func TestDurableWrites(t *testing.T) {
	s := newSolo(t)
	in := s.good(s.step(time.Second, kv.Event{Kind: kv.Begin, Store: 1}, kv.Event{Kind: kv.Current}))
	a := &sheep{}
	require.NoError(t, s.world.Spawn(a))
	require.NoError(t, s.zone.Own(a, 1))
	writes := func(n int) (at []int) {
		for i := range n {
			ops := s.step(10*time.Millisecond, in...)
			for _, op := range ops {
				if op.Key == s.keeper.actorKey(a.GUID()) && op.Kind == kv.Put {
					at = append(at, i)
				}
			}
			in = s.good(ops)
		}
		return at
	}
	require.Len(t, writes(20), 1, "it is new")
	s.state = []byte("other")
	a.Count++
	require.Empty(t, writes(20))
	a.wool++
	require.Equal(t, []int{0}, writes(20))
	require.Empty(t, writes(20))
}

// TestDurable: servers crash, with a store that loses ops and answers, and no checkpoint is ever written: what has changed in a durable field is there after a take-over if it was set a third of a second
// before the crash and the store is well, and is in the store in the end in any case.
func TestDurable(t *testing.T) {
	n := seedsToPlay(*keptSeeds, 5, 2)
	restored := 0
	for seed := *first; seed < *first+uint64(n); seed++ {
		s := drawKept(seed)
		if seed%2 == 1 {
			s = quietPlain(seed)
			s.Servers = 5
			s.Set("store", "1")
			s.Set("well", "1")
			s.Faults = []simtest.Fault{{At: 5 * time.Second, Kind: simtest.Crash, Host: fmt.Sprintf("server%d", 1+seed%4), For: 3 * time.Second}}
		}
		s.Set("durable", "1")
		r, g := playPlain(s, nil)
		if !r.OK() {
			t.Fatalf("seed %d: %v\n%v", seed, r.Failure, r.Script)
		}
		restored += g.restored
	}
	t.Logf("seeds %d to %d: %d actors were taken over", *first, *first+uint64(n)-1, restored)
	if restored == 0 {
		t.Fatal("nothing was tried")
	}
}

// woolTruth is when a sheep's wool has changed.
type woolTruth struct {
	wool, before uint32
	at           time.Duration
}

// grow has a sheep's wool grow now and then.
func (s *zoneServer) grow(a *sheep, t *truth) {
	if s.keeper == nil || !s.g.durable || a.Count%40 != 0 {
		return
	}
	a.wool++
	t.woolTruth = woolTruth{a.wool, a.wool - 1, s.g.w.Now()}
}

// shorn checks what a sheep that was taken over has of its wool.
func (s *zoneServer) shorn(a *sheep, t *truth) {
	if !s.g.durable {
		return
	}
	want := t.wool
	if t.deadAt-t.woolTruth.at < 350*time.Millisecond {
		want = t.before
	}
	if s.g.well && t.deadAt > 0 && t.acked && a.wool < want {
		s.g.w.Failf("durable", "sheep %d has wool %d at %s, and had %d", a.Name, a.wool, s.id, want)
	}
	t.wool, t.before = a.wool, a.wool
}

// unwritten says whether the store hasn't a sheep's wool.
func (g *plain) unwritten(a *sheep) string {
	if !g.durable {
		return ""
	}
	v, _, _ := g.store.Entry("mesh.actor." + strconv.FormatUint(uint64(a.GUID()), 10))
	var r actorRecord
	var f flock
	if r.read(v); json.Unmarshal(r.state, &f) != nil || f.Wool != a.wool {
		return fmt.Sprintf("sheep %d has wool %d, and in the store %d", a.Name, a.wool, f.Wool)
	}
	return ""
}
