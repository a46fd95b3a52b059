package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/examples/ebitengine/arena"
)

// frames is how many of the player there are to a second, two to each of the server's ticks.
const frames = 2 * arena.TickRate

// try plays for some seconds with a player of its own, who comes over UDP. Then all stand still, and the player must see every ship where
// the server has it; a minute is enough for that.
func try(s *arena.Server, seconds float64) error {
	to := s.Driver.LocalAddr()
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), to.Port())
	}
	c, err := arena.Dial(arena.ClientConfig{Addr: to.String(), Name: "Player"})
	if err != nil {
		return errors.Join(err, s.Driver.Close())
	}
	err = play(s, c, int(seconds*frames))
	return errors.Join(err, c.Driver.Close(), s.Driver.Close())
}

func play(s *arena.Server, c *arena.Client, length int) error {
	t := time.NewTicker(time.Second / frames)
	defer t.Stop()
	played, diff := 0, "nothing was played"
	for i := 0; i < length+60*frames && diff != ""; i++ {
		now := <-t.C
		in := arena.Input{}
		if c.Own() != nil && played < length {
			played++
			in = arena.Input{Turn: int8(played/20%3 - 1), Thrust: played/15%2 == 0, Fire: true}
		}
		s.Freeze(played == length)
		if i%2 == 0 {
			if err := s.Tick(now); err != nil {
				return err
			}
		}
		if err := c.Frame(now, in); err != nil {
			return err
		}
		if played == length {
			diff = difference(s, c)
		}
	}
	ships := 0
	for ship := range s.Ships {
		fmt.Printf("%-24s %4d hits\n", ship.Name, ship.Score)
		ships++
	}
	if diff != "" {
		return errors.New(diff)
	}
	_, err := fmt.Printf("PASS: the player sees all %d ships where the server has them\n", ships)
	return err
}

// difference says which ship the player sees otherwise than the server has it, or "".
func difference(s *arena.Server, c *arena.Client) string {
	seen := map[string]arena.Sprite{}
	for ship := range c.Ships {
		seen[ship.Name] = ship
	}
	for want := range s.Ships {
		got, ok := seen[want.Name]
		turn := math.Remainder(want.Angle-got.Angle, 2*math.Pi)
		if !ok || want.Pos.Distance(got.Pos) > 0.3 || math.Abs(turn) > 0.01 || want.Score != got.Score || want.Hull != got.Hull {
			return fmt.Sprintf("the player has %+v, the server %+v", got, want)
		}
	}
	return ""
}
