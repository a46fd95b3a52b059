package screentest

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

const key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// game is a server that the test ticks, and a window that has joined it.
type game struct {
	*screen
	server *arena.Server
	ticker *time.Ticker
	trails [arena.MaxShips][]arena.Vec // of the last three seconds
}

func newGame(t *testing.T, bots int) *game {
	s := newScreen(t)
	program := buildWindow(t)
	t.Setenv(driver.KeyEnv, key)
	server, err := arena.Listen(arena.ServerConfig{Addr: "127.0.0.1:0", Bots: bots, Seed: 5})
	require.NoError(t, err)
	g := &game{screen: s, server: server, ticker: time.NewTicker(time.Second / arena.TickRate)}
	t.Cleanup(func() { g.ticker.Stop(); server.Driver.Close() })
	cmd := exec.Command(program, "-join", server.Driver.LocalAddr().String(), "-name", "Ann", "-fps", "30")
	cmd.Env = append(os.Environ(), "DISPLAY="+s.display)
	start(t, cmd)
	return g
}

// tick is one of the server's.
func (g *game) tick() {
	require.NoError(g.t, g.server.Tick(<-g.ticker.C))
	for ship := range g.server.Ships {
		trail := append(g.trails[ship.Color], ship.Pos)
		g.trails[ship.Color] = trail[max(0, len(trail)-3*arena.TickRate):]
	}
}

// until ticks on until what is asked for is so, and fails with the last word against it when it never is.
func (g *game) until(what string, check func() error) {
	var err error
	for range 60 * arena.TickRate {
		g.tick()
		if err = check(); err == nil {
			return
		}
	}
	g.keep(g.look(), "failed")
	require.NoError(g.t, err, what)
}

// own is the window's ship at the server, and its connection.
func (g *game) own() (own arena.Sprite, c *driver.Conn) {
	for ship, conn := range g.server.Ships {
		if conn != nil {
			own, c = ship, conn
		}
	}
	return own, c
}

// ships checks that each ship is on the screen within some pixels of where at says it is, and no other.
func (g *game) ships(limit float64, off func(ship arena.Sprite, b blob) float64) error {
	found, known := blobs(g.look()), [arena.MaxShips]bool{}
	for ship := range g.server.Ships {
		known[ship.Color] = true
		b := found[ship.Color]
		if b.n < 100 { // of some 230
			return fmt.Errorf("%s has %d pixels on the screen", ship.Name, b.n)
		}
		if d := off(ship, b); d > limit {
			return fmt.Errorf("%s is drawn around %.1f, %.1f, %.1f from %v", ship.Name, b.x, b.y, d, ship.Pos)
		}
	}
	for i, b := range found {
		if !known[i] && b.n > 0 {
			return fmt.Errorf("%d pixels of a ship that isn't there", b.n)
		}
	}
	return nil
}

func there(ship arena.Sprite, b blob) float64 { return math.Hypot(b.x-ship.Pos.X, b.y-ship.Pos.Y) }

// onTrail is how far what is drawn is from where the ship was at any time of the trail.
func (g *game) onTrail(ship arena.Sprite, b blob) float64 {
	best, trail := math.Inf(1), g.trails[ship.Color]
	for i := 1; i < len(trail); i++ {
		for t := 0.0; t <= 1; t += 0.1 {
			p := trail[i-1].Times(1 - t).Plus(trail[i].Times(t))
			best = min(best, math.Hypot(b.x-p.X, b.y-p.Y))
		}
	}
	return best
}

// TestScreen watches a game, then plays it with the keyboard, and at the end compares the picture of a world that
// stands still with the server's.
func TestScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a window")
	}
	g := newGame(t, 5)
	g.until("the window joins, and draws all ships", func() error { return g.ships(arena.Width, there) })
	g.until("moving ships are drawn where they have been", func() error { return g.ships(4, g.onTrail) })
	t.Run("keys", func(t *testing.T) {
		if _, err := exec.LookPath("xdotool"); err != nil {
			t.Skip("no xdotool here: apt-get install xdotool")
		}
		g.keys()
	})
	g.until("the own ship rests, and no ship hides another", func() error {
		var all []arena.Sprite
		for ship := range g.server.Ships {
			all = append(all, ship)
		}
		for i, a := range all {
			for _, b := range all[:i] {
				if d := a.Pos.Distance(b.Pos); d < 70 {
					return fmt.Errorf("%s and %s are %.0f apart", a.Name, b.Name, d)
				}
			}
		}
		own, _ := g.own()
		if trail := g.trails[own.Color]; own.Pos != trail[max(0, len(trail)-5)] {
			return fmt.Errorf("%s moves", own.Name)
		}
		return nil
	})
	g.server.Freeze(true)
	g.until("all ships are drawn where the server has them", func() error { return g.ships(1, there) })
	g.keep(g.look(), "still")
}

// keys flies and fires, and makes the network bad.
func (g *game) keys() {
	g.xdotool("mousemove", "480", "300")
	before, conn := g.own()
	g.xdotool("keydown", "Up", "keydown", "Left", "keydown", "space")
	g.until("the ship flies and turns", func() error {
		now, _ := g.own()
		if turned := math.Abs(math.Remainder(now.Angle-before.Angle, 2*math.Pi)); !now.Thrust || turned < 0.5 {
			return fmt.Errorf("it turned by %.2f", turned)
		}
		return nil
	})
	for range 3 {
		g.press("bracketright")
	}
	g.press("equal")
	g.until("the lag is felt at the server", func() error {
		if rtt := conn.Stats().LastRTT; rtt < 120*time.Millisecond {
			return fmt.Errorf("the round trip takes %v", rtt)
		}
		return nil
	})
	for range 7 * arena.TickRate {
		g.tick()
	}
	g.until("the graph has a history of round trips", func() error {
		if n := columns(g.look(), color.RGBA{220, 190, 60, 255}); n < 150 {
			return fmt.Errorf("%d columns of 160 are drawn", n)
		}
		return nil
	})
	g.keep(g.look(), "playing")
	g.xdotool("keyup", "space", "keyup", "Left", "keyup", "Up")
	g.press("0")
	g.until("and gone again", func() error {
		if rtt := conn.Stats().LastRTT; rtt > 120*time.Millisecond {
			return fmt.Errorf("the round trip takes %v", rtt)
		}
		return nil
	})
}

// press holds a key long enough for a frame to see it.
func (g *game) press(key string) {
	g.xdotool("keydown", key)
	for range 5 {
		g.tick()
	}
	g.xdotool("keyup", key)
	for range 5 {
		g.tick()
	}
}
