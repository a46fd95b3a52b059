package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Vec is a place in the arena.
type Vec struct{ X, Y float64 }

// Ship flies about.
type Ship struct {
	actorrep.Base
	Pos    Vec                 `net:"q=0.01"`
	Dir    float32             `net:"rot=10"`
	Armor  actorrep.Var[uint8] `net:"max=100"`
	Name   string              `net:"initial"`
	Target netguid.GUID        `net:""`
	// Mood is for the film only: players don't get it.
	Mood string `net:"replay"`

	dock int // ticks that it still sleeps
}

// Turret is a component of a ship.
type Turret struct {
	actorrep.Base
	Aim  float32 `net:"rot=8"`
	Left uint16  `net:""`
}

// Bang is seen by all who see the ship.
var Bang = actorrep.MulticastRPC(func(c actorrep.Call, s *Ship, damage uint8) error {
	if !c.World.IsServer() {
		bangs++
	}
	return nil
})

var bangs int // that the viewer saw

func register(w *actorrep.World) error {
	if err := w.Register("Ship", (*Ship)(nil), actorrep.RPCs{"Bang": Bang}); err != nil {
		return err
	}
	return w.Register("Turret", (*Turret)(nil))
}

// game is the server's rules.
type game struct {
	world                *actorrep.World
	rng                  *rand.Rand
	ships                int
	named, shots, wrecks int
}

func (g *game) tick() error {
	var ships []*Ship
	for a := range g.world.All {
		if s, ok := a.(*Ship); ok {
			ships = append(ships, s)
		}
	}
	if len(ships) < g.ships {
		if err := g.launch(); err != nil {
			return err
		}
	}
	for _, s := range ships {
		if err := g.fly(s, ships); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) launch() error {
	g.named++
	s := &Ship{Name: fmt.Sprintf("ship %d", g.named), Pos: Vec{g.rng.Float64() * 100, g.rng.Float64() * 100}, Dir: g.rng.Float32() * 360, Mood: "eager"}
	s.Armor.Set(100)
	if err := g.world.Spawn(s); err != nil {
		return err
	}
	return g.world.SpawnIn(s, &Turret{Left: 50})
}

func (g *game) fly(s *Ship, all []*Ship) error {
	if s.World() == nil {
		return nil // shot in this tick
	}
	if s.dock > 0 {
		if s.dock--; s.dock == 0 {
			return s.SetDormant(false)
		}
		return nil
	}
	sin, cos := math.Sincos(float64(s.Dir) * math.Pi / 180)
	s.Pos.X = math.Mod(s.Pos.X+cos*0.3+100, 100)
	s.Pos.Y = math.Mod(s.Pos.Y+sin*0.3+100, 100)
	switch r := g.rng.IntN(300); {
	case r < 10:
		s.Dir = float32(math.Mod(float64(s.Dir)+g.rng.Float64()*60+330, 360))
	case r < 14:
		return g.shoot(s, all[g.rng.IntN(len(all))])
	case r == 14:
		s.dock = 30 + g.rng.IntN(120)
		return s.SetDormant(true)
	}
	return nil
}

func (g *game) shoot(s, at *Ship) error {
	if at == s || at.World() == nil || at.Dormant() {
		return nil
	}
	g.shots++
	s.Target, s.Mood = at.GUID(), "angry"
	for c := range s.Children {
		if t, ok := c.(*Turret); ok {
			t.Aim = float32(math.Mod(math.Atan2(at.Pos.Y-s.Pos.Y, at.Pos.X-s.Pos.X)*180/math.Pi+360, 360))
			t.Left--
		}
	}
	damage := uint8(10 + g.rng.IntN(20))
	if damage >= at.Armor.Get() {
		g.wrecks++
		return g.world.Destroy(at)
	}
	at.Armor.Set(at.Armor.Get() - damage)
	return Bang.Call(at, damage)
}

// draw is a world as text.
func draw(w *actorrep.World) string {
	var lines []string
	for a := range w.All {
		switch a := a.(type) {
		case *Ship:
			lines = append(lines, fmt.Sprintf("%v %s at %.0f %.0f to %.0f, armor %d, %s at %v", a.GUID(), a.Name,
				math.Round(a.Pos.X*100), math.Round(a.Pos.Y*100), math.Mod(math.Round(float64(a.Dir)*1024/360), 1024), a.Armor.Get(), a.Mood, a.Target))
		case *Turret:
			ship, _ := a.Parent().(*Ship)
			if ship == nil {
				lines = append(lines, "a turret without a ship")
				continue
			}
			lines = append(lines, fmt.Sprintf("%v of %v to %.0f, %d left", a.GUID(), ship.GUID(), math.Mod(math.Round(float64(a.Aim)*256/360), 256), a.Left))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
