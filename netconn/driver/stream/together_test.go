package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestTogether: a connection with streams, messages, blocks and bunches on it, whose path, clocks and games a seed disturbs, and whose channels are
// closed and opened amid that. What an end sends arrives as its kind promises, or its sender is told; once the faults are over all arrives; no end holds
// more than MaxMemory; nobody ends the connection but who closes it, and that loses nothing that isn't listed.
func TestTogether(t *testing.T) {
	seeds := uint64(30)
	switch {
	case testing.Short():
		seeds = 10
	case os.Getenv("CI") != "":
		seeds = 60
	}
	for seed := range seeds {
		w := newTogether(seed)
		w.run()
		if w.failure != "" {
			t.Errorf("seed %d: %s\n%s", seed, w.failure, w.log)
		}
	}
}

// together is a client and a server in virtual time.
type together struct {
	rng      *rand.Rand
	now      time.Duration
	ends     [2]*togetherEnd // the client, the server
	links    [2]*netsim.Link // from each
	dark     [2]bool         // what each sends is lost
	plan     []fault         // by time
	flows    []*flow
	kinds    []kind // that are opened at the beginning
	opener   int    // the end that opens channels
	churn    bool   // channels are closed and opened
	window   int    // of messages
	largest  int    // block
	speed    int    // the kinds' pace
	streams  Config
	calm     bool // the faults are over, and nothing new is sent
	parting  bool // an end may end the connection
	failure  string
	log      string
	nextTurn time.Duration // of churn
}

type fault struct {
	at   time.Duration
	text string
	do   func()
}

// togetherEnd is one end: a driver, its socket and its game.
type togetherEnd struct {
	w        *together
	i        int
	d        *driver.Driver
	inbox    []udp.Message
	tick     time.Duration
	next     time.Duration
	ahead    time.Duration // what its clock shows, beside the time
	stands   time.Duration // what it shows when it stands; 0: it goes
	deaf     bool          // its game receives nothing
	idle     bool          // its game does nothing
	memory   int
	listener *Listener
	conn     *driver.Conn
	result   *netconn.CloseResult
	closed   bool // its game has closed the connection
	parts    []part
}

// part is one end of something on a channel of its own.
type part interface {
	tick(now time.Duration)
	receive()        // what has come
	over() bool      // its channel is gone
	pending() string // what its peer still waits for
	close()
}

func (w *together) failf(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf("%v: ", w.now) + fmt.Sprintf(format, args...)
	}
}

func (w *together) duration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// path is a bad network.
func (w *together) path() netsim.Settings {
	r := w.rng
	s := netsim.Settings{Lag: w.duration(0, 80*time.Millisecond)}
	for range r.IntN(3) {
		switch r.IntN(7) {
		case 0:
			s.Loss = float64(r.IntN(41))
		case 1:
			s.Jitter = w.duration(0, 100*time.Millisecond)
		case 2:
			s.Dup = float64(r.IntN(40))
		case 3:
			s.Order, s.OrderDelay = float64(r.IntN(40)), w.duration(time.Millisecond, 300*time.Millisecond)
		case 4:
			s.Loss, s.LossMinSize = float64(r.IntN(70)), 600
		case 5:
			s.Bandwidth, s.QueueDelay = float64(100_000+r.IntN(5_000_000)), w.duration(20*time.Millisecond, 3*time.Second)
		case 6:
			s.BurstLoss, s.BurstLength = float64(r.IntN(3)), 1+r.IntN(40)
		}
	}
	return s
}

func newTogether(seed uint64) *together {
	w := &together{rng: rand.New(rand.NewPCG(seed, 0x746f67))}
	r := w.rng
	protocol := pick(r, netconn.Bunchnet, netconn.Bunchnet, netconn.Unreal51, func() netconn.Protocol { return netconn.Unreal53(false) })()
	if r.IntN(3) == 0 {
		protocol.Bunch.MaxPacket = 256 + r.IntN(700)
	}
	w.opener = r.IntN(2)
	if protocol.FirstFree {
		w.opener = 1
	}
	base := driver.Config{Protocol: protocol, Link: driver.PlainSalted{}, LoginTimeout: time.Minute, LingerTimeout: pick(r, 0, 2*time.Second, 20*time.Second)}
	if r.IntN(2) == 0 {
		base.NetSpeed = 20_000 * (1 + r.IntN(50))
	}
	if r.IntN(3) == 0 {
		base.AckDelay, base.Redundancy.Copies = 20*time.Millisecond, r.IntN(4)
	}
	for k := range kinds {
		if r.IntN(4) > 0 {
			w.kinds = append(w.kinds, k)
		}
	}
	w.churn, w.window, w.largest, w.speed = r.IntN(2) == 0, 16<<r.IntN(7), 20_000+r.IntN(300_000), pick(r, 1, 10, 100)
	w.streams = Config{Window: InitialCredit << r.IntN(5), Buffer: 1 << (10 + r.IntN(8)), MaxPerConn: 200, Backlog: 200}
	for i := range w.ends {
		e := &togetherEnd{w: w, i: i, tick: w.drawTick(), listener: Listen(streams.name(), w.streams)}
		w.ends[i] = e
		if r.IntN(3) == 0 {
			e.memory = 256 << 10 << r.IntN(4)
			w.largest = min(w.largest, 20_000)
		}
		w.links[i], _ = netsim.NewLink(w.path(), 2*seed+uint64(i)) // it is valid
		e.start(base)
	}
	w.drawFaults()
	w.log = fmt.Sprintf("%+v, kinds %v, opener %d, ticks %v and %v, MaxMemory %d and %d, window %d, blocks %d, speed %d, %+v\n",
		base, w.kinds, w.opener, w.ends[0].tick, w.ends[1].tick, w.ends[0].memory, w.ends[1].memory, w.window, w.largest, w.speed, w.streams)
	return w
}

func (w *together) drawTick() time.Duration {
	return pick(w.rng, time.Millisecond, 5*time.Millisecond, 16*time.Millisecond, 33*time.Millisecond, 100*time.Millisecond, time.Second)
}

func (e *togetherEnd) start(cfg driver.Config) {
	var err error
	cfg.Socket, cfg.Clock, cfg.MaxMemory, cfg.Rand = e, e.time, e.memory, rand.NewChaCha8([32]byte{byte(e.i), byte(e.w.rng.Uint32())})
	cfg.Channels = []channel.Type{e.listener.Type()}
	for k := range streams {
		cfg.Channels = append(cfg.Channels, channel.Type{Name: k.name(), ClientOpen: true, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return e.accept(k) }})
	}
	cfg.Joined = func(c *driver.Conn) { e.conn = c }
	cfg.Closed = func(c *driver.Conn, r netconn.CloseResult) {
		if e.result = &r; c != nil && !e.w.parting {
			e.w.failf("end %d: %v", e.i, r)
		}
	}
	if e.i == 1 {
		e.d, err = driver.Listen("", cfg)
	} else {
		e.d, err = driver.Dial(togetherAddr(1).String(), cfg)
	}
	if err != nil {
		e.w.failf("end %d: %v", e.i, err)
	}
}

// drawFaults is what goes wrong, one after the other where it is silence, and who closes the connection amid it.
func (w *together) drawFaults() {
	r, end := w.rng, w.duration(3*time.Second, 15*time.Second)
	add := func(at time.Duration, text string, do func()) { w.plan = append(w.plan, fault{at, text, do}) }
	for range r.IntN(4) {
		i, s := r.IntN(2), w.path()
		add(w.duration(0, end), fmt.Sprintf("path %d %+v", i, s), func() { _ = w.links[i].Set(s) })
	}
	for at := w.duration(0, 3*time.Second); at < end; at += w.duration(100*time.Millisecond, 4*time.Second) {
		d, e, way := w.duration(50*time.Millisecond, 2*time.Second), w.ends[r.IntN(2)], 1+r.IntN(3)
		if r.IntN(6) == 0 {
			d = w.duration(2*time.Second, 40*time.Second)
		}
		for_ := func(what string, set func(on bool)) {
			add(at, fmt.Sprintf("%s %d for %v", what, e.i, d), func() { set(true) })
			add(at+d, "no longer", func() { set(false) })
		}
		switch r.IntN(7) {
		case 0, 1:
			for_(fmt.Sprintf("dark %d, beside", way), func(on bool) { w.dark = [2]bool{on && way&1 != 0, on && way&2 != 0} })
		case 2:
			add(at, fmt.Sprintf("pause %d for %v", e.i, d), func() { e.next = max(e.next, w.now+d) })
		case 3:
			for_("deaf", func(on bool) { e.deaf = on })
		case 4:
			for_("idle", func(on bool) { e.idle = on })
		case 5:
			d = min(d, 10*time.Second)
			for_("its clock stands:", func(on bool) { e.stands = time.Duration(b2i(on)) * (w.now + e.ahead) })
		case 6:
			by := pick(r, -time.Hour, -time.Second, 20*time.Second, 1000*time.Hour)
			add(at, fmt.Sprintf("the clock of %d jumps by %v", e.i, by), func() { e.ahead += by })
		}
		at += d
	}
	if e := w.ends[r.IntN(2)]; r.IntN(2) == 0 {
		add(w.duration(end/4, end), fmt.Sprintf("close by %d", e.i), e.hangUp)
	}
	add(end, "calm", w.heal)
	slices.SortStableFunc(w.plan, func(a, b fault) int { return int(a.at - b.at) })
	w.plan = w.plan[:slices.IndexFunc(w.plan, func(f fault) bool { return f.text == "calm" })+1]
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (e *togetherEnd) hangUp() {
	if !e.w.parting && e.conn != nil && !e.conn.Closed() {
		e.w.parting, e.closed = true, true
		e.conn.CloseWithReason("enough")
	}
}

func (w *together) heal() {
	w.calm, w.dark = true, [2]bool{}
	for i, e := range w.ends {
		e.deaf, e.idle, e.stands, e.tick = false, false, 0, 10*time.Millisecond
		w.links[i], _ = netsim.NewLink(netsim.Settings{Lag: 10 * time.Millisecond}, 1)
	}
}

// advance does what is next: a fault, or an end's tick.
func (w *together) advance() {
	e := w.ends[0]
	if w.ends[1].next < e.next {
		e = w.ends[1]
	}
	if len(w.plan) > 0 && w.plan[0].at <= e.next {
		f := w.plan[0]
		w.plan, w.now = w.plan[1:], max(w.now, f.at)
		w.log += fmt.Sprintf("\t%v: %s\n", w.now, f.text)
		f.do()
		return
	}
	w.now = max(w.now, e.next)
	e.next = w.now + e.tick
	e.step()
}

func (w *together) run() {
	until := func(limit time.Duration, what func() string) {
		for n, end := 0, w.now+limit; w.failure == ""; n++ {
			w.advance()
			if n%64 > 0 {
				continue
			}
			if left := what(); left == "" {
				return
			} else if w.now > end {
				w.failf("%v later still waits for %s", limit, left)
			}
		}
	}
	until(time.Hour, func() string {
		if !w.calm {
			return "the calm"
		}
		return ""
	})
	until(10*time.Minute, w.pending)
	if !w.unanswered() {
		w.ends[w.rng.IntN(2)].hangUp()
		until(2*time.Minute, func() string {
			if w.ends[0].result == nil || w.ends[1].result == nil {
				return "the end of the connection"
			}
			return ""
		})
	}
	if w.failure == "" {
		w.check()
	}
	for _, e := range w.ends {
		_ = e.d.Close() // its socket is this test's
		_ = e.listener.Close()
	}
}

// unanswered reports whether the client was told that nobody answered it in time.
func (w *together) unanswered() bool { return w.ends[0].conn == nil && w.ends[0].result != nil }

func (w *together) pending() string {
	for _, e := range w.ends {
		if w.parting || w.unanswered() {
			return ""
		}
		if e.conn == nil {
			return "a connection"
		}
		for _, p := range e.parts {
			if what := p.pending(); !p.over() && what != "" {
				return fmt.Sprintf("%s from end %d", what, e.i)
			}
		}
	}
	return ""
}

// check is what holds at the end of the connection.
func (w *together) check() {
	for _, e := range w.ends {
		for _, p := range e.parts {
			p.receive()
		}
	}
	for _, f := range w.flows {
		if f.kind == ordered && f.sent-f.got > f.unreceived {
			w.failf("%d messages of %d came, and %d are told of", f.got, f.sent, f.unreceived)
		}
		if by := w.ends[f.from]; f.kind == bunches && !w.churn && by.closed && by.result.Unacked == 0 && f.got < f.sent {
			w.failf("%d bunches of %d came before a close", f.got, f.sent)
		}
	}
}

// step is a tick of an end.
func (e *togetherEnd) step() {
	w := e.w
	l := w.links[1-e.i]
	for p, ok := l.Pop(w.now); ok; p, ok = l.Pop(w.now) {
		e.inbox = append(e.inbox, udp.Message{Buf: slices.Clone(p), Addr: togetherAddr(1 - e.i)})
	}
	now := e.time()
	e.d.TickDispatch(now)
	e.acceptStreams()
	if e.conn != nil && e.i == w.opener && e.parts == nil {
		for _, k := range w.kinds {
			e.open(k)
		}
	}
	if !e.idle {
		for _, p := range slices.Clone(e.parts) {
			if !p.over() {
				p.tick(e.d.Time(now))
			}
			if !e.deaf {
				p.receive()
			}
		}
	}
	if w.churn && !w.calm && e.i == w.opener && w.now > w.nextTurn && len(e.parts) > 0 {
		w.nextTurn = w.now + w.duration(0, 3*time.Second)
		e.parts[w.rng.IntN(len(e.parts))].close()
	}
	e.d.TickFlush(now)
	if e.conn != nil && !e.conn.Closed() {
		most := e.memory
		if most == 0 {
			most = []int{64 << 20, 8 << 20}[e.i]
		}
		if held := e.conn.Table().Held(); held > most {
			w.failf("end %d holds %d of %d bytes", e.i, held, most)
		}
	}
}

// time is what the end's clock shows.
func (e *togetherEnd) time() time.Time {
	shown := e.w.now + e.ahead
	if e.stands != 0 {
		shown = e.stands
	}
	return time.Unix(1_700_000_000, 0).Add(shown)
}

func togetherAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 7777)
}

// The end is its driver's socket.

func (e *togetherEnd) TryReadBatch(msgs []udp.Message) (int, error) {
	n := min(len(msgs), len(e.inbox))
	for i, m := range e.inbox[:n] {
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, m.Buf), m.Addr
	}
	e.inbox = e.inbox[n:]
	return n, nil
}

func (e *togetherEnd) ReadBatch(msgs []udp.Message) (int, error) { return e.TryReadBatch(msgs) }

func (e *togetherEnd) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		if !e.w.dark[e.i] {
			e.w.links[e.i].Push(e.w.now, msgs[i].Buf)
		}
	}
	return len(msgs), nil
}

func (e *togetherEnd) BatchSize() int                  { return 16 }
func (e *togetherEnd) LocalAddr() netip.AddrPort       { return togetherAddr(e.i) }
func (e *togetherEnd) SetReadDeadline(time.Time) error { return nil }
func (e *togetherEnd) Close() error                    { return nil }

// noRoom reports whether a send was told that nothing more may be sent now.
func noRoom(err error) bool {
	return slices.ContainsFunc([]error{message.ErrFull, message.ErrClosed, message.ErrBlocks, message.ErrNoChan, message.ErrBlockBig, channel.ErrReliableFull, channel.ErrClosed},
		func(e error) bool { return errors.Is(err, e) })
}
