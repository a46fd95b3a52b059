package predict

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// groupModel describes a player's actor in a group to package prediction. The group simulates the actor before the
// client makes its move, and detects differences itself.
func (c *Class[A, I]) groupModel(p *pawn[A, I]) prediction.Model[snapshot, I] {
	return prediction.Model[snapshot, I]{
		Interval: c.step,
		Simulate: func(s *snapshot, in I, dt time.Duration) {
			if p.server != nil && c.holds(p) {
				p.moved, p.used = true, in
				c.move(p, in, dt)
			}
			c.state.load(p.at, s)
		},
		Distance:   func(a, b *snapshot) float64 { return 0 },
		WriteInput: func(w *bitio.Writer, in *I) { c.codec.WriteValue(w, unsafe.Pointer(in)) },
		ReadInput:  c.readInput,
		WriteState: func(*bitio.Writer, *snapshot) {}, ReadState: func(*bitio.Reader, *snapshot) {},
		WriteClaim: func(*bitio.Writer, *snapshot) {}, ReadClaim: func(*bitio.Reader, *snapshot) {},
	}
}

// receiveStates handles a message of states on a player's client.
func (c *Class[A, I]) receiveStates(_ actorrep.Call, a A, m message[A, I]) error {
	p := c.byActor[a]
	if p == nil || p.client == nil || p.number != m.number || !c.holds(p) {
		c.strange++ // of a possession that hasn't begun, or has ended
		return nil
	}
	g := c.group
	if err := g.read(c.reader(&m), false); err != nil {
		c.strange++
		return err
	}
	return g.read(c.reader(&m), true)
}

// begin sets the length of the server's ticks.
func (g *Group) begin(step time.Duration) {
	if g.step == step {
		return
	}
	g.step, g.newest, g.dirty, g.whole = step, 0, 0, 0
	for _, m := range g.members {
		m.restart()
	}
}

// restart forgets all states.
func (m *member) restart() {
	m.from, m.heard, m.wrong, m.alive, m.own, m.came = 0, 0, 0, false, false, 0
	for i := range m.past {
		m.past[i].tick, m.past[i].told = 0, 0
	}
}

// maxTickNumber bounds the tick numbers that a server may send, so that their times don't overflow.
const maxTickNumber = math.MaxInt64 / int64(time.Second/10)

// read decodes states, and applies them if apply is set.
func (g *Group) read(r *bitio.Reader, apply bool) error {
	tick := r.ReadIntPacked64()
	if tick == 0 || tick > uint64(maxTickNumber) {
		r.Fail(bitio.ErrFormat)
	}
	at := int64(tick)
	if apply {
		g.Counters.Updates++
	}
	if apply && g.newest != 0 && at >= g.newest+keptStates-maxBack {
		g.Counters.Strange++ // this process was paused: its next ticks catch up, and then states fit again
		return nil
	}
	for r.Err() == nil && r.ReadBool() {
		id, n, how := netguid.GUID(r.ReadIntPacked()), r.ReadIntPacked(), how(r.ReadBits(howBits))
		if r.Err() != nil || how > yours || int64(n) > int64(r.Remaining()) {
			r.Fail(bitio.ErrFormat)
			break
		}
		r.SubTo(&g.part, int(n))
		a := g.world.Find(id)
		k := g.kinds[reflect.TypeOf(a)]
		if k == nil {
			if apply { // not arrived yet, or not of a class of the group
				g.Counters.Unknown++
			}
			continue
		}
		state, input := g.got[:len(k.state)], g.given[:len(k.input)]
		clear(input)
		if k.state.readNumbers(&g.part, state); !k.state.finite(state) {
			g.part.Fail(bitio.ErrFormat)
		}
		if how == driven {
			k.readInput(&g.part, input)
		}
		if err := g.part.Err(); err != nil || g.part.Remaining() > 0 {
			r.Fail(bitio.ErrFormat)
			break
		}
		if apply {
			g.hear(a, k, at, how)
		}
	}
	whole := r.ReadBool()
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrStates, err)
	}
	if apply && whole && at > g.whole {
		g.whole = at
		for _, m := range g.members {
			if m.heard < at {
				g.end(m)
			}
		}
	}
	return nil
}

// hear applies the server's state and input of an actor in a tick. They are in got and given.
func (g *Group) hear(a actorrep.Actor, k *kind, tick int64, how how) {
	b := baseOf(a)
	g.Counters.States++
	m := g.byBase[b]
	if m == nil || m.gone() {
		if tick <= g.whole {
			return // it has left: a later update was of all members, and not of it
		}
		if err := g.join(a, k); err != nil {
			g.Counters.Strange++
			return
		}
		m = g.byBase[b]
		m.remember()
	}
	e := m.moment(tick)
	if tick <= m.heard-keptStates || e.told > tick || e.told == tick && !e.older {
		return // another is there already
	}
	state, input := g.got[:len(k.state)], g.given[:len(k.input)]
	good := m.from != 0 && m.from <= tick && e.tick == tick && k.state.apart(e.state, state) <= 1 &&
		(how == yours || how == e.how && equal(e.input, input))
	e.told, e.toldHow, e.older = tick, how, false
	copy(e.toldState, state)
	copy(e.toldInput, input)
	newest := tick >= m.heard
	if newest {
		m.heard, m.wrong = tick, 0
	}
	switch {
	case good:
		g.Counters.Good++
	case g.newest != 0 && tick > g.newest: // its tick takes it
	default:
		if newest {
			m.wrong = tick
		}
		if g.dirty == 0 || tick < g.dirty {
			g.dirty = tick
		}
	}
}

func equal(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// remember begins to store a member's ticks.
func (m *member) remember() {
	if m.past == nil {
		m.makeRoom()
	}
	m.kind.state.loadTo(m.at, m.shadow)
	copy(m.shown, m.shadow)
	m.smoother, _ = prediction.NewSmoother(m.kind.smoothing) // Register has tried it
}

func (m *member) makeRoom() {
	n, in := len(m.kind.state), len(m.kind.input)
	words := make([]uint64, 2*keptStates*(n+in)+3*n)
	cut := func(k int) (s []uint64) {
		s, words = words[:k:k], words[k:]
		return s
	}
	m.past = make([]moment, keptStates)
	for i := range m.past {
		m.past[i] = moment{state: cut(n), toldState: cut(n), input: cut(in), toldInput: cut(in)}
	}
	m.shadow, m.shown, m.before = cut(n), cut(n), cut(n)
}

func (m *member) moment(tick int64) *moment { return &m.past[tick&(keptStates-1)] }

// end ends the prediction of a member: its fields get the server's values again.
func (g *Group) end(m *member) {
	if m.gone() {
		return
	}
	for i := range m.kind.state {
		if m.kind.state[i].sent && (!m.own || m.came&(1<<i) != 0) {
			m.kind.state[i].Store(m.at, m.shadow[i])
		}
	}
	g.leave(m.base)
}

// beforeValues puts the server's last values back into the fields, before newer ones are set.
func (g *Group) beforeValues(a actorrep.Actor) {
	m := g.byBase[baseOf(a)]
	switch {
	case m == nil || m.past == nil || m.gone():
	case m.own && !plays(m.base):
		g.end(m) // these are values that its player doesn't get
	default:
		m.kind.state.loadTo(m.at, m.shown)
		m.kind.state.storeFrom(m.at, m.shadow)
	}
}

// values stores the server's new values, and shows the prediction in the fields again.
func (g *Group) values(a actorrep.Actor) {
	m := g.byBase[baseOf(a)]
	if m == nil || m.past == nil || m.gone() {
		return
	}
	for i := range m.kind.state {
		n := &m.kind.state[i]
		if v := n.Load(m.at); v != m.shadow[i] || m.own && wasSet(g.world, n.Offset) {
			m.shadow[i] = v
			m.came |= 1 << i
		}
		n.Store(m.at, m.shown[i])
	}
}

// play is Tick on a client.
func (g *Group) play(now time.Duration) (failed error) {
	for _, k := range g.list {
		k.forgetLost()
	}
	g.prune()
	now, shared := g.clock.advance(now, g.world.Now())
	playing := false
	for _, m := range g.members {
		own := m.kind.own(m)
		if own && !m.own {
			m.came = 0
		}
		if m.own && !own {
			g.end(m) // what the server tells of it as of others' begins it anew
			continue
		}
		m.own = own
		playing = playing || own
	}
	g.prune()
	if !playing {
		g.stop()
		return nil
	}
	if shared == 0 {
		return nil
	}
	due := int64(shared / g.step)
	if g.newest == 0 {
		g.newest = due - 1
	}
	if behind := due - g.newest; behind > int64(g.cfg.MaxCatchUp) {
		for _, k := range g.list {
			k.hitch()
		}
		if behind > int64(g.cfg.MaxBack) {
			g.skip(due - int64(g.cfg.MaxCatchUp))
		}
	} else if behind < -int64(g.cfg.MaxBack) {
		for _, m := range g.members { // another server's time, or this end's clock had leaped
			m.restart()
		}
		for _, k := range g.list {
			k.rewind(now, time.Duration(due-1)*g.step)
		}
		g.clock.takeBack(time.Duration(due-1) * g.step)
		g.newest, g.dirty, g.whole = due-1, 0, 0
	}
	g.forgetSilent()
	g.rewind(now)
	g.gather()
	for g.newest < due {
		g.newest++
		g.advance(g.newest, due-g.newest < int64(g.cfg.MaxCatchUp), now, shared)
	}
	for _, k := range g.list {
		failed = errors.Join(failed, k.send(now))
	}
	return failed
}

// stop ends the prediction of all members.
func (g *Group) stop() {
	for _, m := range g.members {
		g.end(m)
	}
	g.prune()
	g.newest, g.dirty, g.whole = 0, 0, 0
}

// skip makes time jump: the newest states count as those of the tick MaxBack before.
func (g *Group) skip(newest int64) {
	g.newest, g.dirty = newest, 1 // so that rewind takes them as older ones
	for _, m := range g.members {
		m.from, m.wrong = 0, m.heard
	}
}

// forgetSilent ends the prediction of members for which no states arrive any more.
func (g *Group) forgetSilent() {
	newest := int64(0)
	for _, m := range g.members {
		newest = max(newest, m.heard)
	}
	for _, m := range g.members {
		if m.heard < newest-int64(forgetAfter/g.step) {
			g.end(m)
		}
	}
	g.prune()
}

// rewind goes back to the oldest tick whose prediction was wrong, and simulates all members again from there.
func (g *Group) rewind(now time.Duration) {
	if g.dirty == 0 || g.dirty > g.newest {
		return // states of future ticks are applied in their tick
	}
	from := g.dirty
	if oldest := max(g.newest-int64(g.cfg.MaxBack), 1); from < oldest {
		from = oldest
		for _, m := range g.members {
			if m.wrong > 0 && m.wrong < oldest {
				g.Counters.Old++
				m.retell(oldest)
			}
		}
	}
	g.dirty = 0
	g.Counters.Rewinds++
	g.replay = true
	for _, m := range g.members {
		m.wasAlive = m.alive
		m.kind.state.loadTo(m.at, m.before)
		e := m.moment(from)
		switch m.alive = m.from != 0 && m.from <= from; {
		case e.told == from:
			m.take(e, from)
		case m.alive:
			m.kind.state.storeFrom(m.at, e.state)
		}
	}
	g.gather()
	for t := from + 1; t <= g.newest; t++ {
		g.Counters.Replayed++
		g.advance(t, false, now, 0)
	}
	g.replay = false
	g.correct(now, from)
}

// retell moves the states of an older tick to this one.
func (m *member) retell(tick int64) {
	last, e := m.moment(m.heard), m.moment(tick)
	e.told, e.toldHow, e.older = tick, last.toldHow, true
	copy(e.toldState, last.toldState)
	copy(e.toldInput, last.toldInput)
}

// take sets a member to the server's state of a tick.
func (m *member) take(e *moment, tick int64) {
	fresh := e.fresh && e.tick == tick
	e.tick = tick
	m.kind.state.storeFrom(m.at, e.toldState)
	copy(e.state, e.toldState)
	switch {
	case e.toldHow != yours:
		e.how, e.fresh = e.toldHow, false
		copy(e.input, e.toldInput)
	case !fresh: // before this end's first tick
		e.how, e.fresh = coasting, false
		clear(e.input)
	}
	if tick >= m.wrong {
		m.wrong = 0
	}
	if m.alive = true; m.from == 0 || tick < m.from {
		m.from = tick
	}
}

// gather lists the simulated members.
func (g *Group) gather() {
	g.live = g.live[:0]
	for _, m := range g.members {
		if m.alive {
			g.live = append(g.live, m.actor)
		}
	}
}

// advance simulates one tick of all members. fresh says that it is a new tick, for which this end's players are asked.
func (g *Group) advance(tick int64, fresh bool, now, shared time.Duration) {
	g.simulated = time.Duration(tick) * g.step
	g.Counters.Ticks++
	for _, m := range g.members {
		if !m.alive || m.gone() {
			continue
		}
		e, last := m.moment(tick), m.moment(tick-1)
		switch {
		case fresh && m.own:
			m.kind.sample(m, e.input)
			e.how, e.fresh = driven, true
		case e.tick == tick && e.fresh: // this end's player gave it
		default:
			e.how, e.fresh = last.how, false
			copy(e.input, last.input)
		}
		e.tick = tick
		m.kind.move(m, e.input, !e.fresh && e.how == driven)
	}
	g.touch()
	came := false
	for _, m := range g.members {
		e := m.moment(tick)
		switch {
		case e.told == tick:
			came = came || !m.alive
			m.take(e, tick)
		case m.alive:
			m.kind.state.loadTo(m.at, e.state)
		}
		if fresh && m.own && m.alive {
			m.kind.moved(m, g.simulated, now, shared)
		}
	}
	if came {
		g.gather()
	}
}

// correct computes how far a rewind has moved each member, and smooths it.
func (g *Group) correct(now time.Duration, from int64) {
	for _, m := range g.members {
		if !m.alive || !m.wasAlive {
			continue
		}
		after := m.moment(g.newest).state
		size := m.kind.state.apart(m.before, after)
		if size == 0 {
			continue
		}
		m.smoother.Jump(now, m.kind.place(m.before), m.kind.place(after))
		if size > 1 {
			g.Counters.Corrected++
			m.kind.off = m.kind.state.off(m.kind.off[:0], m.before, after, 1)
			m.kind.corrected(m, prediction.Correction{At: time.Duration(from) * g.step, Age: time.Duration(g.newest-from) * g.step, Size: size,
				Replayed: int(g.newest - from)})
		}
	}
}

// place is the position at which a state is drawn.
func (k *kind) place(s []uint64) (at [3]float64) {
	for i, n := range k.smooth {
		if n >= 0 {
			at[i] = k.state[n].Value(s[n])
		}
	}
	return at
}

// moveMember simulates a member with an input.
func (c *Class[A, I]) moveMember(m *member, in []uint64, repeated bool) {
	c.input.storeFrom(unsafe.Pointer(&c.given), in)
	if repeated && c.cfg.ForceInput != nil {
		c.given = c.cfg.ForceInput(c.given)
	}
	m.actor.(A).Simulate(c.given, c.group.step)
}

// sampleMember asks for an input of this end's player.
func (c *Class[A, I]) sampleMember(m *member, in []uint64) {
	p := c.byActor[m.actor]
	p.used = c.sample(p.actor)
	c.given = p.used
	c.input.loadTo(unsafe.Pointer(&c.given), in)
}

// movedMember sends the input of a tick of this end's player.
func (c *Class[A, I]) movedMember(m *member, at, now, shared time.Duration) {
	p := c.byActor[m.actor]
	p.client.Move(at, p.used)
	c.clock.made(at, now, shared)
}

func (c *Class[A, I]) rewindAll(now, to time.Duration) {
	for _, p := range c.pawns {
		if p.client != nil {
			p.client.Rewind(now, to)
		}
	}
}

func (c *Class[A, I]) sendAll(now time.Duration) (failed error) {
	for _, p := range c.pawns {
		if p.client != nil && c.holds(p) {
			failed = errors.Join(failed, c.send(p, now))
		}
	}
	return failed
}

func (c *Class[A, I]) correctedMember(m *member, done prediction.Correction) {
	corrected(c.world, m.actor, nil, done.Size, m.kind.off)
	if c.cfg.Corrected != nil {
		c.cfg.Corrected(m.actor.(A), done)
	}
}
