package travel

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Config is the settings of a Server.
type Config struct {
	// Stays reports whether an actor goes along to the next level, with its components; it is shown to clients that are still loading, too. nil
	// is none.
	Stays func(a actorrep.Actor) bool
	// Timeout is how long after the first Step behind To Arrived is called though somebody isn't ready. Default 30 s.
	Timeout time.Duration
	// Late is told then of everybody who isn't, in the order they came: such a client goes on seeing only what stays until it is ready, or
	// the game ends its connection. When it calls To the others aren't told of. May be nil.
	Late func(p *actorrep.Peer)
	// Arrived is called once after To, from Step: all are ready, or Timeout is over. May be nil.
	Arrived func(m string)
}

// Server is the server's part. It belongs to the goroutine of its world.
type Server struct {
	cfg       Config
	world     *actorrep.World
	level     *Level // nil before the first To
	now       time.Duration
	peers     []*traveler // in the world's order
	traveling bool
	began     bool // a Step has come since To
	deadline  time.Duration
}

// traveler is a connection, and the number of the level that it is ready for.
type traveler struct {
	peer  *actorrep.Peer
	there uint32
}

// NewServer returns one without a level, or what is wrong. It registers the class of Level.
func NewServer(w *actorrep.World, cfg Config) (*Server, error) {
	switch {
	case !w.IsServer():
		return nil, fmt.Errorf("%w: NewServer needs a server's world", ErrConfig)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("%w: Timeout %v must be positive, or 0 for the default", ErrConfig, cfg.Timeout)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	return &Server{cfg: cfg, world: w}, register(w)
}

// look takes in the world's connections as they are now. Those that came since the last time have got nothing yet.
func (s *Server) look() {
	n := 0
	for p := range s.world.Peers {
		if p.IsReplay() {
			continue // it sees everything
		}
		for n < len(s.peers) && s.peers[n].peer != p { // gone: both are in the order they came
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

// hold keeps what doesn't stay from a client that isn't ready.
func (s *Server) hold(p *actorrep.Peer) { p.Hold(func(a actorrep.Actor) bool { return !s.stays(a) }) }

func (s *Server) stays(a actorrep.Actor) bool {
	return a == actorrep.Actor(s.level) || s.cfg.Stays != nil && s.cfg.Stays(a)
}

// To destroys all actors but those that stay, and has everybody travel to another level, or to the same one again.
func (s *Server) To(m string) error {
	if len(m) > MaxMap || !utf8.ValidString(m) {
		return ErrMap
	}
	if s.level == nil {
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

// ready is a client's word.
func (s *Server) ready(p *actorrep.Peer, number uint32) {
	if s.level == nil || number != s.level.Number {
		return // of a level before
	}
	for _, t := range s.peers {
		if t.peer == p {
			t.there = number
			p.Release()
		}
	}
}

// Step looks who has come, and who is ready. Call it each tick, before World.Step.
func (s *Server) Step(now time.Duration) {
	s.now = max(s.now, now)
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
		if s.cfg.Late != nil && !s.traveling { // Late may have traveled on
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

// Map is the level that To was given last; "" before.
func (s *Server) Map() string {
	if s.level == nil {
		return ""
	}
	return s.level.Map
}

// Traveling reports whether To was called and Arrived is to come.
func (s *Server) Traveling() bool { return s.traveling }

// IsReady reports whether a connection is ready for the present level.
func (s *Server) IsReady(p *actorrep.Peer) bool {
	for _, t := range s.peers {
		if t.peer == p {
			return s.level != nil && t.there == s.level.Number
		}
	}
	return false
}
