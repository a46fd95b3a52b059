package actorrep_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// letter is parameters whose parts say the same, so that memory that two calls share shows.
type letter struct {
	N    int32
	Text string
	List []int32
}

func newLetter(n int32) letter {
	return letter{n, fmt.Sprint("letter ", n), []int32{n, -n, 2 * n}}
}

func (l letter) whole() bool {
	return l.Text == fmt.Sprint("letter ", l.N) && slices.Equal(l.List, []int32{l.N, -l.N, 2 * l.N})
}

// postman keeps the letters that came, by kind.
type postman struct {
	actorrep.Base
	got map[string][]letter
}

func (p *postman) keep(kind string, l letter) {
	if p.got == nil {
		p.got = map[string][]letter{}
	}
	p.got[kind] = append(p.got[kind], l)
}

// postOffice is procedures that call each other: what a client asks for comes back to it and to everybody, once more a
// thousand higher, and the client asks again for one less.
type postOffice struct {
	ask, askOnce *actorrep.RPC[*postman, letter]
	back         *actorrep.RPC[*postman, letter]
	all          *actorrep.RPC[*postman, letter]
	failed       []error
}

func (o *postOffice) check(err error) {
	if err != nil {
		o.failed = append(o.failed, err)
	}
}

func newPostOffice() *postOffice {
	o := &postOffice{}
	o.all = actorrep.MulticastRPC(func(c actorrep.Call, p *postman, l letter) error {
		if c.World.IsServer() && l.N < 1000 {
			o.check(o.all.Call(p, newLetter(l.N+1000)))
		}
		p.keep("all", l)
		return nil
	}, actorrep.Reliable)
	o.back = actorrep.ClientRPC(func(_ actorrep.Call, p *postman, l letter) error {
		if l.N > 0 {
			o.check(o.ask.Call(p, newLetter(l.N-1)))
			o.check(o.askOnce.Call(p, newLetter(-l.N)))
		}
		p.keep("back", l)
		return nil
	}, actorrep.Reliable)
	o.askOnce = actorrep.ServerRPC(func(_ actorrep.Call, p *postman, l letter) error {
		p.keep("askOnce", l)
		return nil
	})
	o.ask = actorrep.ServerRPC(func(c actorrep.Call, p *postman, l letter) error {
		if c.Peer == p.Owner() && l.N < 1000 {
			o.check(o.back.Call(p, newLetter(l.N)))
			o.check(o.all.Call(p, newLetter(l.N)))
			o.check(o.ask.Call(p, newLetter(l.N+1000))) // the server's own
		}
		p.keep("ask", l)
		return nil
	}, actorrep.Reliable).Validated(func(_ actorrep.Call, _ *postman, l letter) bool { return l.whole() })
	return o
}

func (o *postOffice) register(t testing.TB, w *actorrep.World) {
	require.NoError(t, w.Register("postman", (*postman)(nil), actorrep.RPCs{"Ask": o.ask, "AskOnce": o.askOnce, "Back": o.back, "All": o.all}))
}

// TestCallsWithinCalls: procedures call procedures, themselves too, and keep what they were called with. Each has the
// parameters that were meant for it, then and later.
func TestCallsWithinCalls(t *testing.T) {
	o := newPostOffice()
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{}, o.register)
	p := &postman{}
	p.SetOwner(w.join().Peer)
	w.join()
	require.NoError(t, w.Server.Spawn(p))
	for range 60 {
		w.Step()
	}
	mine := w.Lines[0].World.Find(p.GUID()).(*postman)
	theirs := w.Lines[1].World.Find(p.GUID()).(*postman)
	const n = 20
	require.NoError(t, o.ask.Call(mine, newLetter(n)))
	for range 200 {
		w.Step()
	}
	require.Empty(t, o.failed)
	var down, both, once []int32
	for i := int32(n); i >= 0; i-- {
		down, both = append(down, i), append(both, i, i+1000)
		if i > 0 {
			once = append(once, -i)
		}
	}
	numbers := func(list []letter) (out []int32) {
		for _, l := range list {
			require.True(t, l.whole(), "%+v", l)
			out = append(out, l.N)
		}
		return out
	}
	require.Equal(t, down, numbers(mine.got["back"]))
	require.Equal(t, both, numbers(mine.got["all"]))
	require.Equal(t, both, numbers(theirs.got["all"]))
	require.Empty(t, theirs.got["back"])
	require.Equal(t, once, numbers(p.got["askOnce"]))
	require.ElementsMatch(t, both, numbers(p.got["all"]))
	require.ElementsMatch(t, both, numbers(p.got["ask"]))
}

// TestCallsOfManyWorlds: worlds on several goroutines use the same procedures.
func TestCallsOfManyWorlds(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			w, here, there := drones(t)
			for n := range int32(100) {
				for k, rpc := range droneCalls {
					d := here[0]
					if k < 2 {
						d = there[0]
					}
					require.NoError(t, rpc.Call(d, aimed{At: [2]int32{n}}))
				}
				w.Step()
			}
			for range 10 {
				w.Step()
			}
			require.Equal(t, [6]int{100, 100, 0, 0, 100, 100}, here[0].took)
			require.Equal(t, [6]int{0, 0, 100, 100, 100, 100}, there[0].took)
			require.EqualValues(t, 4*4950, here[0].sum)
			require.EqualValues(t, 4*4950, there[0].sum)
		})
	}
}

// TestCallsParallel: a multicast rides in batches that are made on several cores.
func TestCallsParallel(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Parallel: driver.Cores(2)}, registerDrone)
	d := &drone{}
	for range 6 {
		w.join()
	}
	require.NoError(t, w.Server.Spawn(d))
	for range 60 {
		w.Step()
	}
	for n := range int32(200) {
		require.NoError(t, droneCalls[5].Call(d, aimed{At: [2]int32{n}}))
		require.NoError(t, droneCalls[4].Call(d, aimed{At: [2]int32{-2 * n}}))
		w.Step()
	}
	for range 10 {
		w.Step()
	}
	for _, l := range w.Lines {
		m := l.World.Find(d.GUID()).(*drone)
		require.Equal(t, [6]int{4: 200, 5: 200}, m.took)
		require.EqualValues(t, -19900, m.sum)
	}
}
