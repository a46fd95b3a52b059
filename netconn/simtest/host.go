package simtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Program is what runs on a host.
type Program interface {
	// Tick is a frame; now is the host's own time of day. An error is a failure of the run.
	Tick(now time.Time) error
}

// Crasher may be implemented by a program that wants to know, for its checkers, that it is no more.
// It can't do anything about it.
type Crasher interface{ Crashed() }

// DefaultTick is the time between a program's ticks.
const DefaultTick = time.Second / 60

// Host is a machine in a world: it has an address, a clock of its own, and a program, unless it has crashed.
type Host struct {
	// User is the game's.
	User any

	world    *Simulation
	name     string
	index    int
	ip       netip.Addr
	server   bool
	program  Program
	boots    int
	interval time.Duration
	next     time.Duration // its next tick or boot
	clock    clock
	up, down netsim.Settings
	nextPort uint16
	sockets  []*Socket
	rng      Rand
}

// AddHost adds a host that boots with the first step. Servers are at 10.0.0.x, clients at 10.1.0.x behind a
// link of their own.
func (w *Simulation) AddHost(name string, server bool) *Host {
	h := &Host{world: w, name: name, index: len(w.hosts), server: server, interval: DefaultTick, nextPort: 10000}
	h.ip = netip.AddrFrom4([4]byte{10, byte(1 - b2i(server)), byte(h.index >> 8), byte(h.index + 1)})
	h.rng = w.Rand("host " + name)
	h.next = w.now + time.Duration(h.rng.Int64N(int64(h.interval))) // not all in step
	w.hosts = append(w.hosts, h)
	return h
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Name is the host's.
func (h *Host) Name() string { return h.name }

// Index is its place in Simulation.Hosts.
func (h *Host) Index() int { return h.index }

// IsServer reports whether it was added as one.
func (h *Host) IsServer() bool { return h.server }

// Addr is its address.
func (h *Host) Addr() netip.Addr { return h.ip }

// Simulation is where it is.
func (h *Host) Simulation() *Simulation { return h.world }

// Program is what runs on it; nil before it boots and after a crash.
func (h *Host) Program() Program { return h.program }

// Boots is how often it has booted.
func (h *Host) Boots() int { return h.boots }

// Rand is the host's randomness, for the game.
func (h *Host) Rand() Rand { return h.rng }

// Secrets is a reader of the secrets of this boot, for driver.Config.
func (h *Host) Secrets() io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], h.world.seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(h.index))
	binary.LittleEndian.PutUint64(seed[16:], uint64(h.boots))
	binary.LittleEndian.PutUint64(seed[24:], h.rng.Uint64())
	return rand.NewChaCha8(seed)
}

// SetTick changes the time between ticks.
func (h *Host) SetTick(interval time.Duration) { h.interval = max(time.Millisecond, interval) }

// SetNet changes the link of a client, in both directions. Servers have none: theirs is their clients'.
func (h *Host) SetNet(up, down netsim.Settings) error {
	for _, s := range []netsim.Settings{up, down} {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("simtest: %s: %w", h.name, err)
		}
	}
	h.up, h.down = up, down
	return h.world.net.changed(h)
}

// clock is a host's time of day: it runs at a rate of its own.
type clock struct {
	since  time.Duration // world time at the last change
	local  time.Duration // what it showed then
	skewed int64         // parts per million
}

func (c *clock) at(now time.Duration) time.Duration {
	d := now - c.since
	return c.local + d + time.Duration(int64(d)*c.skewed/1_000_000)
}

// Time is the time of day by the host's clock.
func (h *Host) Time() time.Time { return Epoch.Add(h.clock.at(h.world.now)) }

// Skew makes the clock run faster by so many parts per million, or slower.
func (h *Host) Skew(ppm int) {
	now := h.world.now
	h.clock = clock{now, h.clock.at(now), int64(ppm)}
}

// run is a tick, or the boot.
func (h *Host) run() {
	w := h.world
	if h.program == nil {
		w.net.deliver(h) // what came while it was down is lost
		h.boots++
		w.Counters.Boots++
		p, err := w.boot(h)
		if err != nil || p == nil {
			w.Failf("boot", "%s: %v", h.name, err)
			return
		}
		h.program = p
	}
	h.next = w.now + h.interval
	w.net.deliver(h)
	w.Counters.Ticks++
	if err := h.program.Tick(h.Time()); err != nil {
		w.Failf("program", "%s: %v", h.name, err)
	}
}

// Pause stops the host for a while; what arrives waits in its sockets.
func (h *Host) Pause(d time.Duration) {
	h.world.Counters.Pauses++
	h.next = max(h.next, h.world.now+d)
}

// Crash ends the program without a word, and boots it again after a while.
func (h *Host) Crash(d time.Duration) {
	if h.program == nil {
		return
	}
	h.world.Counters.Crashes++
	if c, ok := h.program.(Crasher); ok {
		c.Crashed()
	}
	h.program = nil
	for _, s := range h.sockets {
		s.close()
	}
	h.sockets = nil
	h.next = h.world.now + d
}

// Wake ends a pause, and boots a crashed host now.
func (h *Host) Wake() { h.next = min(h.next, h.world.now+h.interval) }

// Rebind gives the host's sockets new public addresses, as a NAT does that has forgotten it.
func (h *Host) Rebind() {
	h.world.Counters.Rebinds++
	for _, s := range h.sockets {
		h.world.net.rebind(s, netip.AddrPortFrom(h.ip, h.port()))
	}
}

// port is a port that was never used.
func (h *Host) port() uint16 {
	h.nextPort++
	return h.nextPort
}
