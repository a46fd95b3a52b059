package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

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

// mode is a way to run the game, and what it saw.
type mode struct {
	lag    time.Duration // of a player on another machine; negative: the host plays
	alone  bool          // nobody else could join
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

func (m *mode) boot(w *simtest.World) func(h *simtest.Host) (simtest.Program, error) {
	key := netcode.Key{1}
	dial := func(h *simtest.Host, s udp.Socket) (*game.Client, error) {
		now := uint64(simtest.Epoch.Add(w.Now()).Unix())
		token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: 1, Create: now, Expire: now + 60, Timeout: 5,
			Servers: []netip.AddrPort{netip.MustParseAddrPort(serverAddr)}, PrivateKey: key, Rand: h.Secrets()})
		if err != nil {
			return nil, err
		}
		m.client, err = game.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: s, Link: driver.Netcode{Token: token}}, "Ann", m.script.play)
		m.client.Event = func(what string) { m.saw = append(m.saw, what) }
		return m.client, err
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
		if m.alone {
			s, own = udp.Pair(netip.MustParseAddrPort(serverAddr), local)
		} else {
			s, own = udp.WithLocal(s, local)
		}
		if m.server, err = game.Listen("", driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: s, Link: driver.Netcode{Key: key}}, modeSeed); err != nil {
			return nil, err
		}
		m.server.Still()
		if err := m.server.Record(&m.tape); err != nil || m.lag >= 0 {
			return m.server, err
		}
		c, err := dial(h, own)
		return ends{c, m.server}, err
	}
}

const modeTime = time.Minute

const modeSeed = 14 // of the places: with it something is hit

func (m *mode) run() error {
	var boot func(h *simtest.Host) (simtest.Program, error)
	w := simtest.NewWorld(1, func(h *simtest.Host) (simtest.Program, error) { return boot(h) })
	boot = m.boot(w)
	w.AddHost("server", true)
	if m.lag >= 0 {
		set := netsim.Settings{LagMin: m.lag, LagMax: m.lag}
		if err := w.AddHost("Ann", false).SetNet(set, set); err != nil {
			return err
		}
	}
	w.RunUntil(modeTime)
	if f := w.Failure(); f != nil {
		return fmt.Errorf("%s: %s", f.Checker, f.Text)
	}
	if m.script.tick < scriptTicks+120 {
		return fmt.Errorf("%d ticks are too few", m.script.tick)
	}
	return errors.Join(append(m.script.errs, m.server.EndRecord())...)
}

// TestModes: the game sees the same happen, event by event, offline, as the host of a listen server, on a dedicated one at two distances, and, but for what is
// its player's alone, in the recording of each.
func TestModes(t *testing.T) {
	var offline []string
	for _, one := range []struct {
		name string
		mode
	}{
		{"offline", mode{lag: -1, alone: true}},
		{"listen server", mode{lag: -1}},
		{"dedicated", mode{lag: 5 * time.Millisecond}},
		{"dedicated far away", mode{lag: 80 * time.Millisecond}},
	} {
		m := &one.mode
		if err := m.run(); err != nil {
			t.Fatalf("%s: %v", one.name, err)
		}
		if offline == nil {
			offline = m.saw
			t.Log(strings.Join(m.saw, ", "))
			if hits, crates := begins(m.saw, "Ann has "), begins(m.saw, "a crate"); hits < 4 || crates < 1 {
				t.Errorf("%d hits and %d crates are too few to compare", hits, crates)
			}
		}
		if !slices.Equal(m.saw, offline) {
			t.Errorf("%s:\n%s\noffline:\n%s", one.name, strings.Join(m.saw, "\n"), strings.Join(offline, "\n"))
		}
		var replayed []string
		c, err := game.Watch(bytes.NewReader(m.tape.Bytes()), int64(m.tape.Len()))
		if err != nil {
			t.Fatal(err)
		}
		c.Event = func(what string) { replayed = append(replayed, what) }
		for now := simtest.Epoch; !c.Done(); now = now.Add(time.Second / 60) {
			if err := c.Tick(now); err != nil {
				t.Fatal(err)
			}
		}
		own := func(what string) bool { return strings.Contains(what, "shells are left") }
		if want := slices.DeleteFunc(slices.Clone(offline), own); !slices.Equal(replayed, want) {
			t.Errorf("the replay of %s:\n%s\nshould be\n%s", one.name, strings.Join(replayed, "\n"), strings.Join(want, "\n"))
		}
	}
}

func begins(all []string, begin string) (n int) {
	for _, s := range all {
		if strings.HasPrefix(s, begin) {
			n++
		}
	}
	return n
}
