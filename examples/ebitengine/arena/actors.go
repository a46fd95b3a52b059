package arena

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interp"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/predict"
)

// Ship is a player's or a bot's, as everybody sees it.
type Ship struct {
	actorrep.Base
	Name  string `net:"initial,cap=24"`
	Color uint8  `net:"initial"`
	Body
	Thrust bool   `net:"simulated"`
	Hull   uint8  `net:"max=100"`
	Score  uint16 `net:""`

	player *player // on the server
	mine   *Client // on the client whose ship it is
}

// Simulate is a step of the ship's, on the server and on the client whose it is.
func (s *Ship) Simulate(in Input, dt time.Duration) {
	s.Thrust = in.Thrust
	if !s.Body.simulate(in, dt) {
		return
	}
	switch {
	case s.player != nil:
		s.player.server.fire(s.player)
	case s.mine != nil:
		s.mine.fired(s)
	}
}

// Bullet flies in a straight line, so that where and when it began is all there is to send.
type Bullet struct {
	actorrep.Base
	From    Vec           `net:"q=0.05,initial"`
	Vel     Vec           `net:"q=0.5,initial"`
	Born    time.Duration `net:"initial"` // by the server's clock
	Shooter netguid.GUID  `net:"initial"`

	pos Vec // on the server
}

// classes is what both ends register.
type classes struct {
	ships *predict.Class[*Ship, Input]
	past  *interp.Interpolator
	drawn *interp.Class[*Ship]
}

func register(w *actorrep.World, cfg predict.Config[*Ship, Input]) (c classes, err error) {
	if c.ships, err = predict.Register(w, "Ship", cfg); err != nil {
		return c, err
	}
	if err = w.Register("Bullet", (*Bullet)(nil)); err != nil {
		return c, err
	}
	if c.past, err = interp.New(w, interp.Config{}); err != nil {
		return c, err
	}
	c.drawn, err = interp.Register(c.past, interp.ClassConfig[*Ship]{})
	return c, err
}

// radians is what an angle in degrees is.
func radians(degrees float64) float64 { return degrees * math.Pi / 180 }
