package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const (
	turnTime = 50 * time.Millisecond
	tick     = 5 * time.Millisecond
	// breakTurn is when -desync breaks a unit on machine brokenMachine.
	breakTurn     = 150
	brokenMachine = 2
)

// world is the host, the machines and the network between, in virtual time.
type world struct {
	o        options
	cfg      lockstep.Config
	out      io.Writer
	now      time.Duration
	host     *lockstep.Host
	machines [players]*machine
	hashes   map[int64]uint64 // of turns, as the first sound machine had them
	compared uint64           // hashes found equal
	report   *lockstep.Event
	joined   [players]int // how often
	dropped  [players]int
	repaired bool
	refused  error
}

func newWorld(out io.Writer, o options) (*world, error) {
	w := &world{o: o, out: out, hashes: map[int64]uint64{}, cfg: lockstep.Config{Protocol: 1, Players: players, TurnInterval: turnTime}}
	if o.link {
		w.cfg.MaxPacket = link.MaxMessage
	}
	var err error
	if w.host, err = lockstep.NewHost(w.hostConfig(), w); err != nil {
		return nil, err
	}
	for i := range w.machines {
		m := &machine{player: i, breakAt: -1, rng: rand.New(rand.NewPCG(o.seed, uint64(i)))}
		if o.desync && i == brokenMachine {
			m.breakAt = breakTurn
		}
		seed := o.seed*100 + uint64(2*i)
		if m.up, err = netsim.NewLink(o.network(), seed); err != nil {
			return nil, err
		}
		if m.down, err = netsim.NewLink(o.network(), seed+1); err != nil {
			return nil, err
		}
		w.machines[i] = m
		if err := w.connect(m); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// connect begins a session of m with a new battle: the log brings it up to date.
func (w *world) connect(m *machine) error {
	m.sessions++
	m.battle = newBattle()
	var up, down lockstep.Transport = datagrams{m.up}, datagrams{m.down}
	if w.o.link {
		var err error
		c := link.Config{Conversation: m.sessions}
		if m.upEnd, err = link.New(c, end{m.up, &w.now, func(p []byte) { w.toMachine(m, p) }}); err != nil {
			return err
		}
		if m.hostEnd, err = link.New(c, end{m.down, &w.now, func(p []byte) { w.toHost(m, p) }}); err != nil {
			return err
		}
		up, down = m.upEnd, m.hostEnd
	}
	var err error
	m.peer, err = lockstep.NewPeer(lockstep.PeerConfig{Config: w.cfg, Player: m.player, Session: m.sessions}, up)
	if err != nil {
		return err
	}
	return w.host.Connect(m.player, down)
}

// Event keeps the desync report, as part of the turn in which all machines hear of it.
func (w *world) Event(turn int64, e lockstep.Event) {
	switch e.Kind {
	case lockstep.Desynced:
		w.report = &e
	case lockstep.Dropped:
		w.dropped[e.Player]++
		fmt.Fprintf(w.out, "turn %4d  player %d is out\n", turn, e.Player)
	case lockstep.Joined:
		w.joined[e.Player]++
		if turn > 0 {
			fmt.Fprintf(w.out, "turn %4d  player %d is in again\n", turn, e.Player)
		}
	}
}

func (w *world) toHost(m *machine, p []byte) {
	if err := w.host.Receive(w.now, m.player, p); err != nil && err != lockstep.ErrSession {
		w.refused = fmt.Errorf("the host refused a packet: %w", err)
	}
}

func (w *world) toMachine(m *machine, p []byte) {
	if m.gone || m.frozen {
		return
	}
	if err := m.peer.Receive(w.now, p); err != nil && err != lockstep.ErrSession {
		w.refused = fmt.Errorf("machine %d refused a packet: %w", m.player, err)
	}
}

// step is one tick of everything.
func (w *world) step() {
	w.now += tick
	for _, m := range w.machines {
		w.deliver(m)
		if m.gone || m.frozen {
			continue
		}
		m.play(w.now, func(turn int64, hash uint64) { w.compare(m, turn, hash) })
		m.peer.Tick(w.now)
	}
	if w.host.Ready() == 1<<players-1 {
		w.host.Start(w.now)
	}
	w.host.Tick(w.now)
	if w.o.link {
		for _, m := range w.machines {
			if m.gone {
				continue
			}
			m.upEnd.Tick(w.now)
			m.hostEnd.Tick(w.now)
		}
	}
}

// deliver hands over what has come out of m's network.
func (w *world) deliver(m *machine) {
	for p, ok := m.up.Pop(w.now); ok; p, ok = m.up.Pop(w.now) {
		if w.o.link {
			_ = m.hostEnd.Receive(w.now, p)
		} else {
			w.toHost(m, p)
		}
	}
	for p, ok := m.down.Pop(w.now); ok; p, ok = m.down.Pop(w.now) {
		if w.o.link {
			_ = m.upEnd.Receive(w.now, p)
		} else {
			w.toMachine(m, p)
		}
	}
}

// compare looks over all shoulders, beside what the host compares: a sound machine must
// have the hash that the first one had.
func (w *world) compare(m *machine, turn int64, hash uint64) {
	want, known := w.hashes[turn]
	switch {
	case m.breakAt >= 0 && turn >= m.breakAt:
		// It is wrong now, and the host has to find out.
	case !known:
		w.hashes[turn] = hash
	case want != hash:
		w.refused = fmt.Errorf("turn %d: machine %d has the hash %016x, not %016x", turn, m.player, hash, want)
	default:
		w.compared++
	}
}
