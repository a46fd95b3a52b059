package migrate

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// HostConfig configures a Host. The first host of a game whose link is Netcode needs only Clock and ProtocolID.
type HostConfig struct {
	// Succession is what FollowerConfig.Host got; nil for the first host of a game.
	Succession *Succession
	// ID returns the id of a connection's player, proven by the link or the login; 0 for a connection that can't migrate.
	// Default the ClientID of the Netcode link.
	ID func(c *driver.Conn) uint64
	// Own reports whether a connection is of the host's own player, who is gone when the host is. Default: none for the first
	// host; for a successor, with Own or without, the player with Succession.You.
	Own func(c *driver.Conn) bool
	// Trust reports whether a player may be a candidate, and so get all of the game's state. Default: all who offer a port.
	Trust func(c *driver.Conn) bool
	// Addr returns the address at which others reach a player who offers port. Default the player's address, with that port.
	Addr func(c *driver.Conn, port uint16) netip.AddrPort
	// Candidates is how many players get checkpoints, 1 to 8. Default 3.
	Candidates int
	// Interval is the time between checkpoints. Default 1 s.
	Interval time.Duration
	// MaxCheckpoint bounds a checkpoint, in bytes. Default 1 MiB, at most 64 MiB. The followers' must be at least as large.
	MaxCheckpoint int
	// Rate bounds the checkpoints and tokens sent to a player, in bytes a second. Default 256 KiB.
	Rate int
	// Save appends what checkpoints have besides actors' fields. May be nil.
	Save Save
	// Silence is how long a player may be silent before it counts as gone. Default 700 ms, as a Follower's.
	Silence time.Duration
	// Wait is how long a successor waits for more than half of the players to join. Default 3 s; see FollowerConfig.Wait.
	Wait time.Duration
	// ProtocolID is that of the Netcode links.
	ProtocolID uint64
	// Clock is the time of day, such as time.Now. Needed: tokens expire after a day. Rand is the source of keys. Default
	// crypto/rand.
	Clock func() time.Time
	Rand  io.Reader
	// Failed is called when a checkpoint, a key or tokens couldn't be made, as with ErrLarge; once until a checkpoint is made
	// again. May be nil.
	Failed func(err error)
}

// Errors of a host.
var (
	// ErrConfig is wrapped by errors about a HostConfig or FollowerConfig.
	ErrConfig = errors.New("migrate: config")
	// ErrMinority: within Wait no more than half of the players came to this successor.
	ErrMinority = errors.New("migrate: too few players came to this host")
	// ErrYielded: another host has taken over the game.
	ErrYielded = errors.New("migrate: another host has taken over the game")
)

// HostCounters counts since NewHost.
type HostCounters struct {
	Plans, Checkpoints, Delivered, Skipped uint64 // of checkpoints: made, sent whole, due while the one before was still being sent
	Bytes                                  uint64 // of the last checkpoint
	Stood                                  uint64 // times that it paused, since it heard less than half of the players
}

// Host is the part of the machine that runs the game's server. Call Step each tick.
type Host struct {
	Counters HostCounters

	cfg      HostConfig
	world    *actorrep.World
	epoch    uint32
	own      uint64 // the id of its own player, when there is a succession
	now      time.Duration
	day      int64         // the time of day, in seconds
	passed   time.Duration // since the last Step
	begun    bool
	deadline time.Duration // of a successor
	woke     time.Duration // players that left before did it while the host stood still
	links    []*link       // in the order they came
	took     bool          // it is the host
	standing bool
	version  uint32 // of the plan
	state    uint64 // a hash of what the plan says
	renewed  time.Duration
	next     time.Duration // checkpoint
	number   uint32
	snapshot []byte
	told     bool // Failed was, of the present failure
	leaving  leaving
	leaveAt  time.Duration
	saved    bool // a candidate has the last checkpoint
	err      error
}

// leaving is how far Leave has come.
type leaving uint8

const (
	stays  leaving = iota
	saving         // the last checkpoint is on its way
	saying         // players are told
	left
)

// link is a player's connection. It handles the channel.
type link struct {
	channel.Nop
	host *Host
	ch   *channel.Channel
	conn *driver.Conn
	id   uint64
	own  bool

	offered, port uint16 // now, and as the plan has it
	portAt        time.Duration
	again, votes  bool
	againAt       time.Duration
	has           []candidate    // whose tokens it was sent
	addr          netip.AddrPort // of a candidate
	chooseAt      time.Duration  // when it may become one again
	offeredKey    netcode.Key    // that it had as a candidate of the host before
	key           netcode.Key    // its present one; none for who is expected
	version       uint32         // of the plan that it was sent
	sending       []byte
	at            int // how much of it was sent
	number        uint32
	last          bool    // Leave's checkpoint has arrived
	credit        float64 // bytes that may be sent
	issued        int64   // the time of day of the first tokens in has
	asked         bool    // for spare bandwidth
	gone, ended   bool    // it is nobody's any more; its connection has ended
	ready         bool    // its world is open, as far as can be told
	// until is how long a player who went to another host, which isn't one who left, or is expected from the host before, is kept in the plan,
	// silent; 0 for the others.
	until time.Duration
}

// isListed reports whether it is among the plan's candidates.
func (l *link) isListed() bool { return l.addr.IsValid() }

// expect takes the players of the host before for silent ones, so that the plan has them before they come.
func (h *Host) expect(s *Succession) {
	for _, id := range s.Players {
		if id == s.You || slices.ContainsFunc(h.links, func(l *link) bool { return l.id == id }) {
			continue
		}
		l := &link{host: h, id: id, gone: true, ended: true, until: h.now + awayTime}
		if i := slices.IndexFunc(s.candidates, func(c candidate) bool { return c.id == id }); i >= 0 {
			l.addr = s.candidates[i].addr
		}
		h.links = append(h.links, l)
	}
}

// NewHost returns the host's part. Errors: ErrConfig, or actorrep.ErrClient for a client's world.
func NewHost(w *actorrep.World, cfg HostConfig) (*Host, error) {
	if !w.IsServer() {
		return nil, actorrep.ErrClient
	}
	if cfg.Clock == nil {
		return nil, fmt.Errorf("%w: Clock is needed, such as time.Now", ErrConfig)
	}
	if cfg.Candidates < 0 || cfg.Candidates > maxCandidates || cfg.Interval < 0 || cfg.Rate < 0 || cfg.Silence < 0 || cfg.Wait < 0 ||
		cfg.MaxCheckpoint < 0 || cfg.MaxCheckpoint > mostCheckpoint {
		return nil, fmt.Errorf("%w: Candidates %d must be from 1 to %d, Interval %v, Rate %d, Silence %v and Wait %v positive, and MaxCheckpoint %d from 1 to %d, or 0 for the default", ErrConfig, cfg.Candidates, maxCandidates,
			cfg.Interval, cfg.Rate, cfg.Silence, cfg.Wait, cfg.MaxCheckpoint, mostCheckpoint)
	}
	cfg.Candidates, cfg.Interval = cmp.Or(cfg.Candidates, defaultCandidates), cmp.Or(cfg.Interval, defaultInterval)
	cfg.MaxCheckpoint, cfg.Rate = cmp.Or(cfg.MaxCheckpoint, defaultCheckpoint), cmp.Or(cfg.Rate, defaultRate)
	cfg.Silence, cfg.Wait = cmp.Or(cfg.Silence, defaultSilence), cmp.Or(cfg.Wait, defaultWait)
	if cfg.ID == nil {
		cfg.ID = (*driver.Conn).ClientID
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Addr == nil {
		cfg.Addr = func(c *driver.Conn, port uint16) netip.AddrPort {
			return netip.AddrPortFrom(c.RemoteAddr().Addr().Unmap(), port)
		}
	}
	h := &Host{cfg: cfg, world: w, epoch: 1, took: cfg.Succession == nil, standing: true}
	if s := cfg.Succession; s != nil {
		h.epoch, h.own = s.epoch+1, s.You
	}
	if cfg.Own == nil {
		h.cfg.Own = func(*driver.Conn) bool { return false }
	}
	return h, nil
}

// Channel is the channel type to add to the driver.Config of the host's server.
func (h *Host) Channel() channel.Type {
	return channel.Type{Name: name, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
		conn := driver.ConnOf(ch)
		if conn == nil || slices.ContainsFunc(h.links, func(l *link) bool { return l.conn == conn }) {
			return nil // it has one, or had: each costs all players tokens
		}
		l := &link{host: h, ch: ch, conn: conn}
		h.links = append(h.links, l)
		return l
	}}
}

// Ready reports whether the game runs here. While it is false, pause the game: don't change its state.
func (h *Host) Ready() bool { return h.took && h.standing && h.err == nil && h.leaving == stays }

// Err is why this isn't the host any more, or never became it: ErrMinority or ErrYielded; nil otherwise. Close the server
// then.
func (h *Host) Err() error { return h.err }

// leaveTime is how long the candidates have for the last checkpoint, and all to hear of it; othersTime how long the others have when one has it.
const (
	leaveTime  = time.Second
	othersTime = 200 * time.Millisecond
)

// Leave ends the game here in order: the game pauses, the candidates get a last checkpoint, and the players are told to continue
// without this host. The candidates that have that checkpoint come first in the list. When the first has it, the others get
// 200 ms more. Call Step until Left reports true, then shut the server down. For a successor that isn't the host yet Left
// reports true at once.
func (h *Host) Leave() {
	switch {
	case h.leaving != stays:
	case !h.took || h.err != nil: // the players go to somebody else
		h.leaving = left
		h.yield()
	default:
		h.leaving, h.leaveAt = saving, h.now+leaveTime
		h.next = h.now
	}
}

// Left reports whether Leave is complete.
func (h *Host) Left() bool { return h.leaving == left || h.leaving != stays && h.err != nil }

// Step checks which players are there, and sends what is due. Call it each tick, between World.Step and the driver's
// TickFlush.
func (h *Host) Step(now time.Duration) {
	h.passed, h.now = max(now-h.now, 0), max(h.now, now)
	h.day = h.cfg.Clock().Unix()
	if h.begun && h.passed >= h.cfg.Silence {
		h.woke = h.now + wokeTime
	}
	if h.err != nil {
		return
	}
	if !h.begun {
		h.begun, h.deadline, h.next = true, h.now+h.cfg.Wait, h.now
		if h.cfg.Succession != nil {
			h.expect(h.cfg.Succession)
		}
	}
	h.look()
	if !h.took {
		h.takeOver()
		return
	}
	h.count()
	h.appoint()
	h.plan()
	h.save()
	h.leave()
}

// look notes which players have left or joined.
func (h *Host) look() {
	kept := h.links[:0]
	for _, l := range h.links {
		if l.id == 0 && !l.gone && l.conn.Joined() && !l.conn.Closed() {
			if l.id = h.cfg.ID(l.conn); l.id != 0 {
				l.own = h.cfg.Own(l.conn) || l.id == h.own
				for _, old := range h.links {
					if old != l && old.id == l.id {
						if old.conn == nil { // expected, until it says that it follows this host
							l.addr, l.until = old.addr, old.until
						}
						old.id, old.gone, old.until = 0, true, 0
					}
				}
			}
		}
		if !l.ended && l.conn.Closed() {
			l.gone, l.ended = true, true
			r := l.conn.Result()
			if l.id != 0 && (r.Reason == moved || r.Code == netconn.ClosedByPeer && h.now < h.woke) && h.away() < maxPlayers {
				l.until = h.now + awayTime
			}
		}
		if !l.ended || h.now < l.until {
			kept = append(kept, l)
		}
	}
	clear(h.links[len(kept):])
	h.links = kept
}

// away is how many went to another host.
func (h *Host) away() (n int) {
	for _, l := range h.links {
		if l.until != 0 {
			n++
		}
	}
	return n
}

// wokeTime is how long after a hitch of Silence or more who has left counts as gone to another host.
const wokeTime = 200 * time.Millisecond

// awayTime is how long who went to another host, or hasn't come from the one before, counts as somebody who isn't heard. So long the plan has him, as who is
// here may find him elsewhere: without him they would be more than half of the players.
const awayTime = 10 * time.Second

// players calls yield for everybody who can migrate.
func (h *Host) players(yield func(l *link) bool) {
	for _, l := range h.links {
		if l.id != 0 && !l.gone && !yield(l) {
			return
		}
	}
}

// known calls yield for those, and for players that went to another host a moment ago.
func (h *Host) known(yield func(l *link) bool) {
	for _, l := range h.links {
		if l.id != 0 && (!l.gone || l.until != 0) && !yield(l) {
			return
		}
	}
}

// takeOver begins when more than half of the players are here.
func (h *Host) takeOver() {
	s := h.cfg.Succession
	here := 0
	for _, id := range s.Players {
		if id == s.You {
			here++
			continue
		}
		for l := range h.players {
			if l.id == id && l.votes && l.conn.Silence() < h.cfg.Silence {
				here++
			}
		}
	}
	switch {
	case 2*here > len(s.Players):
		h.took = true
	case h.now >= h.deadline:
		h.err = ErrMinority
	}
}

// yield ends a host in favor of another one.
func (h *Host) yield() {
	if h.err == nil {
		h.err = ErrYielded
	}
}

// count sees whether enough of the players are heard.
func (h *Host) count() {
	all, silent := 0, 0
	for l := range h.known {
		if l.own {
			continue
		}
		all++
		if l.gone || l.conn.Silence() >= h.cfg.Silence {
			silent++
		}
	}
	was := h.standing
	if h.standing = 2*silent <= all; was && !h.standing {
		h.Counters.Stood++
	}
}

// appoint chooses the candidates, and makes their keys.
func (h *Host) appoint() {
	n := 0
	for l := range h.known {
		if l.isListed() { // who is keeps its place, in whatever order they have come from the host before
			n++
		}
	}
	for l := range h.players {
		listed := l.isListed()
		if l.offered != l.port && (l.portAt == 0 || h.now >= l.portAt) {
			l.port, l.portAt = l.offered, h.now+offerTime
			if !l.key.IsZero() {
				l.addr, l.key = netip.AddrPort{}, netcode.Key{}
				h.forget(l.id)
			}
		}
		if l.again && h.now >= l.againAt {
			l.again, l.againAt, l.has, l.version = false, h.now+offerTime, l.has[:0], 0
		}
		if len(l.has) > 0 && max(h.day-l.issued, l.issued-h.day) >= renewTime {
			l.has = l.has[:0]
		}
		room := n < h.cfg.Candidates || listed && n == h.cfg.Candidates
		fit := l.port != 0 && l.votes && !l.own && room && (h.cfg.Trust == nil || h.cfg.Trust(l.conn))
		if l.votes {
			l.until = 0
		}
		switch {
		case fit && (!l.key.IsZero() || h.now >= l.chooseAt && h.choose(l)), l.isListed() && h.now < l.until:
		case l.isListed():
			l.addr, l.key, l.sending = netip.AddrPort{}, netcode.Key{}, nil
			h.forget(l.id)
		}
		switch {
		case l.isListed() && !listed:
			n++
		case listed && !l.isListed():
			n--
		}
	}
}

// choose makes a player a candidate, if it can be reached.
func (h *Host) choose(l *link) bool {
	addr, key := h.cfg.Addr(l.conn, l.port), l.offeredKey
	if !addr.IsValid() || addr.Port() == 0 {
		return false
	}
	if key.IsZero() {
		var err error
		if key, err = netcode.GenerateKey(h.cfg.Rand); err != nil {
			h.failed(err)
			return false
		}
	}
	l.addr, l.key, l.chooseAt = addr, key, h.now+offerTime
	return true
}

// offerTime is how often a player may offer another port, become a candidate, or ask for tokens.
const offerTime = 5 * time.Second

// renewTime is the age in seconds, by the time of day, at which tokens are replaced: half of that at which they expire.
const renewTime = 43200

// forget has everybody sent other tokens for a candidate.
func (h *Host) forget(id uint64) {
	for _, l := range h.links {
		l.has = slices.DeleteFunc(l.has, func(c candidate) bool { return c.id == id })
	}
}

// plan tells everybody what has changed of the succession.
func (h *Host) plan() {
	state := uint64(14695981039346656037)
	mix := func(v uint64) { state = (state ^ v) * 1099511628211 }
	mix(uint64(flag(h.standing, 1)))
	for l := range h.known {
		mix(l.id)
		mix(uint64(flag(l.own, 1) | flag(l.isListed(), 2)))
		mix(uint64(l.port))
	}
	if state != h.state && (h.version == 0 || h.now >= h.renewed) {
		h.state, h.renewed = state, h.now+planTime
		h.version++
	}
	for l := range h.players {
		if l.version != h.version && h.tell(l) {
			l.version = h.version
			h.Counters.Plans++
		}
	}
}

// planTime is how often the plan may change.
const planTime = 100 * time.Millisecond

// tell sends a player the plan, and reports whether there was room for it.
func (h *Host) tell(l *link) bool {
	p := plan{epoch: h.epoch, you: l.id, standing: h.standing, key: l.key}
	for o := range h.known {
		if !o.own && len(p.players) < maxPlayers {
			p.players = append(p.players, o.id)
		}
		if o.isListed() {
			p.candidates = append(p.candidates, candidate{o.id, o.addr})
		}
	}
	slices.SortStableFunc(p.candidates, func(a, b candidate) int { return cmp.Compare(h.rank(a.id), h.rank(b.id)) })
	if h.leaving == saying {
		slices.SortStableFunc(p.candidates, func(a, b candidate) int { return cmp.Compare(h.behind(a.id), h.behind(b.id)) })
	}
	return send(l.ch, p.append(nil))
}

// rank is the place of a candidate in the list of the host before, which some may still follow, or behind it.
func (h *Host) rank(id uint64) int {
	if h.cfg.Succession == nil {
		return 0
	}
	list := h.cfg.Succession.candidates
	if i := slices.IndexFunc(list, func(c candidate) bool { return c.id == id }); i >= 0 {
		return i
	}
	return len(list)
}

// behind is 1 for a candidate without the last checkpoint.
func (h *Host) behind(id uint64) int {
	for l := range h.players {
		if l.id == id && l.last {
			return 0
		}
	}
	return 1
}

// tokens sends a player what it needs to dial a candidate.
func (h *Host) tokens(l, to *link) bool {
	b := binary.LittleEndian.AppendUint64([]byte{kindTokens}, to.id)
	now := uint64(h.day)
	for range tokensEach {
		t, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: h.cfg.ProtocolID, ClientID: l.id, Create: now - min(now, 86400), Expire: now + 86400, Timeout: 10,
			Servers: []netip.AddrPort{to.addr}, PrivateKey: to.key, Rand: h.cfg.Rand})
		if err != nil {
			h.failed(err)
			return false
		}
		b = append(b, t...)
	}
	return send(l.ch, b)
}

func (h *Host) failed(err error) {
	if h.cfg.Failed != nil && !h.told {
		h.cfg.Failed(err)
	}
	h.told = true
}

// save makes checkpoints and sends them.
func (h *Host) save() {
	if h.standing && h.now >= h.next && h.leaving < saying && slices.ContainsFunc(h.links, (*link).isCandidate) {
		h.checkpoint()
	}
	for l := range h.players {
		l.pump()
	}
}

func (l *link) isCandidate() bool { return !l.gone && !l.key.IsZero() && l.version != 0 }

// isFree reports whether a checkpoint would be sent to it.
func (l *link) isFree() bool { return l.isCandidate() && l.sending == nil }

func (h *Host) checkpoint() {
	h.next = h.now + h.cfg.Interval
	busy := slices.ContainsFunc(h.links, func(l *link) bool { return l.sending != nil })
	if busy && h.leaving == stays {
		h.Counters.Skipped++
		if !slices.ContainsFunc(h.links, (*link).isFree) {
			return
		}
	}
	into := h.snapshot[:0]
	if busy {
		into = nil // somebody is still being sent that
	}
	b, err := Checkpoint(into, h.world, h.cfg.Save)
	if err == nil && len(b) > h.cfg.MaxCheckpoint {
		err = fmt.Errorf("%w: %d bytes", ErrLarge, len(b))
	}
	if h.snapshot = b; err != nil {
		h.failed(err)
		return
	}
	h.told = false
	h.number++
	h.Counters.Checkpoints++
	h.Counters.Bytes = uint64(len(b))
	for _, l := range h.links {
		if l.isFree() || l.isCandidate() && h.leaving == saving {
			l.sending, l.at, l.number = b, 0, h.number
		}
	}
	if h.leaving == saving {
		h.next = h.now + 24*time.Hour
	}
}

// inFlight is how many bunches of a checkpoint may be unacked.
const inFlight = 32

// lacks is a candidate for whom the player has no tokens; nil for none.
func (l *link) lacks() *link {
	if l.version == 0 {
		return nil
	}
	for o := range l.host.known {
		if !o.key.IsZero() && !slices.Contains(l.has, candidate{o.id, o.addr}) {
			return o
		}
	}
	return nil
}

// pump has tokens and a checkpoint sent in what the game leaves of the bandwidth, within the rate.
func (l *link) pump() {
	h := l.host
	l.credit = min(l.credit+float64(h.cfg.Rate)*h.passed.Seconds(), float64(max(h.cfg.Rate/8, 2*chunkBytes)))
	if !l.asked && (l.sending != nil || l.lacks() != nil) {
		l.asked = true
		l.conn.SendSpare(l.spare)
	}
}

// isReady reports whether the player's world takes the bandwidth that it needs: until its client has answered what it knows nothing of the world is sent, and all
// bandwidth seems to be left.
func (l *link) isReady() bool {
	if l.ready {
		return true
	}
	for p := range l.host.world.Peers {
		if c := p.Conn(); c == channel.Conn(l.conn) || c == channel.Conn(l.conn.Conn) {
			l.ready = p.Ready()
			return l.ready
		}
	}
	return true // the game shows it nothing
}

// spare sends tokens or a chunk, and returns its bytes, or 0 for none.
func (l *link) spare() int {
	if l.gone || l.credit <= 0 || l.ch.NumOutRec() >= inFlight || !l.isReady() {
		l.asked = false
		return 0
	}
	if o := l.lacks(); o != nil && l.host.tokens(l, o) {
		if len(l.has) == 0 {
			l.issued = l.host.day
		}
		l.has = append(l.has, candidate{o.id, o.addr})
		l.credit -= tokensEach * netcode.ConnectTokenBytes
		return tokensEach * netcode.ConnectTokenBytes
	}
	if l.sending == nil {
		l.asked = false
		return 0
	}
	n := min(chunkBytes, len(l.sending)-l.at)
	var buf [chunkBytes + 32]byte
	b := binary.AppendUvarint(append(buf[:0], kindChunk), uint64(l.number))
	b = binary.AppendUvarint(b, uint64(len(l.sending)))
	b = binary.AppendUvarint(b, uint64(l.at))
	if !send(l.ch, append(b, l.sending[l.at:l.at+n]...)) {
		l.asked = false
		return 0
	}
	l.credit -= float64(n)
	if l.at += n; l.at == len(l.sending) {
		l.sending = nil
		l.host.Counters.Delivered++
	}
	return n
}

// leave goes on with what Leave began.
func (h *Host) leave() {
	switch h.leaving {
	case saving:
		have, lack := 0, 0
		for l := range h.players {
			l.last = l.number == h.number && l.sending == nil && l.ch.NumOutRec() == 0
			switch {
			case l.isCandidate() && l.last:
				have++
			case l.isCandidate():
				lack++
			}
		}
		if have > 0 && !h.saved {
			h.saved, h.leaveAt = true, min(h.leaveAt, h.now+othersTime)
		}
		if lack > 0 && (h.now < h.leaveAt || have == 0 && h.now < h.leaveAt+leaveTime) {
			return
		}
		h.leaving = saying
		for l := range h.players {
			if h.tell(l) { // who has the last checkpoint comes first
				send(l.ch, []byte{kindLeave})
			}
		}
		h.leaveAt = h.now + leaveTime
	case saying:
		for l := range h.players {
			if h.now < h.leaveAt && l.ch.NumOutRec() > 0 {
				return
			}
		}
		h.leaving = left
	}
}

// ReceivedBunch is the channel's: a player's offer.
func (l *link) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	if in.Data.Remaining() > 8*maxOffer {
		ch.Conn().Fail(errFormat, false)
		return
	}
	r := read(in)
	kind, port, flags := r.uvarint(), r.uvarint(), r.uvarint()
	var key netcode.Key
	if flags&offerKey != 0 {
		copy(key[:], r.bytes(netcode.KeyBytes))
	}
	if r.done() != nil || kind != kindOffer || port > 65535 || flags&^(offerAgain|offerVotes|offerKey) != 0 {
		ch.Conn().Fail(errFormat, false)
		return
	}
	l.offered, l.again, l.votes, l.offeredKey = uint16(port), l.again || flags&offerAgain != 0, flags&offerVotes != 0, key
}

// Closed is the channel's: the player has gone, or goes to another host.
func (l *link) Closed(*channel.Channel, channel.CloseReason) {
	l.sending = nil
	if !l.conn.Closed() && !l.conn.Closing() {
		l.gone = true
	}
}
