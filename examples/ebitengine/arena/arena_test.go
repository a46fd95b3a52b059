package arena

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fromTrail is how far a point is from the line that a ship has drawn.
func fromTrail(p Vec, trail []Vec) float64 {
	best := math.Inf(1)
	for i := range trail {
		a, b := trail[max(0, i-1)], trail[i]
		d := Vec{b.X - a.X, b.Y - a.Y}
		if n := d.X*d.X + d.Y*d.Y; n > 0 && n < jump*jump {
			t := min(max(((p.X-a.X)*d.X+(p.Y-a.Y)*d.Y)/n, 0), 1)
			a = a.Plus(d.Times(t))
		}
		best = min(best, p.Distance(a))
	}
	return best
}

// drawn is what a client shows, by name.
func drawn(c *Client) map[string]Sprite {
	m := map[string]Sprite{}
	for s := range c.Ships {
		m[s.Name] = s
	}
	return m
}

// TestPlay plays over a bad network: the own ship answers in the same frame, the others are drawn where they really
// were not long ago, and once all stand still everybody sees them where they are.
func TestPlay(t *testing.T) {
	for seed := range uint64(4) {
		r := newRig(t, 4, seed)
		bad := netsim.Settings{LagMin: 90 * time.Millisecond, LagMax: 110 * time.Millisecond, Loss: 5}
		r.join("Ann", bad, 10*seed)
		r.join("Bob", bad, 10*seed+2)
		r.run(2)
		for _, c := range r.clients {
			for _, s := range c.Graph.All {
				require.Less(t, s.RTT, 300*time.Millisecond, "a spike that never was")
			}
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		felt := 0
		for i := range 60 * 20 {
			before := *r.clients[0].Own()
			if i%20 == 0 {
				for j := range r.inputs {
					r.inputs[j] = Input{Turn: int8(rng.IntN(3) - 1), Thrust: rng.IntN(2) == 0, Fire: rng.IntN(3) == 0}
				}
			}
			r.frame()
			own := r.clients[0].Own()
			if r.inputs[0].Thrust && own.Pos != before.Pos {
				felt++
			}
			for _, s := range drawn(r.clients[0]) {
				if !s.Own {
					require.Less(t, fromTrail(s.Pos, r.trails[s.Name]), 5.0, "%s at %v in frame %d", s.Name, s.Pos, i)
				}
			}
		}
		require.Greater(t, felt, 300, "the own ship moves in the frame of the input")
		r.inputs[0], r.inputs[1] = Input{}, Input{}
		r.server.Freeze(true)
		r.run(8)
		for _, c := range r.clients {
			seen := drawn(c)
			require.Len(t, seen, 6)
			for s := range r.server.Ships {
				require.Less(t, s.Pos.Distance(seen[s.Name].Pos), 0.3, s.Name)
				require.Less(t, math.Abs(math.Remainder(s.Angle-seen[s.Name].Angle, 2*math.Pi)), 0.01, s.Name)
				require.Equal(t, s.Score, seen[s.Name].Score, s.Name)
				require.Equal(t, s.Hull, seen[s.Name].Hull, s.Name)
			}
			last := c.Graph.Last()
			require.InDelta(t, 200, last.RTT.Milliseconds(), 60)
			require.Greater(t, last.In, 0.0)
			require.Less(t, c.Graph.Corrections(), c.ships.Counters().Client.Messages/20, "the prediction is mostly right")
		}
	}
}

// TestSimulate: whatever a player does, the ship stays in the field, and fires no faster than it may.
func TestSimulate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := Body{Pos: Vec{100, 100}}
	elapsed := time.Duration(0)
	for range 20000 {
		dt := time.Duration(1+rng.IntN(125)) * time.Millisecond
		elapsed += dt
		b.simulate(Input{int8(rng.IntN(3) - 1), rng.IntN(4) > 0, true}, dt)
		require.True(t, b.Pos.X >= Radius && b.Pos.X <= Width-Radius && b.Pos.Y >= Radius && b.Pos.Y <= Height-Radius, "%+v", b)
		require.True(t, b.Angle >= 0 && b.Angle <= 360, "%+v", b)
	}
	require.LessOrEqual(t, float64(b.Shots), elapsed.Seconds()/reloadTime+1)
	require.Greater(t, b.Shots, uint32(1000))
}

// TestHits: five bullets take a ship to pieces; it comes back, and the shooter has a point.
func TestHits(t *testing.T) {
	r := newRig(t, 2, 1)
	a, b := r.server.players[0], r.server.players[1]
	a.ship.Body, b.ship.Body = Body{Pos: Vec{100, 100}}, Body{Pos: Vec{200, 100}}
	r.server.players = r.server.players[:2]
	shoot := func() {
		r.server.fire(a)
		for range 15 {
			r.server.fly()
			r.server.now += tick
		}
		require.Empty(t, r.server.bullets)
	}
	for i := range 4 {
		shoot()
		require.EqualValues(t, 100-damage*(i+1), b.ship.Hull)
	}
	require.Zero(t, a.ship.Score)
	shoot()
	require.EqualValues(t, 100, b.ship.Hull)
	require.EqualValues(t, 1, a.ship.Score)
	require.NotEqual(t, Vec{200, 100}, b.ship.Pos)

	b.ship.Pos = Vec{100, 500}
	r.server.fire(a) // into the void
	for range bulletLife/tick + 2 {
		r.server.fly()
		r.server.now += tick
	}
	require.Empty(t, r.server.bullets)
}

// TestGhosts: an own bullet is drawn in the frame it is fired, and not a second time when the server's comes.
func TestGhosts(t *testing.T) {
	r := newRig(t, 0, 1)
	c := r.join("Ann", netsim.Settings{Lag: 50 * time.Millisecond}, 1)
	r.run(2)
	bullets := func() (n int) {
		for range c.Bullets {
			n++
		}
		return n
	}
	require.Zero(t, bullets())
	r.inputs[0].Fire = true
	r.frame()
	require.Equal(t, 1, bullets())
	r.inputs[0].Fire = false
	most, served := 0, 0
	for range 60 {
		r.frame()
		most, served = max(most, bullets()), max(served, len(r.server.bullets))
	}
	require.Equal(t, 1, most)
	require.Equal(t, 1, served)
}

// TestFull: the thirteenth ship is told why it can't come; one that leaves makes room.
func TestFull(t *testing.T) {
	r := newRig(t, MaxShips-1, 1)
	r.join("Ann", netsim.Settings{}, 1)
	r.run(1)
	late, err := Dial(ClientConfig{Addr: "127.0.0.1:7777", Name: "Late", Socket: r.hub.client(netsim.Settings{}, 9)})
	require.NoError(t, err)
	err = nil
	for i := 0; i < 240 && err == nil; i++ {
		r.frame()
		err = late.Frame(r.start.Add(r.now), Input{})
	}
	require.ErrorContains(t, err, errFull.Error())
	require.NoError(t, r.clients[0].Driver.Close())
	r.clients = nil
	r.run(1)
	require.Len(t, r.server.players, MaxShips-1)
	next := r.join("Next", netsim.Settings{}, 11)
	r.run(1)
	require.NotNil(t, next.Own())
}

// TestNames: a name that its ship has no room for is refused with the reason, and takes no place.
func TestNames(t *testing.T) {
	r := newRig(t, 1, 1)
	long, err := Dial(ClientConfig{Addr: "127.0.0.1:7777", Name: strings.Repeat("x", maxName+1), Socket: r.hub.client(netsim.Settings{}, 9)})
	require.NoError(t, err)
	err = nil
	for i := 0; i < 240 && err == nil; i++ {
		r.frame()
		err = long.Frame(r.start.Add(r.now), Input{})
	}
	require.ErrorContains(t, err, errName.Error())
	require.Len(t, r.server.players, 1)
	longest := strings.Repeat("y", maxName)
	c := r.join(longest, netsim.Settings{}, 11)
	r.run(1)
	require.Contains(t, drawn(c), longest)
}

// TestImpair holds what the keys ask for to what can be played.
func TestImpair(t *testing.T) {
	t.Setenv(driver.KeyEnv, "0000000000000000000000000000000000000000000000000000000000000001")
	c, err := Dial(ClientConfig{Addr: "127.0.0.1:7777", Name: "Ann"})
	require.NoError(t, err)
	defer c.Driver.Close()
	require.NoError(t, c.Impair(5*time.Second, 90))
	require.Equal(t, time.Second, c.Lag)
	require.Equal(t, 50.0, c.Loss)
	require.NoError(t, c.Impair(-1, -1))
	require.Zero(t, c.Lag)
	require.Zero(t, c.Loss)
}

// TestRun: a server for itself ends when it is told to.
func TestRun(t *testing.T) {
	s, err := Listen(ServerConfig{Addr: "127.0.0.1:0", Bots: 3})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	cancel()
	require.NoError(t, <-done)
	_, err = Listen(ServerConfig{Addr: "127.0.0.1:0", Bots: MaxShips})
	require.Error(t, err)
}
