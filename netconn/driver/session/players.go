package session

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// ErrConfig is what NewPlayers and NewRedialer wrap.
var ErrConfig = errors.New("session: config")

// Config is the settings of Players.
type Config[P any] struct {
	// ID is who is at the other end, proven by the link or the login; "" is nobody who could come back. Default the
	// ClientID of the Netcode link, nobody when that is 0.
	ID func(c *driver.Conn) string
	// Keep is how long a player is kept without a connection. Default 2 min.
	Keep time.Duration
	// MaxAway bounds the players without a connection. Beyond it the one that is away longest is Gone. Default 1024.
	MaxAway int
	// Refuse closes a connection of a player who has one, with driver.ErrAlreadyConnected. Default false: the former one is closed,
	// with driver.ErrReplaced. With the Netcode link it is TakeOver that decides.
	Refuse bool
	// Keeps says whether the player is kept after an end. Default when the connection timed out, was replaced, or ended for a
	// bound of ours or a narrow path; not when the player left, broke the protocol or was closed by the server's game.
	Keeps func(r netconn.CloseResult) bool

	// New makes the player of a connection. Needed.
	New func(c *driver.Conn) P
	// Rejoin gives a player another connection: one that was kept, or, on other links than Netcode, one whose former connection this one replaces. That
	// comes without Away: let go of the former connection here, too. May be nil.
	Rejoin func(c *driver.Conn, p P)
	// Away tells that a player's connection has ended, and that it is kept. May be nil.
	Away func(p P, r netconn.CloseResult)
	// Gone tells that a player isn't kept, or not any longer, and how its last connection ended. May be nil.
	Gone func(p P, r netconn.CloseResult)
}

// Players is who plays and who may come back. It belongs to the goroutine that ticks the driver.
type Players[P any] struct {
	cfg    Config[P]
	now    time.Duration
	byConn map[*driver.Conn]*entry[P]
	byID   map[string]*entry[P]
	away   list.List // of *entry[P]; who is away longest is in front
	joined uint64
}

// entry is a player.
type entry[P any] struct {
	player P
	id     string
	nth    uint64       // in the order of New
	conn   *driver.Conn // nil while it is away
	ended  netconn.CloseResult
	until  time.Duration
	at     *list.Element
}

// NewPlayers returns one without players, or what is wrong with its settings.
func NewPlayers[P any](cfg Config[P]) (*Players[P], error) {
	switch {
	case cfg.New == nil:
		return nil, fmt.Errorf("%w: New is needed", ErrConfig)
	case cfg.Keep < 0 || cfg.MaxAway < 0:
		return nil, fmt.Errorf("%w: Keep %v and MaxAway %d must be positive, or 0 for the default", ErrConfig, cfg.Keep, cfg.MaxAway)
	}
	cfg.Keep, cfg.MaxAway = cmp.Or(cfg.Keep, 2*time.Minute), cmp.Or(cfg.MaxAway, 1024)
	if cfg.ID == nil {
		cfg.ID = clientID
	}
	if cfg.Keeps == nil {
		cfg.Keeps = keeps
	}
	return &Players[P]{cfg: cfg, byConn: map[*driver.Conn]*entry[P]{}, byID: map[string]*entry[P]{}}, nil
}

func clientID(c *driver.Conn) string {
	if id := c.ClientID(); id != 0 {
		return strconv.FormatUint(id, 10)
	}
	return ""
}

func keeps(r netconn.CloseResult) bool {
	switch r.Code {
	case netconn.TimedOut, netconn.WeBroke, netconn.PathNarrow:
		return true
	}
	return errors.Is(r.Err, driver.ErrReplaced)
}

// Joined is for driver.Config.
func (s *Players[P]) Joined(c *driver.Conn) {
	s.Tick(c.Now())
	id := s.cfg.ID(c)
	e := s.byID[id]
	switch {
	case id == "" || e == nil:
		s.add(c, id)
		return
	case e.conn != nil && s.cfg.Refuse:
		c.CloseWithError(driver.ErrAlreadyConnected)
		return
	case e.conn != nil:
		former := e.conn
		delete(s.byConn, former)
		former.CloseWithError(driver.ErrReplaced)
	default:
		s.away.Remove(e.at)
	}
	e.conn, e.at = c, nil
	s.byConn[c] = e
	if s.cfg.Rejoin != nil {
		s.cfg.Rejoin(c, e.player)
	}
}

func (s *Players[P]) add(c *driver.Conn, id string) {
	s.joined++
	e := &entry[P]{id: id, nth: s.joined, player: s.cfg.New(c), conn: c}
	if id != "" {
		s.byID[id] = e
	}
	s.byConn[c] = e
	if c.Closed() { // New ended it
		s.Closed(c, c.Result())
	}
}

// Closed is for driver.Config.
func (s *Players[P]) Closed(c *driver.Conn, r netconn.CloseResult) {
	if c != nil {
		s.Tick(c.Now())
	}
	e := s.byConn[c]
	if e == nil {
		return // it never joined, was refused, or was replaced
	}
	delete(s.byConn, c)
	e.conn, e.ended = nil, r
	if e.id == "" || !s.cfg.Keeps(r) {
		s.gone(e)
		return
	}
	s.keep(e)
	if s.cfg.Away != nil {
		s.cfg.Away(e.player, r)
	}
}

// Restore adds a player that has no connection yet, as if its last one had ended now: for who takes a game over from another server. A player of that ID who is
// there already, and one without an ID, isn't added; it reports that.
func (s *Players[P]) Restore(id string, p P) bool {
	if id == "" || s.byID[id] != nil {
		return false
	}
	s.joined++
	e := &entry[P]{id: id, nth: s.joined, player: p, ended: netconn.CloseResult{Code: netconn.TimedOut}}
	s.byID[id] = e
	s.keep(e)
	return true
}

// keep has a player be away from now on, in the place of the one that is away longest if MaxAway are.
func (s *Players[P]) keep(e *entry[P]) {
	for s.away.Len() >= s.cfg.MaxAway { // Gone may have ended others
		s.gone(s.away.Front().Value.(*entry[P]))
	}
	e.until = s.now + s.cfg.Keep
	e.at = s.away.PushBack(e)
}

// gone forgets a player without a connection.
func (s *Players[P]) gone(e *entry[P]) {
	if e.at != nil {
		s.away.Remove(e.at)
	}
	delete(s.byID, e.id)
	if s.cfg.Gone != nil {
		s.cfg.Gone(e.player, e.ended)
	}
}

// Tick lets go of players that were away for too long. Call it each tick, with driver.Driver's Since; without it they stay until a connection joins or
// ends.
func (s *Players[P]) Tick(now time.Duration) {
	s.now = max(s.now, now)
	for f := s.away.Front(); f != nil && s.now >= f.Value.(*entry[P]).until; f = s.away.Front() {
		s.gone(f.Value.(*entry[P]))
	}
}

// Forget has a player that is away be Gone, such as when its match has ended. It reports whether there was one of that ID.
func (s *Players[P]) Forget(id string) bool {
	e := s.byID[id]
	if e == nil || e.at == nil {
		return false
	}
	s.gone(e)
	return true
}

// Of is the player of a connection; false when it hasn't joined, or has ended.
func (s *Players[P]) Of(c *driver.Conn) (p P, ok bool) {
	if e := s.byConn[c]; e != nil {
		return e.player, true
	}
	return p, false
}

// All calls yield with every player in the order of New, and its connection: nil while it is away. Players that come or go meanwhile may
// be left out.
func (s *Players[P]) All(yield func(p P, c *driver.Conn) bool) {
	all := make([]*entry[P], 0, len(s.byConn)+s.away.Len())
	for _, e := range s.byConn {
		all = append(all, e)
	}
	for f := s.away.Front(); f != nil; f = f.Next() {
		all = append(all, f.Value.(*entry[P]))
	}
	slices.SortFunc(all, func(a, b *entry[P]) int { return cmp.Compare(a.nth, b.nth) })
	for _, e := range all {
		if (e.conn != nil || s.byID[e.id] == e) && !yield(e.player, e.conn) {
			return
		}
	}
}

// Len is the number of players with a connection, and of those without.
func (s *Players[P]) Len() (here, away int) { return len(s.byConn), s.away.Len() }
