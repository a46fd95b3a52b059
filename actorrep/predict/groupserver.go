package predict

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Join makes an actor spawned on a server a member of the class's group. Without a player it is simulated with the zero
// input, like a ball. Possess joins as well.
func (c *Class[A, I]) Join(a A) error {
	switch {
	case c.group == nil:
		return ErrNoGroup
	case !c.world.IsServer():
		return ErrClient
	case baseOf(a).World() != c.world:
		return ErrNotSpawned
	}
	return c.group.join(a, c.kind)
}

// Leave removes an actor from the group, and takes it from its player.
func (c *Class[A, I]) Leave(a A) {
	if c.group == nil || !c.world.IsServer() {
		return
	}
	c.Unpossess(a)
	c.group.leave(baseOf(a))
}

// serve is Tick on a server.
func (g *Group) serve(now time.Duration) error {
	g.prune()
	due := g.ticks.Advance(now)
	for n := due; n > 0; n-- {
		g.at = g.ticks.At(n)
		g.simulate(g.at)
	}
	for _, k := range g.list {
		k.forgetLost()
	}
	g.prune()
	var failed error
	for _, k := range g.list {
		failed = errors.Join(failed, k.answer(now))
	}
	if due > 0 && now >= g.update {
		interval := time.Duration(float64(time.Second) / g.cfg.UpdateRate)
		if g.update += interval; g.update <= now-interval {
			g.update = now + interval
		}
		failed = errors.Join(failed, g.tell())
	}
	return failed
}

// simulate simulates one tick of all members.
func (g *Group) simulate(at time.Duration) {
	g.simulated = at
	g.Counters.Ticks++
	for i := 0; i < len(g.members); i++ { // members that join in a step are appended
		if m := g.members[i]; !m.gone() {
			m.kind.tick(m, at)
		}
	}
	g.prune()
	g.live = g.live[:0]
	for _, m := range g.members {
		g.live = append(g.live, m.actor)
	}
	g.touch()
}

// tell sends the players the states of the last tick.
func (g *Group) tell() (failed error) {
	for _, m := range g.members {
		if err := m.encode(&g.w, g.got[:]); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	for _, k := range g.list {
		failed = errors.Join(failed, k.tell(g.at))
	}
	for p, at := range g.told {
		if at != g.at {
			delete(g.told, p)
		}
	}
	return failed
}

const (
	maxHeader = 120 // bits of what a member has before its state
	maxTick   = 90  // and of a message but for its members
)

// encode encodes what clients are sent about a member.
func (m *member) encode(w *bitio.Writer, state []uint64) error {
	if m.encoded == nil {
		m.encoded = make([]byte, maxMessage)
	}
	w.ResetBits(m.encoded, 8*maxMessage-maxHeader-maxTick)
	m.kind.state.loadTo(m.at, state)
	m.kind.state.writeNumbers(w, state)
	if m.stateBits = w.Len(); m.how == driven {
		m.kind.writeInput(w, m.input)
	}
	m.totalBits = w.Len()
	if w.Err() != nil {
		m.totalBits = 0
		return fmt.Errorf("%w: the state and input of %v are larger than a message", ErrGroup, m.id)
	}
	return nil
}

// writeStates writes the states of members that a player sees, as many as a message holds. from 0 begins with the
// player's own actor; from n begins with the n-th member, counted from 1. It returns the from of the next message; 0
// when these were the last.
func (g *Group) writeStates(w *bitio.Writer, tick time.Duration, peer *actorrep.Peer, own *member, from int) (next int) {
	w.WriteIntPacked64(uint64(tick / g.step))
	if from == 0 {
		own.write(w, yours, own.stateBits)
	}
	for i := max(from-1, 0); i < len(g.members); i++ {
		m := g.members[i]
		if m == own || m.totalBits == 0 || !peer.Has(m.actor) {
			continue
		}
		if w.Len()+m.totalBits+maxHeader > 8*maxMessage {
			next = i + 1
			break
		}
		m.write(w, m.how, m.totalBits)
	}
	w.WriteBool(false)
	w.WriteBool(from == 0 && next == 0)
	return next
}

func (m *member) write(w *bitio.Writer, how how, n int) {
	w.WriteBool(true)
	w.WriteIntPacked(uint32(m.id))
	w.WriteIntPacked(uint32(n))
	w.WriteBits(uint64(how), howBits)
	w.WriteBitsFrom(m.encoded, 0, n)
}

// newKind describes the class to its group.
func (c *Class[A, I]) newKind() *kind {
	k := &kind{state: c.state, input: c.input, smooth: c.smooth, smoothing: c.cfg.Smoothing, forgetLost: c.forgetLost}
	k.move = c.moveMember
	k.writeInput = func(w *bitio.Writer, in []uint64) {
		c.input.storeFrom(unsafe.Pointer(&c.read), in)
		c.codec.WriteValue(w, unsafe.Pointer(&c.read))
	}
	k.readInput = func(r *bitio.Reader, in []uint64) {
		c.readInput(r, &c.read)
		c.input.loadTo(unsafe.Pointer(&c.read), in)
	}
	k.tick, k.answer, k.tell = c.tickMember, c.answerAll, c.tellStates
	k.own = func(m *member) bool {
		p := c.byActor[m.actor]
		return p != nil && p.client != nil && c.holds(p)
	}
	k.sample, k.moved, k.send, k.rewind = c.sampleMember, c.movedMember, c.sendAll, c.rewindAll
	k.corrected = c.correctedMember
	k.hitch = func() { c.hitches++ }
	return k
}

// tickMember simulates one tick of a member on a server.
func (c *Class[A, I]) tickMember(m *member, at time.Duration) {
	p := c.byActor[m.actor]
	var used I
	switch {
	case p == nil || !c.holds(p):
		m.how = coasting
		m.actor.(A).Simulate(used, c.step)
	case p.server == nil:
		if used = c.sample(p.actor); c.holds(p) {
			p.actor.Simulate(used, c.step)
		}
		m.how = driven
	default:
		idle := p.server.Counters.Idle
		p.moved = false
		c.tickServer(p, at)
		if m.how = driven; !p.moved || p.server.Counters.Idle != idle {
			m.how = coasting
		}
		switch {
		case p.moved:
			used = p.used
		case !m.gone(): // a tick before its possession, or its possession has ended in ForceInput
			m.actor.(A).Simulate(used, c.step)
		}
	}
	c.read = used
	c.input.loadTo(unsafe.Pointer(&c.read), m.input)
}

func (c *Class[A, I]) answerAll(now time.Duration) (failed error) {
	for _, p := range c.pawns {
		if p.server != nil && c.holds(p) {
			failed = errors.Join(failed, c.answer(p, now))
		}
	}
	return failed
}

// partsPerUpdate is how many messages of an update a player gets. Members that don't fit are sent with the next update.
const partsPerUpdate = 2

// tellStates sends players the states of a tick.
func (c *Class[A, I]) tellStates(tick time.Duration) (failed error) {
	g := c.group
	for _, p := range c.pawns {
		if !p.begun || !c.holds(p) || !p.peer.IsRelevant(p.actor) || g.told[p.peer] == tick {
			continue
		}
		m := g.byBase[p.base]
		g.told[p.peer] = tick // a player with several actors gets one update
		for range partsPerUpdate {
			c.w.Reset(c.out.data[:])
			if p.cursor > len(g.members) {
				p.cursor = 0
			}
			next := g.writeStates(&c.w, tick, p.peer, m, p.cursor)
			c.out.number, c.out.bits = p.number, c.w.Len()
			err := c.w.Err()
			if err == nil {
				err = c.states.Call(p.actor, c.out)
			}
			if err != nil {
				failed = errors.Join(failed, lost(err))
				break
			}
			g.Counters.Updates++
			if p.cursor = next; next == 0 {
				break
			}
		}
	}
	return failed
}
