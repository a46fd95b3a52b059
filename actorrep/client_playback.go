package actorrep

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// player is a client's world whose server is a recording. Package actorrep/replay reads the recording from a file.
type player struct{ *client }

func newPlayer(w *World) bridge.Player {
	if w.server || w.live > 0 || w.client.schema != nil {
		return nil
	}
	return player{w.client}
}

// silent makes a client's world with the classes that this one has now, which tells the game nothing.
func (w *World) silent() func() (*World, error) {
	classes := slices.Clone(w.classes)
	return func() (*World, error) {
		s := NewClient(Config{})
		s.client.silent = true
		for _, c := range classes {
			if err := s.Register(c.name, reflect.Zero(reflect.PointerTo(c.typ)).Interface().(Actor)); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
}

// Describe handles the recording's class descriptions.
func (p player) Describe(r *bitio.Reader) (ok bool, err error) {
	if r.ReadBits(wire.KindBits) != wire.Schema {
		return false, fmt.Errorf("%w: no schema", errFormat)
	}
	list, err := p.world.readSchema(r)
	if list == nil && err != nil {
		return false, err
	}
	p.reset() // of an earlier connection
	p.schema = list
	return true, err
}

// Frame sets the Step that the following messages are from.
func (p player) Frame(low uint32) { p.client.frame = p.extend(low) }

// Received counts a frame.
func (p player) Received() { p.world.Counters.Received++ }

// Message handles a message other than records.
func (p player) Message(kind bridge.Kind, place uint32, r *bitio.Reader) error {
	m := p.mirror(place)
	switch {
	case kind == bridge.Open, kind == bridge.Copy:
		return p.openAt(place, r)
	case kind == bridge.Sleeper:
		if err := p.openAt(place, r); err != nil {
			return err
		}
		p.mirror(place).closedBy(bunch.Dormancy)
		return nil
	case m == nil || m.class == nil && m.parts == nil:
		return ErrGUID
	case kind == bridge.Close:
		m.closedBy(channel.CloseReason(r.ReadUint8()))
		return r.Err()
	}
	return m.take(r)
}

// Records handles a chunk of records.
func (p player) Records(in *bunch.In) error { return p.records(in) }

// FirstPlace is the place of a chunk's first record.
func (p player) FirstPlace(r bitio.Reader) (uint32, error) {
	gap := wire.NewChunk().Gap
	wire.SkipTime(&r)
	id, _ := wire.ReadID(&r, &gap)
	return id, r.Err()
}

// Reset removes all actors.
func (p player) Reset() { p.reset() }

// ForgetCalls drops the calls that haven't run yet.
func (p player) ForgetCalls() { p.forgetCalls() }

// mirror is the actor that records name by id, or nil.
func (c *client) mirror(id uint32) *mirror {
	if uint64(id) >= uint64(len(c.mirrors)) {
		return nil
	}
	return c.mirrors[id]
}

// openAt opens an actor of a replay, or wakes it.
func (c *client) openAt(id uint32, data *bitio.Reader) error {
	if old := c.mirror(id); id == 0 || old != nil && !old.asleep {
		return fmt.Errorf("%w: place %d is taken", errFormat, id)
	}
	m := &mirror{world: c.world, index: id}
	c.place(m)
	return m.take(data)
}

// closedBy is Closed for a replay, where dormant actors keep their place.
func (m *mirror) closedBy(reason channel.CloseReason) {
	if reason == bunch.Dormancy {
		m.asleep = true
		m.world.client.forgetHistory(m)
		return
	}
	m.Closed(nil, reason)
	m.world.client.forgetHistory(m)
	m.world.client.mirrors[m.index] = nil // a file keeps the order of messages
}

// reset removes all actors. The schema stays.
func (c *client) reset() {
	c.forgetCalls()
	w := c.world
	for i := len(w.actors) - 1; i >= 0; i = min(i, len(w.actors)) - 1 {
		if b := w.actors[i]; b != nil {
			c.leave(b.mirror)
		}
	}
	c.forgetMirrors()
	c.settleOrphans()
	clear(c.waiting)
	clear(c.waits)
	clear(c.missed)
	c.frame = 0
	c.at, c.atFrame, c.tick = 0, 0, 0
}
