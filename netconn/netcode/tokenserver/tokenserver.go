package tokenserver

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/origins"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Player is who asks, as Authenticate found.
type Player struct {
	// ID is the client id in the token: one connection a server at a time.
	ID uint64
	// UserData is for the game server: a character, a team, a purchase.
	UserData [netcode.UserDataBytes]byte
	// Servers is where this player may go, in the order to try; Internal what those call themselves, when that isn't
	// Servers. Default those of Config.
	Servers, Internal []netip.AddrPort
}

// ErrUnavailable is for Authenticate to return when it can't tell now; the client is told to come again.
var ErrUnavailable = errors.New("tokenserver: can't authenticate now")

// Config is the settings of a Service.
type Config struct {
	// Key is what the game servers have. Needed.
	Key netcode.Key
	// ProtocolID is the game servers'.
	ProtocolID uint64
	// Authenticate says who asks, or an error to refuse with 401. Needed. It is called by many goroutines
	// at once and should mind the request's context. A body beyond MaxBody is an error to read, *http.MaxBytesError; returned
	// it is a refusal with 413.
	Authenticate func(r *http.Request) (Player, error)
	// Servers is where players may go, 1 to 32, in the order to try.
	Servers []netip.AddrPort
	// Internal is what the game servers call themselves, when that isn't Servers.
	Internal []netip.AddrPort
	// Life is how long a token is good for connecting. Default 30 s.
	Life time.Duration
	// Timeout is how long a client and a server wait for each other while they connect, in whole seconds. Default 5 s; negative never.
	// It is also how much silence ends a connection where the ends set no timeout of their own; the driver's do.
	Timeout time.Duration
	// Challenge is the WWW-Authenticate header of a 401, the way to log in. Default Bearer.
	Challenge string
	// Origins is the pages of other origins whose scripts may ask, such as "https://play.example.com"; "*" is every page, to whose requests browsers add
	// no cookies. Default none.
	Origins []string
	// Rate is requests a second from one IPv4 address or IPv6 /64, Burst how many at once. Default 1 and 5. An IPv6 /56
	// has 4 times as much, a /48 16 times, an IPv4 /24 32 times. These limits come before Authenticate.
	Rate  float64
	Burst int
	// TotalRate is requests a second in all that Authenticate has let through. Default 1000.
	TotalRate float64
	// MaxBody bounds a request's body in bytes. Default 64 KiB.
	MaxBody int64
	// MaxAddrs bounds the table of addresses and networks. Default 65536, at least 3.
	MaxAddrs int
	// ClientAddr is where a request comes from. Default its RemoteAddr; behind a proxy that you trust read its
	// header here.
	ClientAddr func(r *http.Request) (netip.Addr, error)
	// Logger is told of refusals, one line a second at most. Default none.
	Logger *slog.Logger
	// Now is the clock; it is called by many goroutines at once. A token's Life begins when it is made, after Authenticate. Before 1970 none is
	// made, and the answer is 500. Default time.Now.
	Now func() time.Time
	// Rand is the source of keys and nonces; it is read by many goroutines at once. Default crypto/rand.
	Rand io.Reader
}

// Counters is what became of the requests.
type Counters struct {
	Issued uint64
	// Preflights is questions of browsers whether a page in Config.Origins may ask.
	Preflights uint64
	// Refused, by reason.
	BadMethod, BadAddr, Limited, TooLarge, Unauthorized, Unavailable, NoServers, Failed uint64
}

// Service is an http.Handler that answers a POST with a connect token. Safe for concurrent use.
type Service struct {
	cfg     Config
	limit   *ratelimit.Limiter
	lastLog atomic.Int64
	muted   atomic.Uint64 // refusals since the last line

	preflights, issued, badMethod, badAddr, limited, tooLarge, unauthorized, unavailable, noServers, failed atomic.Uint64
}

// New returns a service, or what is wrong with its settings.
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.Key.IsZero():
		return nil, errors.New("tokenserver: Config needs the game servers' Key")
	case cfg.Authenticate == nil:
		return nil, errors.New("tokenserver: Config needs Authenticate: a token is a ticket to play")
	case len(cfg.Servers) > netcode.MaxServers || len(cfg.Internal) > netcode.MaxServers:
		return nil, netcode.ErrServers
	case cfg.Life < 0 || !(cfg.Rate >= 0) || cfg.Burst < 0 || !(cfg.TotalRate >= 0) || cfg.MaxAddrs < 0 || cfg.MaxBody < 0:
		return nil, errors.New("tokenserver: only Timeout may be negative")
	}
	if err := origins.List(cfg.Origins).Check(); err != nil {
		return nil, fmt.Errorf("tokenserver: %w", err)
	}
	for _, a := range append(slices.Clone(cfg.Servers), cfg.Internal...) {
		if !a.IsValid() {
			return nil, netcode.ErrServers
		}
	}
	cfg = cfg.filled()
	return &Service{cfg: cfg, limit: ratelimit.New(cfg.Now, cfg.Rate, cfg.Burst, cfg.MaxAddrs, cfg.TotalRate)}, nil
}

func (c Config) filled() Config {
	c.Life = cmp.Or(c.Life, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Rate = cmp.Or(c.Rate, 1)
	c.Burst = cmp.Or(c.Burst, 5)
	c.TotalRate = cmp.Or(c.TotalRate, 1000)
	c.MaxAddrs = max(cmp.Or(c.MaxAddrs, 65536), ratelimit.Scopes)
	c.MaxBody = cmp.Or(c.MaxBody, 64<<10)
	c.Challenge = cmp.Or(c.Challenge, "Bearer")
	if c.ClientAddr == nil {
		c.ClientAddr = remoteAddr
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return c
}

func remoteAddr(r *http.Request) (netip.Addr, error) {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	return ap.Addr(), err
}

// Format shows nothing of the service's key.
func (s *Service) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "tokenserver.Service(%d issued)", s.issued.Load())
}

// Counters is a snapshot.
func (s *Service) Counters() Counters {
	return Counters{Issued: s.issued.Load(), Preflights: s.preflights.Load(), BadMethod: s.badMethod.Load(), BadAddr: s.badAddr.Load(), Limited: s.limited.Load(), TooLarge: s.tooLarge.Load(),
		Unauthorized: s.unauthorized.Load(), Unavailable: s.unavailable.Load(), NoServers: s.noServers.Load(), Failed: s.failed.Load()}
}

// ServeHTTP answers a POST with a token: 200 and 2048 bytes; 400, 401, 405, 413, 429, 500 or 503 otherwise. A browser's question about a page in
// Config.Origins is answered with 204.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.share(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, &s.badMethod, http.StatusMethodNotAllowed, "bad_method")
		return
	}
	from, err := s.cfg.ClientAddr(r)
	switch {
	case err != nil || !from.IsValid():
		s.refuse(w, &s.badAddr, http.StatusBadRequest, "bad_addr")
		return
	case !s.limit.Allow(from):
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(1/min(1, s.cfg.Rate)), 'f', -1, 64))
		s.refuse(w, &s.limited, http.StatusTooManyRequests, "limited")
		return
	}
	if r.ContentLength > s.cfg.MaxBody {
		s.refuse(w, &s.tooLarge, http.StatusRequestEntityTooLarge, "too_large")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	player, err := s.cfg.Authenticate(r)
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, ErrUnavailable):
		w.Header().Set("Retry-After", "1")
		s.refuse(w, &s.unavailable, http.StatusServiceUnavailable, "unavailable")
		return
	case errors.As(err, &large):
		s.refuse(w, &s.tooLarge, http.StatusRequestEntityTooLarge, "too_large")
		return
	case err != nil:
		w.Header().Set("WWW-Authenticate", s.cfg.Challenge)
		s.refuse(w, &s.unauthorized, http.StatusUnauthorized, "unauthorized")
		return
	case !s.limit.AllowTotal():
		w.Header().Set("Retry-After", "1")
		s.refuse(w, &s.limited, http.StatusTooManyRequests, "limited")
		return
	}
	s.issue(w, &player)
}

// preflightLife is how long a browser remembers an answer, in seconds.
const preflightLife = "600"

// share lets pages in Config.Origins see the answer (CORS), and answers a browser's question whether they may ask; done reports whether it was one.
func (s *Service) share(w http.ResponseWriter, r *http.Request) (done bool) {
	list, origin := origins.List(s.cfg.Origins), r.Header.Get("Origin")
	if len(list) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if origin == "" || !list.Allows(origin) {
		return false
	}
	if list.Named(origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	} else {
		h.Set("Access-Control-Allow-Origin", origins.Any)
	}
	h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	s.preflights.Add(1)
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", http.MethodPost)
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked) // what a login needs is Authenticate's matter
	}
	h.Set("Access-Control-Max-Age", preflightLife)
	w.WriteHeader(http.StatusNoContent)
	return true
}

func (s *Service) issue(w http.ResponseWriter, player *Player) {
	servers, internal := s.cfg.Servers, s.cfg.Internal
	if player.Servers != nil {
		servers, internal = player.Servers, player.Internal
	}
	if len(servers) == 0 {
		w.Header().Set("Retry-After", "1")
		s.refuse(w, &s.noServers, http.StatusServiceUnavailable, "no_servers")
		return
	}
	now := s.cfg.Now().Unix() // the login may have taken long
	if now < 0 {              // as a number without a sign it would never be over
		s.refuse(w, &s.failed, http.StatusInternalServerError, "failed")
		return
	}
	unix := uint64(now)
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: s.cfg.ProtocolID, ClientID: player.ID, UserData: player.UserData,
		Create: unix, Expire: unix + uint64(seconds(s.cfg.Life)), Timeout: seconds(s.cfg.Timeout),
		Servers: servers, Internal: internal, PrivateKey: s.cfg.Key, Rand: s.cfg.Rand})
	if err != nil {
		s.refuse(w, &s.failed, http.StatusInternalServerError, "failed")
		return
	}
	s.issued.Add(1)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(token) // a client that has gone needs none
}

// seconds is d in whole ones, rounded up; -1 for all that is negative.
func seconds(d time.Duration) int32 {
	n := d / time.Second
	switch {
	case d < 0:
		return -1
	case d%time.Second > 0:
		n++
	}
	return int32(min(n, math.MaxInt32))
}

// refuse answers with a status, counts, and writes a line unless one was written within the second.
func (s *Service) refuse(w http.ResponseWriter, n *atomic.Uint64, status int, reason string) {
	n.Add(1)
	now := s.cfg.Now()
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, reason, status)
	last := s.lastLog.Load()
	if since := now.UnixNano() - last; since >= 0 && since < int64(time.Second) || !s.lastLog.CompareAndSwap(last, now.UnixNano()) {
		s.muted.Add(1)
		return
	}
	s.cfg.Logger.Warn("token refused", "reason", reason, "others", s.muted.Swap(0))
}

// Error is a refusal as Fetch got it.
type Error struct {
	Status int // of HTTP
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("tokenserver: refused with %d: %q", e.Status, e.Reason)
}

// Fetch gets a token with a request of the caller's, whose headers say who asks.
func Fetch(client *http.Client, req *http.Request) (netcode.Token, error) {
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL may say who asks
		}
		return nil, fmt.Errorf("tokenserver: %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, netcode.ConnectTokenBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("tokenserver: %w", err)
	case resp.StatusCode != http.StatusOK:
		return nil, &Error{resp.StatusCode, strings.TrimSpace(string(body[:min(len(body), 100)]))}
	case len(body) != netcode.ConnectTokenBytes:
		return nil, fmt.Errorf("tokenserver: an answer of %d bytes or more is no token", len(body))
	}
	return body, nil
}
