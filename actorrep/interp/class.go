package interp

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// ClassConfig is how actors of a class are interpolated. The zero value is fine.
type ClassConfig[A actorrep.Actor] struct {
	// Lerps is how fields of the game's own types go from one value to the next.
	Lerps []Lerp
	// Hitboxes appends what can be hit of an actor, at the server: seen has the interpolated fields as the player saw them and nothing else, a is
	// the actor as it is now. Default: nothing can be hit.
	Hitboxes func(a, seen A, dst []rewind.Capsule) []rewind.Capsule
}

// Class is the interpolated actors of one class in a World. It belongs to the world's goroutine.
type Class[A actorrep.Actor] struct {
	in    *Interpolator
	class *class
}

// Register interpolates the fields of a class that have an interp tag. The class itself is registered with the world, before or
// after, by World.Register or by package predict.
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

// At sets the interpolated fields of into, a struct of the game's own, to what is to be drawn of an actor in this frame, and leaves its other
// fields alone. It reports whether they come from the past: an actor of this end's own player that is predicted, one that was
// torn off, and any at a server is as it is.
func (c *Class[A]) At(a, into A) bool {
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

// shown is the past that is shown of an actor, or nil when it is shown as it is.
func (c *Class[A]) shown(a A) *track {
	t := c.in.tracks[baseOf(a)]
	if t == nil || !t.any || !c.in.shows || t.base.Role() != actorrep.SimulatedProxy {
		return nil
	}
	return t
}

// Time is the server's time that At shows of an actor in this frame; false when it shows it as it is.
func (c *Class[A]) Time(a A) (at time.Duration, ok bool) {
	t := c.shown(a)
	if t == nil {
		return 0, false
	}
	return max(t.at, c.in.shown-t.behind(c.in.reach, c.in.cfg.MaxDelay)), true
}

// Now is the server's time at which actors of the class are shown in this frame, if their values come as often as those that came last did: for what
// is drawn among them without values of its own, as a bullet that flies in a line. False before anything came; on a server it is the present.
func (c *Class[A]) Now() (at time.Duration, ok bool) {
	switch {
	case c.in.world.IsServer():
		return c.in.world.Now(), true
	case !c.in.shows:
		return 0, false
	}
	return c.in.shown - min(time.Duration(c.in.reach*float64(c.class.smooth)), c.in.cfg.MaxDelay), true
}

// Teleport says, on a client, that the actor's newest values are no continuation of those before: those that came in this frame, as
// in a notify, and else the next ones. Where the server knows, a field with the tag interp:"jump" is simpler.
func (c *Class[A]) Teleport(a A) {
	if t := c.in.tracks[baseOf(a)]; t != nil {
		t.jump()
	}
}

// Pose sets the interpolated fields of into to those of an actor in a View of Rewind's; false when it wasn't there.
func (c *Class[A]) Pose(v *View, a, into A) bool {
	past, ok := v.Pose(rewind.ID(baseOf(a).GUID()))
	if ok {
		c.class.plan.store(pointer(into), &past.values)
	}
	return ok
}
