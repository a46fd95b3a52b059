package predict_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/predict"
)

// Pedals is an input.
type Pedals struct{ Gas, Brake bool }

// Car drives along a line.
type Car struct {
	actorrep.Base
	X     float64 `net:"q=0.01,simulated" predict:"0.001,smooth"`
	Speed float64 `predict:"0.001"`
}

// Simulate drives on.
func (c *Car) Simulate(p Pedals, dt time.Duration) {
	switch {
	case p.Brake:
		c.Speed = max(c.Speed-9*dt.Seconds(), 0)
	case p.Gas:
		c.Speed = min(c.Speed+4*dt.Seconds(), 60)
	}
	c.X += c.Speed * dt.Seconds()
}

// The player of a listen server drives; others' cars would be given to their peers, and driven at their clients.
func ExampleRegister() {
	world := actorrep.NewServer(actorrep.Config{})
	cars, err := predict.Register(world, "Car", predict.Config[*Car, Pedals]{Input: func(*Car) Pedals { return Pedals{Gas: true} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	car := &Car{}
	if err := world.Spawn(car); err != nil {
		fmt.Println(err)
		return
	}
	if err := cars.Possess(car, world.Local(), 0); err != nil {
		fmt.Println(err)
		return
	}
	for now := time.Duration(0); now <= 3*time.Second; now += 50 * time.Millisecond { // the game's frames
		if err := cars.Tick(now); err != nil {
			fmt.Println(err)
		}
		world.Step(now)
	}
	fmt.Printf("%.0f m/s at %.0f m\n", car.Speed, car.X)
	// Output: 12 m/s at 18 m
}

// A client shows a shell in the step of the key; when the server's comes, it goes on from there, and what never comes is taken away.
func ExampleNewSpawns() {
	world := actorrep.NewClient(actorrep.Config{})
	cars, err := predict.Register(world, "Car", predict.Config[*Car, Pedals]{Input: func(*Car) Pedals { return Pedals{} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	shells := predict.NewSpawns(cars, time.Second, func(_ predict.Key, fake string) { fmt.Println("there never was", fake) })
	for k, fake := range map[predict.Key]string{1: "a shell", 2: "another"} { // in Simulate, with the keys of Class.Key
		if err := shells.Add(k, fake); err != nil {
			fmt.Println(err)
		}
	}
	if fake, ok := shells.Take(1); ok { // in Config.Spawned, with the actor's key
		fmt.Println("the server's takes the place of", fake)
	}
	shells.Tick(0)
	shells.Tick(time.Second)
	// Output:
	// the server's takes the place of a shell
	// there never was another
}

// Sled and Stone are a group: what a sled runs into moves on.
type Sled struct {
	actorrep.Base
	X     float64 `predict:"0.001,smooth"`
	Speed float64 `predict:"0.001"`
}

// Stone has no player.
type Stone struct {
	actorrep.Base
	X     float64 `predict:"0.001,smooth"`
	Speed float64 `predict:"0.001"`
}

// Simulate speeds up.
func (s *Sled) Simulate(p Pedals, dt time.Duration) {
	if p.Gas {
		s.Speed += dt.Seconds()
	}
	s.X += s.Speed * dt.Seconds()
}

// Simulate slides.
func (s *Stone) Simulate(_ predict.NoInput, dt time.Duration) { s.X += s.Speed * dt.Seconds() }

// A sled and a stone are simulated together: here for the player of the server's end; on clients they would be predicted together.
func ExampleNewGroup() {
	world := actorrep.NewServer(actorrep.Config{})
	track, err := predict.NewGroup(world, predict.GroupConfig{Touch: func(members []actorrep.Actor, _ time.Duration) {
		sled, stone := members[0].(*Sled), members[1].(*Stone)
		if sled.X >= stone.X {
			sled.Speed, stone.Speed = stone.Speed, sled.Speed
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sleds, err := predict.Register(world, "Sled", predict.Config[*Sled, Pedals]{Group: track, Input: func(s *Sled) Pedals { return Pedals{Gas: s.X < 1} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	stones, err := predict.Register(world, "Stone", predict.Config[*Stone, predict.NoInput]{Group: track})
	if err != nil {
		fmt.Println(err)
		return
	}
	sled, stone := &Sled{}, &Stone{X: 3}
	if err := errors.Join(world.Spawn(sled), world.Spawn(stone), sleds.Possess(sled, world.Local(), 0), stones.Join(stone)); err != nil {
		fmt.Println(err)
		return
	}
	for now := time.Duration(0); now <= 4*time.Second; now += 50 * time.Millisecond { // the game's frames
		if err := track.Tick(now); err != nil {
			fmt.Println(err)
		}
		world.Step(now)
	}
	fmt.Printf("sled: %.1f m/s at %.0f m, stone: %.1f m/s at %.1f m\n", sled.Speed, sled.X, stone.Speed, stone.X)
	// Output: sled: 0.0 m/s at 3 m, stone: 1.4 m/s at 4.7 m
}
