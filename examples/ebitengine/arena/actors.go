package arena

import (
	"math"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Ship is a player's or a bot's, as everybody sees it.
type Ship struct {
	actorrep.Base
	Name   string  `net:"initial,cap=24"`
	Color  uint8   `net:"initial"`
	Pos    Vec     `net:"q=0.05"`
	Angle  float32 `net:"rot=12"` // in degrees
	Thrust bool    `net:""`
	Hull   uint8   `net:"max=100"`
	Score  uint16  `net:""`

	player *player // on the server
	others *interpolation.Buffer[pose]
	mine   *Client // on the client whose ship it is
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

// moves and answers carry package prediction's messages. What is lost is made good by the next.
var (
	moves   = actorrep.ServerRPC(func(_ actorrep.Call, s *Ship, message []byte) error { return s.player.receive(message) }, actorrep.RateLimit(150, 60))
	answers = actorrep.ClientRPC(func(_ actorrep.Call, s *Ship, message []byte) error {
		if s.mine == nil {
			return nil
		}
		return s.mine.answer(message)
	})
)

func register(w *actorrep.World) error {
	if err := w.Register("Ship", (*Ship)(nil), actorrep.RPCs{"Moves": moves, "Answers": answers}); err != nil {
		return err
	}
	if err := w.Register("Bullet", (*Bullet)(nil)); err != nil {
		return err
	}
	return w.Register("Clock", (*Clock)(nil), actorrep.AlwaysRelevant(), actorrep.Priority(4))
}

// radians is what Ship.Angle says.
func radians(degrees float32) float64 { return float64(degrees) * math.Pi / 180 }

func readerOf(message []byte) *bitio.Reader { return bitio.NewReader(message, 8*len(message)) }
