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

// Program is the software that runs on a host: usually a driver, a world and the game.
type Program interface {
	// Tick runs a frame. now is the host's own time of day. An error is a failure of the run.
	Tick(now time.Time) error
}

// Crasher is an optional interface of a Program. Crashed is called when a fault has ended the program, so that its checkers know. The program
// can't send or save anything then.
type Crasher interface{ Crashed() }

// DefaultTick is the time between two ticks of a program unless Host.SetTick changes it.
const DefaultTick = time.Second / 60

// Host is a machine in a simulation. It has an address, a clock of its own and a program, which is nil after a crash.
type Host struct {
	// User is for the game.
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

// AddHost adds a host, which boots in the first step. Servers have the addresses 10.0.0.x. Clients have 10.1.0.x, each behind a link of its
// own.
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

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Index returns the host's index in Simulation.Hosts.
func (h *Host) Index() int { return h.index }

// IsServer reports whether the host was added as a server.
func (h *Host) IsServer() bool { return h.server }

// Addr returns the host's own address.
func (h *Host) Addr() netip.Addr { return h.ip }

// Simulation returns the simulation that the host is in.
func (h *Host) Simulation() *Simulation { return h.world }

// Program returns the host's program. It is nil before the host boots and after a crash.
func (h *Host) Program() Program { return h.program }

// Boots returns how often the host has booted.
func (h *Host) Boots() int { return h.boots }

// Rand returns the randomness for the game on this host.
func (h *Host) Rand() Rand { return h.rng }

// Secrets returns the reader of secrets for driver.Config.Rand. It differs from boot to boot.
func (h *Host) Secrets() io.Reader {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], h.world.seed)
	binary.LittleEndian.PutUint64(seed[8:], uint64(h.index))
	binary.LittleEndian.PutUint64(seed[16:], uint64(h.boots))
	binary.LittleEndian.PutUint64(seed[24:], h.rng.Uint64())
	return rand.NewChaCha8(seed)
}

// SetTick changes the time between two ticks of the program.
func (h *Host) SetTick(interval time.Duration) { h.interval = max(time.Millisecond, interval) }

// SetNet changes the link of a client in both directions. A server has no link: its packets take the links of its clients.
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

// Time returns the time of day by the host's clock.
func (h *Host) Time() time.Time { return Epoch.Add(h.clock.at(h.world.now)) }

// Skew makes the host's clock run ppm parts per million faster, or slower if ppm is negative.
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

// Pause stops the host's ticks for d. Datagrams that arrive wait in its sockets.
func (h *Host) Pause(d time.Duration) {
	h.world.Counters.Pauses++
	h.next = max(h.next, h.world.now+d)
}

// Crash ends the host's program at once, without closing its connections, and boots the host again after d.
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

// Wake ends a pause, and boots a crashed host at once.
func (h *Host) Wake() { h.next = min(h.next, h.world.now+h.interval) }

// Rebind gives the host's sockets new public addresses, as a NAT does when its mapping expires.
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
