package lockstep

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const ms = time.Millisecond

// game is a state that depends on every command and its order.
type game struct {
	state uint64
	turn  int64
	last  []uint64 // number of each player's last command
}

func (g *game) mix(v uint64) { g.state = (g.state ^ v) * 0x9e3779b97f4a7c15; g.state ^= g.state >> 29 }

// player is a Peer and its game on one machine.
type player struct {
	id           int
	peer         *Peer
	g            game
	commands     uint64
	nextTurn     time.Duration
	frozen       bool
	still        bool  // its machine is: what comes waits
	corrupt      int64 // turn at whose end one bit flips; -1 for none
	skew         time.Duration
	events       []string
	sessions     uint32
	delays       map[int64]int
	up, down     *netsim.Link
	upLink       *link.Link // peer's end, when the world runs over package link
	downLink     *link.Link
	offline      bool
	every        int // commands: one in so many turns
	record       *Recorder
	wantSnapshot bool
	returned     time.Duration

	// What a player who lies does. The rest of it is an honest Peer.
	inputsTo  func() int64             // inputs of this turn and later ones are kept back
	lie       func(hash uint64) uint64 // what it says its state hashes to
	noHashes  bool
	hides     int64  // the turn whose hash it keeps back
	echoOld   uint16 // so many stamps ago
	stuffed   bool   // as many bytes of commands as go, whatever Submit says
	undecided bool   // accepts no setup
	comesBack bool   // begins a new session as soon as it is out
}

// world is a host and its players over bad networks, in virtual time.
type world struct {
	t         testing.TB
	seed      uint64
	rng       *rand.Rand
	now       time.Duration
	host      *Host
	players   []*player
	hashes    map[int64]uint64 // of the first peer to execute a turn
	events    []string         // as the host told
	overLink  bool
	cfg       HostConfig
	commands  int // executed by all
	lossy     bool
	hostStill bool // the host's machine stands still

	maxSnapshot int // of peers
	timeout     time.Duration
	liar        int // whose packets the host may refuse and who may execute anything; -1 for none
	connectWith func(Transport) Transport
}

func (w *world) Event(turn int64, e Event) {
	w.events = append(w.events, fmt.Sprintf("%d:%s", turn, describe(e)))
}

func describe(e Event) string {
	switch e.Kind {
	case Joined:
		return fmt.Sprintf("join %d", e.Player)
	case Dropped:
		return fmt.Sprintf("drop %d for %d", e.Player, e.Value)
	case DelayChanged:
		return fmt.Sprintf("delay %d", e.Value)
	case Split:
		return fmt.Sprintf("split %b at %d", e.Who, e.Value)
	case Differs:
		return fmt.Sprintf("differs %d in %b at %d", e.Player, e.Who, e.Value)
	case Unhashed:
		return fmt.Sprintf("no hashes %d at %d", e.Player, e.Value)
	}
	return fmt.Sprintf("desync %d at %d", e.Player, e.Value)
}

func newWorld(t testing.TB, seed uint64, cfg HostConfig, net netsim.Settings) *world {
	w := &world{liar: -1, t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), hashes: map[int64]uint64{}, now: ms, lossy: net.Loss > 0}
	h, err := NewHost(cfg, w)
	require.NoError(t, err)
	w.host, w.cfg = h, h.cfg
	w.players = make([]*player, cfg.Players+cfg.Spectators)
	for i := range w.players {
		p := &player{id: i, corrupt: -1, every: 2, delays: map[int64]int{}}
		p.up, err = netsim.NewLink(net, seed*100+uint64(2*i))
		require.NoError(t, err)
		p.down, err = netsim.NewLink(net, seed*100+uint64(2*i+1))
		require.NoError(t, err)
		w.players[i] = p
	}
	return w
}

// push is a transport over a netsim.Link.
// setPath gives a player's two links other settings. What is under way is lost.
func (w *world) setPath(p *player, net netsim.Settings) {
	for i, l := range []**netsim.Link{&p.up, &p.down} {
		var err error
		*l, err = netsim.NewLink(net, uint64(i))
		require.NoError(w.t, err)
	}
}

type push struct{ l *netsim.Link }

func (p push) Send(now time.Duration, pkt []byte) error { p.l.Push(now, pkt); return nil }

// linkEnd is a link.Handler.
type linkEnd struct {
	out     func(p []byte)
	deliver func(p []byte)
}

func (e linkEnd) Datagram(p []byte) { e.out(p) }
func (e linkEnd) Message(p []byte)  { e.deliver(p) }

// connect gives player i a new session; have is how much of its game it keeps.
func (w *world) connect(i int, have int64) {
	p := w.players[i]
	p.sessions++
	cfg := PeerConfig{Config: w.cfg.Config, Player: i, Session: uint32(w.seed)<<8 | p.sessions, Have: have, MaxSnapshot: w.maxSnapshot, Timeout: w.timeout}
	if p.peer != nil {
		cfg.Generation = p.peer.Generation()
	}
	if have == 0 {
		p.g = game{last: make([]uint64, len(w.players))}
	}
	p.frozen, p.offline, p.nextTurn = false, false, w.now
	var up, down Transport = push{p.up}, push{p.down}
	if w.overLink {
		var err error
		p.upLink, err = link.New(link.Config{Conversation: cfg.Session}, linkEnd{
			func(d []byte) { p.up.Push(w.now, d) }, func(m []byte) { w.toPeer(p, m) }})
		require.NoError(w.t, err)
		p.downLink, err = link.New(link.Config{Conversation: cfg.Session}, linkEnd{
			func(d []byte) { p.down.Push(w.now, d) }, func(m []byte) { w.toHost(p, m) }})
		require.NoError(w.t, err)
		up, down = p.upLink, p.downLink
	}
	if w.connectWith != nil {
		up, down = w.connectWith(up), w.connectWith(down)
	}
	var err error
	p.peer, err = NewPeer(cfg, up)
	require.NoError(w.t, err)
	require.NoError(w.t, w.host.Connect(i, down))
}

func (w *world) toPeer(p *player, m []byte) {
	if err := p.peer.Receive(w.now, m); err != nil && err != ErrSession && err != ErrDenied && err != ErrSnapshotSize && p.id != w.liar {
		w.t.Fatalf("seed %d: player %d refused a packet: %v", w.seed, p.id, err)
	}
}

func (w *world) toHost(p *player, m []byte) {
	if err := w.host.Receive(w.now, p.id, m); err != nil && err != ErrSession && err != ErrAhead && p.id != w.liar {
		w.t.Fatalf("seed %d: host refused a packet of player %d: %v", w.seed, p.id, err)
	}
}

// step is 5 ms of the world.
func (w *world) step() {
	w.now += 5 * ms
	for _, p := range w.players {
		if p.peer == nil {
			continue
		}
		for d, ok := p.up.Pop(w.now); ok && !w.hostStill; d, ok = p.up.Pop(w.now) {
			if p.offline {
				continue
			}
			if w.overLink {
				_ = p.downLink.Receive(w.now, d)
			} else {
				w.toHost(p, d)
			}
		}
		if p.still {
			continue
		}
		for d, ok := p.down.Pop(w.now); ok; d, ok = p.down.Pop(w.now) {
			if p.offline {
				continue
			}
			if w.overLink {
				_ = p.upLink.Receive(w.now, d)
			} else {
				w.toPeer(p, d)
			}
		}
		if !p.frozen {
			w.play(p)
		}
		if !p.offline {
			w.tickPeer(p)
		}
	}
	if w.hostStill {
		return
	}
	w.host.Tick(w.now)
	if at, ok := w.host.NextDeadline(); ok && at < w.now && w.host.Active() != 0 && !w.overLink {
		w.t.Fatalf("seed %d: after a Tick at %v the host's deadline is %v", w.seed, w.now, at)
	}
	if w.overLink {
		for _, p := range w.players {
			if p.peer != nil && !p.offline {
				p.upLink.Tick(w.now)
				p.downLink.Tick(w.now)
			}
		}
	}
}

// tickPeer ticks a peer, which may be a liar's.
func (w *world) tickPeer(p *player) {
	q := p.peer
	if p.comesBack && q.State() == Running && q.Turn() > 0 && !q.InGame() && w.host.Active()>>p.id&1 == 0 && !q.under {
		if now := w.now - p.returned; now > 100*ms {
			p.returned = w.now
			w.connect(p.id, q.Turn())
			q = p.peer
		}
	}
	if v, _, ok := q.Setup(); ok && v > q.accepted && !p.undecided {
		require.NoError(w.t, q.Accept())
	}
	sealed := q.sealed
	if p.inputsTo != nil {
		q.sealed = max(q.acked, min(sealed, p.inputsTo()))
	}
	if p.noHashes {
		q.hashNext = q.next
	}
	if p.hides > 0 && q.next > p.hides {
		q.hashNext = max(q.hashNext, p.hides+1)
	}
	stamp := q.stamp
	if p.echoOld > 0 && q.stamped {
		q.stamp -= p.echoOld
	}
	q.Tick(w.now)
	if p.inputsTo != nil {
		q.sealed = sealed
	}
	q.stamp = stamp
}

// play executes turns as they are due, several when behind.
func (w *world) play(p *player) {
	if turn, data, ok := p.peer.TakeSnapshot(); ok {
		p.g = loadGame(data, len(w.players))
		require.Equal(w.t, turn, p.g.turn)
		if turn > p.corrupt {
			p.corrupt = -1 // it is whole again
		}
	}
	for range min(p.peer.Behind(), 20) {
		if t, ok := p.peer.Next(); ok {
			w.execute(p, t)
		}
	}
	if w.now < p.nextTurn {
		return
	}
	if t, ok := p.peer.Next(); ok {
		p.nextTurn = max(p.nextTurn, w.now-50*ms) + w.cfg.TurnInterval + p.skew
		w.execute(p, t)
	}
}

func (w *world) execute(p *player, t *Turn) {
	require.Equal(w.t, p.g.turn, t.N)
	for _, e := range t.Events {
		p.events = append(p.events, fmt.Sprintf("%d:%s", t.N, describe(e)))
		p.g.mix(uint64(e.Kind)<<8 | uint64(e.Player))
	}
	p.delays[t.N] = t.Delay
	p.g.mix(uint64(t.N))
	for who, cmd := range t.Commands() {
		if who != w.liar {
			number := binary.LittleEndian.Uint64(cmd)
			if number <= p.g.last[who] {
				w.t.Fatalf("seed %d turn %d: command %d of player %d after %d", w.seed, t.N, number, who, p.g.last[who])
			}
			p.g.last[who] = number
		}
		p.g.mix(uint64(who))
		for _, b := range cmd {
			p.g.mix(uint64(b))
		}
		w.commands++
	}
	if t.N == p.corrupt {
		p.g.state ^= 1 << 40
	}
	p.g.turn++
	if p.record != nil {
		require.NoError(w.t, p.record.Turn(t, p.g.state))
		if p.g.turn%100 == 0 {
			p.wantSnapshot = true
		}
	}
	whole := p.corrupt < 0 || t.N < p.corrupt
	if want, ok := w.hashes[t.N]; !ok && whole {
		w.hashes[t.N] = p.g.state
	} else if ok && whole && want != p.g.state {
		w.t.Fatalf("seed %d turn %d: player %d has another state", w.seed, t.N, p.id)
	}
	if p.stuffed && p.peer.InGame() {
		p.stuff()
	} else if p.peer.InGame() && w.rng.IntN(p.every) == 0 {
		p.commands++
		cmd := binary.LittleEndian.AppendUint64(nil, p.commands)
		for range w.rng.IntN(12) {
			cmd = append(cmd, byte(w.rng.Uint32()))
		}
		require.NoError(w.t, p.peer.Submit(cmd))
	}
	hash := p.g.state
	if p.lie != nil {
		hash = p.lie(hash)
	}
	if len(w.cfg.Parts) > 0 {
		require.NoError(w.t, p.peer.Done(uint64(t.N), hash, 7))
		return
	}
	require.NoError(w.t, p.peer.Done(hash))
	if p.wantSnapshot {
		p.wantSnapshot = false
		at := p.peer.Resume()
		at.State = p.g.save()
		require.NoError(w.t, p.record.Snapshot(at))
	}
}

// stuff fills the turn with commands.
func (p *player) stuff() {
	q := p.peer
	for len(q.pending)+17 <= min(q.cfg.MaxInput, q.budget.left) {
		p.commands++
		q.pending = binary.LittleEndian.AppendUint64(append(q.pending, 16), p.commands)
		q.pending = append(q.pending, make([]byte, 8)...)
	}
}

func (g *game) save() []byte {
	b := binary.LittleEndian.AppendUint64(nil, g.state)
	b = binary.LittleEndian.AppendUint64(b, uint64(g.turn))
	for _, l := range g.last {
		b = binary.LittleEndian.AppendUint64(b, l)
	}
	return append(b, make([]byte, 3000)...) // more than a packet
}

func loadGame(b []byte, players int) (g game) {
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	g.state, g.turn = u(0), int64(u(1))
	for p := range players {
		g.last = append(g.last, u(2+p))
	}
	return g
}

func (w *world) until(what string, limit time.Duration, cond func() bool) {
	w.t.Helper()
	for end := w.now + limit; !cond(); w.step() {
		if w.now > end {
			w.t.Fatalf("seed %d: no %s after %v: turn %d, waiting %b, active %b, events %v, stats %+v",
				w.seed, what, limit, w.host.Turn(), w.host.Waiting(), w.host.Active(), w.events, w.host.Stats())
		}
	}
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.step()
	}
}

// start connects all players and begins the game.
func (w *world) start() {
	for i := range w.players {
		w.connect(i, 0)
	}
	w.until("ready players", 20*time.Second, func() bool { return w.host.Ready() == w.cfg.mask() })
	w.host.Start(w.now)
}

// playTo runs until all peers in the game have executed turn.
func (w *world) playTo(turn int64, limit time.Duration) {
	w.t.Helper()
	w.until(fmt.Sprintf("turn %d", turn), limit, func() bool {
		for i, p := range w.players {
			if p.peer != nil && !p.frozen && !p.offline && w.host.Active()>>i&1 != 0 && p.peer.Turn() < turn {
				return false
			}
		}
		return w.host.Turn() >= turn
	})
}

// agree checks that players saw the same events and delays; from is their first turn.
func (w *world) agree(players ...int) {
	first := w.players[players[0]]
	for _, i := range players[1:] {
		p := w.players[i]
		n := min(len(first.events), len(p.events))
		require.Equal(w.t, first.events[:n], p.events[:n], "seed %d", w.seed)
		for turn, d := range p.delays {
			if want, ok := first.delays[turn]; ok && want != d {
				w.t.Fatalf("seed %d turn %d: delay %d for player %d, %d for %d", w.seed, turn, want, players[0], d, i)
			}
		}
	}
}
