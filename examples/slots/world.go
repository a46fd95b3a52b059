package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/salted"
)

const (
	protocolID = 0x51075
	step       = 5 * time.Millisecond
)

var serverAddr = netip.MustParseAddrPort("192.0.2.1:4000")

// world is a server, players, and a link each way between them.
type world struct {
	out     io.Writer
	now     time.Duration
	loss    float64
	rng     *rand.Rand
	server  *salted.Server
	players []*player

	flooding        bool
	asked, answered int // bytes of the flood
}

func newWorld(out io.Writer, seed uint64, loss float64) *world {
	w := &world{out: out, loss: loss, rng: rand.New(rand.NewPCG(seed, 0))}
	var err error
	w.server, err = salted.NewServer(salted.ServerConfig{ProtocolID: protocolID, Handler: host{w}, Slots: 2, Rand: w.secrets()})
	if err != nil {
		panic(err)
	}
	return w
}

// secrets is a source with a seed, so that a story can be told again. Games leave
// Rand alone.
func (w *world) secrets() io.Reader {
	var key [32]byte
	for i := range key {
		key[i] = byte(w.rng.Uint32())
	}
	return rand.NewChaCha8(key)
}

func (w *world) say(who, format string, args ...any) {
	fmt.Fprintf(w.out, "   %7.3f  %-7s %s\n", w.now.Seconds(), who, fmt.Sprintf(format, args...))
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += step {
		w.step()
	}
}

func (w *world) step() {
	for _, p := range w.players {
		for b, ok := p.up.Pop(w.now); ok; b, ok = p.up.Pop(w.now) {
			w.server.Receive(w.now, p.addr, b)
		}
	}
	w.server.Tick(w.now)
	for _, p := range w.players {
		for b, ok := p.down.Pop(w.now); ok; b, ok = p.down.Pop(w.now) {
			p.client.Receive(w.now, serverAddr, b)
		}
		p.client.Tick(w.now)
	}
}

// until lets time pass until something is so, at most for a time.
func (w *world) until(most time.Duration, what string, so func() bool) error {
	for end := w.now + most; !so(); {
		if w.now >= end {
			return fmt.Errorf("not within %v: %s", most, what)
		}
		w.run(step)
	}
	return nil
}

// connect connects a player and says if it got the slot it should.
func (w *world) connect(p *player, slot int) error {
	p.connect()
	if err := w.until(4*time.Second, p.name+" is connected", func() bool { return p.client.State() == salted.Connected }); err != nil {
		return err
	}
	if got, _ := p.client.Slot(); got != slot {
		return fmt.Errorf("%s is in slot %d, not %d", p.name, got, slot)
	}
	return nil
}

func (w *world) setLoss(percent float64) {
	w.say("world", "%.0f %% of the packets get lost from now on", percent)
	w.loss = percent
	for _, p := range w.players {
		p.setLoss(percent)
	}
}

// flood sends requests and responses that an attacker without the challenge can make.
func (w *world) flood(packets int) {
	w.flooding = true
	for i := range packets {
		p := make([]byte, salted.PaddedSize)
		p[4] = byte(1 + 2*(i%2)) // request, response
		binary.LittleEndian.PutUint64(p[5:], w.rng.Uint64())
		if i%2 == 1 {
			binary.LittleEndian.PutUint64(p[13:], w.rng.Uint64())
		}
		var id [8]byte
		binary.LittleEndian.PutUint64(id[:], protocolID)
		binary.LittleEndian.PutUint32(p, crc32.Update(crc32.ChecksumIEEE(id[:]), crc32.IEEETable, p[4:]))
		from := netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)})
		w.asked += len(p)
		w.server.Receive(w.now, netip.AddrPortFrom(from, uint16(1024+i)), p)
	}
	w.flooding = false
}

func (w *world) playerAt(addr netip.AddrPort) *player {
	for _, p := range w.players {
		if p.addr == addr {
			return p
		}
	}
	return nil
}

// host is the game on the server.
type host struct{ *world }

func (h host) Send(to netip.AddrPort, b []byte) {
	if p := h.playerAt(to); p != nil {
		p.down.Push(h.now, b)
	} else if h.flooding {
		h.answered += len(b)
	}
}

func (h host) Connected(slot int, info salted.ClientInfo) {
	h.say("server", "slot %d is %s's; %d of %d in use", slot, h.playerAt(info.Addr).name, h.server.Clients(), h.server.Slots())
}

func (h host) Payload(int, []byte) {}

func (h host) Disconnected(slot int, reason salted.Reason) {
	h.say("server", "slot %d is free: %s", slot, reason)
}
