package actorrep_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// asker is an observer that asks why all that waits does, and notes what goes in channels.
type asker struct {
	openings
	most    int // waits of a Step
	left    int
	waits   map[channel.Conn]map[bridge.Wait]string // since the last Waited; "" for none
	rounds  map[channel.Conn]map[bridge.Wait]string // up to it
	again   bool                                    // one was told of twice in a round
	carried []layout.Mask
	closed  []channel.CloseReason
	called  []bridge.Call
}

func (a *asker) Stepping()  { a.left = a.most }
func (a *asker) Room() bool { return a.left > 0 }
func (a *asker) Waits(w bridge.Wait) bool {
	a.left--
	of := a.waits[w.Conn]
	if of == nil {
		of = map[bridge.Wait]string{}
		a.waits[w.Conn] = of
	}
	_, twice := of[w]
	a.again = a.again || twice
	of[w] = ""
	return w.Reason != 0
}
func (a *asker) Why(w bridge.Wait, text string) { a.waits[w.Conn][w] = text }
func (a *asker) Waited(conn channel.Conn) {
	a.rounds[conn] = a.waits[conn]
	delete(a.waits, conn)
}
func (a *asker) Carried(_ channel.Conn, _ uint32, _ int64, units layout.Mask) {
	a.carried = append(a.carried, units)
}
func (a *asker) Closing(_ channel.Conn, _ uint32, why channel.CloseReason) {
	a.closed = append(a.closed, why)
}
func (a *asker) Called(c bridge.Call) { a.called = append(a.called, c) }

// TestWaitsAreObserved: an observer is told in turns why each connection lacks each actor, or some of its values, in the words of Explain, and of all that
// holds for every connection: in as many Steps as there are pairs, and no more in a Step than it has room for.
func TestWaitsAreObserved(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{Failed: func(error) {}}, registerHeroes) // a value doesn't fit, and a class is lacking
	o := &asker{most: 1 << 30, waits: map[channel.Conn]map[bridge.Wait]string{}, rounds: map[channel.Conn]map[bridge.Wait]string{}}
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(w.Server, o)
	var all []*hero
	for i := range 100 {
		h := &hero{}
		if i%10 == 3 {
			h.Pos.X = 5000
		}
		require.NoError(t, w.Server.Spawn(h))
		all = append(all, h)
	}
	for range 2 {
		w.join().Peer.SetViewpoint(0, 0, 0)
	}
	other := w.JoinOther(func(c *actorrep.World) error { return c.Register("part", (*part)(nil)) })
	held := w.join()
	held.Peer.Hold(func(a actorrep.Actor) bool { return a == actorrep.Actor(all[5]) })
	for range 60 {
		w.Step()
	}
	require.NoError(t, all[1].SetDormant(true))
	require.NoError(t, all[2].SetCondition("Switched", false))
	all[4].Friend = all[3].GUID() // too far away
	all[6].Health.Set(200)        // above its most
	all[7].SetOnlyOwner(true)     // it leaves
	w.Lines[0].Peer.SetUpdateEvery(all[8], 64)
	for range 20 {
		w.Step()
	}
	check := func(steps int) {
		clear(o.rounds)
		clear(o.waits)
		o.again = false
		for range steps {
			w.Step()
			if o.most == 1<<30 {
				require.Greater(t, o.left, 1<<30-2*256-1, "a Step looks at few")
			} else {
				require.Greater(t, o.left, -2)
			}
		}
		require.Len(t, o.rounds, 5, "four connections and what holds for all")
		for i, a := range all {
			id, sleeps := a.GUID(), bridge.Wait{Actor: a.GUID(), Reason: uint8(actorrep.ReasonDormant)}
			off := bridge.Wait{Actor: id, Some: true}
			if i != 1 {
				sleeps.Reason = 0
			}
			if i == 2 {
				off.Reason, off.Units = uint8(actorrep.ReasonInactive), layoutMask(t, o, id)
			}
			for _, wait := range []bridge.Wait{sleeps, off} {
				why, told := o.rounds[nil][wait]
				require.True(t, told, "%v", wait)
				require.Equal(t, wait.Reason != 0, why != "")
			}
		}
		for _, l := range w.Lines {
			round := o.rounds[l.S]
			whole := map[netguid.GUID]bridge.Wait{}
			some := map[netguid.GUID]bridge.Wait{}
			for wait := range round {
				if wait.Some {
					some[wait.Actor] = wait
				} else {
					whole[wait.Actor] = wait
				}
			}
			for i, a := range all {
				wait, told := whole[a.GUID()]
				require.True(t, told, "%d", i)
				e := w.Server.Explain(l.Peer, a)
				switch reason := actorrep.Reason(wait.Reason); e.Reason {
				case actorrep.ReasonUpToDate, actorrep.ReasonDormant, actorrep.ReasonSent, actorrep.ReasonInFlight:
					require.Equal(t, actorrep.ReasonNone, reason, "%d", i)
				default:
					require.Equal(t, e.Reason, reason, "%d", i)
					if e.Reason != actorrep.ReasonLeaving { // it says how long
						require.Equal(t, e.Text, round[wait])
					}
				}
				if l == other {
					continue
				}
				wait, told = some[a.GUID()]
				require.True(t, told, "%d", i)
				lacks := l != held && i == 4
				require.Equal(t, lacks, actorrep.Reason(wait.Reason) == actorrep.ReasonUnmapped, "%d", i)
				if lacks {
					require.Contains(t, round[wait], all[3].GUID().String())
					require.NotZero(t, wait.Units)
				}
			}
		}
		require.Equal(t, actorrep.ReasonWaiting, actorrep.Reason(waitOf(o, held.S, all[5].GUID())))
		require.Equal(t, actorrep.ReasonUnfit, actorrep.Reason(waitOf(o, w.Lines[0].S, all[6].GUID())))
		require.Equal(t, actorrep.ReasonIrrelevant, actorrep.Reason(waitOf(o, w.Lines[0].S, all[3].GUID())))
		require.Equal(t, actorrep.ReasonNoClass, actorrep.Reason(waitOf(o, other.S, all[0].GUID())))
	}
	check(8)
	require.False(t, o.again)
	o.most = 30
	check(75)
}

// TestWaitsOfOne: an observer is told in each Step of a server's only actor and its only connection, whatever is recorded, of which nothing is told.
func TestWaitsOfOne(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{})
		o := &asker{most: 1 << 30, waits: map[channel.Conn]map[bridge.Wait]string{}, rounds: map[channel.Conn]map[bridge.Wait]string{}}
		bridge.Observe.(func(*actorrep.World, bridge.Observer))(w.Server, o)
		a := &rock{Size: 1}
		require.NoError(t, w.Server.Spawn(a))
		if recorded {
			_, err := replay.Record(w.Server, io.Discard, replay.Config{})
			require.NoError(t, err)
		}
		l := w.join()
		l.Peer.Hold(func(actorrep.Actor) bool { return true })
		w.Await("an answer", w.Step, l.Peer.Ready)
		for range 10 {
			clear(o.rounds)
			o.again = false
			for range 2 {
				w.Step()
			}
			require.Len(t, o.rounds, 2)
			require.Len(t, o.rounds[nil], 2, "whether it sleeps and what is switched off")
			require.Contains(t, o.rounds[l.S], bridge.Wait{Conn: l.S, Actor: a.GUID(), Reason: uint8(actorrep.ReasonWaiting)})
		}
		l.Peer.Release()
		for range 10 { // an opening that only isn't acked is no wait
			clear(o.rounds)
			w.Step()
			require.Contains(t, o.rounds[l.S], bridge.Wait{Conn: l.S, Actor: a.GUID()})
		}
	}
}

func waitOf(o *asker, conn channel.Conn, id netguid.GUID) uint8 {
	for wait := range o.rounds[conn] {
		if wait.Actor == id && !wait.Some {
			return wait.Reason
		}
	}
	return 0
}

// layoutMask is the units that the observer was told to be switched off of an actor.
func layoutMask(t *testing.T, o *asker, id netguid.GUID) layout.Mask {
	for wait := range o.rounds[nil] {
		if wait.Actor == id && wait.Some {
			require.NotZero(t, wait.Units)
			return wait.Units
		}
	}
	return 0
}

// TestChannelsAreObserved: an observer hears of values that go in an actor's channel, of calls and the packets that they go in, and why a channel is closed.
func TestChannelsAreObserved(t *testing.T) {
	w := newWorld(t, 1, netsim.Settings{}, actorrep.Config{RelevantTimeout: -1}, registerSoldier)
	o := &asker{waits: map[channel.Conn]map[bridge.Wait]string{}}
	bridge.Observe.(func(*actorrep.World, bridge.Observer))(w.Server, o)
	l := w.join()
	s := &soldier{}
	s.SetOwner(l.Peer)
	require.NoError(t, w.Server.Spawn(s))
	for range 30 {
		w.Step()
	}
	require.Empty(t, o.carried)
	s.Aim = 77
	require.NoError(t, tell.Call(s, "some text"))
	require.NoError(t, boom.Call(s, 1))
	w.Step()
	require.Len(t, o.carried, 1, "with the call")
	require.NotZero(t, o.carried[0])
	w.Server.Consistent(t)
	require.Len(t, o.called, 2)
	for _, c := range o.called {
		require.Positive(t, c.Packet)
		require.Equal(t, s.GUID(), c.Actor)
		require.Equal(t, c.Procedure == "Tell", c.Reliable)
	}
	require.NoError(t, s.SetDormant(true))
	for range 10 {
		closed := w.Server.Counters.Closed
		w.Step()
		if len(o.closed) == 0 {
			continue
		}
		require.Equal(t, closed+1, w.Server.Counters.Closed, "in the Step that closes it")
		break
	}
	w.Step()
	require.Equal(t, []channel.CloseReason{bunch.Dormancy}, o.closed)
	require.NoError(t, s.SetDormant(false))
	for range 10 {
		w.Step()
	}
	require.NoError(t, w.Server.Destroy(s))
	require.Equal(t, []channel.CloseReason{bunch.Dormancy, bunch.Destroyed}, o.closed)
}
