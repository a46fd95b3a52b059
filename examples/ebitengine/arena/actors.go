package arena

import (
	"math"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
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
	others *interpolation.Buffer[pose]
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
	From    Vec          `net:"q=0.05,initial"`
	Vel     Vec          `net:"q=0.5,initial"`
	Born    uint32       `net:"initial"` // tick of the server
	Shooter netguid.GUID `net:"initial"`

	pos Vec // on the server
}

// Clock is the server's tick: the time that what comes with it is of.
type Clock struct {
	actorrep.Base
	Tick uint32 `net:""`
}

func register(w *actorrep.World, cfg predict.Config[*Ship, Input]) (*predict.Class[*Ship, Input], error) {
	ships, err := predict.Register(w, "Ship", cfg)
	if err != nil {
		return nil, err
	}
	if err := w.Register("Bullet", (*Bullet)(nil)); err != nil {
		return nil, err
	}
	return ships, w.Register("Clock", (*Clock)(nil), actorrep.AlwaysRelevant(), actorrep.Priority(4))
}

// radians is what an angle in degrees is.
func radians(degrees float64) float64 { return degrees * math.Pi / 180 }
