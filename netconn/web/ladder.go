package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/internal/readwait"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// LadderConfig has the settings of DialBest. It needs UDP, URL or WebSocketURL.
type LadderConfig struct {
	// UDP is the server's UDP address. The server's socket must be one of Answer. Default zero: UDP isn't tried.
	UDP netip.AddrPort
	// URL is that of the Server, as for Dial. Default "": WebTransport isn't tried.
	URL string
	// WebSocketURL is the URL for WebSocket, if it differs. A page for local play needs it, since its browser trusts URL's certificate for
	// WebTransport only. Default URL; WebSocket isn't tried if both are "".
	WebSocketURL string
	// Ways lists the ways to try, in this order. Default UDP, WebTransport, WebSocket. Those without an address or URL are left out.
	Ways []Way
	// HeadStart is how long a way is tried before the next one starts too. When a way fails, the next one starts at once. Default 300 ms.
	HeadStart time.Duration
	// Last is the ladder of the dial before. Probes may be answered and nothing else come through: when the server has sent nothing by the way that Last
	// chose, this way is tried after all others. Default nil: Ways are tried in their order.
	Last *Ladder
	// Token is the connect token of the driver's Netcode link. With it the connection goes on when its path dies: after Silence the ladder makes another session
	// with the Server, which must have been told of its driver (Server.Tell), and the driver notices nothing but lost packets. Default nil: the
	// connection stays on the way that was chosen first.
	Token netcode.Token
	// Silence is how long nothing arrives from the server before that. Where packets are rare it is three times the longest time between two packets of the
	// last seconds, if that is longer. Default 300 ms, as a Redialer's.
	Silence time.Duration
	// Dial has the settings of WebTransport and WebSocket. Its Way is ignored.
	Dial DialConfig
}

// url is where a way goes.
func (c LadderConfig) url(w Way) string {
	if w == WebSocket {
		return c.WebSocketURL
	}
	return c.URL
}

// Attempt is the result of trying one way.
type Attempt struct {
	Way  Way
	Took time.Duration // from its start to its answer or failure
	Err  error         // nil for the chosen way; ErrLost when another way was quicker
}

// ErrLost is the Err of an Attempt that was given up because another way had answered.
var ErrLost = errors.New("web: another way answered before")

// Ladder is a client's socket that uses the first way that answers; see DialBest.
type Ladder struct {
	wait *readwait.Wait // of reads while none has answered
	sent mailbox.Outbox // what was written meanwhile
	to   netip.AddrPort
	// whole: the socket sends no fragments, whatever the way.
	whole bool
	ways  []Way // in the order that they are tried in
	stop  context.CancelFunc
	done  sync.WaitGroup
	heard atomic.Bool // something came by the chosen way
	late  sieve       // of answers to probes
	mover mover

	mu       sync.Mutex
	chosen   udp.Socket // nil until one has answered
	err      error      // of all, or net.ErrClosed
	way      Way
	from     Way // the one before
	attempts []Attempt
	why      *[]Attempt // those of the climb that way was chosen in
}

// DialBest tries several ways to reach a server, each HeadStart after the one before, and keeps the first that answers. Happy Eyeballs (RFC 8305) does
// the same for addresses. DialBest returns at once; until a way has answered, what is sent waits. Each way is tried for 10 s. When none answers, reads
// return ErrNoSession with the reasons. When ctx is done, the attempts and the session end.
//
// A path may stop working later. With LadderConfig.Token the connection then goes on by another session. Where that isn't possible, for example because the
// server has forgotten the connection, driver/session's Redialer dials again: call DialBest in its dial function.
func DialBest(ctx context.Context, cfg LadderConfig) (*Ladder, error) {
	cfg.HeadStart = cmp.Or(cfg.HeadStart, 300*time.Millisecond)
	if cfg.Ways == nil {
		cfg.Ways = []Way{UDP, WebTransport, WebSocket}
	}
	cfg.WebSocketURL = cmp.Or(cfg.WebSocketURL, cfg.URL)
	ways := slices.DeleteFunc(slices.Clone(cfg.Ways), func(w Way) bool { return w == UDP && !cfg.UDP.IsValid() || w != UDP && cfg.url(w) == "" })
	switch {
	case cfg.HeadStart < 0:
		return nil, fmt.Errorf("%w: HeadStart is %v; it must be positive, or 0 for the default", ErrConfig, cfg.HeadStart)
	case cfg.Silence < 0:
		return nil, fmt.Errorf("%w: Silence is %v; it must be positive, or 0 for the default", ErrConfig, cfg.Silence)
	case len(ways) == 0:
		return nil, fmt.Errorf("%w: LadderConfig needs UDP, URL or WebSocketURL", ErrConfig)
	}
	if cfg.Last != nil {
		ways = cfg.Last.behind(ways)
	}
	path, err := cfg.pathID()
	if err != nil {
		return nil, err
	}
	for _, w := range ways {
		cfg.Dial.Way = w
		if _, err := cfg.Dial.check(cfg.url(w)); w != UDP && err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	l := &Ladder{wait: readwait.New(), sent: mailbox.NewOutbox(cmp.Or(cfg.Dial.SendBuffer, sendBuffer)), stop: stop, whole: true, ways: ways}
	l.mover.begin(cfg.Token != nil && slices.ContainsFunc(ways, func(w Way) bool { return w != UDP }), path, cfg.Silence)
	var bare bareSocket
	if slices.Contains(ways, UDP) {
		bare = listenFor(cfg.UDP)
		l.whole = bare.err != nil || udp.SendsWhole(bare.socket)
	}
	l.done.Go(func() {
		if err := l.climb(ctx, ctx, ways, cfg, bare, newProbe(probeAsk), l.choose); err != nil {
			l.fail(err)
			return
		}
		l.watch(ctx, ways, cfg)
	})
	return l, nil
}

// behind returns ways in the order for the next dial: if nothing came by the one that this ladder chose, it goes behind the others, in the ladder's order.
func (l *Ladder) behind(ways []Way) []Way {
	way, ok := l.Way()
	if !ok || l.heard.Load() {
		return ways
	}
	place := func(w Way) int {
		if w == way {
			return len(l.ways)
		}
		return slices.Index(l.ways, w)
	}
	slices.SortStableFunc(ways, func(a, b Way) int { return cmp.Compare(place(a), place(b)) })
	return ways
}

// rung is an attempt and what it led to.
type rung struct {
	Attempt
	socket udp.Socket
}

// climb asks by one way after the other until one answers and is chosen, or until trying is done. The sessions end when ctx is.
func (l *Ladder) climb(ctx, trying context.Context, ways []Way, cfg LadderConfig, bare bareSocket, ask []byte, choose func(rung) bool) error {
	defer bare.close() // unless it was tried
	trying, lost := context.WithCancel(trying)
	defer lost()
	chosen := false
	rungs := make(chan rung)
	var noted []Attempt
	under, failed := 0, []error{ErrNoSession}
	next := time.NewTimer(0)
	defer next.Stop()
	for under > 0 || len(ways) > 0 {
		select {
		case <-next.C:
			if len(ways) == 0 {
				continue
			}
			way, mine := ways[0], bareSocket{}
			ways = ways[1:]
			under++
			if way == UDP {
				mine, bare = bare, mine
			}
			l.done.Go(func() {
				began := time.Now()
				s, err := l.try(ctx, trying, way, cfg, mine, slices.Clone(ask))
				rungs <- rung{Attempt{way, time.Since(began), err}, s}
			})
			next.Reset(cfg.HeadStart)
		case r := <-rungs:
			under--
			if r.Err == nil && (chosen || !choose(r)) {
				_ = r.socket.Close() // another one was quicker
				r.Err = ErrLost
			}
			l.note(r.Attempt, &noted)
			if r.Err == nil {
				chosen, ways = true, nil
				lost()
				continue
			}
			failed = append(failed, fmt.Errorf("%v: %w", r.Way, r.Err))
			next.Reset(0)
		case <-trying.Done():
			ways = nil
			if under == 0 {
				break
			}
			r := <-rungs
			under--
			if r.socket != nil {
				_ = r.socket.Close()
				r.Err = ErrLost
			}
			l.note(r.Attempt, &noted)
			failed = append(failed, trying.Err())
		}
	}
	if chosen {
		return nil
	}
	return errors.Join(failed...)
}

// choose takes the way that has answered, unless another one was.
func (l *Ladder) choose(r rung) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chosen != nil || l.err != nil {
		return false
	}
	l.chosen, l.way = r.socket, r.Way
	_ = r.socket.SetReadDeadline(l.wait.Deadline()) // a socket that has failed says so when it is read
	l.wait.Signal()
	return true
}

// fail has reads return an error, the first one unless it is closed later.
func (l *Ladder) fail(err error) {
	l.mu.Lock()
	if l.err == nil || err == net.ErrClosed {
		l.err = err
	}
	l.mu.Unlock()
	l.wait.Signal()
}

// failed is the error that all ways have failed with, or nil.
func (l *Ladder) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// maxAttempts bounds what Attempts returns.
const maxAttempts = 32

// note keeps the result of an attempt, also in all of its climb.
func (l *Ladder) note(a Attempt, climb *[]Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*climb = append(*climb, a)
	if a.Err == nil {
		l.why = climb
	}
	if len(l.attempts) == maxAttempts {
		l.attempts = slices.Delete(l.attempts, 0, 1)
	}
	l.attempts = append(l.attempts, a)
}

// now is the socket that was chosen, or nil.
func (l *Ladder) now() udp.Socket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chosen
}

// Way returns the way that was chosen. ok is false until one has answered. Any goroutine may call it.
func (l *Ladder) Way() (w Way, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.way, l.chosen != nil
}

// Attempts returns the results of the ways that have answered or failed, in that order, the last 32. They show why Way was chosen. Any goroutine may call it.
func (l *Ladder) Attempts() []Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.attempts)
}

// String returns the way that was chosen, and why: "websocket after 734 ms; not udp: nothing answers at ...; not webtransport: ...". After a move it is of that:
// "websocket after 160 ms, move 1, from udp; not webtransport: ...". It is for a log, and for inspect.Config.Name. Any goroutine may call it.
func (l *Ladder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, all := "no way yet", l.attempts
	var not string
	if l.chosen != nil {
		text, all = l.way.String(), nil
	}
	if l.why != nil {
		all = *l.why
	}
	for _, a := range all {
		switch {
		case a.Err == nil && a.Way == l.way:
			text = fmt.Sprintf("%v after %d ms", a.Way, a.Took.Milliseconds())
		case a.Err == nil || errors.Is(a.Err, ErrLost):
			not += fmt.Sprintf("; not %v: it hadn't answered by then", a.Way)
		default:
			not += fmt.Sprintf("; not %v: %v", a.Way, a.Err)
		}
	}
	if n := l.Moved(); n > 0 {
		text += fmt.Sprintf(", move %d, from %v", n, l.from)
	}
	return text + not
}

// try comes by one way, until trying is done. The session lives until ctx is.
func (l *Ladder) try(ctx, trying context.Context, way Way, cfg LadderConfig, bare bareSocket, ask []byte) (udp.Socket, error) {
	if way == UDP {
		if bare.err != nil {
			return nil, bare.err
		}
		return probe(trying, ask, cfg.UDP, bare.socket, "a firewall, or the server's socket isn't one of web.Answer")
	}
	d := cfg.Dial
	d.Way = way
	c, err := Dial(ctx, cfg.url(way), d)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.settled:
		err = c.in.Failed()
	case <-trying.Done():
		err = ErrLost
	}
	if err != nil {
		_ = c.Close() // err is the one to return
		return nil, err
	}
	return probe(trying, ask, cfg.UDP, c, "a session began, and the network or the server lets nothing else through")
}

// Close ends the attempts and the session.
func (l *Ladder) Close() error {
	l.fail(net.ErrClosed)
	var err error
	if s := l.now(); s != nil {
		err = s.Close() // with its last words
	}
	l.mover.settle(nil, &l.done)
	l.stop()
	l.done.Wait()
	return err
}

// LocalAddr implements udp.Socket.
func (l *Ladder) LocalAddr() netip.AddrPort {
	if s := l.now(); s != nil {
		return s.LocalAddr()
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
}

// SendsWhole is for the function of that name.
func (l *Ladder) SendsWhole() bool { return l.whole }

// BatchSize implements udp.Socket.
func (l *Ladder) BatchSize() int { return mailbox.BatchSize }

// SetReadDeadline implements udp.Socket.
func (l *Ladder) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait.SetDeadline(t)
	if l.chosen != nil {
		return l.chosen.SetReadDeadline(t)
	}
	return nil
}

// sift reads the chosen socket. Answers to probes that come late are taken out: the game never sees them, and they don't count as heard.
func (l *Ladder) sift(s udp.Socket, msgs []udp.Message, wait bool) (read, left int, err error) {
	read, err = readOnce(s, msgs, wait)
	left = keep(msgs[:read], func(p []byte) bool { return !isProbe(p, probeAnswer) })
	if left > 0 && !l.heard.Load() {
		l.heard.Store(true)
	}
	return read, left, l.mover.noted(l, s, left > 0, err)
}

// TryReadBatch implements udp.Socket.
func (l *Ladder) TryReadBatch(msgs []udp.Message) (int, error) {
	s := l.now()
	if s == nil {
		return 0, l.failed()
	}
	n, err := l.late.tryRead(l, s, msgs)
	if n == 0 && err == nil && l.mover.broken(s) {
		err = l.failed()
	}
	return n, err
}

// ReadBatch implements udp.Socket.
func (l *Ladder) ReadBatch(msgs []udp.Message) (int, error) {
	for {
		s := l.now()
		if s != nil && !l.mover.broken(s) { // the deadline is its own
			n, err := l.late.read(l, s, msgs)
			if n > 0 || err != nil && l.now() == s {
				return n, err
			}
			continue // it has another one, or has broken
		}
		if n, err := l.wait.Read(func() (int, error) { // until there is another one
			if l.now() != s {
				return 1, nil
			}
			return 0, l.failed()
		}); n == 0 {
			return 0, err
		}
	}
}

// WriteBatch implements udp.Socket. What was written before a way had answered is sent first.
func (l *Ladder) WriteBatch(msgs []udp.Message) (int, error) {
	s := l.now()
	if s == nil {
		for i := range msgs {
			l.to = msgs[i].Addr
			l.sent.Push(msgs[i].Buf)
		}
		return len(msgs), l.failed()
	}
	for p := l.sent.Pop(nil); p != nil; p = l.sent.Pop(nil) {
		_, _ = s.WriteBatch([]udp.Message{{Buf: p, Addr: l.to}}) // lost as any datagram
	}
	n, err := s.WriteBatch(msgs)
	if err != nil && l.mover.noted(l, s, false, err) == nil {
		return len(msgs), nil // lost as any datagram
	}
	return n, err
}

var _ udp.Socket = (*Ladder)(nil)

// A probe asks whether datagrams come to a server and back, by UDP and by a session; no link's packets begin as it does.
const (
	probeAsk, probeAnswer byte = 0xf5, 0xf6
	// probeMove also asks, by a session that is to carry a connection: its path id is behind the nonce.
	probeMove     byte = 0xf7
	probeName          = "bunchnet"
	probeNonce         = 16
	probeBytes         = 1078 // of the kind, the name, a nonce, a path id and zeros: as many as netcode's first packet, which not every path carries
	probeInterval      = 100 * time.Millisecond
)

// isProbe reports whether a datagram is a probe of a kind.
func isProbe(p []byte, kind byte) bool {
	return len(p) == probeBytes && p[0] == kind && string(p[1:1+len(probeName)]) == probeName
}

// pathIn is the path id in a probe.
func pathIn(p []byte) (id netcode.PathID) {
	copy(id[:], p[1+len(probeName)+probeNonce:])
	return id
}

// newProbe returns a probe with a nonce of zeros.
func newProbe(kind byte) []byte {
	p := make([]byte, probeBytes)
	p[0] = kind
	copy(p[1:], probeName)
	return p
}

// bareSocket is a socket of UDP, or why there is none.
type bareSocket struct {
	socket udp.Socket
	err    error
}

// close closes it if there is one.
func (b *bareSocket) close() {
	if b.socket != nil {
		_ = b.socket.Close() // nothing was sent
	}
}

// listenFor opens a socket for a server.
func listenFor(server netip.AddrPort) bareSocket {
	local := ":0"
	if server.Addr().IsLoopback() { // so that no firewall asks
		local = net.JoinHostPort(server.Addr().String(), "0")
	}
	s, err := udp.Listen(local, udp.Config{Whole: true})
	if err != nil {
		return bareSocket{err: err}
	}
	return bareSocket{socket: s}
}

// probe asks by a socket until the server answers. It closes a socket by which nothing answers, and hint says what that may be.
func probe(ctx context.Context, ask []byte, server netip.AddrPort, s udp.Socket, hint string) (udp.Socket, error) {
	if _, err := rand.Read(ask[1+len(probeName):][:probeNonce]); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	in := make([]udp.Message, s.BatchSize())
	for i := range in {
		in[i].Buf = make([]byte, mailbox.MaxDatagram)
	}
	var next time.Time // when it asks again, whatever comes meanwhile
	for end := time.Now().Add(dialTime); time.Now().Before(end); {
		if ctx.Err() != nil {
			return nil, errors.Join(ErrLost, s.Close())
		}
		if now := time.Now(); !now.Before(next) {
			next = now.Add(probeInterval)
			if _, err := s.WriteBatch([]udp.Message{{Buf: ask, Addr: server}}); err != nil && !udp.IsTemporary(err) {
				return nil, errors.Join(err, s.Close())
			}
			if err := s.SetReadDeadline(next); err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
		n, err := s.ReadBatch(in)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !udp.IsTemporary(err) {
			return nil, errors.Join(err, s.Close())
		}
		for _, m := range in[:n] {
			if p := m.Data(); m.Addr == server && isProbe(p, probeAnswer) && string(p[1:]) == string(ask[1:]) {
				return s, nil
			}
		}
		if err != nil && udp.IsTemporary(err) {
			time.Sleep(probeInterval) // a port that is closed says so at once
		}
	}
	return nil, errors.Join(fmt.Errorf("no probe was answered: %s", hint), s.Close())
}
