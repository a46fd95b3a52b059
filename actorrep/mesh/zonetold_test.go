package mesh

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// shade is a component of a lamp.
type shade struct {
	actorrep.Base
	Color uint8 `net:""`
}

func registerShades(w *actorrep.World) error {
	return errors.Join(registerLamps(w), w.Register("Shade", (*shade)(nil)))
}

// TestZoneTells: what neighbours' players won't see, because a zone can't have it or the game has forgotten something, is told once, by Config.Failed or NewZone.
func TestZoneTells(t *testing.T) {
	var told []error
	world := actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 3}, Failed: func(err error) { told = append(told, err) }})
	require.NoError(t, registerShades(world))
	r := rig.New(t, 1, netsim.Settings{}, actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 3}}, registerShades) // the share of the other one
	line := r.Join(registerShades)
	p := newPost(t, 0, func(c *ZoneConfig) { c.World = world })
	p.world = world
	p.zone.Mirror(name(1), line.World)
	run := func() {
		for range 20 {
			r.Step()
			p.step()
		}
	}
	one := func(say string) {
		t.Helper()
		run()
		require.Len(t, told, 1, "%v", told)
		require.ErrorIs(t, told[0], ErrConfig)
		require.ErrorContains(t, told[0], say)
		told = nil
	}
	p.lit(50)
	theirs := &lamp{Body: Body{Epoch: 1}, X: 110}
	require.NoError(t, r.Server.Spawn(theirs))
	theirs.Light.Set(1)
	one("Config.IDs")
	for range 2 {
		l := &lamp{Body: Body{Epoch: 1}, X: 111}
		require.NoError(t, r.Server.Spawn(l))
		require.NoError(t, r.Server.SpawnIn(l, &shade{Color: 3}))
	}
	one(`"Shade" is one of components, here of a "Lamp"`)
	p.unknown = true
	for range 2 {
		require.NoError(t, r.Server.Spawn(&lamp{Body: Body{Epoch: 1}, X: 112}))
	}
	one(`makes no "Lamp"`)
	require.NoError(t, p.says(2, zoneMessage{kind: zoneGive, id: 3000, epoch: 1, class: "Whatever"})) // which may have any name
	run()
	require.Empty(t, told)

	bare := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, registerLamps(bare))
	cfg := p.zone.cfg
	cfg.World = bare
	_, err := NewZone(cfg)
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "Config.IDs")
}

// TestForgottenSteps: who steps one part and never another is told once, by Config.Failed; a player doesn't begin to travel before the first Step of its Server.
func TestForgottenSteps(t *testing.T) {
	for _, forgotten := range []string{"Zone", "Keeper", "Server", ""} {
		var told []error
		s := newSolo(t)
		world := actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: 0, Servers: 4}, Failed: func(err error) { told = append(told, err) }})
		s.zone.cfg.World = world
		p := newPair(t)
		server := p.servers[0]
		server.stepped = false
		require.ErrorIs(t, server.Travel(1, name(1)), ErrConfig)
		s.keeper.cfg.Server = server
		for range 3 * forgottenAfter {
			s.now += 10 * time.Millisecond
			if forgotten != "Keeper" {
				s.keeper.Step(s.now, nil)
			}
			if forgotten != "Zone" {
				s.zone.Step(s.now)
			}
			if forgotten != "Server" {
				server.Step(s.now)
			}
		}
		if forgotten == "" {
			require.Empty(t, told)
			require.NoError(t, server.Travel(1, name(1)))
			continue
		}
		require.Len(t, told, 1)
		require.ErrorIs(t, told[0], ErrConfig)
		require.ErrorContains(t, told[0], forgotten+".Step was never called")
	}
}
