package actorrep

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// What a client can't make of a server's bunches.
var (
	ErrNoClass = errors.New("actorrep: the server spawned a class that isn't registered here")
	ErrSchema  = errors.New("actorrep: the server's class has other fields than ours")
	ErrGUID    = errors.New("actorrep: the server used an actor's id twice")
)

// accept makes the client's end of an actor's channel.
func (w *World) accept(ch *channel.Channel) channel.Handler {
	if w.server {
		return nil
	}
	return &mirror{world: w}
}

// mirror is the client's end of an actor's channel.
type mirror struct {
	world *World
	actor Actor
	bad   bool // its class is unknown; all that follows is ignored
}

func (m *mirror) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	w := m.world
	w.Counters.Received++
	if m.bad {
		return
	}
	var err error
	if m.actor == nil {
		err = m.spawn(in)
	} else {
		err = m.apply(in)
	}
	if err == nil {
		return
	}
	w.Counters.Bad++
	m.bad = true
	if w.cfg.Failed != nil {
		w.cfg.Failed(fmt.Errorf("%w (on %v)", err, ch))
	}
}

func (m *mirror) spawn(in *bunch.In) error {
	w, r := m.world, &in.Data
	id, class, hash := netguid.GUID(r.ReadIntPacked()), int(r.ReadIntPacked()), r.ReadUint32()
	switch {
	case r.Err() != nil:
		return fmt.Errorf("actorrep: spawn: %w", r.Err())
	case class < 0 || class >= len(w.classes):
		return fmt.Errorf("%w: number %d", ErrNoClass, class)
	case w.classes[class].layout.Hash != hash:
		return fmt.Errorf("%w: %s", ErrSchema, w.classes[class].name)
	case !id.Valid():
		return fmt.Errorf("%w: %v", ErrGUID, id)
	}
	if old := w.byGUID[id]; old != nil {
		m.leave(old) // the close of its last channel is still on its way
	}
	c := w.classes[class]
	a := reflect.New(c.typ).Interface().(Actor)
	if _, err := c.layout.Read(r, pointer(a)); err != nil {
		return err
	}
	w.add(a, c, id)
	m.actor = a
	w.Counters.Spawned++
	if n, ok := a.(Notified); ok {
		n.Spawned()
	}
	if w.cfg.Spawned != nil {
		w.cfg.Spawned(a)
	}
	return nil
}

// apply sets what changed, then calls the notifies in order of declaration.
func (m *mirror) apply(in *bunch.In) error {
	if m.actor.base().world != m.world {
		return nil // a newer channel has taken its place
	}
	c := m.actor.base().class
	v := reflect.ValueOf(m.actor)
	old := m.oldValues(c, v)
	mask, err := c.layout.Read(&in.Data, v.UnsafePointer())
	if err != nil {
		return err
	}
	for i, n := range c.notify {
		if n.method < 0 || mask&c.layout.Fields[i].Mask == 0 {
			continue
		}
		var args []reflect.Value
		if n.withOld {
			args = []reflect.Value{old[i]}
		}
		v.Method(n.method).Call(args)
	}
	return nil
}

// oldValues copies the fields whose notifies want to know what they were.
func (m *mirror) oldValues(c *class, v reflect.Value) map[int]reflect.Value {
	var old map[int]reflect.Value
	for i, n := range c.notify {
		if !n.withOld {
			continue
		}
		if old == nil {
			old = map[int]reflect.Value{}
		}
		f := v.Elem().FieldByIndex(c.layout.Fields[i].Index)
		copied := reflect.New(f.Type()).Elem()
		copied.Set(f)
		old[i] = copied
	}
	return old
}

func (m *mirror) ReceivedAck(*channel.Channel, int64) {}
func (m *mirror) ReceivedNak(*channel.Channel, int64) {}

// Closed takes the actor away.
func (m *mirror) Closed(*channel.Channel, channel.CloseReason) {
	if m.actor != nil && m.actor.base().world == m.world {
		m.leave(m.actor)
	}
}

func (m *mirror) leave(a Actor) {
	w := m.world
	w.remove(a)
	w.Counters.Destroyed++
	if n, ok := a.(Notified); ok {
		n.Destroyed()
	}
	if w.cfg.Destroyed != nil {
		w.cfg.Destroyed(a)
	}
}

var _ channel.Handler = (*mirror)(nil)
var _ channel.Handler = (*view)(nil)
