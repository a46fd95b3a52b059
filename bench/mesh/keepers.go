package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/netconn/kv/kvsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// bare is a server that has a zone by lease, and no actors.
type bare struct {
	h      *simtest.Host
	store  *kvsim.Store
	keeper *mesh.Keeper
	view   *kvsim.View
	heard  int
	cpu    time.Duration
	ticks  int
	begun  *bool
}

// Tick implements simtest.Program.
func (b *bare) Tick(now time.Time) error {
	in := b.view.Events()
	began := cputime.Thread()
	ops := b.keeper.Step(now.Sub(simtest.Epoch), in)
	if *b.begun {
		b.cpu += cputime.Thread() - began
		b.heard += len(in)
		b.ticks++
	}
	for _, op := range ops {
		b.view.Do(op)
	}
	return nil
}

// unused is what a zone without actors asks of its game.
type unused struct{}

func (unused) Make(string) mesh.Actor                   { return nil }
func (unused) Give(mesh.Actor, string) ([]byte, bool)   { return nil, false }
func (unused) Take(mesh.Actor, []byte) error            { return nil }
func (unused) Call(mesh.Actor, string, []byte)          {}
func (unused) Undelivered(id netguid.GUID, call []byte) {}

// keepers measures what the leases of many servers cost each of them, and the store.
func keepers(o options, c *curves) error {
	sizes := []int{16, 64, 128, 256}
	if o.quick {
		sizes = []int{4, 16}
	}
	fmt.Printf("leases: servers that hold a zone each and have no actors, lease 2 s, %d ticks a second\n", o.hz)
	t := table()
	fmt.Fprintln(t, "servers\tKeeper.Step, us a tick\tevents/s to each\tstore ops/s\tchanges told/s\t")
	for _, n := range sizes {
		all, store, w, err := newBares(n, o.hz)
		if err != nil {
			return err
		}
		begun := false
		for _, b := range all {
			b.begun = &begun
		}
		w.RunUntil(4 * time.Second)
		begun = true
		before := store.Counters
		w.RunUntil(8 * time.Second)
		if w.Failure() != nil {
			return fmt.Errorf("%d keepers: %v", n, w.Failure())
		}
		cpu, heard, ticks := time.Duration(0), 0, 0
		for i, b := range all {
			if b.keeper.Over() || b.keeper.Holds(fmt.Sprintf("z%d", i)) != 1 {
				return fmt.Errorf("of %d keepers, number %d hasn't its zone", n, i)
			}
			cpu, heard, ticks = cpu+b.cpu, heard+b.heard, ticks+b.ticks
		}
		ops := float64(store.Counters.Puts+store.Counters.Gets-before.Puts-before.Gets) / 4
		us := float64(cpu.Microseconds()) / float64(ticks)
		fmt.Fprintf(t, "%d\t%.1f\t%.0f\t%.0f\t%.0f\t\n", n, us, float64(heard)/4/float64(n), ops, ops*float64(n))
		c.add("CPU of the Keeper, us a tick", "servers with leases", "leases", float64(n), us)
	}
	return t.Flush()
}

func newBares(n, hz int) (all []*bare, store *kvsim.Store, w *simtest.Simulation, err error) {
	plan := mesh.Table{Cell: zoneSide, Columns: n}
	for i := range n {
		plan.Servers = append(plan.Servers, fmt.Sprintf("z%d", i))
	}
	programs := map[*simtest.Host]simtest.Program{}
	w = simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) { return programs[h], nil })
	h := w.AddHost("store", true)
	store = kvsim.New(h, kvsim.Trouble{})
	programs[h] = store
	for i := range n {
		b := &bare{h: w.AddHost(fmt.Sprintf("server%d", i), true), store: store}
		b.h.SetTick(time.Second / time.Duration(hz))
		id := fmt.Sprintf("s%d", i)
		zone, err := mesh.NewZone(mesh.ZoneConfig{ID: id, World: actorrep.NewServer(actorrep.Config{IDs: netguid.Share{Server: uint32(i), Servers: netguid.MaxServers}}), Game: unused{},
			Table: mesh.Table{Epoch: 1, Cell: zoneSide, Columns: 1, Servers: []string{id}}, Margin: margin, Hysteresis: hysteresis, Key: [32]byte{1}, Rand: b.h.Secrets(), ToServer: func(string, []byte) {}})
		if err != nil {
			return nil, nil, nil, err
		}
		b.keeper, err = mesh.NewKeeper(mesh.KeeperConfig{Zone: zone, Plan: plan, Zones: plan.Servers[i : i+1], Save: func(mesh.Actor) []byte { return nil }})
		if err != nil {
			return nil, nil, nil, err
		}
		b.view = store.View(b.h, b.keeper)
		programs[b.h] = b
		all = append(all, b)
	}
	return all, store, w, nil
}
