package ice

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

// Bounds of one session.
const (
	maxAddrs    = 48               // remote addresses by local ones
	maxRequests = 100              // checks a second that are looked at, from addresses that the other player isn't known at
	maxOfRoute  = 30               // from each other one
	maxUnderWay = 64               // own checks whose answers are to come
	maxQueued   = 32               // checks and answers that the agent hasn't looked at
	consentTime = 30 * time.Second // since the last answer, in which datagrams are sent (RFC 7675)
	checkEvery  = 100 * time.Millisecond
	maxChecks   = 20 // of one pair before it counts as failed
	keepEvery   = time.Second
	staleTime   = 2500 * time.Millisecond // since the last answer, of the path in use
	freshTime   = 1500 * time.Millisecond // of one to change to
	watchEvery  = 250 * time.Millisecond
	nominations = 4 // how often a change of paths is told
	quietTime   = 5 * time.Second
	lostTime    = consentTime - quietTime // more, until the session ends
	prflxWait   = 200 * time.Millisecond  // for something better
	relayWait   = 700 * time.Millisecond
	neverByPion = 1000 * time.Hour
)

// session is one remote player.
type session struct {
	n           *node
	controlling bool // the guest is
	ufrag, pwd  string
	old         *session    // whose place it takes, nil mostly
	take        func() bool // takes it; node.mu is held
	again       string      // the password of old, for the other player to know it by
	connectTime time.Duration
	source      *mailbox.Source
	written     atomic.Int64              // when the driver wrote last, as node.now
	answered    atomic.Bool               // the driver has written
	named       func(from netip.AddrPort) // called once, when there is the first path; node.mu is held
	done        func(why error)           // called once, when it has ended
	now         atomic.Pointer[using]
	first       chan struct{} // closed when there is a path
	ended       chan struct{}
	ending      sync.Once
	why         error
	wg          sync.WaitGroup

	agentMu sync.Mutex // of calls of the agent that must not meet its end
	agent   *ice.Agent

	// The rest is guarded by node.mu.
	theirPwd   string
	remotes    map[route]*remote
	candidates []Candidate // the other player's
	ports      map[portKey]*port
	local      map[string]*base // of pion's candidates, by their ids
	underWay   [maxUnderWay]transaction
	nextCheck  int
	requests   perSecond // checks from where the other player isn't known
	follower   *session  // that looks for a path to take its place; nil mostly
	moved      bool      // this end's address, as the remote one sees it
	path       Path
	uncounted  bool // path, since it was found by checks, and may be a relay's that will be told
}

type portKey struct {
	base *base
	four bool
}

// remote is what is known of a route.
type remote struct {
	valid      bool           // it answered a check
	unanswered int            // checks since
	seen       netip.AddrPort // this end's address, as it sees it
	consent    time.Duration  // of the last answer
	requests   perSecond      // checks from there
}

// perSecond counts what comes in one second.
type perSecond struct {
	second int64 // of node.now
	n      int
}

// more counts one more, and reports whether it is within a bound.
func (p *perSecond) more(now time.Duration, bound int) bool {
	if second := int64(now / time.Second); second != p.second {
		p.second, p.n = second, 0
	}
	p.n++
	return p.n <= bound
}

// using is the route that datagrams go by.
type using struct {
	route
	relayed bool
	remote  *remote
	consent atomic.Int64 // remote.consent
}

func newSession(n *node, controlling bool) (*session, error) {
	s := &session{n: n, controlling: controlling, connectTime: n.cfg.ConnectTime, first: make(chan struct{}), ended: make(chan struct{}), remotes: map[route]*remote{},
		ports: map[portKey]*port{}, local: map[string]*base{}}
	options := []ice.AgentOption{ice.WithNetworkTypes([]ice.NetworkType{ice.NetworkTypeUDP4, ice.NetworkTypeUDP6}), ice.WithMulticastDNSMode(ice.MulticastDNSModeDisabled),
		ice.WithLoggerFactory(quietLoggers{}), ice.WithDisableActiveTCP(), ice.WithCheckInterval(checkEvery), ice.WithMaxBindingRequests(maxChecks),
		ice.WithKeepaliveInterval(keepEvery), ice.WithDisconnectedTimeout(quietTime), ice.WithFailedTimeout(lostTime), ice.WithSrflxAcceptanceMinWait(0), ice.WithPrflxAcceptanceMinWait(prflxWait),
		ice.WithRelayAcceptanceMinWait(relayWait), ice.WithRenomination(ice.DefaultNominationValueGenerator()), ice.WithAutomaticRenomination(neverByPion)}
	if n.cfg.RelayOnly {
		options = append(options, ice.WithRelayAcceptanceMinWait(0))
	}
	var err error
	if s.agent, err = ice.NewAgentWithOptions(options...); err != nil {
		return nil, fmt.Errorf("ice: %w", err)
	}
	if s.ufrag, s.pwd, err = s.agent.GetLocalUserCredentials(); err != nil {
		_ = s.agent.Close() // err is the one to return
		return nil, fmt.Errorf("ice: %w", err)
	}
	_ = s.agent.OnSelectedCandidatePairChange(s.selected) // never fails
	_ = s.agent.OnConnectionStateChange(func(state ice.ConnectionState) {
		if state == ice.ConnectionStateFailed {
			s.end(ErrLost)
		}
	})
	s.wg.Add(1) // talk's
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sessions[s.ufrag] = s
	return s, nil
}

// talk exchanges addresses with the other player until there is a path, or none within Config.ConnectTime. Then it goes on in the background as long as
// the signal carries messages.
func (s *session) talk(ctx context.Context, sig Signal) error {
	defer s.wg.Done()
	ctx, stop := context.WithCancel(ctx)
	s.wg.Go(func() {
		defer stop()
		select {
		case <-s.ended:
		case <-ctx.Done():
		}
	})
	s.wg.Go(func() { s.tell(ctx, sig) })
	heard := make(chan error, 1)
	s.wg.Go(func() { heard <- s.hear(ctx, sig) })
	if s.controlling {
		s.wg.Go(s.watch)
	} else {
		s.wg.Go(s.open)
	}
	timer := time.NewTimer(s.connectTime)
	defer timer.Stop()
	silent := false
	for {
		select {
		case <-s.first:
			return nil
		case <-s.ended:
			return s.why
		case err := <-heard:
			if s.started() { // it may still be found by what is known
				silent, heard = true, nil
				continue
			}
			return s.noWay(fmt.Errorf("the other player is gone: %w", err))
		case <-ctx.Done():
			return s.noWay(context.Cause(ctx))
		case <-timer.C:
			return s.noWay(s.explain(silent))
		}
	}
}

// noWay ends a session that has no path.
func (s *session) noWay(why error) error {
	s.end(fmt.Errorf("%w: %w", ErrNoWay, why))
	return s.why
}

// explain says what was tried.
func (s *session) explain(silent bool) error {
	own, _ := s.n.own()
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	count := func(list []Candidate) (text string) {
		n := map[Kind]int{}
		for _, c := range list {
			n[c.Kind]++
		}
		return fmt.Sprintf("%d host, %d reflexive, %d relayed", n[OnHost], n[Reflexive], n[Relayed])
	}
	if s.theirPwd == "" {
		return fmt.Errorf("the other player has said nothing within %v; ask whether its game still runs", s.connectTime)
	}
	hint := ""
	if !hasRelay(own) && !hasRelay(s.candidates) {
		hint = "; players behind strict routers and firewalls need a relay: give Config.Servers one with turn: and turns:"
	}
	if silent {
		hint += "; the other player went while it was looked for"
	}
	return fmt.Errorf("none of the addresses answered within %v (own: %s; the other's: %s)%s", s.connectTime, count(own), count(s.candidates), hint)
}

func hasRelay(list []Candidate) bool {
	return slices.ContainsFunc(list, func(c Candidate) bool { return c.Kind == Relayed })
}

// tell sends this end's addresses, at first and when there are more.
func (s *session) tell(ctx context.Context, sig Signal) {
	told := map[Candidate]bool{}
	m := Message{Ufrag: s.ufrag, Password: s.pwd, Again: s.again}
	for {
		all, changed := s.n.own()
		s.addBases()
		for _, c := range all {
			if !told[c] && len(told) < MaxCandidates {
				told[c] = true
				m.Candidates = append(m.Candidates, c)
			}
		}
		if m.Ufrag != "" || len(m.Candidates) > 0 {
			if err := sig.Send(ctx, m); err != nil {
				return
			}
		}
		m = Message{}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// hear takes the other player's addresses.
func (s *session) hear(ctx context.Context, sig Signal) error {
	for {
		m, err := sig.Receive(ctx)
		if err != nil {
			return err
		}
		if err := m.check(); err != nil {
			s.n.n.badMessages.Add(1)
			return err
		}
		started := s.started()
		if !started && m.Ufrag == "" {
			s.n.n.badMessages.Add(1)
			return fmt.Errorf("%w: the first one has no ufrag", ErrMessage)
		}
		for _, c := range m.Candidates {
			if err := s.add(c); err != nil {
				return err
			}
		}
		if !started { // only now, so that a check from a candidate isn't taken for one from elsewhere
			if err := s.start(m); err != nil {
				return err
			}
		}
	}
}

func (s *session) started() bool {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	return s.theirPwd != ""
}

// start begins the checks.
func (s *session) start(m Message) (err error) {
	s.n.mu.Lock()
	s.theirPwd = m.Password
	s.n.mu.Unlock()
	s.addBases()
	s.agentMu.Lock()
	defer s.agentMu.Unlock()
	if s.controlling {
		_, err = s.agent.StartDial(m.Ufrag, m.Password)
	} else {
		_, err = s.agent.StartAccept(m.Ufrag, m.Password)
	}
	return err
}

// add takes one of the other player's addresses.
func (s *session) add(c Candidate) error {
	n := s.n
	if !acceptable(c.Addr, n.cfg.Loopback) || broadcast(c.Addr.Addr()) {
		n.n.badCandidates.Add(1)
		return nil
	}
	n.mu.Lock()
	if known, many := slices.Contains(s.candidates, c), len(s.candidates) >= MaxCandidates; known || many {
		if !known {
			n.n.tooManyAddrs.Add(1)
		}
		n.mu.Unlock()
		return nil
	}
	s.candidates = append(s.candidates, c)
	for _, b := range n.bases {
		s.remote(route{b, c.Addr})
	}
	if u := s.now.Load(); u != nil && u.addr == c.Addr { // found by its checks before it was told; it may be a relay's
		s.now.Store(s.use(u.route, u.remote))
		s.count()
	}
	n.mu.Unlock()
	var candidate ice.Candidate
	var err error
	ip, port := c.Addr.Addr().String(), int(c.Addr.Port())
	switch c.Kind {
	case OnHost:
		candidate, err = ice.NewCandidateHost(&ice.CandidateHostConfig{Network: "udp", Address: ip, Port: port, Component: 1})
	case Reflexive:
		candidate, err = ice.NewCandidateServerReflexive(&ice.CandidateServerReflexiveConfig{Network: "udp", Address: ip, Port: port, Component: 1})
	default:
		candidate, err = ice.NewCandidateRelay(&ice.CandidateRelayConfig{Network: "udp", Address: ip, Port: port, Component: 1})
	}
	if err != nil {
		return err
	}
	return s.agent.AddRemoteCandidate(candidate)
}

// remote returns what is known of a route, or a new one if there is room. A relay sends to relays and to addresses of the internet. node.mu is held.
func (s *session) remote(r route) *remote {
	have := s.remotes[r]
	if have != nil {
		return have
	}
	if len(s.remotes) == maxAddrs {
		s.n.n.tooManyAddrs.Add(1)
		return nil
	}
	if r.base.relay && r.addr.Addr().IsPrivate() && !s.is(Relayed, r.addr) {
		return nil
	}
	have = &remote{}
	s.remotes[r] = have
	return have
}

// is reports whether an address is one of the other player's of a kind. node.mu is held.
func (s *session) is(k Kind, a netip.AddrPort) bool {
	return slices.Contains(s.candidates, Candidate{k, a})
}

// addBases gives the agent the local addresses that it doesn't have, and forgets those that are lost.
func (s *session) addBases() {
	s.n.mu.Lock()
	for k, p := range s.ports { // of relays that are lost
		if !slices.Contains(s.n.bases, k.base) {
			_ = p.Close() // never fails
			delete(s.ports, k)
		}
	}
	for r := range s.remotes {
		if !slices.Contains(s.n.bases, r.base) {
			delete(s.remotes, r)
			delete(s.n.routes, r)
		}
	}
	var fresh []*port
	for _, b := range s.n.bases {
		for _, four := range []bool{true, false} {
			k := portKey{b, four}
			if s.ports[k] == nil && (!b.relay || b.addr.Addr().Is4() == four) {
				p := &port{s: s, base: b, queue: make(chan packet, maxQueued), closed: make(chan struct{})}
				s.ports[k] = p
				fresh = append(fresh, p)
				for _, c := range s.candidates {
					s.remote(route{b, c.Addr})
				}
				p.at = net.UDPAddrFromAddrPort(b.addr)
				if !b.relay {
					p.at = &net.UDPAddr{IP: net.IPv6zero, Port: int(s.n.socket.LocalAddr().Port())}
					if four {
						p.at.IP = net.IPv4zero.To4()
					}
				}
			}
		}
	}
	s.n.mu.Unlock()
	for _, p := range fresh {
		var c ice.Candidate
		var err error
		if p.base.relay {
			c, err = ice.NewCandidateRelay(&ice.CandidateRelayConfig{Network: "udp", Address: p.at.IP.String(), Port: p.at.Port, Component: 1})
		} else {
			c, err = ice.NewCandidateHost(&ice.CandidateHostConfig{Network: "udp", Address: p.at.IP.String(), Port: p.at.Port, Component: 1})
		}
		if err != nil {
			continue
		}
		s.n.mu.Lock()
		s.local[c.ID()] = p.base
		s.n.mu.Unlock()
		s.agentMu.Lock()
		_ = s.agent.AddVirtualCandidate(c, p) // fails when it has ended
		s.agentMu.Unlock()
	}
}

// receiveRequest passes on a check of the other player. One from a new address must be signed, so that nobody else uses up the room for addresses.
func (s *session) receiveRequest(r route, p []byte, m *stun.Message) {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	known, requests, bound := s.remotes[r], &s.requests, maxRequests
	if known != nil { // what others send, who saw the name in a check, takes nothing of its own
		requests, bound = &known.requests, maxOfRoute
	}
	if !requests.more(n.now(), bound) {
		n.n.tooFast.Add(1)
		return
	}
	if stun.NewShortTermIntegrity(s.pwd).Check(m) != nil {
		n.n.forged.Add(1)
		return
	}
	to := s.remote(r)
	if to == nil {
		return
	}
	to.unanswered = min(to.unanswered, maxUnanswered-1) // who asks from there may be asked
	s.deliver(r, p)
}

// receiveAnswer passes on an answer of the other player. Its address is its own from then on.
func (s *session) receiveAnswer(r route, id transaction, p []byte, m *stun.Message, seen netip.AddrPort) {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if stun.NewShortTermIntegrity(s.theirPwd).Check(m) != nil {
		n.n.forged.Add(1)
		return
	}
	delete(n.asked, id)
	to := s.remotes[r]
	if to == nil || isDone(s.ended) {
		return
	}
	if binary.BigEndian.Uint16(p) == bindingSuccess {
		now := s.now.Load()
		if now != nil && now.remote == to && to.seen != seen {
			s.moved = true
		}
		to.valid, to.unanswered, to.seen, to.consent = true, 0, seen, n.now()
		if now == nil {
			s.named(r.addr)
			s.now.Store(s.use(r, to))
		} else if now.remote == to {
			now.consent.Store(int64(to.consent))
		}
		n.routes[r] = s // from now on datagrams from there are the session's
	}
	s.deliver(r, p)
}

// use is what datagrams go by from now on. node.mu is held.
func (s *session) use(r route, to *remote) *using {
	u := &using{route: r, relayed: r.base.relay || s.is(Relayed, r.addr), remote: to}
	u.consent.Store(int64(to.consent))
	return u
}

// deliver queues a check or an answer for the agent. node.mu is held.
func (s *session) deliver(r route, p []byte) {
	to := s.ports[portKey{r.base, r.addr.Addr().Is4()}]
	if to == nil || len(to.queue) == maxQueued {
		return
	}
	to.queue <- packet{append([]byte(nil), p...), r.addr} // only here, so there is room
}

// selected is told by the agent which pair it has chosen.
func (s *session) selected(local, remote ice.Candidate) {
	ip, err := netip.ParseAddr(remote.Address())
	if err != nil {
		return
	}
	n := s.n
	n.mu.Lock()
	r := route{s.local[local.ID()], netip.AddrPortFrom(ip.Unmap(), uint16(remote.Port()))}
	to := s.remotes[r]
	if to == nil || !to.valid || isDone(s.ended) {
		n.mu.Unlock()
		return
	}
	old, begun := s.now.Load(), s.path != NoPath
	s.now.Store(s.use(r, to))
	was := s.path
	s.path = s.pathOf(r, to)
	if begun && (was != s.path || old.route != r) {
		n.n.pathChanges.Add(1)
	}
	if path := s.path; !begun && s.old == nil {
		if s.uncounted = path == Routed && !slices.ContainsFunc(s.candidates, func(c Candidate) bool { return c.Addr == r.addr }); !s.uncounted {
			n.n.path(path)
		}
	}
	n.mu.Unlock()
	if begun {
		return
	}
	if s.old != nil {
		if s.inherit() {
			close(s.first)
		}
		return
	}
	defer close(s.first)
	n.n.sessions.Add(1)
}

// count counts the first path, of which it is known by now whether it is a relay's. node.mu is held.
func (s *session) count() {
	u := s.now.Load()
	if !s.uncounted || u == nil {
		return
	}
	s.uncounted, s.path = false, s.pathOf(u.route, u.remote)
	s.n.n.path(s.path)
}

// pathOf says what kind of path a route is. node.mu is held.
func (s *session) pathOf(r route, to *remote) Path {
	switch {
	case r.base.relay || s.is(Relayed, r.addr):
		return ByRelay
	case s.is(OnHost, r.addr) && slices.Contains(s.n.onHost, to.seen):
		return Direct
	}
	return Routed
}

// where returns the path and the remote address in use.
func (s *session) where() (Path, netip.AddrPort) {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	u := s.now.Load()
	if s.path == NoPath || u == nil {
		return NoPath, netip.AddrPort{}
	}
	return s.pathOf(u.route, u.remote), u.addr
}

// way returns the route for datagrams, nil if there is none.
func (s *session) way(now time.Duration) *using {
	u := s.now.Load()
	if u == nil || now-time.Duration(u.consent.Load()) > consentTime {
		return nil
	}
	return u
}

// watch has the agent change to another path, when the one in use doesn't answer any more, or when a better one does. It is the guest's.
func (s *session) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	told, last := 0, [2]string{}
	for {
		select {
		case <-ticker.C:
		case <-s.ended:
			return
		}
		if !isDone(s.first) {
			continue
		}
		best, current, moved := s.best()
		switch {
		case best == nil:
			continue
		case moved || best.key() != current && (best.key() != last || told == nominations):
			last, told = best.key(), 0
		}
		if best.key() != last || told == nominations {
			continue
		}
		told++
		_ = s.agent.RenominateCandidate(best.local, best.remote) // tried again, unless the session ends
	}
}

// open has this end's router, firewall and relay let in what comes from addresses that either end found after there was a path: the agent of the host
// asks nothing of them by itself.
func (s *session) open() {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ended:
			return
		}
		if !isDone(s.first) {
			continue
		}
		m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodBinding, stun.ClassIndication), stun.Fingerprint)
		if err != nil {
			continue
		}
		var to []route
		s.n.mu.Lock()
		s.count()
		for r, of := range s.remotes {
			if !of.valid && s.mayAsk(r, of) {
				of.unanswered++
				to = append(to, r)
			}
		}
		s.n.mu.Unlock()
		for _, r := range to {
			r.base.write(m.Raw, r.addr)
		}
	}
}

// mayAsk reports whether something that isn't an answer may be sent. node.mu is held.
func (s *session) mayAsk(r route, to *remote) bool {
	n := s.n
	if to.unanswered == maxUnanswered {
		return false
	}
	if !to.valid && (!n.checks.Allow(r.addr.Addr()) || !n.checks.AllowTotal()) {
		n.n.held.Add(1)
		return false
	}
	return true
}

// pair is a path that answers.
type pair struct {
	local, remote ice.Candidate
	path          Path
	rtt           float64
	fresh         bool
}

func (p *pair) key() [2]string { return [2]string{p.local.ID(), p.remote.ID()} }

// best returns the path to use, and the one that is in use; and whether this end's address has changed since the last call.
func (s *session) best() (best *pair, current [2]string, moved bool) {
	stats := s.agent.GetCandidatePairsStats()
	locals, err := s.agent.GetLocalCandidates()
	if err != nil {
		return nil, current, false
	}
	remotes, err := s.agent.GetRemoteCandidates()
	if err != nil {
		return nil, current, false
	}
	byID := map[string]ice.Candidate{}
	for _, c := range append(locals, remotes...) {
		byID[c.ID()] = c
	}
	now := s.n.now()
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	u := s.now.Load()
	if u == nil { // it has ended
		return nil, current, false
	}
	s.count()
	moved, s.moved = s.moved, false
	var used *pair
	for _, st := range stats {
		p := &pair{local: byID[st.LocalCandidateID], remote: byID[st.RemoteCandidateID], rtt: st.CurrentRoundTripTime}
		if p.local == nil || p.remote == nil || st.State != ice.CandidatePairStateSucceeded {
			continue
		}
		ip, err := netip.ParseAddr(p.remote.Address())
		r := route{s.local[st.LocalCandidateID], netip.AddrPortFrom(ip.Unmap(), uint16(p.remote.Port()))}
		to := s.remotes[r]
		if err != nil || to == nil || !to.valid {
			continue
		}
		p.path = s.pathOf(r, to)
		age := now - to.consent
		if r == u.route && age < staleTime {
			p.fresh, used, current = true, p, p.key()
		} else if p.fresh = age < freshTime; r == u.route {
			current = p.key()
		}
		if p.fresh && (best == nil || p.path < best.path || p.path == best.path && p.rtt < best.rtt) {
			best = p
		}
	}
	if used != nil && (best == nil || best.path >= used.path) {
		best = used // good enough
	}
	return best, current, moved
}

// end ends the session. Its goroutines end in the background; wait waits for them.
func (s *session) end(why error) {
	s.ending.Do(func() {
		n := s.n
		n.mu.Lock()
		s.why = why
		close(s.ended)
		delete(n.sessions, s.ufrag)
		for r, of := range n.routes {
			if of == s {
				delete(n.routes, r)
			}
		}
		for id, c := range n.asked {
			if c.session == s {
				delete(n.asked, id)
			}
		}
		s.now.Store(nil)
		n.mu.Unlock()
		n.wg.Go(func() {
			s.agentMu.Lock()
			_ = s.agent.GracefulClose() // never fails
			s.agentMu.Unlock()
			s.wg.Wait()
		})
		s.done(why)
		if why != errReplaced {
			n.log("session ended", slog.Any("why", why))
		}
	})
}

// packet is a check or an answer.
type packet struct {
	p    []byte
	from netip.AddrPort
}

// port is a local address as the agent of one session sees it. It sends checks and answers only.
type port struct {
	s      *session
	base   *base
	at     *net.UDPAddr
	queue  chan packet
	closed chan struct{}
	once   sync.Once
}

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (p *port) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case in := <-p.queue:
		return copy(b, in.p), in.from, nil
	case <-p.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

// ReadFrom implements net.PacketConn.
func (p *port) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := p.ReadFromAddrPort(b)
	return n, net.UDPAddrFromAddrPort(from), err
}

// WriteToAddrPort implements ice.AddrPortReaderWriter. It holds back what would flood a stranger.
func (p *port) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if isDone(p.closed) {
		return 0, net.ErrClosed
	}
	if p.s.mayCheck(route{p.base, to}, b) {
		p.base.write(b, to)
	}
	return len(b), nil
}

// WriteTo implements net.PacketConn.
func (p *port) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, os.ErrInvalid
	}
	return p.WriteToAddrPort(b, a.AddrPort())
}

// mayCheck reports whether a check or an answer may be sent, and notes it.
func (s *session) mayCheck(r route, b []byte) bool {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	to := s.remotes[r]
	if to == nil || len(b) < 20 || isDone(s.ended) {
		return false
	}
	if binary.BigEndian.Uint16(b) != bindingRequest {
		return true // it was asked for from there
	}
	if !s.mayAsk(r, to) {
		return false
	}
	to.unanswered++
	var id transaction
	copy(id[:], b[8:])
	old := &s.underWay[s.nextCheck%maxUnderWay]
	if c := n.asked[*old]; c != nil && c.session == s {
		delete(n.asked, *old)
	}
	*old = id
	s.nextCheck++
	n.asked[id] = &check{session: s, base: r.base, to: r.addr}
	return true
}

// LocalAddr implements net.PacketConn.
func (p *port) LocalAddr() net.Addr { return p.at }

// Close implements net.PacketConn.
func (p *port) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// SetDeadline implements net.PacketConn. The agent calls it before Close only.
func (p *port) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.PacketConn.
func (p *port) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.PacketConn.
func (p *port) SetWriteDeadline(time.Time) error { return nil }

var (
	_ net.PacketConn           = (*port)(nil)
	_ ice.AddrPortReaderWriter = (*port)(nil)
)
