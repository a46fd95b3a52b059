package migrate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// FollowerConfig configures a Follower.
type FollowerConfig struct {
	// Dial begins to dial a successor, with a new world, and with the follower's Channel among the driver's Channels. Needed.
	Dial func(to Destination) (*driver.Driver, error)
	// Host opens a server with a world restored from s.Checkpoint, and returns a Host whose HostConfig has s. The game ticks
	// that server until Host.Err isn't nil. An error means that this player doesn't host. nil: this player never hosts.
	Host func(s Succession) (*Host, error)
	// Port is the port at which others reach the server that Host opens; 0 for a player who never hosts. See SetPort.
	Port uint16
	// Moved is called when the game continues on d, a driver that Dial returned. own reports whether d leads to the server in
	// this process. When it doesn't and there is such a server, close that: another host has the game. The follower closes
	// the previous driver. May be nil.
	Moved func(d *driver.Driver, own bool)
	// Silence is how long the host may be silent before it counts as gone. Default 700 ms. A host must send more often, and
	// its hitches must be shorter.
	Silence time.Duration
	// Turn is the time between the turns of two candidates: a candidate opens its server at its turn, when none before it has
	// answered. Default 300 ms.
	Turn time.Duration
	// Wait is how long after the last candidate's turn the search begins again, and how long a player that has come to a successor may take to join: one that
	// loads a level first, in driver.Config.Welcomed, and takes longer needs a longer Wait here and in HostConfig. Default 3 s. After three searches the game
	// is over (ErrNobody), unless the old host is heard.
	Wait time.Duration
	// MaxCheckpoint bounds a checkpoint, in bytes; up to twice that is held. Default 1 MiB, at most 64 MiB. A host that sends
	// a larger one is disconnected.
	MaxCheckpoint int
}

// Destination is the successor to dial.
type Destination struct {
	// Addr is its address. Link has the token for it.
	Addr netip.AddrPort
	Link driver.Netcode
	// Own reports that it is the server in this process, which udp.WithLocal reaches.
	Own bool
}

// Succession is what a player needs to become the host.
type Succession struct {
	// You is this player's id. Players are the ids of all players, except for the old host's own.
	You     uint64
	Players []uint64
	// Link is for the server: it has the key of the others' tokens.
	Link driver.Netcode
	// Checkpoint is the last checkpoint that arrived whole, for Restore.
	Checkpoint []byte
	// Lost is the time from the first bytes of Checkpoint to the last sign of the old host: what happened in it is lost.
	Lost time.Duration

	epoch      uint32
	candidates []candidate // of the old host, in its order
}

// ErrNobody: the game has no host. No candidate took over, or none with more than half of the players.
var ErrNobody = errors.New("migrate: no candidate took over as the host")

// FollowerCounters counts since NewFollower.
type FollowerCounters struct {
	Checkpoints                        uint64 // that arrived whole
	Migrations, Cancelled, Dials, Held uint64 // Cancelled: searches ended as the old host was heard again; Held: servers opened here
	// Still is how long the last migration took, from the last sign of the old host to the new one's plan.
	Still time.Duration
}

// Follower is a player's part: it keeps what the host sends for the succession, notices when the host has gone, and finds the
// next one. Tick it instead of the driver: it ticks the drivers that it has.
type Follower struct {
	Counters FollowerCounters

	cfg   FollowerConfig
	tick  time.Time
	now   time.Duration // since the first tick
	cur   *session      // that of the game
	tries []*session
	past  []parting // connections that are being closed
	host  *Host     // our server, when it isn't the host yet

	searching    bool
	heard, begun time.Duration // of the host last, and when the present round began
	round        int
	calm         time.Duration // until then a host that says that it stands still is waited for: each search dials
	hosted       bool          // in this round
	opened       time.Duration
	dialed       []uint64 // in this round
	err          error
}

// session is a connection to a host or to a candidate, and the handler of its channel.
type session struct {
	channel.Nop
	f      *Follower
	d      *driver.Driver
	conn   *driver.Conn
	ch     *channel.Channel
	id     uint64 // of the candidate
	own    bool
	since  time.Duration // of the dial, or then of the connection
	plan   plan          // epoch 0: none came
	tokens map[uint64][]netcode.Token
	used   map[uint64]int
	leaves bool // the host said so

	part          []byte // of a checkpoint
	number        uint64
	total         uint64
	from, wholeAt time.Duration // when its first chunk came; of the whole one
	whole         []byte
	votes, told   bool // this player counts for it; the offer says so
}

// parting is a connection that is closed in order.
type parting struct {
	d     *driver.Driver
	until time.Duration
}

// partingTime is how long an old host that stands still may take to hear that this player has gone to another.
const partingTime = 10 * time.Second

// NewFollower returns a Follower without a connection; see Follow. Errors wrap ErrConfig.
func NewFollower(cfg FollowerConfig) (*Follower, error) {
	if cfg.Dial == nil {
		return nil, fmt.Errorf("%w: Dial is needed", ErrConfig)
	}
	if cfg.Silence < 0 || cfg.Turn < 0 || cfg.Wait < 0 || cfg.MaxCheckpoint < 0 || cfg.MaxCheckpoint > mostCheckpoint {
		return nil, fmt.Errorf("%w: Silence %v, Turn %v and Wait %v must be positive, and MaxCheckpoint %d from 1 to %d, or 0 for the default", ErrConfig, cfg.Silence, cfg.Turn, cfg.Wait, cfg.MaxCheckpoint,
			mostCheckpoint)
	}
	cfg.Silence, cfg.Turn, cfg.Wait = cmp.Or(cfg.Silence, defaultSilence), cmp.Or(cfg.Turn, defaultTurn), cmp.Or(cfg.Wait, defaultWait)
	cfg.MaxCheckpoint = cmp.Or(cfg.MaxCheckpoint, defaultCheckpoint)
	return &Follower{cfg: cfg}, nil
}

// Channel is the channel type to add to the driver.Config of each dial.
func (f *Follower) Channel() channel.Type { return channel.Type{Name: name, ClientOpen: true} }

// Follow sets the driver of the connection to the first host. The follower ticks it from then on.
func (f *Follower) Follow(d *driver.Driver) { f.cur = &session{f: f, d: d} }

// SetPort changes FollowerConfig.Port; 0: this player doesn't host any more.
func (f *Follower) SetPort(port uint16) {
	f.cfg.Port = port
	if f.cur != nil {
		f.cur.told = false
	}
}

// Driver is the driver of the game's connection; nil before Follow and after Close.
func (f *Follower) Driver() *driver.Driver {
	if f.cur == nil {
		return nil
	}
	return f.cur.d
}

// Migrating reports whether the host has gone, or has paused, and the next one is being looked for.
func (f *Follower) Migrating() bool { return f.searching }

// Err is why the game is over: ErrNobody, or how the host ended the connection; nil while it isn't.
func (f *Follower) Err() error { return f.err }

// TickDispatch calls TickDispatch of its drivers, and checks whether the host is there.
func (f *Follower) TickDispatch(now time.Time) {
	if !f.tick.IsZero() {
		f.now += min(max(now.Sub(f.tick), 0), time.Second) // as drivers count hitches
	}
	f.tick = now
	for s := range f.sessions {
		s.d.TickDispatch(now)
		s.look()
	}
	for i := 0; i < len(f.past); i++ {
		if p := f.past[i]; p.d.Len() == 0 || f.now >= p.until {
			f.past = append(f.past[:i], f.past[i+1:]...)
			i--
			_ = p.d.Close()
		} else {
			p.d.TickDispatch(now)
		}
	}
	if f.cur != nil && f.err == nil {
		f.follow()
	}
}

// TickFlush calls TickFlush of its drivers.
func (f *Follower) TickFlush(now time.Time) {
	for s := range f.sessions {
		if s.ch != nil && !s.told && !s.ch.Closing() { // after it is known whether this player counts there
			s.told = s.offer(false)
		}
		s.d.TickFlush(now)
		s.look()
	}
	for _, p := range f.past {
		p.d.TickFlush(now)
	}
}

// Close ends all connections at once.
func (f *Follower) Close() (err error) {
	for s := range f.sessions {
		err = errors.Join(err, s.d.Close())
	}
	for _, p := range f.past {
		err = errors.Join(err, p.d.Close())
	}
	f.cur, f.tries, f.past, f.searching = nil, nil, nil, false
	return err
}

// sessions are those that there are, until Close is called: each driver's callbacks may.
func (f *Follower) sessions(yield func(*session) bool) {
	if f.cur == nil || !yield(f.cur) {
		return
	}
	for _, s := range f.tries {
		if f.cur == nil || !yield(s) {
			return
		}
	}
}

// look notes the connection, and opens the channel of the game's.
func (s *session) look() {
	if c := s.d.Server(); s.conn == nil && c != nil {
		s.conn, s.since = c, s.f.now
	}
	if s.ch == nil && s.joined() {
		if ch, err := s.conn.Open(name, s); err == nil {
			s.ch = ch
		}
	}
}

// joined reports whether there is a connection, and it goes on.
func (s *session) joined() bool { return s.conn != nil && s.conn.Joined() && !s.ended() }

// ended reports whether the connection or its dial has.
func (s *session) ended() bool {
	return s.d.Err() != nil || s.conn != nil && (s.conn.Closed() || s.conn.Closing())
}

// offer tells where this player could host.
func (s *session) offer(again bool) bool {
	port := s.f.cfg.Port
	if s.f.cfg.Host == nil {
		port = 0
	}
	b := []byte{kindOffer}
	for ; port >= 0x80; port >>= 7 {
		b = append(b, byte(port)|0x80)
	}
	key, votes := &s.f.cur.plan.key, s.votes || s == s.f.cur
	tells := votes && !key.IsZero() // nobody else is to pose as this player
	b = append(b, byte(port), flag(again, offerAgain)|flag(votes, offerVotes)|flag(tells, offerKey))
	if tells {
		b = append(b, key[:]...)
	}
	return send(s.ch, b)
}

// follow sees what has become of the host.
func (f *Follower) follow() {
	c := f.cur
	silent := c.conn == nil || c.conn.Closed() || c.conn.Silence() >= f.cfg.Silence
	if !f.searching {
		switch {
		case c.ended() && (c.plan.epoch == 0 || c.final()):
			f.fail(c.end())
		case c.plan.epoch != 0 && (silent || c.leaves || !c.plan.standing && f.now >= f.calm):
			f.searching, f.round = true, 0
			f.heard = f.now
			if c.conn != nil && !c.leaves {
				f.heard -= min(c.conn.Silence(), f.now)
			}
			f.begin()
		}
		return
	}
	back := !silent && !c.leaves && c.plan.standing && !c.ended()
	if back && !f.promised() {
		f.cancel()
		return
	}
	f.search(back)
}

// promised reports whether a candidate may go on, or has, because of this player: then it can't go back to the old host before that candidate has
// given up.
func (f *Follower) promised() bool {
	return f.host != nil && f.host.took && f.host.err == nil || slices.ContainsFunc(f.tries, func(s *session) bool { return s.votes && s.told })
}

// final reports whether an end is the host's will for this player, and not the host's own end.
func (s *session) final() bool {
	if s.leaves || s.conn == nil {
		return s.conn == nil
	}
	r := s.conn.Result()
	switch {
	case r.Code == netconn.TimedOut, r.Code == netconn.ClosedByPeer && !errors.Is(r.Err, driver.ErrDenied) && !errors.Is(r.Err, driver.ErrKicked) &&
		!errors.Is(r.Err, driver.ErrReplaced) && !errors.Is(r.Err, driver.ErrShuttingDown):
		return false
	}
	return true
}

// end is why a connection ended.
func (s *session) end() error {
	if s.conn == nil {
		return s.d.Err()
	}
	r := s.conn.Result()
	return errors.Join(fmt.Errorf("migrate: the host ended the connection: %v", r), r.Err)
}

func (f *Follower) fail(err error) {
	f.err = err
	f.searching = false
	f.drop(nil)
}

// drop ends all tries but one, and our server if it isn't that one's.
func (f *Follower) drop(but *session) {
	for _, s := range f.tries {
		if s != but {
			_ = s.d.Close()
		}
	}
	f.tries = nil
	if f.host != nil && (but == nil || !but.own) {
		f.host.yield()
	}
	f.host = nil
}

// begin begins a round. What is under way goes on: others may have begun theirs at another time.
func (f *Follower) begin() {
	f.begun, f.hosted, f.dialed = f.now, false, f.dialed[:0]
	f.round++
}

// cancel goes on with the old host, which is heard again.
func (f *Follower) cancel() {
	f.drop(nil)
	f.searching = false
	f.Counters.Cancelled++
	f.calm = f.now + f.cfg.Silence
	if f.cur != nil && f.cur.ch != nil {
		f.cur.offer(true) // tokens are for one dial
	}
}

// search goes on with a round; where the old host is back, only as far as was promised.
func (f *Follower) search(back bool) {
	p := &f.cur.plan
	for _, s := range f.tries {
		if s.plan.epoch >= p.epoch { // the same where the old host went before all had found it
			f.move(s)
			return
		}
	}
	if f.host != nil && f.host.Err() != nil {
		f.host = nil
	}
	taken := f.host != nil && f.host.took
	for i, c := range p.candidates {
		due := f.now >= f.begun+time.Duration(i)*f.cfg.Turn
		switch {
		case c.id == p.you && taken && f.try(c.id) == nil:
			f.dial(c, true)
		case back:
		case c.id == p.you && f.host == nil && !f.hosted:
			if due && !slices.ContainsFunc(f.tries, func(s *session) bool { return s.votes }) {
				f.become(c)
			}
		case c.id != p.you && !taken && f.try(c.id) == nil:
			f.dial(c, false)
		}
		if f.cur == nil {
			return // Dial or Host has called Close
		}
	}
	if f.votes(); f.cur == nil {
		return
	}
	if !taken && f.now >= f.begun+time.Duration(len(p.candidates))*f.cfg.Turn+f.cfg.Wait {
		here := f.cur.joined() && f.cur.conn.Silence() < f.cfg.Silence && !f.cur.leaves
		switch {
		case f.round < tokensEach && len(p.candidates) > 0:
		case here: // the host is, and may go on when those that it doesn't hear have timed out
			f.round = 0
			f.cur.offer(true)
		default:
			f.fail(ErrNobody)
			return
		}
		f.begin()
	}
}

// try is the dial of a candidate.
func (f *Follower) try(id uint64) *session {
	for _, s := range f.tries {
		if s.id == id {
			return s
		}
	}
	return nil
}

// votes counts for the first candidate that has answered, as long as it is heard; for ourselves before those behind us.
func (f *Follower) votes() {
	kept := f.tries[:0]
	for _, s := range f.tries {
		late := !s.joined() && f.now >= s.since+f.cfg.Wait // its server may have gone amid the handshake
		if late || s.ended() || s.joined() && s.conn.Silence() >= f.cfg.Silence {
			if _ = s.d.Close(); f.cur == nil {
				return
			}
			if late || s.conn != nil { // its server is there, or was and may begin again
				f.dialed = slices.DeleteFunc(f.dialed, func(id uint64) bool { return id == s.id })
			}
			continue
		}
		kept = append(kept, s)
	}
	clear(f.tries[len(kept):])
	f.tries = kept
	if f.host != nil && f.host.took {
		return
	}
	var best *session
	for _, s := range f.tries {
		if s.votes { // it may have counted that already
			best = s
			break
		}
		if s.joined() && !s.own && (best == nil || f.place(s.id) < f.place(best.id)) {
			best = s
		}
	}
	if f.host != nil && best != nil {
		if f.place(best.id) > f.place(f.cur.plan.you) {
			best = nil // it will count for us, or it is the host already and says so
		} else {
			f.host.yield()
			f.host = nil
		}
	}
	for _, s := range f.tries {
		if votes := s == best; s.votes != votes {
			s.votes, s.told = votes, false
		}
	}
}

// place is that of a candidate in the list, or behind it.
func (f *Follower) place(id uint64) int {
	list := f.cur.plan.candidates
	if i := slices.IndexFunc(list, func(c candidate) bool { return c.id == id }); i >= 0 {
		return i
	}
	return len(list)
}

// become opens our server.
func (f *Follower) become(c candidate) {
	p := &f.cur.plan
	f.hosted, f.opened = true, f.now
	if f.cfg.Host == nil || f.cur.whole == nil || p.key.IsZero() || f.cur.used[c.id] >= len(f.cur.tokens[c.id]) {
		return // without a token of its own it couldn't play there
	}
	f.Counters.Held++
	h, err := f.cfg.Host(Succession{You: p.you, Players: p.players, Checkpoint: bytes.Clone(f.cur.whole), Lost: max(f.heard-f.cur.wholeAt, 0), epoch: p.epoch, candidates: p.candidates,
		Link: driver.Netcode{Key: p.key, Addrs: []netip.AddrPort{c.addr}, TakeOver: true}})
	if err == nil {
		f.host = h
	}
}

// dial begins one, if there is a token left for it.
func (f *Follower) dial(c candidate, own bool) {
	used, tokens := f.cur.used[c.id], f.cur.tokens[c.id]
	if used >= len(tokens) || slices.Contains(f.dialed, c.id) {
		return
	}
	f.dialed = append(f.dialed, c.id)
	f.cur.used[c.id]++
	f.Counters.Dials++
	d, err := f.cfg.Dial(Destination{Addr: c.addr, Link: driver.Netcode{Token: tokens[used]}, Own: own})
	if err != nil || d == nil {
		return
	}
	if f.cur == nil {
		_ = d.Close()
		return
	}
	s := &session{f: f, d: d, id: c.id, own: own, since: f.now}
	f.tries = append(f.tries, s)
	d.TickDispatch(f.tick)
	s.look()
}

// inherit keeps what the host before has given until the new one has sent its own: it may go at once. Candidates have the same keys with both.
func (s *session) inherit(old *session) {
	if s.whole == nil {
		s.whole, s.wholeAt = old.whole, old.wholeAt
	}
	s.plan.keep(old.plan.key)
	for _, c := range s.plan.candidates {
		if s.tokens[c.id] == nil && slices.Contains(old.plan.candidates, c) {
			s.keepTokens(c.id, old.tokens[c.id], old.used[c.id])
		}
	}
}

// move goes on with another host.
func (f *Follower) move(to *session) {
	old := f.cur
	if f.drop(to); f.cur == nil {
		return
	}
	f.cur, f.searching = to, false
	to.inherit(old)
	f.Counters.Migrations++
	f.Counters.Still = f.now - f.heard
	if old.conn != nil && !old.conn.Closed() {
		f.past = append(f.past, parting{old.d, f.now + partingTime})
		old.conn.CloseWithReason(moved)
	} else {
		_ = old.d.Close()
	}
	if f.cur != nil && f.cfg.Moved != nil {
		f.cfg.Moved(to.d, to.own)
	}
}
