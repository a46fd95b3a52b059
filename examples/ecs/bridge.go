package main

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/bunchnet/bunchnet/actorrep"
)

// linked is the bridge's own component on a server: the entity has a mirror.
type linked struct{}

// serverBridge keeps a mirror for each entity that has a Replicated component.
type serverBridge struct {
	ecs     *ecs.World
	actors  *actorrep.World
	fields  []field
	marks   *ecs.Map[Replicated]
	links   *ecs.Map[linked]
	fresh   *ecs.Filter1[Replicated]
	mirrors []*mirror
}

func newServerBridge(w *ecs.World, actors *actorrep.World) *serverBridge {
	return &serverBridge{ecs: w, actors: actors, fields: fields(w), marks: ecs.NewMap[Replicated](w), links: ecs.NewMap[linked](w),
		fresh: ecs.NewFilter1[Replicated](w).Without(ecs.C[linked]())}
}

// sync brings the mirrors up to date; call it after the game's systems and before World.Step.
func (b *serverBridge) sync() error {
	for q := b.fresh.Query(); q.Next(); {
		b.mirrors = append(b.mirrors, &mirror{entity: q.Entity()})
	}
	kept := b.mirrors[:0]
	for _, m := range b.mirrors {
		alive := b.ecs.Alive(m.entity)
		if !alive || !b.marks.Has(m.entity) {
			if alive {
				b.links.Remove(m.entity)
			}
			if err := b.actors.Destroy(m); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, m)
		m.Has = 0
		for i, f := range b.fields {
			if f.read(m.entity, m) {
				m.Has |= 1 << i
			}
		}
		if m.World() == nil {
			b.links.Add(m.entity, &linked{})
			if err := b.actors.Spawn(m); err != nil {
				return err
			}
		}
	}
	clear(b.mirrors[len(kept):])
	b.mirrors = kept
	return nil
}

// clientBridge makes an entity of each mirror that comes from the server.
type clientBridge struct {
	ecs     *ecs.World
	fields  []field
	mirrors []*mirror
}

func newClientBridge(w *ecs.World) *clientBridge { return &clientBridge{ecs: w, fields: fields(w)} }

// spawned and destroyed belong into the actorrep.Config of the client's world.
func (b *clientBridge) spawned(a actorrep.Actor) {
	m := a.(*mirror)
	m.entity, m.touched = b.ecs.NewEntity(), true
	b.mirrors = append(b.mirrors, m)
}

func (b *clientBridge) destroyed(a actorrep.Actor) {
	m := a.(*mirror)
	b.ecs.RemoveEntity(m.entity)
	for i := range b.mirrors {
		if b.mirrors[i] == m {
			b.mirrors = append(b.mirrors[:i], b.mirrors[i+1:]...)
			return
		}
	}
}

// sync brings what came to the entities; call it after World.Step and before the game's systems. Other components of
// the entities are the client's own.
func (b *clientBridge) sync() {
	for _, m := range b.mirrors {
		if !m.touched {
			continue
		}
		m.touched = false
		for i, f := range b.fields {
			f.write(m.entity, m, m.Has>>i&1 != 0)
		}
	}
}
