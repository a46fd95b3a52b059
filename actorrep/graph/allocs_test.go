package graph

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
)

// mover moves actors and connections on circles, so that it all comes again.
type mover struct {
	*rig
	actors []*thing
	turn   int
	radius float64
}

const round = 64

func (m *mover) step() {
	m.turn++
	for i, a := range m.actors {
		angle := 2 * math.Pi * float64(m.turn+i) / round
		a.move(float64(i%40)*25+m.radius*math.Cos(angle), float64(i/40)*25+m.radius*math.Sin(angle), 0)
	}
	for i, c := range m.clients {
		angle := 2 * math.Pi * float64(m.turn+i*7) / round
		c.peer.SetViewpoint(500+m.radius*math.Cos(angle), 100+m.radius*math.Sin(angle), 0)
	}
	m.rig.step()
}

// TestAllocs checks that a Step needs no memory once it has seen everything: actors and connections that move within cells and
// from cell to cell. What a client doesn't see any more stays, so that actors aren't made anew.
func TestAllocs(t *testing.T) {
	for _, radius := range []float64{0, 0.5, 60, 400} {
		m := &mover{rig: newRig(t, &Graph{}, actorrep.Config{RelevantTimeout: time.Hour}), radius: radius}
		for range 400 {
			m.actors = append(m.actors, m.spawn(0, 0))
		}
		for range 4 {
			m.join(1 << 24)
		}
		for range 3 * round {
			m.step()
		}
		require.NotZero(t, m.clients[0].peer.Len())
		require.Zero(t, testing.AllocsPerRun(2*round, m.step), "radius %v", radius)
		m.g.grid.check(t)
	}
}
