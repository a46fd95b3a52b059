// Package modes plays the tank game with the same inputs in every mode, in virtual time: what happens must be the same to the game, event by event.
package modes

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const serverAddr = "10.0.0.1:7777"

// local is the host's address.
var local = netip.MustParseAddrPort("127.0.0.1:1")

// script is what the player does in every mode: after a while to get in step it drives round in curves, fires each half second and talks.
type script struct {
	tick int
	errs []error
}

const scriptTicks = 3000

func (s *script) play(c *game.Client) (in game.Input) {
	if s.tick++; s.tick == 600 || s.tick == 1500 {
		s.errs = append(s.errs, c.Say(fmt.Sprintf("this is tick %d", s.tick)))
	}
	if s.tick >= 300 && s.tick < scriptTicks {
		in = game.Input{Drive: 1, Turn: int8(s.tick/97%3 - 1), Fire: s.tick%30 == 0}
	}
	return in
}

// Mode is a way to run the game.
type Mode struct {
	Name  string
	Lag   time.Duration // one way, of a player on another machine; negative: the host plays
	Alone bool          // offline: nobody else could join
}

// All is the modes to compare, but for replays.
var All = []Mode{
	{Name: "offline", Lag: -1, Alone: true},
	{Name: "listen server", Lag: -1},
	{Name: "dedicated, 5 ms", Lag: 5 * time.Millisecond},
	{Name: "dedicated, 80 ms", Lag: 80 * time.Millisecond},
}

// run is a game under way, and what it saw.
type run struct {
	Mode
	server *game.Server
	client *game.Client
	script script
	saw    []string
	tape   bytes.Buffer
}

// ends is the ends that run on one machine.
type ends []interface{ Tick(now time.Time) error }

func (e ends) Tick(now time.Time) error {
	for _, end := range e {
		if err := end.Tick(now); err != nil {
			return err
		}
	}
	return nil
}

func (m *run) boot() func(h *simtest.Host) (simtest.Program, error) {
	key := netcode.Key{1}
	dial := func(h *simtest.Host, s udp.Socket) (*game.Client, error) {
		c, err := game.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: s, Link: driver.Netcode{Key: key}}, "Ann", m.script.play)
		if err != nil {
			return nil, err
		}
		c.Event = func(what string) { m.saw = append(m.saw, what) }
		m.client = c
		return c, nil
	}
	return func(h *simtest.Host) (simtest.Program, error) {
		if !h.IsServer() {
			return dial(h, h.Open())
		}
		var s udp.Socket
		s, err := h.Listen(7777)
		if err != nil {
			return nil, err
		}
		own := udp.Socket(nil)
		if m.Alone {
			s, own = udp.Pair(netip.MustParseAddrPort(serverAddr), local)
		} else {
			s, own = udp.WithLocal(s, local)
		}
		if m.server, err = game.Listen("", driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: s, Link: driver.Netcode{Key: key}}, seed); err != nil {
			return nil, err
		}
		m.server.Still()
		if err := m.server.Record(&m.tape); err != nil || m.Lag >= 0 {
			return m.server, err
		}
		c, err := dial(h, own)
		return ends{c, m.server}, err
	}
}

// gameTime is longer than the script takes.
const gameTime = time.Minute

const seed = 14 // of the places: with it something is hit

func (m *run) play() error {
	w := simtest.NewSimulation(1, m.boot())
	w.AddHost("server", true)
	if m.Lag >= 0 {
		set := netsim.Settings{LagMin: m.Lag, LagMax: m.Lag}
		if err := w.AddHost("Ann", false).SetNet(set, set); err != nil {
			return err
		}
	}
	w.RunUntil(gameTime)
	if f := w.Failure(); f != nil {
		return fmt.Errorf("%s: %s", f.Checker, f.Text)
	}
	if m.script.tick < scriptTicks+120 {
		return fmt.Errorf("%d ticks are too few", m.script.tick)
	}
	return errors.Join(append(m.script.errs, m.server.EndRecord())...)
}

// Play is what the player's game saw happen in a mode, and in the recording of that.
func (m Mode) Play() (saw, replayed []string, err error) {
	r := &run{Mode: m}
	if err := r.play(); err != nil {
		return nil, nil, err
	}
	c, err := game.Watch(bytes.NewReader(r.tape.Bytes()), int64(r.tape.Len()))
	if err != nil {
		return nil, nil, err
	}
	c.Event = func(what string) { replayed = append(replayed, what) }
	for now := simtest.Epoch; !c.Done(); now = now.Add(time.Second / 60) {
		if err := c.Tick(now); err != nil {
			return nil, nil, err
		}
	}
	return r.saw, replayed, nil
}

// Own reports whether an event is the player's own, which no recording has: its ammunition.
func Own(what string) bool { return strings.Contains(what, "shells are left") }
