package game

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/predict"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

// The field, in meters, and what is on it.
const (
	Size      = 400.0
	Sight     = 150.0 // how far drones and crates are seen
	range_    = 120.0 // of a shot
	droneSize = 3.0
	speed     = 14.0 // of a tank, a second
	turn      = 120.0
	reload    = 0.4
	magazine  = 20
	shellLife = time.Second
)

// Vec is a place or a speed.
type Vec struct{ X, Y float64 }

// Plus is the sum.
func (a Vec) Plus(b Vec) Vec { return Vec{a.X + b.X, a.Y + b.Y} }

// Times is the product.
func (a Vec) Times(f float64) Vec { return Vec{a.X * f, a.Y * f} }

// Distance is how far b is.
func (a Vec) Distance(b Vec) float64 { return math.Hypot(a.X-b.X, a.Y-b.Y) }

// direction is the unit vector of an angle in degrees.
func direction(degrees float64) Vec {
	return Vec{math.Cos(degrees * math.Pi / 180), math.Sin(degrees * math.Pi / 180)}
}

// Input is what a player does in a tick.
type Input struct {
	Drive, Turn int8
	Fire        bool
	Seen        interp.Seen // what time the player saw the others at
}

// Tank is a player's.
type Tank struct {
	actorrep.Base
	Name    string  `net:"initial,cap=24"`
	Pos     Vec     `net:"q=0.02,simulated" predict:"0.02,smooth" interp:"teleport=20"`
	Heading float64 `net:"rot=12,simulated" predict:"0.1" interp:""`
	Reload  float64 `predict:"0.01"`
	Ammo    uint8   `net:"owner,notify=OnAmmo"`

	server *Server // at the server
	client *Client // at its player's client
}

// Simulate is a tick of a tank's, at the server and its player's client.
func (t *Tank) Simulate(in Input, dt time.Duration) {
	s := dt.Seconds()
	t.Heading = math.Mod(t.Heading+turn*float64(in.Turn)*s+360, 360)
	p := t.Pos.Plus(direction(t.Heading).Times(speed * float64(in.Drive) * s))
	t.Pos = Vec{min(max(p.X, 0), Size), min(max(p.Y, 0), Size)}
	if t.Reload = max(0, t.Reload-s); !in.Fire || t.Reload > 0 {
		return
	}
	t.Reload = reload
	switch {
	case t.server != nil:
		t.server.fire(t, in.Seen)
	case t.client != nil:
		t.client.fire(t)
	}
}

// OnAmmo tells the player's game.
func (t *Tank) OnAmmo() {
	if t.client != nil {
		t.client.event("%d shells are left", t.Ammo)
	}
}

// Location is where relevancy looks from.
func (t *Tank) Location() (x, y, z float64) { return t.Pos.X, t.Pos.Y, 0 }

// Shell flies straight. It hits nothing: the shot was judged when it was fired.
type Shell struct {
	actorrep.Base
	Key  predict.Key `net:"owner"`
	From Vec         `net:"q=0.05,initial"`
	Vel  Vec         `net:"q=0.1,initial"`

	until time.Duration // at the server
	born  time.Duration // at a client: when it was shown first
}

// Drone is an enemy.
type Drone struct {
	actorrep.Base
	Pos Vec `net:"q=0.02" interp:"teleport=20"`

	vel Vec // at the server
}

// Location is where it is.
func (d *Drone) Location() (x, y, z float64) { return d.Pos.X, d.Pos.Y, 0 }

// hitbox is what of a drone can be hit.
func hitbox(_, seen *Drone, dst []rewind.Capsule) []rewind.Capsule {
	return append(dst, rewind.Sphere(rewind.Vec{seen.Pos.X, seen.Pos.Y, 0}, droneSize))
}

// Crate lies about until somebody takes it.
type Crate struct {
	actorrep.Base
	Pos   Vec  `net:"q=0.1"`
	Taken bool `net:"notify=OnTaken"`

	client *Client
}

// OnTaken tells the player's game.
func (c *Crate) OnTaken() {
	if c.client != nil {
		c.client.event("a crate is taken")
	}
}

// Location is where it is.
func (c *Crate) Location() (x, y, z float64) { return c.Pos.X, c.Pos.Y, 0 }

const maxName = 24 // bytes of a player's

// Row is a player's on the score board.
type Row struct {
	Name  string `net:"cap=24"`
	Score uint16
}

// Board is the score board, and where players chat.
type Board struct {
	actorrep.Base
	Rows fastarray.List[Row] `net:""`

	server *Server
	client *Client
}

// say is a line of a player's, heard everybody's.
var (
	say = actorrep.ServerRPC(func(c actorrep.Call, b *Board, line string) error {
		p, ok := c.Peer.User.(*player)
		if !ok {
			return nil
		}
		return hear.Call(b, p.tank.Name+": "+line)
	}, actorrep.Reliable, actorrep.AnyClient, actorrep.RateLimit(2, 10))
	hear = actorrep.MulticastRPC(func(_ actorrep.Call, b *Board, line string) error {
		if b.client != nil {
			b.client.event("heard %q", line)
			b.client.Heard = append(b.client.Heard, line)
		}
		return nil
	}, actorrep.Reliable)
)

// classes is what both ends register.
type classes struct {
	tanks      *predict.Class[*Tank, Input]
	past       *interp.Interpolator
	drawnTanks *interp.Class[*Tank]
	drawn      *interp.Class[*Drone]
}

func register(w *actorrep.World, cfg predict.Config[*Tank, Input]) (c classes, err error) {
	if c.tanks, err = predict.Register(w, "Tank", cfg, actorrep.AlwaysRelevant()); err != nil {
		return c, err
	}
	for name, class := range map[string]struct {
		actor   actorrep.Actor
		options []actorrep.ClassOption
	}{
		"Shell": {(*Shell)(nil), nil},
		"Drone": {(*Drone)(nil), []actorrep.ClassOption{actorrep.CullDistance(Sight), actorrep.UpdateFrequency(20)}},
		"Crate": {(*Crate)(nil), []actorrep.ClassOption{actorrep.CullDistance(Sight)}},
		"Board": {(*Board)(nil), []actorrep.ClassOption{actorrep.AlwaysRelevant(), actorrep.RPCs{"Say": say, "Hear": hear}}},
	} {
		if err = w.Register(name, class.actor, class.options...); err != nil {
			return c, err
		}
	}
	if c.past, err = interp.New(w, interp.Config{MaxRewind: 800 * time.Millisecond}); err != nil {
		return c, err
	}
	if c.drawnTanks, err = interp.Register(c.past, interp.ClassConfig[*Tank]{}); err != nil {
		return c, err
	}
	c.drawn, err = interp.Register(c.past, interp.ClassConfig[*Drone]{Hitboxes: hitbox})
	return c, err
}
