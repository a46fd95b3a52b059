package main

import (
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// remembered is how many turns' states a machine keeps, to look at after a desync.
const remembered = 64

// machine is a player's: a peer and its own copy of the battle.
type machine struct {
	player   int
	peer     *lockstep.Peer
	battle   *battle
	rng      *rand.Rand
	nextTurn time.Duration
	states   [remembered]battle // after turn t at t%remembered
	breakAt  int64              // turn in which a unit goes wrong; -1 for none
	sessions uint32
	lieFrom  int64 // from this turn on it says a wrong hash; 0: never
	frozen   bool
	gone     bool

	up, down       *netsim.Link
	upEnd, hostEnd *link.Link // with -over link
}

// brokenUnit is the one that goes wrong, by 1/256 of a cell.
const brokenUnit = 77

// execute plays one turn.
func (m *machine) execute(t *lockstep.Turn) {
	for player, cmd := range t.Commands() {
		m.battle.apply(player, cmd)
	}
	m.battle.step()
	if t.N == m.breakAt {
		m.battle.units[brokenUnit].x++
	}
	m.states[t.N%remembered] = *m.battle
}

// play executes the turns that are due: those it is behind at once, and one a turn's time.
func (m *machine) play(now time.Duration, done func(turn int64, hash uint64)) {
	due := m.peer.Behind()
	if now >= m.nextTurn {
		due++
		m.nextTurn = max(m.nextTurn, now-turnTime) + turnTime
	}
	for range due {
		t, ok := m.peer.Next()
		if !ok {
			m.nextTurn = now // as soon as it comes
			return
		}
		m.execute(t)
		if cmd := decide(m.rng); cmd != nil && m.peer.InGame() {
			_ = m.peer.Submit(cmd) // five bytes always fit
		}
		hash := m.battle.hash()
		done(t.N, hash)
		if m.lieFrom > 0 && t.N >= m.lieFrom {
			hash = ^hash
		}
		_ = m.peer.Done(hash)
	}
}

// datagrams is the plain transport: straight onto the simulated network.
type datagrams struct{ path *netsim.Link }

func (d datagrams) Send(now time.Duration, p []byte) error {
	d.path.Push(now, p)
	return nil
}

// end is a link's handler: datagrams out, messages up.
type end struct {
	path    *netsim.Link
	now     *time.Duration
	message func(p []byte)
}

func (e end) Datagram(p []byte) { e.path.Push(*e.now, p) }
func (e end) Message(p []byte)  { e.message(p) }
