package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// Snapshot holds the counters of a driver and its connections at one moment.
type Snapshot struct {
	At       time.Duration // since the driver's start
	Server   bool
	Addr     netip.AddrPort
	Counters driver.Counters
	Ticks    driver.TickTimes
	Refusals map[string]uint64 // by reason; only those that there were
	Conns    []Conn
}

// Conn is one connection of a Snapshot.
type Conn struct {
	ID     uint32
	Addr   netip.AddrPort
	Name   string `json:",omitempty"` // what Config.Name says, its first 64 characters
	Joined bool
	Stats  netconn.Stats
}

// Source takes snapshots of a driver. Any goroutine may use it.
type Source struct {
	driver *driver.Driver
	slots  chan struct{}
	name   func(*driver.Conn) string

	mu      sync.Mutex
	asked   *asked   // the last one
	waiting []func() // what do has yet to run, maxAsking at most
	working bool     // the driver was asked to work
}

// asked is a Snapshot that the driver was asked for.
type asked struct {
	done chan struct{} // closed when it is there
	snap Snapshot
	at   time.Time // when it was taken
}

const (
	maxAsking   = 8                      // looks that wait for the driver
	snapshotAge = 100 * time.Millisecond // how old a Source's snapshot gets
	workTime    = time.Millisecond       // after so much of a tick no other look begins in it
)

// NewSource returns a Source of snapshots of d.
func NewSource(d *driver.Driver) *Source {
	return &Source{driver: d, slots: make(chan struct{}, maxAsking)}
}

// Errors of a Source.
var (
	// ErrBusy: 8 requests wait for the driver, which isn't ticked or seldom, or an Inspector was asked 16 different things within 3/4 of an interval.
	ErrBusy = errors.New("inspect: too many different requests at a time, or the driver isn't ticked")
	// ErrNotTicked: the driver wasn't ticked while the request waited.
	ErrNotTicked = errors.New("inspect: the driver isn't ticked")
)

// lives reports whether the driver isn't closed. What a closed one is asked to do never runs.
func (s *Source) lives() bool {
	select {
	case <-s.driver.Done():
		return false
	default:
		return true
	}
}

// do runs f on the driver's goroutine and waits for it. After an error f may still run later.
func (s *Source) do(ctx context.Context, f func()) error {
	if !s.lives() {
		return ErrNotTicked
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return ErrBusy
	}
	done := make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, func() {
		defer func() { <-s.slots }() // also when f panics
		if ctx.Err() == nil {
			f()
		}
		close(done)
	})
	if !s.working {
		s.working = true
		s.driver.Do(s.work)
	}
	s.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-s.driver.Done():
		return ErrNotTicked
	case <-ctx.Done():
		return errors.Join(ErrNotTicked, ctx.Err())
	}
}

// work runs what waits, on the driver's goroutine. Looks that were asked for at one time are spread over ticks, so that none is late for many viewers: what is left
// after workTime waits for the next one.
func (s *Source) work() {
	defer s.workOn() // also when one panics
	for begin := time.Now(); time.Since(begin) < workTime; {
		f := s.next()
		if f == nil {
			return
		}
		f()
	}
}

// next takes what has waited longest, or nil.
func (s *Source) next() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	f := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return f
}

// workOn asks the driver to work again, unless nothing waits.
func (s *Source) workOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working = len(s.waiting) > 0; s.working {
		s.driver.Do(s.work)
	}
}

// Snapshot returns a snapshot that is at most 100 ms old, or waits for the driver's next TickDispatch. All who ask meanwhile get the same
// one, so don't change it.
func (s *Source) Snapshot(ctx context.Context) (Snapshot, error) {
	if !s.lives() {
		return Snapshot{}, ErrNotTicked
	}
	a := s.ask()
	select {
	case <-a.done:
		return a.snap, nil
	case <-s.driver.Done():
		return Snapshot{}, ErrNotTicked
	case <-ctx.Done():
		return Snapshot{}, errors.Join(ErrNotTicked, ctx.Err())
	}
}

// ask returns what the driver was asked for last, or asks it again when that is too old.
func (s *Source) ask() *asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.asked; a != nil {
		select {
		case <-a.done:
			if time.Since(a.at) < snapshotAge {
				return a
			}
		default:
			return a
		}
	}
	a := &asked{done: make(chan struct{})}
	s.asked = a
	s.driver.Do(func() {
		a.snap, a.at = s.take(), time.Now()
		close(a.done)
	})
	return a
}

// take belongs to the driver's goroutine.
func (s *Source) take() Snapshot {
	d := s.driver
	snap := Snapshot{At: d.Now(), Server: d.IsServer(), Addr: d.LocalAddr(), Counters: d.Counters, Ticks: d.TickTimes(),
		Refusals: map[string]uint64{}, Conns: make([]Conn, 0, d.Len())}
	for reason, n := range d.Refusals {
		if n > 0 {
			snap.Refusals[reason] = n
		}
	}
	for c := range d.Conns {
		snap.Conns = append(snap.Conns, Conn{ID: c.ID(), Addr: c.RemoteAddr(), Name: s.nameOf(c), Joined: c.Joined(), Stats: c.Stats()})
	}
	return snap
}

// maxName bounds a connection's name, in characters. Names may come from peers, and a page has many.
const maxName = 64

// nameOf is what Config.Name says, shortened. It belongs to the driver's goroutine.
func (s *Source) nameOf(c *driver.Conn) string {
	if s.name == nil {
		return ""
	}
	name, n := s.name(c), 0
	for at := range name {
		if n++; n > maxName {
			return name[:at] + "…"
		}
	}
	return name
}

// Var is a Source as an expvar.Var: expvar.Publish("net", inspect.Var{inspect.NewSource(srv)}).
type Var struct{ *Source }

// varTimeout is how long a Var waits for the driver.
const varTimeout = time.Second

// String returns the snapshot as JSON, or a JSON object with the error.
func (v Var) String() string {
	ctx, cancel := context.WithTimeout(context.Background(), varTimeout)
	defer cancel()
	snap, err := v.Snapshot(ctx)
	var b []byte
	if err == nil {
		b, err = json.Marshal(snap)
	}
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": err.Error()}) // strings always encode
	}
	return string(b)
}

// Channel is one channel of a Detail.
type Channel struct {
	Index                    uint32
	Name                     string
	OutRec, InRec, Room      int // reliable bunches: unacked, early, that may still be sent
	Local, OpenAcked, Closed bool
}

// IdleChannels is the number of channels of one type that have nothing to send or receive.
type IdleChannels struct {
	Name  string
	Count int
}

// maxShown bounds the channels, actors and properties in a Detail, maxChannels the channels that are looked at.
const (
	maxShown    = 256
	maxChannels = 4096
)

// channels returns the channels that have something to do, open or close, and the number of the others.
func channels(t *channel.Table) (busy []Channel, idle []IdleChannels) {
	busy, idle = []Channel{}, []IdleChannels{}
	counts, seen := map[bunch.Name]int{}, 0
	for ch := range t.All {
		if seen++; seen > maxChannels {
			break
		}
		if ch.NumOutRec() == 0 && ch.NumInRec() == 0 && ch.OpenAcked() && !ch.Closing() || len(busy) == maxShown {
			counts[ch.Name()]++
			continue
		}
		busy = append(busy, Channel{Index: ch.Index(), Name: ch.Name().String(), OutRec: ch.NumOutRec(), InRec: ch.NumInRec(), Room: ch.Room(),
			Local: ch.OpenedLocally(), OpenAcked: ch.OpenAcked(), Closed: ch.Closing()})
	}
	for name, n := range counts {
		idle = append(idle, IdleChannels{name.String(), n})
	}
	slices.SortFunc(idle, func(a, b IdleChannels) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return busy, idle
}
