package predict

import (
	"errors"
	"reflect"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// pawn is an actor that a player possesses: any player on a server, its own on a client.
type pawn[A Mover[I], I any] struct {
	actor  A
	base   *actorrep.Base
	id     netguid.GUID   // with which it was possessed: an actor that was destroyed may be spawned again
	at     unsafe.Pointer // the actor's struct
	number uint8          // of the possession
	gone   bool
	left   bool // it isn't simulated here any more, see Depart and Follow

	peer      *actorrep.Peer // on a server
	server    *prediction.Server[snapshot, I]
	corrected uint8         // number of the last correction that the world's observer was told of
	off       []string      // names of the numbers that the next one is about; none when it is for an input that hasn't come
	begun     bool          // the first reply is sent
	told      uint8         // number of the last possession of the actor of which a reply was sent
	asked     bool          // a reliable reply is in flight; it opens the actor if needed
	heard     time.Duration // time of the last moves
	apart     time.Duration // how far the game's time is from the connection's
	ticked    time.Duration // the game's time of the last Tick
	last      snapshot      // the fields after the last simulation; a difference was made by the game

	// In a group.
	moved  bool // in the current tick
	used   I    // input of that tick; on a client of its last tick
	cursor int  // member with which the next states for the player begin

	client *prediction.Client[snapshot, I] // on a client
	shadow snapshot                        // what the server has sent of the numbers in came and old
	shown  snapshot                        // the fields before a record
	came   uint32                          // numbers that a record has set: the possession has ended, and the word of that is under way
	old    uint32                          // those of before the possession: they count until the server has had inputs of it, as its word may have come later than what followed it
	since  time.Duration                   // the input that was acked last when it began

	done time.Duration // time of the last tick, on a client
	step time.Duration // length of its ticks
}

func (c *Class[A, I]) newPawn(a A, number uint8) *pawn[A, I] {
	if old := c.byActor[a]; old != nil {
		old.gone = true // the next Tick forgets it
	}
	b := baseOf(a)
	p := &pawn[A, I]{actor: a, base: b, id: b.GUID(), at: reflect.ValueOf(a).UnsafePointer(), number: number, step: c.step}
	c.byActor[a] = p
	c.pawns = append(c.pawns, p)
	return p
}

// Possess gives a spawned actor to a player, who controls and owns it from now on. World.Local is the player of this
// end. now is the time that Tick is given; in a driver's callback use Conn.Now. When it is more than a second from the last Tick's it is of another clock, and the last
// Tick's counts.
func (c *Class[A, I]) Possess(a A, player *actorrep.Peer, now time.Duration) error {
	b := baseOf(a)
	switch {
	case !c.world.IsServer():
		return ErrClient
	case b.World() != c.world:
		return ErrNotSpawned
	case player == nil:
		return ErrNoPlayer
	case !c.connected(player):
		return ErrNoPlayer
	case player.IsLocal() && c.cfg.Input == nil:
		return ErrNoInput
	case !player.IsLocal() && c.possessed(player, a) >= maxPossessed:
		return ErrManyPossessed
	}
	c.everPossessed, now = true, c.byTick(now)
	if c.group != nil {
		if err := c.group.join(a, c.kind); err != nil {
			return err
		}
	}
	if before := b.Owner(); before != player {
		if b.SetOwner(player); b.Owner() != player {
			b.SetOwner(before)
			return ErrNoPlayer
		}
	}
	told := c.number
	if old := c.byActor[a]; old != nil {
		told = old.told
	}
	if c.number++; c.number == told { // it has wrapped: the client would take it for the same possession
		c.number++
	}
	b.SetAutonomous(true)
	p := c.newPawn(a, c.number)
	p.peer, p.heard, p.told = player, now, told
	if player.IsLocal() {
		return nil
	}
	p.tellTime(now)
	c.state.load(p.at, &p.last)
	s, err := prediction.NewServer(prediction.ServerConfig[snapshot, I]{Model: c.model(p), MaxError: 1,
		MaxForced: c.cfg.MaxForced, ForceInput: c.cfg.ForceInput}, p.last, now)
	if err != nil {
		p.gone = true
		return err
	}
	s.Correct() // the player's first state
	p.server = s
	return nil
}

// byTick returns the time that Possess is given, or the last Tick's when that is far from it: a game may give Tick a clock of its own, and have only the
// connection's time in a callback. A player's ticks would begin when the game's time has come there, or all those since at once.
func (c *Class[A, I]) byTick(now time.Duration) time.Duration {
	ticked, at := c.ticked, c.tickedAt
	if c.group != nil {
		ticked, at = c.group.ticked, c.group.tickedAt
	}
	if ticked && (now-at > tooFar || at-now > tooFar) {
		return at
	}
	return now
}

// possessed is how many actors beside a a player possesses.
func (c *Class[A, I]) possessed(player *actorrep.Peer, a A) (n int) {
	for _, p := range c.pawns {
		if p.peer == player && p != c.byActor[a] && c.holds(p) {
			n++
		}
	}
	return n
}

// connected reports whether a player is connected to this world.
func (c *Class[A, I]) connected(player *actorrep.Peer) bool {
	if player == c.world.Local() {
		return true
	}
	for p := range c.world.Peers {
		if p == player {
			return !p.IsReplay()
		}
	}
	return false
}

// Unpossess takes an actor from its player. The actor keeps its position and has no owner. When SetOwner gives a
// possessed actor to somebody else, the next Tick ends the possession too; the new owner doesn't control it before
// Possess.
func (c *Class[A, I]) Unpossess(a A) {
	p := c.byActor[a]
	if p == nil || !c.world.IsServer() {
		return
	}
	p.gone = true
	p.base.SetAutonomous(false)
	p.base.SetOwner(nil)
}

// notice adopts the game's changes of the fields since the last simulation. A group's members are simulated in place, so
// this isn't needed for them.
func (c *Class[A, I]) notice(p *pawn[A, I]) {
	if c.group != nil {
		return
	}
	var s snapshot
	if c.state.load(p.at, &s); s != p.last {
		p.off = c.state.off(p.off[:0], p.last[:], s[:], 0)
		*p.server.State(), p.last = s, s
		p.server.Correct()
	}
}

// tellTime notes the game's time, which may be of a clock of its own: how far it is from that of the player's connection, by which messages come. What the
// connection has heard by then isn't newer, and what it hears later isn't older. So when the game goes by its driver's time it is 0, whatever the order of calls.
func (p *pawn[A, I]) tellTime(now time.Duration) {
	p.apart, p.ticked = min(p.apart, now-p.peer.Conn().Now()), now
}

// receiveMoves handles a player's message on the server.
func (c *Class[A, I]) receiveMoves(call actorrep.Call, a A, m message[A, I]) error {
	p := c.byActor[a]
	if p == nil || p.server == nil || p.peer != call.Peer || p.number != m.number || !c.holds(p) {
		c.strange++ // of a possession that has ended
		return nil
	}
	p.apart = max(p.apart, p.ticked-call.Now)
	p.heard, p.asked = call.Now+p.apart, false
	err := p.server.Receive(p.heard, c.reader(&m))
	if p.server.Counters.Malformed > 1 {
		return nil // told once: a client could fill a log with these
	}
	return err
}

// simulateOne simulates one tick of one actor on a server.
func (c *Class[A, I]) simulateOne(p *pawn[A, I], at time.Duration) {
	if p.server == nil {
		if in := c.sample(p.actor); c.holds(p) {
			p.actor.Simulate(in, c.step)
		}
		return
	}
	if p.left {
		return
	}
	c.notice(p)
	c.tickServer(p, at)
	c.settle(p)
}

// tickServer simulates one tick of a player's actor. Ticks that this end leaves out after a pause are simulated if their moves have come.
func (c *Class[A, I]) tickServer(p *pawn[A, I], at time.Duration) {
	p.server.Skip(at - c.step)
	p.server.Tick(at)
}

// settle copies the simulated state into the fields, unless the step ended the possession.
func (c *Class[A, I]) settle(p *pawn[A, I]) {
	if !c.holds(p) {
		return
	}
	p.last = *p.server.State()
	c.state.store(p.at, &p.last)
}

// answer is the server's part of Tick for one player's actor.
func (c *Class[A, I]) answer(p *pawn[A, I], now time.Duration) error {
	p.tellTime(now)
	if p.base.Dormant() {
		if err := p.base.SetDormant(false); err != nil {
			return err
		}
		p.asked = false
		p.server.Correct()
	}
	c.notice(p)
	if p.begun && !p.peer.IsRelevant(p.actor) {
		return nil
	}
	ok, err := c.write(p, func(w *bitio.Writer) (bool, error) {
		c.writeTiming(p, w)
		return p.server.Reply(now, w)
	})
	if err != nil || !ok {
		return err
	}
	if n, apart := p.server.LastCorrection(); c.group == nil && n != p.corrected {
		p.corrected = n
		corrected(c.world, p.actor, p.peer, apart, p.off)
	}
	if p.begun {
		switch err = c.reply.Call(p.actor, c.out); {
		case err == nil:
			p.asked = false
			return nil
		case p.asked || !errors.Is(err, actorrep.ErrNotThere):
			return lost(err)
		}
	}
	if err = c.begin.Call(p.actor, c.out); err == nil {
		p.begun, p.asked, p.told = true, true, p.number
	}
	return lost(err)
}

// receiveReply handles the server's reply on the player's client. The first of a possession starts the prediction.
func (c *Class[A, I]) receiveReply(call actorrep.Call, a A, m message[A, I]) error {
	if !plays(baseOf(a)) {
		c.strange++ // the owner changed before the reply arrived
		return nil
	}
	p, now := c.byActor[a], c.clock.atStep(call.Now)
	r := c.reader(&m)
	timing, err := readTiming(r)
	if err != nil {
		c.strange++
		return err
	}
	begins := p == nil || p.number != m.number
	if begins {
		if c.cfg.Input == nil {
			return ErrNoInput
		}
		c.step = timing.step
		if c.group != nil {
			c.group.begin(timing.step)
		}
		if err = c.roomFor(p); err != nil {
			c.strange++
			return err
		}
		before := p
		p = c.newPawn(a, m.number)
		if p.client = new(prediction.Client[snapshot, I]); before != nil {
			p.client = before.client // its memory
		}
		if c.group == nil {
			c.state.load(p.at, &p.shadow)
			p.old = c.state.sent()
		}
		if err = c.resetClient(p, now); err != nil {
			p.gone = true
			return err
		}
	}
	if err = p.client.Receive(now, r); begins {
		c.takeOver(p, now)
		p.since = p.client.Acked()
	} else if p.client.Acked() != p.since {
		p.old = 0
	}
	if c.group == nil {
		c.state.store(p.at, p.client.State())
	}
	if err == nil {
		c.clock.begin(now, p.client.Acked(), c.roundTrip(), p.step)
		c.clock.hear(timing, p.client.Acked())
	}
	return err
}

// beforeValues puts back what records have set of an actor that is predicted, before another one sets more.
func (c *Class[A, I]) beforeValues(a actorrep.Actor) {
	p := c.byActor[a]
	if p == nil || p.client == nil {
		return
	}
	c.state.load(p.at, &p.shown)
	for i := range c.state {
		if (p.came|p.old)&(1<<i) != 0 {
			c.state[i].Store(p.at, p.shadow[i])
		}
	}
}

// values notes what a record sets of an actor that is predicted: its player gets that only when he possesses it no more.
func (c *Class[A, I]) values(a actorrep.Actor) {
	p := c.byActor[a]
	if p == nil || p.client == nil {
		return
	}
	for i := range c.state {
		if c.state[i].sent && wasSet(c.world, c.state[i].Offset) {
			p.shadow[i] = c.state[i].Load(p.at)
			p.came |= 1 << i
			continue // its notify sees it
		}
		c.state[i].Store(p.at, p.shown[i])
	}
}

// roomFor forgets the possessions that have ended, and that of the same actor, and returns an error when there is no room for another one.
func (c *Class[A, I]) roomFor(old *pawn[A, I]) error {
	if old != nil {
		old.gone = true
	}
	if c.forgetLost(); len(c.pawns) >= maxPossessed {
		return ErrManyPossessed
	}
	return nil
}

// roundTrip is a client's round-trip time. Before it was measured it is a guess, rather too long than too short.
func (c *Class[A, I]) roundTrip() time.Duration {
	if conn, ok := c.world.Conn().(interface{ RTT() time.Duration }); ok && conn.RTT() > 0 {
		return conn.RTT()
	}
	return 150 * time.Millisecond
}

func (c *Class[A, I]) resetClient(p *pawn[A, I], now time.Duration) error {
	cfg := prediction.ClientConfig[snapshot, I]{Model: c.model(p), Smoothing: c.cfg.Smoothing, Redundancy: 3, SendInterval: time.Second / 120}
	if c.smooth[0] >= 0 && c.group == nil {
		cfg.Position = func(s *snapshot) (at [3]float64) {
			for i, n := range c.smooth {
				if n >= 0 {
					at[i] = c.state[n].Value(s[n])
				}
			}
			return at
		}
	}
	if c.group == nil {
		cfg.Corrected = func(done prediction.Correction) {
			corrected(c.world, p.actor, nil, done.Size, p.off)
			if c.cfg.Corrected != nil {
				c.cfg.Corrected(p.actor, done)
			}
		}
	}
	var s snapshot
	c.state.load(p.at, &s)
	return p.client.Reset(cfg, s, now)
}

// tooFar is how far a client's last tick may be ahead of the shared time. Beyond it this end's clock had leaped, or the server stood still: the server has refused
// nearly all ticks since, so they are taken back. Within it the client waits for the time to come.
const tooFar = time.Second

// play is the client's part of Tick for its own actor: it simulates the ticks up to a shared time.
func (c *Class[A, I]) play(p *pawn[A, I], now, shared time.Duration) error {
	if shared == 0 {
		return nil
	}
	c.state.store(p.at, p.client.State())
	due := shared - shared%p.step
	switch late := time.Duration(c.cfg.MaxCatchUp) * p.step; {
	case p.done == 0:
		p.done = due - p.step
	case due-p.done > late:
		c.hitches++
		p.done = due - late
	case p.done-due > tooFar:
		p.client.Rewind(now, due-p.step)
		c.clock.takeBack(due - p.step)
		p.done = due - p.step
	}
	for p.done < due && c.holds(p) {
		p.done += p.step
		p.client.Move(p.done, c.sample(p.actor))
		c.clock.made(p.done, now, shared)
	}
	c.state.store(p.at, p.client.State())
	return c.send(p, now)
}

// send sends a player's moves to the server.
func (c *Class[A, I]) send(p *pawn[A, I], now time.Duration) error {
	for {
		ok, err := c.write(p, func(w *bitio.Writer) (bool, error) { return p.client.Send(now, w) })
		if err != nil || !ok {
			return err
		}
		if err = c.moves.Call(p.actor, c.out); err != nil {
			return lost(err)
		}
	}
}

// write encodes a message into c.out. It reports whether there is one.
func (c *Class[A, I]) write(p *pawn[A, I], write func(w *bitio.Writer) (bool, error)) (bool, error) {
	c.w.Reset(c.out.data[:])
	ok, err := write(&c.w)
	c.out.number, c.out.bits = p.number, c.w.Len()
	return ok && err == nil, err
}

// lost turns the error of a message that can't be sent now into nil: it counts as lost in transit, and the next message
// makes up for it.
func lost(err error) error {
	if errors.Is(err, actorrep.ErrSaturated) || errors.Is(err, actorrep.ErrNotThere) || errors.Is(err, channel.ErrClosed) || errors.Is(err, actorrep.ErrFull) || errors.Is(err, actorrep.ErrDeparted) {
		return nil
	}
	return err
}

// count adds the actor's counters.
func (p *pawn[A, I]) count(n *Counters) {
	if p.client != nil {
		addFields(&n.Client, &p.client.Counters)
	}
	if p.server != nil {
		addFields(&n.Server, &p.server.Counters)
	}
}

// addFields adds the fields of n, a struct of uint64s, to those of sum.
func addFields[T any](sum, n *T) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(n).Elem()
	for i := range to.NumField() {
		to.Field(i).SetUint(to.Field(i).Uint() + from.Field(i).Uint())
	}
}
