package interp

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// ClassConfig configures the interpolation of a class. The zero value is fine.
type ClassConfig[A actorrep.Actor] struct {
	// Lerps interpolates fields of the game's own types.
	Lerps []Lerp
	// Hitboxes appends the shapes at which an actor can be hit, on the server. seen has the interpolated fields as the
	// player saw them, and zeros otherwise; a is the actor as it is now. Default: nothing can be hit.
	Hitboxes func(a, seen A, dst []rewind.Capsule) []rewind.Capsule
}

// Class is the interpolated actors of one class in a World. It belongs to the world's goroutine.
type Class[A actorrep.Actor] struct {
	in    *Interpolator
	class *class
}

// Register interpolates the fields of a class that have an interp tag. The class itself is registered with the world,
// before or after this, by World.Register or package predict.
func Register[A actorrep.Actor](in *Interpolator, cfg ClassConfig[A]) (*Class[A], error) {
	typ := reflect.TypeFor[A]()
	p, err := planOf(typ, cfg.Lerps)
	if err != nil {
		return nil, err
	}
	if in.classes[typ] != nil {
		return nil, fmt.Errorf("%w: %v is registered already", ErrClass, typ)
	}
	c := &class{plan: p}
	if cfg.Hitboxes != nil {
		seen := reflect.New(typ.Elem()).Interface().(A)
		c.hitboxes = func(past *Past, dst []rewind.Capsule) []rewind.Capsule {
			p.store(pointer(seen), &past.values)
			return cfg.Hitboxes(past.actor.(A), seen, dst)
		}
	}
	in.classes[typ] = c
	return &Class[A]{in: in, class: c}, nil
}

func (c *class) hit(p *Past, dst []rewind.Capsule) []rewind.Capsule {
	if c.hitboxes == nil {
		return dst
	}
	return c.hitboxes(p, dst)
}

// At writes the interpolated fields of an actor, as they are to be drawn in this frame, into a struct of the game's own.
// It leaves the other fields of into alone. It returns false when they are the actor's current values: for an actor
// predicted by this end's player, one that was torn off, and on a server; and when a is nil, as before the actor has appeared: then into is left alone.
func (c *Class[A]) At(a, into A) bool {
	if none(a) {
		return false
	}
	if !c.in.ticked && !c.in.world.IsServer() {
		c.in.forgotten(c.in.tracks[baseOf(a)])
	}
	s := &c.in.scratch
	t := c.shown(a)
	if t == nil {
		c.class.plan.load(pointer(a), s)
		c.class.plan.store(pointer(into), s)
		return false
	}
	t.at = max(t.at, c.in.shown-t.behind(c.in.reach, c.in.cfg.MaxDelay))
	var state interpolation.State
	if *s, state = t.buffer.At(t.at); state == interpolation.Stale {
		t.waiting++
	}
	c.in.Counters.Draws++
	c.class.plan.store(pointer(into), s)
	return true
}

// none reports a nil pointer, as a game has for its own actor before that has appeared.
func none[A actorrep.Actor](a A) bool {
	var none A
	return any(a) == any(none)
}

// shown is the actor's past values, or nil when its current values are drawn.
func (c *Class[A]) shown(a A) *track {
	t := c.in.tracks[baseOf(a)]
	if t == nil || !t.any || !c.in.shows || t.base.Role() != actorrep.SimulatedProxy {
		return nil
	}
	return t
}

// Time is the server time that At shows for an actor in this frame; ok is false when At shows its current values.
func (c *Class[A]) Time(a A) (at time.Duration, ok bool) {
	if none(a) {
		return 0, false
	}
	t := c.shown(a)
	if t == nil {
		return 0, false
	}
	return max(t.at, c.in.shown-t.behind(c.in.reach, c.in.cfg.MaxDelay)), true
}

// Shown is the server time that this frame shows for an actor of the class that is updated as often as the most recent
// ones were. It is for things drawn among them that have no values of their own, such as a bullet in straight flight. ok
// is false before anything has arrived. On a server it is World.Now.
func (c *Class[A]) Shown() (at time.Duration, ok bool) {
	switch {
	case c.in.world.IsServer():
		return c.in.world.Now(), true
	case !c.in.shows:
		return 0, false
	}
	return c.in.shown - min(time.Duration(c.in.reach*float64(c.class.smooth)), c.in.cfg.MaxDelay), true
}

// Teleport says, on a client, that the actor must not be interpolated between its newest values and those before. The
// newest are those received in this frame, for example in a notify; if there are none, the next to arrive. When the
// server knows, a field with the tag interp:"jump" is simpler.
func (c *Class[A]) Teleport(a A) {
	if t := c.in.tracks[baseOf(a)]; t != nil {
		t.jump()
	}
}

// Pose writes the interpolated fields of an actor in a View of Rewind into a struct of the game's own; false when it
// wasn't there.
func (c *Class[A]) Pose(v *View, a, into A) bool {
	past, ok := v.Pose(rewind.ID(baseOf(a).GUID()))
	if ok {
		c.class.plan.store(pointer(into), &past.values)
	}
	return ok
}
