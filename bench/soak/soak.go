package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// soak is everything: servers, networks, clients, and what went wrong.
type soak struct {
	o       options
	rng     *rand.Rand
	start   time.Time
	now     time.Time
	servers []*server
	paths   []*path
	clients []*client
	byName  map[string]*client
	streams sync.WaitGroup // goroutines of clients' streams
	ticks   int
	came    int
	left    int

	frozen   time.Time // actors hold still since then; zero when they move
	melted   time.Time // when they last began to move
	freezes  int
	nextLook time.Time
	last     sample
	samples  []sample

	mu    sync.Mutex
	wrong []string
	count int
}

func newSoak(o options) (*soak, error) {
	s := &soak{o: o, rng: rand.New(rand.NewPCG(o.seed, 1)), start: time.Now(), byName: map[string]*client{}}
	s.now, s.melted = s.start, s.start
	for i, l := range links() {
		sv, err := newServer(s, l, o.seed*10+uint64(i))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.servers = append(s.servers, sv)
		for j := range kinds {
			p, err := newPath(&kinds[j], sv, o.seed*1000+uint64(100*i+2*j))
			if err != nil {
				return nil, errors.Join(err, s.close())
			}
			s.paths = append(s.paths, p)
		}
	}
	return s, nil
}

// close closes what is left.
func (s *soak) close() error {
	var errs []error
	for _, p := range s.paths {
		errs = append(errs, p.proxy.Close())
	}
	for _, c := range s.clients {
		errs = append(errs, c.driver.Close())
		c.streams.cancel()
	}
	for _, sv := range s.servers {
		errs = append(errs, sv.driver.Close(), sv.echoes.close())
	}
	s.streams.Wait()
	return errors.Join(errs...)
}

// maxProblems is how many are kept in words.
const maxProblems = 20

// problem notes what should not be. Any goroutine may call it.
func (s *soak) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count++; s.count <= maxProblems {
		s.wrong = append(s.wrong, fmt.Sprintf("%6.1f s  ", s.now.Sub(s.start).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (s *soak) problems() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *soak) connections() (n int) {
	for _, sv := range s.servers {
		n += sv.driver.Len()
	}
	return n
}

// longest is what a tick is worth at most.
func (s *soak) longest() time.Duration { return 2 * time.Second / time.Duration(s.o.rate) }

// clock is the soak's time, for drivers.
func (s *soak) clock() time.Time { return s.now }

// step is one tick of everything.
func (s *soak) step(now time.Time) error {
	s.mu.Lock()
	s.now = now // problems of other goroutines look at it
	s.mu.Unlock()
	s.ticks++
	if err := s.carry(); err != nil {
		return err
	}
	s.freeze()
	for _, sv := range s.servers {
		if err := sv.tick(now); err != nil {
			return err
		}
	}
	if err := s.carry(); err != nil {
		return err
	}
	kept := s.clients[:0]
	for _, c := range s.clients {
		c.tick(now)
		if c.state == gone {
			s.leave(c)
			continue
		}
		kept = append(kept, c)
	}
	clear(s.clients[len(kept):])
	s.clients = kept
	if err := s.join(); err != nil {
		return err
	}
	s.take()
	return nil
}

func (s *soak) carry() error {
	for _, p := range s.paths {
		if err := p.step(s.now, 2*s.o.rate); err != nil {
			return err
		}
	}
	return nil
}

// join lets clients come, at most a twentieth of them in a tick, while there are too few and time is left.
func (s *soak) join() error {
	if s.now.Sub(s.start) >= s.o.duration {
		return nil
	}
	for range 1 + s.o.clients/20 {
		if len(s.clients) >= s.o.clients {
			return nil
		}
		c, err := newClient(s, s.paths[s.rng.IntN(len(s.paths))], s.came)
		if err != nil {
			return err
		}
		s.came++
		s.clients = append(s.clients, c)
		s.byName[c.name] = c
	}
	return nil
}

func (s *soak) leave(c *client) {
	s.left++
	delete(s.byName, c.name)
	c.path.totals.add(&c.talk.totals)
	if c.conn != nil {
		c.path.probes += c.conn.Stats().Packets.SizeProbes
	}
	if c.session != nil {
		c.path.totals.add(&c.session.talk.totals)
	}
	c.path.streams += c.streams.n.Load()
	c.path.bytes += c.streams.bytes.Load()
	c.path.calls += uint64(c.callsHeard())
	if c.player != nil {
		c.path.turns += c.player.count
	}
}

// totals is what arrived so far at all ends, those of clients that are here left out.
func (s *soak) totals() (t totals) {
	for _, p := range s.paths {
		t.add(&p.totals)
	}
	return t
}

const (
	meltFor   = 5 * time.Second  // actors move, or a quarter of the run
	freezeFor = 40 * time.Second // in which all must have come
)

// freeze holds the actors still now and then, until every client sees what its server has.
func (s *soak) freeze() {
	switch {
	case s.frozen.IsZero() && s.now.Sub(s.melted) > min(meltFor, s.o.duration/4):
		s.frozen = s.now
		s.hold(true)
		for _, c := range s.clients {
			c.same = false
		}
	case s.frozen.IsZero() || s.now.Before(s.nextLook):
	default:
		s.nextLook = s.now.Add(100 * time.Millisecond)
		if s.allSame() {
			s.frozen, s.melted = time.Time{}, s.now
			s.freezes++
			s.hold(false)
		}
	}
}

func (s *soak) hold(still bool) {
	for _, sv := range s.servers {
		sv.yard.frozen = still
	}
}

// allSame reports whether those who play see what they should; who doesn't for too long is a problem. Who came or moved
// after the freeze began has until the next one.
func (s *soak) allSame() bool {
	late, all := s.now.Sub(s.frozen) > freezeFor, true
	for _, c := range s.clients {
		if c.same || c.state != playing || c.since.After(s.frozen) || c.moved.After(s.frozen.Add(-15*time.Second)) {
			continue
		}
		d := difference(c.world, c.path.server.yard.world, c.name)
		if c.same = d == ""; c.same {
			continue
		}
		if all = false; late {
			s.problem("%s: %v after the actors held still: %s; %s", c, freezeFor, d, c.explain())
		}
	}
	return all || late
}
