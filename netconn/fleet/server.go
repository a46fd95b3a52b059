package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bunchnet/bunchnet/netconn/kv"
)

// ErrConfig: a setting is missing or out of range.
var ErrConfig = errors.New("fleet: config")

// Timing is the times that all members of a fleet must agree on. Zero fields have the defaults.
type Timing struct {
	// Beat is the time between two announcements of a server. Default 1 s.
	Beat time.Duration
	// Expiry is how long a server that isn't heard of stays in lists. At least 3 Beats. Default 5 s.
	Expiry time.Duration
	// Life is at least the life of connect tokens (tokenserver.Config.Life). A server keeps a seat for twice as long, from when it first
	// hears of the placement. Default 30 s; at least 3 s.
	Life time.Duration
	// OpTimeout is how long an answer of the store is waited for. Default 2 s.
	OpTimeout time.Duration
}

func (t Timing) filled() (Timing, error) {
	t.Beat, t.Expiry = cmp.Or(t.Beat, time.Second), cmp.Or(t.Expiry, 5*time.Second)
	t.Life, t.OpTimeout = cmp.Or(t.Life, 30*time.Second), cmp.Or(t.OpTimeout, 2*time.Second)
	switch {
	case t.Beat < 10*time.Millisecond || t.OpTimeout < 10*time.Millisecond || t.Life < 3*time.Second:
		return t, fmt.Errorf("%w: Beat %v and OpTimeout %v must be at least 10ms, Life %v at least 3s", ErrConfig, t.Beat, t.OpTimeout, t.Life)
	case t.Expiry < 3*t.Beat:
		return t, fmt.Errorf("%w: Expiry %v must be at least 3 Beats of %v, so that one that is lost or late does no harm", ErrConfig, t.Expiry, t.Beat)
	}
	return t, nil
}

// hold is how long a server keeps a seat for a player who doesn't come: as long as placing it may take (Life/3), its party may be found
// (Life/2), and the token is good (Life).
func (t *Timing) hold() time.Duration { return 2 * t.Life }

// young is how long a request for the same seat gets the same placement: one of the same player, or of a further member of the party.
func (t *Timing) young() time.Duration { return t.Life / 2 }

// seatsTTL is how long the store keeps a record that nobody writes: longer than any placement in it is good for.
func (t *Timing) seatsTTL() time.Duration { return 2*t.hold() + t.Expiry }

// stale is the age of a list above which nobody is placed by it.
func (t *Timing) stale() time.Duration { return max(t.Expiry/2, 2*t.Beat) }

// ServerConfig configures a Server.
type ServerConfig struct {
	// Name is the first part of the ID: a host's or pod's. Letters, digits, - and _, at most 64. Default "server".
	Name string
	// Info is the announcement without ID, State and Load. Addrs and Capacity are needed.
	Info Info
	Timing
	// Rand is the source of the ID's random part and of FirstSequence. Default crypto/rand.
	Rand io.Reader
}

// Server is a game server's part of the fleet: it announces the server and keeps its seats. It belongs to the goroutine that ticks the
// game. It never waits for the store.
type Server struct {
	Counters ServerCounters

	cfg      ServerConfig
	info     Info
	hash     uint64
	sequence uint64
	now      time.Duration
	ask      asker

	announce  cell
	beatAt    time.Duration // of the next announcement
	announced time.Duration // when the last one that was written was begun
	ever      bool          // there was one
	said      State         // in it
	saying    State         // in the one under way
	seats     seatKeeper
}

// ServerCounters counts what a Server did.
type ServerCounters struct {
	Announced, Unknown, Conflicts uint64 // announcements written; ops of unknown outcome; writes that others came before
	// Placed counts players who had a seat when they came, WalkIns those for whom one was found, Refused those who got none.
	Placed, WalkIns, Refused uint64
	// Lapsed counts seats that were kept for players who never came.
	Lapsed uint64
}

// NewServer returns a server in the state Starting, or an error that wraps ErrConfig.
func NewServer(cfg ServerConfig) (*Server, error) {
	cfg.Name = cmp.Or(cfg.Name, "server")
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	var err error
	if cfg.Timing, err = cfg.Timing.filled(); err != nil {
		return nil, err
	}
	var random [16]byte
	if _, err := io.ReadFull(cfg.Rand, random[:]); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	s := &Server{cfg: cfg, info: cfg.Info, sequence: binary.LittleEndian.Uint64(random[8:]) >> 2}
	if len(cfg.Name) > 64 {
		return nil, fmt.Errorf("%w: Name has %d bytes; 64 are possible", ErrConfig, len(cfg.Name))
	}
	s.info.ID, s.info.State, s.info.Load = cfg.Name+"-"+hex.EncodeToString(random[:8]), Starting, Load{}
	if err := s.info.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if _, err := s.info.encode(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.hash = serverHash(s.info.ID)
	s.ask.timeout = s.cfg.OpTimeout
	s.announce = cell{key: serverKey + s.info.ID, known: true}
	s.seats.init(s)
	return s, nil
}

// ID returns the server's ID.
func (s *Server) ID() string { return s.info.ID }

// FirstSequence returns a random number for driver.Netcode.FirstSequence: servers that a token names together must not use the same
// packet numbers. The chance that two servers do is below 2^-29 a pair, for connections of up to 2^32 packets.
func (s *Server) FirstSequence() uint64 { return s.sequence }

// Info returns what the server announces.
func (s *Server) Info() Info { return s.info }

// SetLoad sets the load that the next announcement has.
func (s *Server) SetLoad(l Load) { s.info.Load = l }

// Ready lets players be placed here. It has no effect after Drain.
func (s *Server) Ready() {
	if s.info.State == Starting {
		s.info.State = Ready
		s.beatAt = 0
	}
}

// Drain ends the placing of players here. Those who have a seat may still come; the game moves them on, and stops when Drained says so.
func (s *Server) Drain() {
	if s.info.State == Starting || s.info.State == Ready {
		s.info.State = Draining
		s.beatAt = 0
	}
}

// Drained reports whether the server is draining, nobody is here, and nobody is on the way who was placed here.
func (s *Server) Drained() bool {
	return s.info.State == Draining && s.seats.closed() && len(s.seats.players) == 0 && s.seats.expected() == 0
}

// Stop deletes the announcement and the seats. Step until Stopped. It refuses everybody from now on.
func (s *Server) Stop() {
	if s.info.State != Stopped {
		s.info.State = Stopped
		s.announce.op, s.seats.cell.op = 0, 0
	}
}

// Stopped reports whether the records that Stop deletes are gone, or couldn't be deleted in time; they then expire after Expiry.
func (s *Server) Stopped() bool {
	return s.info.State == Stopped && s.announce.kind == kv.Delete && !s.announce.busy() && s.seats.cell.kind == kv.Delete && !s.seats.cell.busy()
}

// Announced reports whether the fleet knows the server's present state: the last announcement was written less than Expiry ago.
func (s *Server) Announced() bool {
	return s.ever && s.said == s.info.State && s.now-s.announced < s.cfg.Expiry
}

// Watches implements kv.Machine.
func (s *Server) Watches() []string { return []string{s.seats.cell.key} }

// Step implements kv.Machine. Call it in each tick, or at least ten times a second.
func (s *Server) Step(now time.Duration, in []kv.Event) []kv.Op {
	s.now = max(s.now, now)
	s.ask.out = s.ask.out[:0]
	for _, e := range in {
		s.event(e)
	}
	for _, c := range []*cell{&s.announce, &s.seats.cell} {
		if c.giveUp(s.now) {
			s.Counters.Unknown++
			s.seats.unsure()
			if c == &s.announce {
				s.beatAt = 0
			}
		}
	}
	if s.info.State == Stopped {
		for _, c := range []*cell{&s.announce, &s.seats.cell} {
			if c.kind != kv.Delete {
				c.begin(&s.ask, s.now, kv.Op{Kind: kv.Delete, Expect: kv.Any})
			}
		}
		return s.ask.out
	}
	s.tell()
	s.seats.step()
	return s.ask.out
}

func (s *Server) event(e kv.Event) {
	if e.Kind != kv.Result {
		if s.ask.anew(e) && s.info.State != Stopped {
			s.announce.anew()
			s.seats.cell.anew()
			s.seats.unsure()
			s.beatAt = 0
		}
		s.seats.watched(e)
		return
	}
	if e.Status == kv.Conflict {
		s.Counters.Conflicts++
	}
	if e.Status == kv.Unknown {
		s.Counters.Unknown++
	}
	asked, kind := s.announce.asked, s.announce.kind
	if s.announce.result(e) {
		if e.Status == kv.OK && kind == kv.Put {
			s.announced, s.ever = asked, true
			s.Counters.Announced++
			s.said = s.saying
		} else if e.Status != kv.OK {
			s.beatAt = 0 // it is read, and written anew
		}
		return
	}
	s.seats.result(e)
}

// tell announces the server.
func (s *Server) tell() {
	c := &s.announce
	switch {
	case c.waits(s.now):
	case !c.known:
		c.get(&s.ask, s.now)
	case s.now >= s.beatAt:
		b, err := s.info.encode()
		if err != nil {
			return // NewServer has tried; a Load doesn't make it 4 KiB
		}
		c.put(&s.ask, s.now, b, s.cfg.Expiry)
		s.saying = s.info.State
		s.beatAt = s.now + s.cfg.Beat
	}
}
