package session

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
)

// ErrConfig: a setting is missing or out of range. NewPlayers and NewRedialer return errors that wrap it.
var ErrConfig = errors.New("session: config")

// Config configures Players.
type Config[P any] struct {
	// ID returns the proven identity of the client, from the link or the login. "" means that the player can't come back. Default: the
	// ClientID of the Netcode link, or "" if that is 0.
	ID func(c *driver.Conn) string
	// Keep is how long a player is kept without a connection: up to 100 years. Default 2 min.
	Keep time.Duration
	// MaxAway is how many players without a connection are kept at most. When one more goes away, Gone is called for the one that has been
	// away longest. 1 to 2147483647, default 1024.
	MaxAway int
	// Refuse decides what happens when a player who has a connection joins with another. true: the new connection is closed with
	// driver.ErrAlreadyConnected. false, the default: the former one is closed with driver.ErrReplaced. With the Netcode link
	// its TakeOver setting decides instead. Don't set it where clients have a
	// Redialer: that has closed its former connection by the time that the new one is refused, and the player has left.
	Refuse bool
	// Keeps reports whether the player is kept after its connection ended this way. By default a player is kept if the connection timed
	// out, was replaced, exceeded a bound of this end or had a narrow path (netconn.TimedOut, WeBroke, PathNarrow). It isn't kept if it
	// left, broke the protocol or was closed by the game.
	Keeps func(r netconn.CloseResult) bool

	// New returns the player for a new connection. Required.
	New func(c *driver.Conn) P
	// Rejoin is called when a player has a new connection. Give him his actors again: with package actorrep by SetOwner, with actorrep/predict by
	// Possess, for the Peer of the new connection. Usually Away was called before. It wasn't if the new connection replaces one
	// that is still open, on links other than Netcode: then drop the former connection here. May be nil.
	Rejoin func(c *driver.Conn, p P)
	// Away is called when a player's connection has ended and the player is kept. May be nil.
	Away func(p P, r netconn.CloseResult)
	// Gone is called when a player is no longer kept. r is how its last connection ended. May be nil.
	Gone func(p P, r netconn.CloseResult)
}

// Players holds the players with a connection and those who may come back. Use it only in the goroutine that ticks the driver.
type Players[P any] struct {
	cfg    Config[P]
	now    time.Duration
	byConn map[*driver.Conn]*entry[P]
	byID   map[string]*entry[P]
	away   list.List // of *entry[P]; the one that is away longest is first
	joined uint64
}

// entry is a player.
type entry[P any] struct {
	player P
	id     string
	nth    uint64       // its number in the order of New
	conn   *driver.Conn // nil while it is away
	ended  netconn.CloseResult
	until  time.Duration
	at     *list.Element
}

// NewPlayers returns an empty Players, or an error that wraps ErrConfig.
func NewPlayers[P any](cfg Config[P]) (*Players[P], error) {
	if cfg.New == nil {
		return nil, fmt.Errorf("%w: New is needed", ErrConfig)
	}
	cfg.Keep, cfg.MaxAway = cmp.Or(cfg.Keep, 2*time.Minute), cmp.Or(cfg.MaxAway, 1024)
	if err := setting.First(
		setting.Within(ErrConfig, "Keep", cfg.Keep, 1, setting.Longest),
		setting.Within(ErrConfig, "MaxAway", cfg.MaxAway, 1, math.MaxInt32)); err != nil {
		return nil, err
	}
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

// Joined is the callback for driver.Config.Joined.
func (s *Players[P]) Joined(c *driver.Conn) {
	s.Tick(c.Now())
	id := s.cfg.ID(c)
	e := s.byID[id]
	if e != nil && e.conn != nil && e.conn.Closing() && !s.cfg.Refuse {
		e.conn.Abort(c.Now(), "") // the game has ended it: how counts, though its client hasn't heard that yet
		e = s.byID[id]
	}
	switch {
	case id == "" || e == nil:
		s.add(c, id)
		return
	case e.conn != nil && s.cfg.Refuse:
		c.CloseWithError(driver.ErrAlreadyConnected)
		return
	case e.conn != nil && c.Driver() == e.conn.Driver() && c.ID() < e.conn.ID(): // its Join comes late: the client has dialed again meanwhile
		c.CloseWithError(driver.ErrReplaced)
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
	s.lookEnded(c)
}

// lookEnded tells of the end of a connection that a callback has closed before it was a player's.
func (s *Players[P]) lookEnded(c *driver.Conn) {
	if s.byConn[c] != nil && c.Closed() {
		s.Closed(c, c.Result())
	}
}

func (s *Players[P]) add(c *driver.Conn, id string) {
	s.joined++
	e := &entry[P]{id: id, nth: s.joined, player: s.cfg.New(c), conn: c}
	if id != "" {
		s.byID[id] = e
	}
	s.byConn[c] = e
	s.lookEnded(c)
}

// Closed is the callback for driver.Config.Closed.
func (s *Players[P]) Closed(c *driver.Conn, r netconn.CloseResult) {
	if c != nil {
		s.Tick(c.Now())
	}
	e := s.byConn[c]
	if e == nil {
		return // it never joined, was refused, or was replaced
	}
	delete(s.byConn, c)
	if c.Closing() && r.Code != netconn.ClosedByUs { // the game has ended it, whatever its client has this end fail with meanwhile
		r.Code, r.Err = netconn.ClosedByUs, control.Ended(r.Reason)
	}
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

// Restore adds a player without a connection, as if its last connection had timed out now. It is for a server that takes over a game from
// another one. It returns false, and adds nothing, if id is "" or a player with that ID exists.
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

// keep adds a player to those that are away. If there are MaxAway, the one that is away longest is removed.
func (s *Players[P]) keep(e *entry[P]) {
	for s.away.Len() >= s.cfg.MaxAway { // Gone may have ended others
		s.gone(s.away.Front().Value.(*entry[P]))
	}
	e.until = s.now + s.cfg.Keep
	e.at = s.away.PushBack(e)
}

// gone removes a player that has no connection.
func (s *Players[P]) gone(e *entry[P]) {
	if e.at != nil {
		s.away.Remove(e.at)
	}
	delete(s.byID, e.id)
	if s.cfg.Gone != nil {
		s.cfg.Gone(e.player, e.ended)
	}
}

// Tick removes players that were away for longer than Keep. Call it in each tick with the time from driver.Driver.Time. Otherwise they stay
// until a connection joins or ends.
func (s *Players[P]) Tick(now time.Duration) {
	s.now = max(s.now, now)
	for f := s.away.Front(); f != nil && s.now >= f.Value.(*entry[P]).until; f = s.away.Front() {
		s.gone(f.Value.(*entry[P]))
	}
}

// Forget removes a player that is away, for example when its match is over, and calls Gone. It returns false if no player with that
// ID is away.
func (s *Players[P]) Forget(id string) bool {
	e := s.byID[id]
	if e == nil || e.at == nil {
		return false
	}
	s.gone(e)
	return true
}

// Of returns the player of a connection. ok is false if the connection hasn't joined or has ended.
func (s *Players[P]) Of(c *driver.Conn) (p P, ok bool) {
	if e := s.byConn[c]; e != nil {
		return e.player, true
	}
	return p, false
}

// All calls yield for every player in the order of New, with its connection, or nil while it is away. Players that are added or removed
// during the call may be left out.
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

// Len returns the number of players with a connection, and the number of those without.
func (s *Players[P]) Len() (here, away int) { return len(s.byConn), s.away.Len() }
