package stream

import (
	"errors"
	"flag"
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
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

var (
	explore     = flag.Uint64("explore", 0, "seeds that TestTogether plays")
	exploreFrom = flag.Uint64("from", 0, "the first of them")
)

// TestTogether: a connection over one of the links, whose ends differ in all settings that may differ, with streams, messages, blocks, bunches and channels
// of one bunch on it. A seed disturbs its path, clocks and games, moves the client to another address, and closes and opens channels amid that. What an end
// sends arrives as its kind promises, or its sender is told; once the faults are over all arrives; no end holds more than MaxMemory, and no channel stays;
// nobody ends the connection but who closes it, in whatever way, or both do, and that loses nothing that isn't listed.
func TestTogether(t *testing.T) {
	seeds := uint64(30)
	switch {
	case testing.Short():
		seeds = 10
	case os.Getenv("CI") != "":
		seeds = 60
	}
	if *explore > 0 {
		seeds = *explore
	}
	for seed := *exploreFrom; seed < *exploreFrom+seeds; seed++ {
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
	calm     bool          // the faults are over, and nothing new is sent
	parting  bool          // an end may end the connection
	timeout  time.Duration // the least of the ends'
	moves    bool          // the link finds a client that has another address, and begins anew while it connects
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
	closed   bool   // its game has closed the connection
	port     uint16 // beyond that of togetherAddr
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
		switch r.IntN(8) {
		case 7:
			s.MTU = 1096 + r.IntN(400)
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
	base := driver.Config{Protocol: protocol, Link: driver.PlainSalted{}, LoginTimeout: 2 * time.Hour, LingerTimeout: pick(r, 0, 2*time.Second, 20*time.Second)}
	switch r.IntN(3) {
	case 0:
		base.Link = driver.Netcode{ProtocolID: 1, Key: netcode.Key{1, 2, 3}}
	case 1:
		l := driver.PlainUnreal51()
		base.Link, w.moves = driver.PlainUnreal{Handshake: l.Handshake, LenientIDs: l.LenientIDs}, true
	}
	w.timeout = pick(r, 20*time.Second, 60*time.Second, 60*time.Second)
	if r.IntN(20) == 0 {
		w.timeout = time.Hour
	}
	if _, plain := base.Link.(driver.PlainUnreal); !plain && !protocol.Unreal && r.IntN(3) == 0 {
		base.Coding = netconn.Coding{Repairs: pick(r, 0.3, 1, 2), Adaptive: r.IntN(2) == 0}
	}
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
		w.ends[i] = &togetherEnd{w: w, i: i, tick: w.drawTick(), listener: Listen(streams.name(), w.streams)}
	}
	for i, e := range w.ends {
		if r.IntN(3) == 0 {
			e.memory = 256 << 10 << r.IntN(4)
			w.largest = min(w.largest, 20_000)
			if base.Coding != (netconn.Coding{}) {
				e.memory = max(e.memory, 1<<20) // it takes an eighth
			}
		}
		w.links[i], _ = netsim.NewLink(w.path(), 2*seed+uint64(i)) // it is valid
		cfg := base
		cfg.KeepAlive = pick(r, 0, 0, 20*time.Millisecond, time.Second)
		cfg.Timeout = w.timeout + pick(r, 0, w.timeout)
		cfg.MaxDatagram = pick(r, 0, 0, 0, -1, 1300)
		if r.IntN(3) == 0 {
			cfg.AckDelay = w.duration(0, 200*time.Millisecond)
		}
		if r.IntN(3) == 0 {
			cfg.ReorderWindow = w.duration(-1, 100*time.Millisecond)
		}
		w.log += fmt.Sprintf("end %d: %v %v %v %v %v\n", i, cfg.KeepAlive, cfg.Timeout, cfg.MaxDatagram, cfg.AckDelay, cfg.ReorderWindow)
		e.start(cfg)
	}
	w.drawFaults()
	w.log += fmt.Sprintf("%T %s max %d, linger %v, speed %d, ackdelay %v, %+v, %+v, kinds %v, opener %d, ticks %v and %v, MaxMemory %d and %d, window %d, blocks %d, speed %d, %+v\n",
		base.Link, base.Protocol.Name, base.Protocol.Bunch.MaxPacket, base.LingerTimeout, base.NetSpeed, base.AckDelay, base.Redundancy, base.Coding, w.kinds, w.opener, w.ends[0].tick, w.ends[1].tick, w.ends[0].memory, w.ends[1].memory, w.window, w.largest, w.speed, w.streams)
	return w
}

func (w *together) drawTick() time.Duration {
	if w.timeout > time.Minute {
		return pick(w.rng, 100*time.Millisecond, time.Second)
	}
	return pick(w.rng, time.Millisecond, 5*time.Millisecond, 16*time.Millisecond, 33*time.Millisecond, 100*time.Millisecond, time.Second)
}

func (e *togetherEnd) start(cfg driver.Config) {
	var err error
	cfg.Socket, cfg.Clock, cfg.MaxMemory, cfg.Rand = e, e.time, e.memory, rand.NewChaCha8([32]byte{byte(e.i), byte(e.w.rng.Uint32())})
	cfg.Channels = []channel.Type{e.listener.Type()}
	for k := range kinds {
		if k == streams {
			continue
		}
		cfg.Channels = append(cfg.Channels, channel.Type{Name: k.name(), ClientOpen: true, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return e.accept(k) }})
	}
	cfg.Joined = func(c *driver.Conn) { e.conn = c }
	cfg.Closed = func(c *driver.Conn, r netconn.CloseResult) {
		if c != nil && !c.Joined() && e.w.moves && r.Reason == "the client connected again" {
			return
		}
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
	r, end := w.rng, w.duration(min(3*time.Second, w.timeout/10), min(15*time.Second, w.timeout/4))
	add := func(at time.Duration, text string, do func()) { w.plan = append(w.plan, fault{at, text, do}) }
	for range r.IntN(4) {
		i, s := r.IntN(2), w.path()
		add(w.duration(0, end), fmt.Sprintf("path %d %+v", i, s), func() { _ = w.links[i].Set(s) })
	}
	for at := w.duration(0, 3*time.Second); at < end; at += w.duration(100*time.Millisecond, 4*time.Second) {
		d, e, way := w.duration(50*time.Millisecond, 2*time.Second), w.ends[r.IntN(2)], 1+r.IntN(3)
		if r.IntN(6) == 0 {
			d = w.duration(2*time.Second, min(w.timeout*13/20, w.timeout-end-8*time.Second))
		}
		for_ := func(what string, set func(on bool)) {
			add(at, fmt.Sprintf("%s %d for %v", what, e.i, d), func() { set(true) })
			add(at+d, "no longer", func() { set(false) })
		}
		switch r.IntN(8) {
		case 7:
			if w.moves && e.i == 0 {
				add(at, "another address", func() { e.port++ })
			}
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
			add(at, fmt.Sprintf("the clock of %d jumps by %v", e.i, by), func() {
				if w.ends[0].conn != nil && w.ends[1].conn != nil { // tokens expire
					e.ahead += by
				}
			})
		}
		at += d
	}
	if e := w.ends[r.IntN(2)]; r.IntN(2) == 0 {
		at := w.duration(0, end)
		add(at, fmt.Sprintf("close by %d", e.i), e.hangUp)
		if r.IntN(3) == 0 {
			add(at+w.duration(0, time.Second), "and by the other", w.ends[1-e.i].hangUpToo)
		}
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
		e.w.parting = true
		e.end()
	}
}

// hangUpToo ends what the other end has begun to end.
func (e *togetherEnd) hangUpToo() {
	if e.w.parting && e.conn != nil && !e.conn.Closed() {
		e.end()
	}
}

// end ends the connection, in order or at once.
func (e *togetherEnd) end() {
	how := e.w.rng.IntN(8)
	e.w.log += fmt.Sprintf("\tend %d ends it: %d\n", e.i, how)
	switch how {
	case 0:
		e.conn.Abort(e.d.Time(e.time()), "enough")
	case 1:
		_ = e.d.Close() // its socket is this test's
	case 2:
		e.d.Shutdown("enough")
	case 3:
		e.conn.CloseWithError(driver.ErrKicked)
	default:
		e.conn.CloseWithReason("enough")
	}
	e.closed = how > 1
}

func (w *together) heal() {
	w.calm, w.dark = true, [2]bool{}
	for i, e := range w.ends {
		e.deaf, e.idle, e.stands, e.tick, e.next = false, false, 0, 10*time.Millisecond, min(e.next, w.now)
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
	if !w.parting && !w.unanswered() && w.failure == "" {
		w.tidy(until)
	}
	if !w.unanswered() {
		w.ends[w.rng.IntN(2)].hangUp()
		until(2*time.Minute+2*w.timeout, func() string {
			if w.ends[0].result == nil || w.ends[1].result == nil {
				return "the end of the connection"
			}
			return ""
		})
	}
	if w.failure == "" {
		w.check()
	}
	w.parting = true
	for _, e := range w.ends {
		if e.d != nil {
			_ = e.d.Close() // its socket is this test's
		}
		_ = e.listener.Close()
	}
}

// tidy closes all channels: none stays.
func (w *together) tidy(until func(time.Duration, func() string)) {
	for _, e := range w.ends {
		for _, p := range e.parts {
			p.close()
		}
	}
	until(2*time.Minute, func() string {
		for i, e := range w.ends {
			if e.conn.Closed() {
				return ""
			}
			if n := e.conn.Table().Len(); n > 1 {
				return fmt.Sprintf("%d channels of end %d", n, i)
			}
		}
		return ""
	})
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
	for _, e := range w.ends {
		for _, p := range e.parts {
			w.checkPart(e, p)
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

// checkPart is what holds for what an end has sent by one part.
func (w *together) checkPart(e *togetherEnd, p part) {
	switch p := p.(type) {
	case *bunchesPart:
		listed := e.result != nil && slices.ContainsFunc(e.result.Undelivered, func(u channel.Undelivered) bool { return u.Index == p.index })
		ignored := slices.ContainsFunc(w.ends[1-e.i].parts, func(o part) bool { // its peer had closed the channel
			q, is := o.(*bunchesPart)
			return is && q.index == p.index && q.closing
		})
		if p.atEnd && p.out.got < p.out.sent && !listed && !ignored {
			w.failf("end %d: %d of %d bunches came on channel %d, and it lists %v, %v", e.i, p.out.got, p.out.sent, p.index, e.result.Undelivered, e.result)
		}
	case *streamPart:
		if q := p.peer; e.closed && e.result.Unacked == 0 && q != nil && !q.closed && !p.cut() && q.got < p.wrote {
			w.failf("end %d: %d of %d bytes came of stream %v, and it lists nothing", e.i, q.got, p.wrote, p.c.local)
		}
	}
}

// step is a tick of an end.
func (e *togetherEnd) step() {
	w := e.w
	l := w.links[1-e.i]
	for p, ok := l.Pop(w.now); ok; p, ok = l.Pop(w.now) {
		e.inbox = append(e.inbox, udp.Message{Buf: slices.Clone(p), Addr: w.ends[1-e.i].addr()})
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
		if !e.w.dark[e.i] && msgs[i].Addr == e.w.ends[1-e.i].addr() {
			e.w.links[e.i].Push(e.w.now, msgs[i].Buf)
		}
	}
	return len(msgs), nil
}

func (e *togetherEnd) addr() netip.AddrPort {
	return netip.AddrPortFrom(togetherAddr(e.i).Addr(), 7777+e.port)
}

func (e *togetherEnd) SendsWhole() bool                { return true }
func (e *togetherEnd) BatchSize() int                  { return 16 }
func (e *togetherEnd) LocalAddr() netip.AddrPort       { return e.addr() }
func (e *togetherEnd) SetReadDeadline(time.Time) error { return nil }
func (e *togetherEnd) Close() error                    { return nil }

// noRoom reports whether a send was told that nothing more may be sent now.
func noRoom(err error) bool {
	return slices.ContainsFunc([]error{message.ErrFull, message.ErrClosed, message.ErrBlocks, message.ErrNoChan, message.ErrBlockBig, channel.ErrReliableFull, channel.ErrClosed},
		func(e error) bool { return errors.Is(err, e) })
}
