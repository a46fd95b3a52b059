package travel

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Config configures a Server.
type Config struct {
	// Stays reports whether an actor survives To, with its components. Clients see it even while they load. Default: no
	// actor does.
	Stays func(a actorrep.Actor) bool
	// Timeout is how long a Server waits for all clients to be ready, counted from the first Step after To. Then it calls
	// Arrived anyway. Default 30 s.
	Timeout time.Duration
	// Late is called after Timeout for each client that isn't ready, in the order in which they were added. Such a
	// client continues to see only what stays, until it is ready or the game ends its connection. If Late calls To, it
	// isn't called for the remaining ones. May be nil.
	Late func(p *actorrep.Peer)
	// Arrived is called from Step, once after each To, when all clients are ready or Timeout is over. May be nil.
	Arrived func(m string)
}

// Server is the server's part. It belongs to its world's goroutine.
type Server struct {
	cfg       Config
	world     *actorrep.World
	level     *Level // nil before the first To
	now       time.Duration
	peers     []*traveler // in the world's order
	traveling bool
	began     bool // Step was called since To
	stepped   bool // Step was called
	deadline  time.Duration
}

// traveler is a connection and the number of the level that it is ready for.
type traveler struct {
	peer  *actorrep.Peer
	there uint32
}

// NewServer returns a Server without a level. It registers the class of Level. Errors wrap ErrConfig.
func NewServer(w *actorrep.World, cfg Config) (*Server, error) {
	switch {
	case !w.IsServer():
		return nil, fmt.Errorf("%w: NewServer needs a server's world", ErrConfig)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("%w: Timeout %v must be positive, or 0 for the default", ErrConfig, cfg.Timeout)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	s := &Server{cfg: cfg, world: w}
	watch(w, func() bool { return !s.stepped && s.level != nil }, errNoStep)
	return s, register(w)
}

// look updates the list of connections. New ones have received nothing yet.
func (s *Server) look() {
	n := 0
	for p := range s.world.Peers {
		if p.IsReplay() {
			continue // a recording: nothing is held back
		}
		for n < len(s.peers) && s.peers[n].peer != p { // removed: both lists have the same order
			s.peers = slices.Delete(s.peers, n, n+1)
		}
		if n == len(s.peers) {
			s.peers = append(s.peers, &traveler{peer: p})
			if s.level != nil {
				s.hold(p)
			}
		}
		n++
	}
	s.peers = slices.Delete(s.peers, n, len(s.peers))
}

// adopt takes over the level of a restored checkpoint.
func (s *Server) adopt() {
	if s.level != nil {
		return
	}
	for a := range s.world.All {
		if l, ok := a.(*Level); ok {
			s.level, l.server = l, s
			return
		}
	}
}

// hold holds back what doesn't stay from a client that isn't ready.
func (s *Server) hold(p *actorrep.Peer) { p.Hold(func(a actorrep.Actor) bool { return !s.stays(a) }) }

func (s *Server) stays(a actorrep.Actor) bool {
	return a == actorrep.Actor(s.level) || s.cfg.Stays != nil && s.cfg.Stays(a)
}

// To destroys all actors except those that stay, and makes all clients load level m, which may be the current one. Errors:
// ErrMap, or those of World.Spawn and World.Destroy.
func (s *Server) To(m string) error {
	if len(m) > MaxMap || !utf8.ValidString(m) {
		return ErrMap
	}
	if s.adopt(); s.level == nil {
		l := &Level{server: s}
		if err := s.world.Spawn(l); err != nil {
			return err
		}
		s.level = l
	}
	for a := range s.world.All {
		if b := baseOf(a); b.Parent() == nil && !s.stays(a) {
			if err := s.world.Destroy(a); err != nil {
				return err
			}
		}
	}
	s.level.set(m, s.level.Number+1)
	s.look()
	for _, t := range s.peers {
		s.hold(t.peer)
	}
	s.traveling, s.began = true, false
	return nil
}

// ready handles a client's call.
func (s *Server) ready(p *actorrep.Peer, number uint32) {
	if s.level == nil || number != s.level.Number {
		return // an earlier level
	}
	for _, t := range s.peers {
		if t.peer == p {
			t.there = number
			p.Release()
		}
	}
}

// Step finds new connections and clients that are ready. Call it each tick before World.Step.
func (s *Server) Step(now time.Duration) {
	s.now = max(s.now, now)
	if !s.stepped {
		s.stepped = true
		s.adopt()
	}
	s.look()
	if !s.traveling {
		return
	}
	if !s.began {
		s.began, s.deadline = true, s.now+s.cfg.Timeout
	}
	late := s.waiting()
	if len(late) > 0 && s.now < s.deadline {
		return
	}
	s.traveling = false
	for _, p := range late {
		if s.cfg.Late != nil && !s.traveling { // Late may have called To
			s.cfg.Late(p)
		}
	}
	if s.cfg.Arrived != nil && !s.traveling {
		s.cfg.Arrived(s.level.Map)
	}
}

func (s *Server) waiting() (late []*actorrep.Peer) {
	for _, t := range s.peers {
		if t.there != s.level.Number {
			late = append(late, t.peer)
		}
	}
	return late
}

// Map is the name of the current level; "" before the first To.
func (s *Server) Map() string {
	if s.level == nil {
		return ""
	}
	return s.level.Map
}

// Traveling reports whether To was called and Arrived not yet.
func (s *Server) Traveling() bool { return s.traveling }

// IsReady reports whether a connection is ready for the current level.
func (s *Server) IsReady(p *actorrep.Peer) bool {
	for _, t := range s.peers {
		if t.peer == p {
			return s.level != nil && t.there == s.level.Number
		}
	}
	return false
}
