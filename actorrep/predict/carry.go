package predict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ErrState: the bytes given to Arrive aren't those of a Depart of the same class.
var ErrState = errors.New("predict: not what Depart of this class has returned")

// maxCarried bounds the bytes of Depart: two times 32 numbers, with what precedes them.
const maxCarried = 1024

// Depart stops simulating a possessed actor, because its player goes to another server, and appends to dst what Arrive needs there. Its player's inputs go on
// arriving here, and are kept, until Stay or until the actor is destroyed. Destroy it when the player's connection has ended: until then its player's client shows it.
// Its reliable calls under way go along (actorrep.World.Depart). Errors: ErrNoPlayer when no player of a connection possesses the actor, ErrGrouped for a class of a
// group, and those of World.Depart: actorrep.ErrShare without actorrep.Config.IDs.
func (c *Class[A, I]) Depart(a A, dst []byte) ([]byte, error) {
	p := c.byActor[a]
	switch {
	case c.group != nil:
		return dst, ErrGrouped
	case p == nil || p.server == nil || !c.holds(p):
		return dst, ErrNoPlayer
	}
	form, err := (&message[A, I]{}).NetForm()
	if err != nil {
		return dst, err
	}
	c.notice(p)
	was := p.server.Carry()
	w := bitio.NewWriter(make([]byte, maxCarried))
	w.WriteUint32(form)
	w.WriteIntPacked64(uint64(was.At / time.Microsecond))
	w.WriteIntPacked64(uint64(was.Early / time.Microsecond))
	w.WriteBool(was.Began)
	c.state.writeState(w, &was.State)
	c.codec.WriteValue(w, unsafe.Pointer(&was.Input))
	if w.Err() != nil {
		return dst, w.Err()
	}
	out, err := c.world.Depart(a, append(binary.AppendUvarint(dst, uint64(len(w.Bytes()))), w.Bytes()...), c.begin)
	if err != nil {
		return dst, err
	}
	p.left = true
	return out, nil
}

// Stay goes on simulating an actor after Depart, with the inputs that have arrived since: its player doesn't go.
func (c *Class[A, I]) Stay(a A) {
	if p := c.byActor[a]; p != nil {
		p.left = false
		c.world.Stay(a)
	}
}

// Arrive gives a spawned actor to a player as Possess does, with the state that Depart returned at another server. Ticks go on from the one that was the last
// there, and wait for the player's inputs, for a second at most: none is lost or simulated twice. The player's client goes on too when it calls Follow. A client
// that lies gains a quarter of a second of simulated time at most.
func (c *Class[A, I]) Arrive(a A, player *actorrep.Peer, state []byte, now time.Duration) error {
	if c.group != nil {
		return ErrGrouped
	}
	form, err := (&message[A, I]{}).NetForm()
	if err != nil {
		return err
	}
	n, head := binary.Uvarint(state)
	if head <= 0 || n > uint64(len(state)-head) {
		return fmt.Errorf("%w: %d bytes", ErrState, len(state))
	}
	calls := state[head+int(n):]
	state = state[head : head+int(n)]
	r := bitio.NewReader(state, 8*len(state))
	var was prediction.Carried[snapshot, I]
	if r.ReadUint32() != form {
		return ErrState
	}
	at, early := r.ReadIntPacked64(), r.ReadIntPacked64()
	was.Began = r.ReadBool()
	c.state.readState(r, &was.State)
	if c.readInput(r, &c.read); r.Err() != nil || r.Remaining() >= 8 || at > maxStamp || early > maxStamp {
		return fmt.Errorf("%w: %d bytes", ErrState, len(state))
	}
	was.At, was.Early, was.Input = time.Duration(at)*time.Microsecond, time.Duration(early)*time.Microsecond, c.read
	if err := c.Possess(a, player, now); err != nil {
		return err
	}
	p := c.byActor[a]
	p.last = was.State
	c.state.store(p.at, &p.last)
	if p.server == nil {
		return nil
	}
	p.server.Continue(was, c.byTick(now))
	if err := c.world.Arrive(a, calls); err != nil {
		c.Unpossess(a)
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}

// maxStamp is the latest time, in µs, of a tick that Arrive takes: half of what the wire's timestamps count.
const maxStamp = 1 << 51

// Follow is called on a client whose player travels to another server. from is the same class in the world of the server that the player leaves. When this
// world's server gives the player an actor with the same id by Arrive, this class takes over the prediction of from without a jump, and from stops predicting it. When the server
// calls Possess instead, the prediction starts anew here. The inputs that the other server hasn't simulated are sent to this one, and so are the actor's reliable
// calls (actorrep.World.Follow). Call from's Tick before this class's in each frame. The times given to both may differ by a constant. Follow(nil) ends it.
func (c *Class[A, I]) Follow(from *Class[A, I]) {
	if from == c {
		from = nil
	}
	if from != nil && from.follows != nil {
		from.follows.follows = nil // else each Class that was ever followed would stay
	}
	c.follows = from
	if from == nil {
		c.world.Follow(nil)
	} else {
		c.world.Follow(from.world)
	}
}

// takeOver continues the prediction of an actor in another world.
func (c *Class[A, I]) takeOver(p *pawn[A, I], now time.Duration) {
	from := c.follows
	if from == nil || c.group != nil || from.group != nil || from.step != c.step {
		return
	}
	for _, q := range from.pawns {
		if q.client == nil || q.left || !from.holds(q) || q.base.GUID() != p.base.GUID() {
			continue
		}
		q.left = true
		if q.done == 0 || !p.client.Follow(now, q.client) {
			return // this server's ticks aren't those of the other, or the path was dark for long: it begins anew
		}
		p.done = q.done
		if len(c.pawns) == 1 {
			c.clock = from.clock.copy(c.offset, c.clock)
		}
		return
	}
}
