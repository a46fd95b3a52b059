package rendezvous

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/pion/turn/v5"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
	"github.com/bunchnet/bunchnet/netconn/internal/origins"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
)

// Config has the settings of a Service. The zero value is useful.
type Config struct {
	// Servers are told to all players, who find each other by them: STUN servers, and relays with fixed passwords.
	Servers []ice.Server
	// Relays are the URLs of TURN servers that share TURNSecret with the service. Each player gets a user name and a password for CredentialLife,
	// as in the TURN REST API of many servers. Default none.
	Relays     []string
	TURNSecret string
	// CredentialLife is how long these are valid. Default 12 h. It should be longer than any game.
	CredentialLife time.Duration
	// MaxRooms bounds the rooms. Default 1000.
	MaxRooms int
	// MaxRoomsPerAddr bounds the rooms of one IPv4 address or IPv6 /64. Wider networks have a multiple, as with Rate. Default 4. Loopback addresses have no bound here and in
	// the next.
	MaxRoomsPerAddr int
	// MaxGuestsPerAddr bounds the guests of one address that are joining, and wider networks in the same way. Default 8.
	MaxGuestsPerAddr int
	// MaxGuests bounds the guests that are joining one room. Default 16.
	MaxGuests int
	// Rate bounds the requests a second from one IPv4 address or IPv6 /64, of hosts, guests and lists together. Burst is how many may come at once. Wider
	// networks have a multiple, as in netcode/tokenserver. Default 1 and 10.
	Rate  float64
	Burst int
	// TotalRate bounds the requests a second of all together. Default 500.
	TotalRate float64
	// Life is how long a room stays open. Default 12 h.
	Life time.Duration
	// Idle ends a room whose host has said nothing for so long, or whose connection was lost so long ago. Default 1 min; hosts say something every 20 s.
	Idle time.Duration
	// GuestTime is how long a guest may stay connected, which it needs for joining only. Default 1 min.
	GuestTime time.Duration
	// ClientAddr returns the address that a request comes from. Default: RemoteAddr. Behind a proxy that you trust, read the proxy's header here.
	ClientAddr func(r *http.Request) (netip.Addr, error)
	// Logger gets refusals, one line a second at most. Default none.
	Logger *slog.Logger
}

func (c Config) filled() Config {
	c.CredentialLife = cmp.Or(c.CredentialLife, 12*time.Hour)
	c.MaxRooms, c.MaxRoomsPerAddr = cmp.Or(c.MaxRooms, 1000), cmp.Or(c.MaxRoomsPerAddr, 4)
	c.MaxGuests, c.MaxGuestsPerAddr = cmp.Or(c.MaxGuests, 16), cmp.Or(c.MaxGuestsPerAddr, 8)
	c.Rate, c.Burst, c.TotalRate = cmp.Or(c.Rate, 1), cmp.Or(c.Burst, 10), cmp.Or(c.TotalRate, 500)
	c.Life, c.Idle, c.GuestTime = cmp.Or(c.Life, 12*time.Hour), cmp.Or(c.Idle, time.Minute), cmp.Or(c.GuestTime, time.Minute)
	if c.ClientAddr == nil {
		c.ClientAddr = func(r *http.Request) (netip.Addr, error) {
			ap, err := netip.ParseAddrPort(r.RemoteAddr)
			return ap.Addr(), err
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bounds that aren't settings.
const (
	maxMessage = 8 << 10   // bytes
	maxAddrs   = 65536     // that Rate remembers
	maxListed  = 100       // public games
	maxName    = 40        // characters
	perSecond  = 20        // messages of a guest; a host may send so many for each of Config.atOnce, and twice those may come
	maxWaiting = 64        // messages to one end that doesn't read; of guests' letters to a host
	maxControl = 256       // further ones to a host: who begins to join, and who has gone
	maxJoining = 16 << 10  // bytes of a guest's letters; joining takes about 5 KB
	maxLetters = 128 << 10 // bytes of guests' letters that wait for one host
	writeTime  = 5 * time.Second
	wrongRate  = 1. / 30         // wrong codes a second of one address or network, as with Config.Rate
	wrongBurst = 10              // of them at once
	wrongTotal = 10              // a second of all
	closeTime  = 2 * time.Second // for the other end to read the last messages, and to close too
)

// The paths of a service, below the one that it is mounted at.
const (
	hostPath  = "/host"
	joinPath  = "/join/"
	gamesPath = "/games"
)

// Counters counts what a Service did so far.
type Counters struct {
	Rooms, Guests, Lists uint64
	// Returned counts hosts that came back to their room after their connection was lost.
	Returned uint64
	// Refused requests, by reason. NoRoom: a code that is wrong, or of a room that has closed. Guessed: a code that wasn't looked at, after too many wrong ones.
	// HostAway: the host's connection is lost.
	BadRequest, BadAddr, BadOrigin, Limited, NoRoom, Guessed, Full, TooManyFromAddress, RoomFull, HostAway uint64
	// Ended connections, by reason. BadMessage: too long, or no such message. TooFast: too many. Slow: it didn't read. Expired: Life, Idle or GuestTime.
	BadMessage, TooFast, Slow, Expired uint64
}

// Service is the rendezvous, an http.Handler. Mount it with http.StripPrefix anywhere. Safe for concurrent use.
type Service struct {
	cfg     Config
	limit   *ratelimit.Limiter
	guesses *ratelimit.Limiter // of codes without a room
	lines   ratelimit.Lines
	closing chan struct{}
	wg      sync.WaitGroup

	rooms, guests, lists, badRequest, badAddr, badOrigin, limited, noRoom, guessed, full, tooManyFromAddress, roomFull, badMessage, tooFast, slow, expired, returned, away atomic.Uint64

	mu       sync.Mutex
	closed   bool
	open     map[string]*place
	digits   [maxCode]int // how many of these have codes with so many
	hosts    int          // connections that have a room, or may open one
	hostsOf  *ratelimit.Places
	guestsOf *ratelimit.Places
}

// place is a room at the service.
type place struct {
	code   string
	about  about
	key    []byte
	host   *line
	guests map[int]*line
	next   int
	second int64 // in which so many guests came
	came   int
	secret []byte      // by which its host comes back when its connection was lost
	pass   string      // that guests with the link show
	relays string      // its players' name at relays, who mustn't learn the code
	life   *time.Timer // Config.Life
	gone   *time.Timer // closes it, while the host has no connection
	give   func()      // gives back its place among MaxRooms; Service.mu is held
}

// about is what a host says of its game.
type about struct {
	Name    string `json:"name"`
	Public  bool   `json:"public,omitempty"`
	Players int    `json:"players"`
	Max     int    `json:"max"`
}

// note is a message between the service and one end.
type note struct {
	Key     []byte       `json:"key,omitempty"`     // X25519; of a host with about, of a guest, and of the host to a guest
	Pass    string       `json:"pass,omitempty"`    // from a host, first: what its link has for guests to show
	About   *about       `json:"about,omitempty"`   // from a host: first, and when it changes
	Code    string       `json:"code,omitempty"`    // to a host, first
	Again   []byte       `json:"again,omitempty"`   // beside the code: what the host comes back with
	Servers []ice.Server `json:"servers,omitempty"` // to both, first
	Guest   int          `json:"guest,omitempty"`   // between service and host: whose the rest is
	Sealed  []byte       `json:"sealed,omitempty"`  // a letter
	Gone    bool         `json:"gone,omitempty"`    // the guest has gone, or must; without a guest the host has
}

// line is a connection to one end.
type line struct {
	conn *websocket.Conn
	out  chan []byte
	stop context.CancelCauseFunc
	// pinged is called by the goroutine that reads, and reports whether a ping may be answered.
	pinged func() bool
	// heard is called with each message and ping.
	heard   func()
	told    int          // bytes of letters to a guest; guarded by Service.mu
	bytes   atomic.Int64 // in out
	of      netip.Addr   // a guest's address or network
	invited bool         // the guest has the link
}

// New returns a Service, or an error for settings that can't work.
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.MaxRooms < 0 || cfg.MaxRoomsPerAddr < 0 || cfg.MaxGuests < 0 || cfg.MaxGuestsPerAddr < 0 || !(cfg.Rate >= 0) || cfg.Burst < 0 || !(cfg.TotalRate >= 0) ||
		cfg.Life < 0 || cfg.Idle < 0 || cfg.GuestTime < 0 || cfg.CredentialLife < 0:
		return nil, errors.New("rendezvous: settings must be positive, or 0 for the default")
	case len(cfg.Relays) > 0 && cfg.TURNSecret == "":
		return nil, errors.New("rendezvous: Relays need the TURNSecret that they share")
	}
	cfg = cfg.filled()
	return &Service{cfg: cfg, limit: ratelimit.New(time.Now, cfg.Rate, cfg.Burst, maxAddrs, cfg.TotalRate),
		guesses: ratelimit.New(time.Now, wrongRate, wrongBurst, maxAddrs, wrongTotal), closing: make(chan struct{}), open: map[string]*place{},
		hostsOf: ratelimit.NewPlaces(cfg.MaxRoomsPerAddr), guestsOf: ratelimit.NewPlaces(cfg.MaxGuestsPerAddr)}, nil
}

// Counters returns the counters so far.
func (s *Service) Counters() Counters {
	return Counters{Rooms: s.rooms.Load(), Guests: s.guests.Load(), Lists: s.lists.Load(), BadRequest: s.badRequest.Load(), BadAddr: s.badAddr.Load(), BadOrigin: s.badOrigin.Load(),
		Limited: s.limited.Load(), NoRoom: s.noRoom.Load(), Guessed: s.guessed.Load(), Full: s.full.Load(), TooManyFromAddress: s.tooManyFromAddress.Load(), RoomFull: s.roomFull.Load(),
		BadMessage: s.badMessage.Load(), TooFast: s.tooFast.Load(), Slow: s.slow.Load(), Expired: s.expired.Load(), Returned: s.returned.Load(), HostAway: s.away.Load()}
}

// Len returns the number of rooms.
func (s *Service) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Close ends all connections.
func (s *Service) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
		for _, p := range s.open { // the others end with their connections
			if p.gone != nil {
				s.closeRoom(p)
			}
		}
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// ServeHTTP serves hosts at /host, guests at /join/CODE, both by WebSocket, and the list of public games at /games. A guest's link opened in a browser
// shows how to join. Refusals are 400, 403 for a page of another site, 404 for a code without a room, 405, 426, 429 beyond Rate and TotalRate, and 503 when a bound is reached, with a
// text for the player.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := s.cfg.ClientAddr(r)
	switch {
	case err != nil || !from.IsValid():
		s.refuse(w, &s.badAddr, http.StatusBadRequest, "no address of the client; see Config.ClientAddr")
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		s.refuse(w, &s.badRequest, http.StatusMethodNotAllowed, "only GET")
		return
	case foreign(r): // so that it takes nothing of the player's Rate
		s.refuse(w, &s.badOrigin, http.StatusForbidden, "pages of other sites can't use this service")
		return
	case !s.limit.Allow(from) || !s.limit.AllowTotal():
		w.Header().Set("Retry-After", strconv.Itoa(1))
		s.refuse(w, &s.limited, http.StatusTooManyRequests, "too many requests; try again in a few seconds")
		return
	}
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	code, joins := strings.CutPrefix(r.URL.Path, joinPath)
	switch {
	case r.URL.Path == gamesPath:
		s.list(w)
	case r.URL.Path == hostPath && upgrade:
		s.host(w, r, from)
	case strings.HasPrefix(r.URL.Path, hostPath+"/") && upgrade:
		s.hostAgain(w, r, strings.TrimPrefix(r.URL.Path, hostPath+"/"))
	case joins && checkCode(strings.ToUpper(code)) != nil:
		s.refuse(w, &s.badRequest, http.StatusBadRequest, "that is no room code like QUACK-42")
	case joins && upgrade:
		s.guest(w, r, from, strings.ToUpper(code))
	case joins:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "You are invited to a game. Start it and join with this page's whole address, or with the code %s.\n", strings.ToUpper(code))
	case r.URL.Path == hostPath:
		w.Header().Set("Upgrade", "websocket")
		s.refuse(w, &s.badRequest, http.StatusUpgradeRequired, "connect by WebSocket")
	default:
		s.refuse(w, &s.badRequest, http.StatusNotFound, "no such page")
	}
}

// foreign reports whether a page of another site has a player's browser ask. A link to a room may be on any page.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		return !origins.Own(origin, r.Host)
	}
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

func (s *Service) refuse(w http.ResponseWriter, n *atomic.Uint64, status int, why string) {
	n.Add(1)
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, why, status)
	s.log("refused", why)
}

// log writes a line, unless one was written within the second.
func (s *Service) log(what, why string) {
	if _, ok := s.lines.Next(time.Now()); ok {
		s.cfg.Logger.Warn("rendezvous: "+what, "why", why)
	}
}

// Game is a public game.
type Game struct {
	Code    string `json:"code"`
	Name    string `json:"name"`
	Players int    `json:"players"`
	Max     int    `json:"max"` // 0: the host didn't say
}

// list answers with the public games, at most 100.
func (s *Service) list(w http.ResponseWriter) {
	s.lists.Add(1)
	all := []Game{}
	s.mu.Lock()
	for code, p := range s.open {
		if p.about.Public && len(all) < maxListed {
			all = append(all, Game{code, p.about.Name, p.about.Players, p.about.Max})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Game) int { return strings.Compare(a.Code, b.Code) })
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(all) // who asked is gone
}

// servers is what a player finds others by.
func (s *Service) servers(p *place) []ice.Server {
	all := slices.Clone(s.cfg.Servers)
	if len(s.cfg.Relays) > 0 {
		name, password, err := turn.GenerateLongTermTURNRESTCredentials(s.cfg.TURNSecret, p.relays, s.cfg.CredentialLife)
		if err != nil {
			return all
		}
		for _, url := range s.cfg.Relays {
			all = append(all, ice.Server{URL: url, Username: name, Password: password})
		}
	}
	return all
}

// The reasons that connections end with, which the end is told.
var (
	errBadMessage = errors.New("a message that is too long, or that the rendezvous doesn't know")
	errTooFast    = errors.New("too many messages")
	errSlow       = errors.New("the messages weren't read")
	errExpired    = errors.New("the time is over")
	errSilent     = errors.New("the connection says nothing") // who isn't dead comes back
	errHostGone   = errors.New("the host has gone; ask for a new code")
	errHostBusy   = errors.New("too many players are joining this game; try again in a moment")
	errHostAway   = errors.New("the host's connection was lost or made anew; try again in a moment")
	errLeft       = errors.New("the room is closed")
	errReturned   = errors.New("the host came back by another connection")
	errSentAway   = errors.New("the host has no room for more players")
	errShutdown   = errors.New("the rendezvous closes; try again in a moment")
)

// serve runs a connection until it ends: f gets its messages. l.stop ends ctx.
func (s *Service) serve(ctx context.Context, l *line, idle time.Duration, rate int, f func(n *note) error) error {
	l.conn.SetReadLimit(maxMessage)
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := l.stop
	wg.Go(func() {
		select {
		case <-s.closing:
			stop(errShutdown)
		case <-ctx.Done():
		}
	})
	wg.Go(func() { l.write(ctx) })
	silent := time.AfterFunc(idle, func() { stop(errExpired) })
	defer silent.Stop()
	reading, hurry := context.WithCancel(context.WithoutCancel(ctx)) // write closes the connection, with the reason
	defer hurry()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(closeTime, hurry) })()
	second, count := int64(0), 0
	tooMany := func() bool {
		if now := time.Now().Unix(); now != second {
			second, count = now, 0
		}
		count++
		l.heard()
		return count > rate
	}
	l.pinged = func() bool {
		if tooMany() {
			stop(errTooFast)
		}
		return ctx.Err() == nil
	}
	for {
		kind, p, err := l.conn.Read(reading)
		silent.Reset(idle)
		switch {
		case websocket.CloseStatus(err) == websocket.StatusMessageTooBig || errors.Is(err, websocket.ErrMessageTooBig):
			err = errBadMessage // the library closes the connection for it, and what is being written fails
		case err != nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		}
		var n note
		if err == nil && (kind != websocket.MessageText || json.Unmarshal(p, &n) != nil) {
			err = errBadMessage
		}
		if err == nil && tooMany() {
			err = errTooFast
		}
		if err == nil {
			err = f(&n)
		}
		if err != nil {
			stop(err)
			s.count(err)
			for err := error(nil); err == nil; { // until the other end has closed too, or is late
				_, _, err = l.conn.Read(reading)
			}
			return err
		}
	}
}

func (s *Service) count(why error) {
	for err, n := range map[error]*atomic.Uint64{errBadMessage: &s.badMessage, errTooFast: &s.tooFast, errHostBusy: &s.roomFull, errSlow: &s.slow, errExpired: &s.expired} {
		if errors.Is(why, err) {
			n.Add(1)
			s.log("connection ended", why.Error())
		}
	}
}

// write sends what is queued, and closes the connection at the end with the reason.
func (l *line) write(ctx context.Context) {
	for {
		select {
		case p := <-l.out:
			l.bytes.Add(-int64(len(p)))
			writing, done := context.WithTimeout(context.WithoutCancel(ctx), writeTime) // a write that is cut short would close the connection
			err := l.conn.Write(writing, websocket.MessageText, p)
			done()
			if err != nil {
				l.stop(errSlow)
			}
		case <-ctx.Done():
			l.close(ctx, context.Cause(ctx))
			return
		}
	}
}

// close writes what was queued before, such as why a guest isn't let in, and closes the connection.
func (l *line) close(ctx context.Context, why error) {
	if errors.Is(why, errSilent) {
		_ = l.conn.CloseNow() // it may have gone
		return
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer done()
	for err := error(nil); err == nil && len(l.out) > 0 && !errors.Is(why, errSlow); {
		err = l.conn.Write(closing, websocket.MessageText, <-l.out) // only here is it read
	}
	_ = l.conn.Close(websocket.StatusPolicyViolation, why.Error()) // it may have gone
}

// post queues a note.
func (l *line) post(n note) {
	p, err := json.Marshal(n)
	if err != nil {
		return
	}
	l.bytes.Add(int64(len(p)))
	select {
	case l.out <- p:
	default:
		l.stop(errSlow)
	}
}

// pass queues a guest's letter for its host, or reports that too many wait.
func (l *line) pass(n note) bool {
	if len(l.out) >= maxWaiting || l.bytes.Load() >= maxLetters { // the rest of its room is for maxControl, so that no guest's letters end the host
		return false
	}
	l.post(n)
	return true
}

// newLine returns one without a connection.
func newLine(waiting int) *line {
	return &line{out: make(chan []byte, waiting), stop: func(error) {}, heard: func() {}}
}

// accept makes its connection.
func (l *line) accept(w http.ResponseWriter, r *http.Request) (err error) {
	l.conn, err = websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled,
		OnPingReceived: func(context.Context, []byte) bool { return l.pinged() }})
	return err
}

// begin notes that a connection is served, unless the service is closed.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// host serves a host until it goes.
func (s *Service) host(w http.ResponseWriter, r *http.Request, from netip.Addr) {
	s.mu.Lock()
	full, many := s.hosts >= s.cfg.MaxRooms, !s.hostsOf.Room(from)
	if !full && !many {
		s.hosts++
		s.hostsOf.Add(from)
	}
	s.mu.Unlock()
	switch {
	case full:
		s.refuse(w, &s.full, http.StatusServiceUnavailable, "no room for more games; try again later")
		return
	case many:
		s.refuse(w, &s.tooManyFromAddress, http.StatusServiceUnavailable, "too many games from this address; close another one")
		return
	}
	give := func() {
		s.hosts--
		s.hostsOf.Remove(from)
	}
	var p *place
	s.serveHost(w, r, func(*line) error { return nil }, func(l *line, n *note) error {
		if p != nil {
			return s.fromHost(p, n)
		}
		if n.About == nil || len(n.Key) != keyBytes || len(n.Pass) > maxPass {
			return errBadMessage
		}
		p = s.openRoom(l, n, give)
		return nil
	}, func(l *line, why error) {
		if p == nil {
			give()
		} else {
			s.hostEnded(p, l, why)
		}
	})
}

// hostAgain serves a host that lost its connection and comes back to its room, whether the loss was noticed here or not. The room has its place already.
func (s *Service) hostAgain(w http.ResponseWriter, r *http.Request, code string) {
	secret, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Authorization"), bearer)) // what is none isn't the room's
	s.mu.Lock()
	p := s.open[code]
	s.mu.Unlock()
	if p == nil || subtle.ConstantTimeCompare(p.secret, secret) == 0 {
		s.refuse(w, &s.noRoom, http.StatusNotFound, "this room isn't open any more; open another one")
		return
	}
	s.serveHost(w, r, func(l *line) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[code] != p {
			return errLeft
		}
		s.comeBack(p, l)
		return nil
	}, func(_ *line, n *note) error { return s.fromHost(p, n) }, func(l *line, why error) { s.hostEnded(p, l, why) })
}

// bearer is before the secret of a host that comes back.
const bearer = "Bearer "

// serveHost serves a host until it goes: begin is called first, f with its messages, and ended at the end, while s.mu is held. l is nil if it didn't begin.
func (s *Service) serveHost(w http.ResponseWriter, r *http.Request, begin func(l *line) error, f func(l *line, n *note) error, ended func(l *line, why error)) {
	var l *line
	var why error
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ended(l, why)
	}()
	if !s.begin() {
		s.refuse(w, &s.full, http.StatusServiceUnavailable, errShutdown.Error())
		return
	}
	defer s.wg.Done()
	made := newLine(maxWaiting + maxControl)
	if made.accept(w, r) != nil {
		s.badRequest.Add(1)
		return
	}
	l = made
	var ctx context.Context // the room ends it after Life; before there is one, silence does
	ctx, l.stop = context.WithCancelCause(context.WithoutCancel(r.Context()))
	dead := time.AfterFunc(silentTime, func() { l.stop(errSilent) })
	defer dead.Stop()
	l.heard = func() { dead.Reset(silentTime) }
	if err := begin(l); err != nil {
		l.stop(err)
	}
	why = s.serve(ctx, l, s.cfg.Idle, perSecond*s.cfg.atOnce(), func(n *note) error { // the host was told
		if n.About != nil && !n.About.valid() {
			return errBadMessage
		}
		return f(l, n)
	})
}

// silentTime is how long a host may send nothing, not even a ping, until it counts as away. Hosts ping every 5 s.
var silentTime = 15 * time.Second

// hostEnded closes the room of a host whose connection has ended, or keeps it for Idle when the host may come back. s.mu is held.
func (s *Service) hostEnded(p *place, l *line, why error) {
	if p.host != l { // it is back already
		return
	}
	for _, final := range []error{errLeft, errBadMessage, errTooFast, errExpired, errShutdown} {
		if errors.Is(why, final) || s.closed {
			s.closeRoom(p)
			return
		}
	}
	for _, g := range p.guests {
		g.stop(errHostAway)
	}
	p.gone = time.AfterFunc(s.cfg.Idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[p.code] == p && p.host == l {
			s.expired.Add(1)
			s.closeRoom(p)
		}
	})
}

// comeBack gives a host its room back. s.mu is held.
func (s *Service) comeBack(p *place, l *line) {
	p.host.stop(errReturned)
	if p.gone != nil {
		p.gone.Stop()
		p.gone = nil
	}
	for _, g := range p.guests { // what they said may be lost
		g.stop(errHostAway)
	}
	p.host = l
	s.returned.Add(1)
	l.post(note{Code: p.code, Servers: s.servers(p), Again: p.secret})
}

const keyBytes, secretBytes, maxPass = 32, 16, 16

// valid reports whether a game may be called so.
func (a *about) valid() bool {
	return utf8.ValidString(a.Name) && utf8.RuneCountInString(a.Name) <= maxName && !strings.ContainsFunc(a.Name, func(r rune) bool { return !unicode.IsPrint(r) }) &&
		a.Players >= 0 && a.Players <= 1<<16 && a.Max >= 0 && a.Max <= 1<<16
}

// openRoom makes a room, and tells the host its code.
func (s *Service) openRoom(l *line, n *note, give func()) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	digits := s.codeDigits()
	code := newCode(digits)
	for s.open[code] != nil {
		code = newCode(digits)
	}
	s.digits[digits]++
	p := &place{code: code, about: *n.About, key: n.Key, pass: n.Pass, host: l, guests: map[int]*line{}, secret: make([]byte, secretBytes), relays: rand.Text(), give: give}
	_, _ = rand.Read(p.secret) // never fails
	p.life = time.AfterFunc(s.cfg.Life, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.host.stop(errExpired)
		if s.open[code] == p && p.gone != nil {
			s.closeRoom(p)
		}
	})
	s.open[code] = p
	s.rooms.Add(1)
	l.post(note{Code: code, Servers: s.servers(p), Again: p.secret})
	return p
}

// closeRoom ends a room. s.mu is held.
func (s *Service) closeRoom(p *place) {
	delete(s.open, p.code)
	s.digits[digitsOf(p.code)]--
	p.give()
	p.life.Stop()
	if p.gone != nil {
		p.gone.Stop()
	}
	for _, g := range p.guests {
		g.stop(errHostGone)
	}
}

// fromHost passes on what a host says.
func (s *Service) fromHost(p *place, n *note) error {
	if n.Gone && n.Guest == 0 {
		return errLeft
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.About != nil {
		p.about = *n.About
	}
	g := p.guests[n.Guest]
	switch {
	case g == nil: // it has gone by now
	case n.Gone:
		g.stop(errSentAway)
	case len(n.Sealed) > 0:
		if g.told += len(n.Sealed); g.told > maxJoining {
			g.stop(errTooFast)
			return nil
		}
		g.post(note{Sealed: n.Sealed})
	}
	return nil
}

// atOnce is the number of guests by which a room's messages are bounded.
func (c Config) atOnce() int { return max(c.MaxGuests, 8) }

// mayCome reports whether one more guest may come in this second, when most may. So a host, which answers each with a few messages, keeps to its own bound, however
// soon they go.
func (p *place) mayCome(now time.Time, most int) bool {
	if second := now.Unix(); second != p.second {
		p.second, p.came = second, 0
	}
	return p.came < most
}

// makeRoom ends a guest for one that comes, so that nobody keeps all others out: for one with the link the oldest without; else the oldest of the network that has most, if that
// has at least two more than the network of who comes; else of the address, in the same way. Who has no link ends nobody who has it. s.mu is held.
func (p *place) makeRoom(l *line) bool {
	if l.invited && p.endOldest(func(g *line) int {
		if g.invited {
			return 0
		}
		return 1
	}) {
		return true
	}
	address := func(g *line) netip.Prefix { return netip.PrefixFrom(g.of, g.of.BitLen()) }
	network := func(g *line) netip.Prefix { return ratelimit.Wide(g.of) }
	for _, group := range []func(g *line) netip.Prefix{network, address} {
		n := map[netip.Prefix]int{}
		for _, g := range p.guests {
			n[group(g)]++
		}
		if p.endOldest(func(g *line) int {
			if many := n[group(g)]; many > n[group(l)]+1 && (l.invited || !g.invited) {
				return many
			}
			return 0
		}) {
			return true
		}
	}
	return false
}

// endOldest ends the guest of the greatest weight, of several the oldest; none when all weigh nothing. s.mu is held.
func (p *place) endOldest(weight func(g *line) int) bool {
	oldest, most := 0, 0
	for id, g := range p.guests {
		if w := weight(g); w > most || w == most && w > 0 && id < oldest {
			oldest, most = id, w
		}
	}
	if most == 0 {
		return false
	}
	p.guests[oldest].stop(errHostBusy)
	delete(p.guests, oldest)
	return true
}

// guest serves a guest until it goes.
func (s *Service) guest(w http.ResponseWriter, r *http.Request, from netip.Addr, code string) {
	shown, hasLink := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	pass, host := cutLink(shown)
	s.mu.Lock()
	p := s.open[code]
	guessed := !hasLink && !s.guesses.Ready(from)
	switch {
	case guessed:
		p = nil
	case hasLink && p != nil && subtle.ConstantTimeCompare([]byte(fingerprint(p.key)), []byte(host)) == 0: // the code is another room's by now
		p = nil
	case !hasLink && p == nil:
		_ = s.guesses.Allow(from) && s.guesses.AllowTotal() // there is room
	}
	l := newLine(maxWaiting)
	l.of, _ = addrgroup.Of(from)
	l.invited = p != nil && p.pass != "" && subtle.ConstantTimeCompare([]byte(p.pass), []byte(pass)) == 1
	most := 2 * s.cfg.atOnce()
	if !l.invited { // who leave some for those that are
		most -= most / 4
	}
	away := p != nil && p.gone != nil
	roomFull := p != nil && !away && !p.mayCome(time.Now(), most)
	many := p != nil && !away && !roomFull && !s.guestsOf.Room(from)
	if p != nil && !away && !roomFull && !many && len(p.guests) >= s.cfg.MaxGuests {
		roomFull = !p.makeRoom(l)
	}
	id := 0
	if p != nil && !away && !roomFull && !many {
		s.guestsOf.Add(from)
		p.came++
		p.next++
		id = p.next
		p.guests[id] = l // a place
	}
	s.mu.Unlock()
	switch {
	case guessed:
		w.Header().Set("Retry-After", "30")
		s.refuse(w, &s.guessed, http.StatusTooManyRequests, "too many wrong codes came; try again in a minute, or join by the host's link")
		return
	case p == nil:
		s.refuse(w, &s.noRoom, http.StatusNotFound, "no game has this code now; ask the host for its code")
		return
	case away:
		s.refuse(w, &s.away, http.StatusServiceUnavailable, errHostAway.Error())
		return
	case roomFull:
		s.refuse(w, &s.roomFull, http.StatusServiceUnavailable, "too many players are joining this game; try again in a moment")
		return
	case many:
		s.refuse(w, &s.tooManyFromAddress, http.StatusServiceUnavailable, "too many players of this address are joining; try again in a moment")
		return
	}
	told, said := false, 0
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.guestsOf.Remove(from)
		delete(p.guests, id)
		if told {
			p.host.post(note{Guest: id, Gone: true})
		}
	}()
	if !s.begin() {
		s.refuse(w, &s.full, http.StatusServiceUnavailable, errShutdown.Error())
		return
	}
	defer s.wg.Done()
	if l.accept(w, r) != nil {
		s.badRequest.Add(1)
		return
	}
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(r.Context()), s.cfg.GuestTime, errExpired)
	defer done()
	ctx, stop := context.WithCancelCause(ctx)
	s.mu.Lock()
	l.stop = stop
	switch {
	case s.open[code] != p:
		stop(errHostGone)
	case p.gone != nil:
		stop(errHostAway)
	case p.guests[id] != l:
		stop(errHostBusy)
	}
	s.mu.Unlock()
	s.guests.Add(1)
	l.post(note{Key: p.key, Servers: s.servers(p)})
	_ = s.serve(ctx, l, s.cfg.GuestTime, perSecond, func(n *note) error { // the guest was told
		switch {
		case !told && len(n.Key) == keyBytes:
			told = true
			s.mu.Lock()
			p.host.post(note{Guest: id, Key: n.Key})
			s.mu.Unlock()
		case told && len(n.Sealed) > 0:
			if said += len(n.Sealed); said > maxJoining {
				return errTooFast
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if !p.host.pass(note{Guest: id, Sealed: n.Sealed}) {
				return errHostBusy
			}
		default:
			return errBadMessage
		}
		return nil
	})
}
