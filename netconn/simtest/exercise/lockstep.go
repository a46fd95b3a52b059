package exercise

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/lockstep"
)

var turnsName = bunch.Name{Index: 305}

// lockGame is a server's game in step, of all its clients, from a boot to a crash.
type lockGame struct {
	p       *program
	host    *lockstep.Host
	hashes  []uint64 // the state after each turn, by whom had it first
	started bool
}

func lockConfig(p *program, server *program) lockstep.Config {
	w := p.g.w
	n := 0
	for _, h := range w.Hosts() {
		if !h.IsServer() && w.ServerOf(h) == server.h {
			n++
		}
	}
	return lockstep.Config{Players: max(1, n), Protocol: 1, MaxInput: 64 - p.g.opt.codingBytes()/2, MaxPacket: 900} // what fits the smallest packets
}

// playerOf is a client's number in its server's game.
func playerOf(p *program) int {
	w, n := p.g.w, 0
	for _, h := range w.Hosts() {
		if h == p.h {
			return n
		}
		if !h.IsServer() && w.ServerOf(h) == w.ServerOf(p.h) {
			n++
		}
	}
	return n
}

func (p *program) newLockGame() (err error) {
	stall := lockstep.StallPolicy(p.g.w.Rand("stall").IntN(2))
	p.game = &lockGame{p: p}
	p.game.host, err = lockstep.NewHost(lockstep.HostConfig{Config: lockConfig(p, p), Stall: stall, DropAfter: 3 * time.Second, RejoinAfter: 300 * time.Millisecond}, nil) // who is often dropped here, for bad networks, is soon back
	return err
}

// stepGame lets a server's game go on.
func (p *program) stepGame(now time.Duration) {
	g := p.game
	if g == nil {
		return
	}
	if !g.started && g.host.Ready() != 0 && p.ticks > 60 {
		g.host.Start(now)
		g.started = true
	}
	g.host.Tick(now)
}

// turns is one end of a connection's part in the game.
type turns struct {
	lockstep.OnChannel
	e        *end
	peer     *lockstep.Peer // on a client
	state    uint64
	next     time.Duration
	executed int64
}

func (e *end) startLockstep() {
	if !e.g.opt.lockstep || !e.opens() {
		return
	}
	t := e.newTurns()
	e.open(turnsName, t)
	t.join()
}

func (e *end) acceptTurns() channel.Handler {
	t := e.newTurns()
	t.join()
	return t
}

func (e *end) newTurns() *turns {
	t := &turns{e: e}
	e.turns = t
	e.works = append(e.works, t)
	return t
}

// join makes a client's peer, or connects the player to a server's host.
func (t *turns) join() {
	e := t.e
	if !e.p.server {
		server := e.g.w.ServerOf(e.p.h).Program()
		sp, ok := server.(*program)
		if !ok {
			return // it has crashed, and so will this connection end
		}
		var err error
		t.peer, err = lockstep.NewPeer(lockstep.PeerConfig{Config: lockConfig(e.p, sp), Player: playerOf(e.p), Session: uint32(e.id) + 1}, t)
		if err != nil {
			e.g.w.Failf("lockstep", "%v: %v", e, err)
		}
		t.Received = func(p []byte) {
			if err := t.peer.Receive(e.now(), p); err != nil && !errors.Is(err, lockstep.ErrSession) {
				e.g.w.Failf("lockstep", "%v refused a packet of the host: %v, %v", e, err, t.peer.Reason())
			}
		}
		return
	}
	if e.peer == nil || e.p.game == nil {
		return
	}
	player, game := playerOf(e.peer.p), e.p.game
	if err := game.host.Connect(player, t); err != nil {
		e.g.w.Failf("lockstep", "%v: %v", e, err)
	}
	t.Received = func(p []byte) {
		if err := game.host.Receive(e.now(), player, p); err != nil && !errors.Is(err, lockstep.ErrSession) && !errors.Is(err, lockstep.ErrAhead) {
			e.g.w.Failf("lockstep", "%v refused a packet of player %d: %v", e, player, err)
		}
	}
}

// now is the time of the end's driver.
func (e *end) now() time.Duration { return e.p.d.Time(e.p.h.Time()) }

func (t *turns) tick(now time.Duration) {
	if t.peer == nil {
		return
	}
	for n := min(t.peer.Behind(), 20) + 1; n > 0 && (n > 1 || now >= t.next); n-- {
		turn, ok := t.peer.Next()
		if !ok {
			break
		}
		t.next = max(t.next, now-50*time.Millisecond) + 50*time.Millisecond
		t.execute(turn)
	}
	if err := t.peer.Err(); err != nil {
		t.e.g.w.Failf("lockstep", "%v: %v, %v", t.e, err, t.peer.Reason())
		return
	}
	t.peer.Tick(now)
}

func (t *turns) mix(v uint64) { t.state = (t.state ^ v) * 0x9e3779b97f4a7c15; t.state ^= t.state >> 29 }

// execute is a turn of the game: a number that depends on every command and its order.
func (t *turns) execute(turn *lockstep.Turn) {
	g := t.e.g
	if turn.N != t.executed {
		g.w.Failf("lockstep", "%v got turn %d after %d", t.e, turn.N, t.executed-1)
	}
	t.executed++
	g.Counters.Turns++
	t.mix(uint64(turn.N))
	for _, e := range turn.Events {
		t.mix(uint64(e.Kind)<<8 | uint64(e.Player))
		if e.Kind == lockstep.Desynced {
			g.w.Failf("lockstep", "%v: player %d is told to be out of step since turn %d", t.e, e.Player, e.Value)
		}
	}
	for who, cmd := range turn.Commands() {
		t.mix(uint64(who))
		for _, b := range cmd {
			t.mix(uint64(b))
		}
	}
	t.compare(turn.N)
	if r := t.e.p.rng; t.peer.InGame() && r.IntN(2) == 0 {
		if err := t.peer.Submit([]byte{byte(r.Uint32()), byte(r.Uint32())}); err != nil && !errors.Is(err, lockstep.ErrInactive) {
			g.w.Failf("lockstep", "%v: %v", t.e, err)
		}
	}
	if err := t.peer.Done(t.state); err != nil {
		g.w.Failf("lockstep", "%v: turn %d: %v", t.e, turn.N, err)
	}
}

// compare checks the state after a turn against that of the others.
func (t *turns) compare(n int64) {
	if t.e.peer == nil || t.e.peer.p.game == nil {
		return
	}
	game := t.e.peer.p.game
	switch {
	case n < int64(len(game.hashes)):
		if game.hashes[n] != t.state {
			t.e.g.w.Failf("lockstep", "%v has another state after turn %d than the others", t.e, n)
		}
	case n == int64(len(game.hashes)):
		game.hashes = append(game.hashes, t.state)
	}
}

func (t *turns) pending() string {
	if t.peer == nil || t.e.peer == nil {
		return ""
	}
	host := t.e.peer.p.game.host
	switch {
	case !t.peer.InGame():
		return fmt.Sprintf("player %d isn't in the game", playerOf(t.e.p))
	case t.executed+40 < host.Turn():
		return fmt.Sprintf("player %d has done %d of %d turns", playerOf(t.e.p), t.executed, host.Turn())
	}
	return ""
}

func (*turns) over() {}
