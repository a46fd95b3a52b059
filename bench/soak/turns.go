package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

const (
	seats        = 12 // players of a server's game in step
	turnTime     = 100 * time.Millisecond
	snapshotEach = 256
	remembered   = 8192
)

var turnConfig = lockstep.Config{Protocol: 1, Players: seats, TurnInterval: turnTime, MaxPacket: 800}

// turns is a server's game in step. The state is a hash of all commands so far.
type turns struct {
	host    *lockstep.Host
	started bool
	taken   [seats]bool
	hashes  [remembered]struct {
		turn int64
		hash uint64
	}
	compared uint64
	sessions uint32 // so far
	problem  func(format string, args ...any)
}

func newTurns(problem func(string, ...any)) (*turns, error) {
	t := &turns{problem: problem}
	var err error
	t.host, err = lockstep.NewHost(lockstep.HostConfig{Config: turnConfig, Stall: lockstep.Substitute, DropAfter: 10 * time.Second, LogTurns: 4 * snapshotEach}, t)
	return t, err
}

// Event is the host's: nobody may ever differ.
func (t *turns) Event(turn int64, e lockstep.Event) {
	if e.Kind == lockstep.Desynced {
		t.problem("turn %d: player %d has the state %x, not %x", e.Value, e.Player, e.Got, e.Want)
	}
}

// seat is a free one, or -1.
func (t *turns) seat() int {
	for i, taken := range t.taken {
		if !taken {
			t.taken[i] = true
			return i
		}
	}
	return -1
}

// leave frees one.
func (t *turns) leave(now time.Duration, seat int) {
	if seat >= 0 {
		t.taken[seat] = false
		_ = t.host.Drop(now, seat) // the seat exists
	}
}

func (t *turns) step(now time.Duration) {
	if !t.started && t.host.Ready() != 0 {
		t.host.Start(now)
		t.started = true
	}
	t.host.Tick(now)
}

// done compares a player's state with the others' after a turn.
func (t *turns) done(turn int64, hash uint64) {
	h := &t.hashes[turn%remembered]
	switch {
	case h.hash == 0 || h.turn < turn:
		h.turn, h.hash = turn, hash
	case h.turn == turn && h.hash != hash:
		t.problem("turn %d: states %x and %x", turn, hash, h.hash)
	case h.turn == turn:
		t.compared++
	}
	if (turn+1)%snapshotEach == 0 {
		if err := t.host.SetSnapshot(turn+1, binary.LittleEndian.AppendUint64(nil, hash)); err != nil && !errors.Is(err, lockstep.ErrSnapshot) {
			t.problem("snapshot: %v", err)
		}
	}
}

// player is a client's part in it.
type player struct {
	turns *turns
	peer  *lockstep.Peer
	up    lockstep.OnChannel
	state uint64
	next  time.Duration
	count uint64
}

func newPlayer(t *turns, seat int, session uint32) (*player, error) {
	p := &player{turns: t, state: 14695981039346656037}
	var err error
	p.peer, err = lockstep.NewPeer(lockstep.PeerConfig{Config: turnConfig, Player: seat, Session: session}, &p.up)
	return p, err
}

// String says how far it is.
func (p *player) String() string {
	h := p.turns.host
	return fmt.Sprintf("peer in state %d at turn %d, %v, denied for %d; host at turn %d, ready %b, active %b, waits for %b",
		p.peer.State(), p.peer.Turn(), p.peer.Err(), p.peer.Reason(), h.Turn(), h.Ready(), h.Active(), h.Waiting())
}

func (p *player) mix(v uint64) { p.state = (p.state ^ v) * 1099511628211 }

// step plays the turns that are due.
func (p *player) step(now time.Duration, rng *rand.Rand) {
	if turn, data, ok := p.peer.TakeSnapshot(); ok {
		if len(data) != 8 {
			p.turns.problem("a snapshot before turn %d has %d bytes", turn, len(data))
			return
		}
		p.state = binary.LittleEndian.Uint64(data)
	}
	due := p.peer.Behind()
	if now >= p.next {
		due++
		p.next = max(p.next, now-turnTime) + turnTime
	}
	for range due {
		t, ok := p.peer.Next()
		if !ok {
			break
		}
		n := t.N
		p.mix(uint64(n))
		for who, cmd := range t.Commands() {
			p.mix(uint64(who))
			for _, b := range cmd {
				p.mix(uint64(b))
			}
		}
		if p.peer.InGame() && rng.IntN(3) == 0 {
			_ = p.peer.Submit([]byte{byte(rng.Uint32()), byte(n)}) // two bytes always fit
		}
		p.turns.done(n, p.state)
		_ = p.peer.Done(p.state) // Next gave a turn
		p.count++
	}
	p.peer.Tick(now)
}
