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
	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Player describes who sent the request. Authenticate returns it.
type Player struct {
	// ID is the client id in the token. A server accepts one connection at a time for each ID.
	ID uint64
	// UserData goes to the game server in the token: a character, a team, a purchase.
	UserData [netcode.UserDataBytes]byte
	// Servers lists the servers that this player may join, in the order to try. Internal lists the addresses that these
	// servers know as their own, if they differ from Servers. Default: those of Config.
	Servers, Internal []netip.AddrPort
}

// ErrUnavailable is for Authenticate to return when it can't decide now. The client gets a 503 that tells it to
// retry after a second.
var ErrUnavailable = errors.New("tokenserver: can't authenticate now")

// Config has the settings of a Service. Key and Authenticate are needed.
type Config struct {
	// Key is the private key that the game servers have too.
	Key netcode.Key
	// ProtocolID is that of the game servers.
	ProtocolID uint64
	// Authenticate returns who sent the request, or an error to refuse it with 401. It is called by many goroutines
	// at once and should stop when the request's context is done. Reading a body beyond MaxBody fails with
	// *http.MaxBytesError; return that error to refuse with 413.
	Authenticate func(r *http.Request) (Player, error)
	// Place chooses the servers of a player who has logged in, within TotalRate: it sets Servers, Internal and what belongs to them in
	// UserData. It is called by many goroutines at once and should stop when the request's context is done. An *Error is
	// the answer: its Status, from 400 to 599, and the first 100 bytes of its Reason. ErrUnavailable is answered with 503, any other error
	// with 503 and "no_servers". May be nil. Package netconn/fleet/placing has one.
	Place func(r *http.Request, p *Player) error
	// Servers lists the servers that players may join, in the order to try; 32 at most. Without any here or in Player
	// the answer is 503.
	Servers []netip.AddrPort
	// Internal lists the addresses that the game servers know as their own, if they differ from Servers.
	Internal []netip.AddrPort
	// Life is how long a client may connect with a token. It is rounded up to seconds. A client asks the next server after Timeout, and stops after Life: with the defaults it asks six
	// of the token's servers where none answers. Default 30 s.
	Life time.Duration
	// Timeout is how long a client and a server wait for each other while they connect. It is rounded up to seconds. Default 5 s, which is too
	// little for paths of 1 kB/s whose queue holds 4 s: those need 8. Negative: forever. It also ends a connection after so long without a packet, where the ends set no timeout of their own;
	// the driver sets one.
	Timeout time.Duration
	// Challenge is the WWW-Authenticate header of a 401, which names the way to log in. Default Bearer.
	Challenge string
	// Origins lists pages of other origins whose scripts may request tokens, such as "https://play.example.com". "*" is every page; browsers show
	// their scripts no answer to a request with cookies. Requests of other pages get a 403, before Rate and Authenticate. Default none.
	Origins []string
	// Rate is the requests a second from one IPv4 address or IPv6 /64. Burst is how many may come at once. Default 1 and 5. An
	// IPv6 /56 has 4 times as much, a /48 16 times, an IPv4 /24 32 times. Further requests get a 429, before Authenticate. A Player.ID
	// has as much as one address, wherever its requests come from.
	Rate  float64
	Burst int
	// TotalRate bounds the requests a second, of all clients together, that Authenticate has accepted. Default 1000.
	TotalRate float64
	// MaxBody bounds a request's body in bytes. Default 64 KiB.
	MaxBody int64
	// MaxAddrs bounds the table of addresses and networks that Rate needs, and that of players. Default 65536, at least 3.
	MaxAddrs int
	// ClientAddr returns the address that a request comes from. Default: RemoteAddr. Behind a proxy that you trust, read the
	// proxy's header here.
	//
	// Take the last address of the last X-Forwarded-For line (of r.Header.Values, since Get returns the first line), which the proxy added. Those
	// before it are what the client wrote.
	ClientAddr func(r *http.Request) (netip.Addr, error)
	// Logger gets refusals, one line a second at most. Default none.
	Logger *slog.Logger
	// Now is the clock. It is called by many goroutines at once. A token's Life begins when it is made, after Authenticate. With a
	// time before 1970 no token is made, and the answer is 500. Default time.Now.
	Now func() time.Time
	// Rand is the source of keys and nonces. It is read by many goroutines at once. Default crypto/rand.
	Rand io.Reader
}

// Counters counts requests by their result.
type Counters struct {
	Issued uint64
	// Preflights counts the requests (CORS) by which browsers ask whether a page in Config.Origins may request tokens.
	Preflights uint64
	// Refused requests, by reason.
	// NotPlaced are those for which Place returned an *Error. BadOrigin are those of pages that aren't in Config.Origins.
	BadMethod, BadOrigin, BadAddr, Limited, TooLarge, Unauthorized, Unavailable, NoServers, NotPlaced, Failed uint64
}

// Service is an http.Handler that answers a POST with a connect token. Safe for concurrent use.
type Service struct {
	cfg   Config
	limit *ratelimit.Limiter
	lines ratelimit.Lines
	pages http.CrossOriginProtection

	preflights, issued, badMethod, badOrigin, badAddr, limited, tooLarge, unauthorized, unavailable, noServers, notPlaced, failed atomic.Uint64
}

var errConfig = errors.New("tokenserver")

// New returns a service, or an error for settings that can't work.
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.Key.IsZero():
		return nil, errors.New("tokenserver: Config needs the game servers' Key")
	case cfg.Authenticate == nil:
		return nil, errors.New("tokenserver: Config needs Authenticate, which decides who gets a token")
	}
	cfg = cfg.filled()
	if err := setting.First(
		setting.Within(errConfig, "Life", cfg.Life, 1, math.MaxInt64),
		setting.Within(errConfig, "Rate", cfg.Rate, 0, math.Inf(1)),
		setting.Within(errConfig, "Burst", cfg.Burst, 1, math.MaxInt),
		setting.Within(errConfig, "TotalRate", cfg.TotalRate, 0, math.Inf(1)),
		setting.Within(errConfig, "MaxBody", cfg.MaxBody, 1, math.MaxInt64),
		setting.Within(errConfig, "MaxAddrs", cfg.MaxAddrs, ratelimit.Scopes, math.MaxInt)); err != nil {
		return nil, err
	}
	if err := origins.List(cfg.Origins).Check(); err != nil {
		return nil, fmt.Errorf("%w: Origins: %w", errConfig, err)
	}
	for name, list := range map[string][]netip.AddrPort{"Servers": cfg.Servers, "Internal": cfg.Internal} {
		if len(list) > netcode.MaxServers || slices.ContainsFunc(list, func(a netip.AddrPort) bool { return !a.IsValid() || a.Port() == 0 }) {
			return nil, fmt.Errorf("%w: %s: %w", errConfig, name, netcode.ErrServers)
		}
	}
	if n := len(cfg.Internal); n > 0 && n != len(cfg.Servers) {
		return nil, fmt.Errorf("%w: Internal has %d addresses and Servers %d", errConfig, n, len(cfg.Servers))
	}
	return &Service{cfg: cfg, limit: ratelimit.New(cfg.Now, cfg.Rate, cfg.Burst, cfg.MaxAddrs, cfg.TotalRate)}, nil
}

func (c Config) filled() Config {
	c.Life = cmp.Or(c.Life, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Rate = cmp.Or(c.Rate, 1)
	c.Burst = cmp.Or(c.Burst, 5)
	c.TotalRate = cmp.Or(c.TotalRate, 1000)
	c.MaxAddrs = cmp.Or(c.MaxAddrs, 65536)
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

// Format implements fmt.Formatter, so that printing a Service doesn't show its key.
func (s *Service) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "tokenserver.Service(%d issued)", s.issued.Load())
}

// Counters returns the counters so far.
func (s *Service) Counters() Counters {
	return Counters{Issued: s.issued.Load(), Preflights: s.preflights.Load(), BadMethod: s.badMethod.Load(), BadOrigin: s.badOrigin.Load(), BadAddr: s.badAddr.Load(), Limited: s.limited.Load(), TooLarge: s.tooLarge.Load(),
		Unauthorized: s.unauthorized.Load(), Unavailable: s.unavailable.Load(), NoServers: s.noServers.Load(), NotPlaced: s.notPlaced.Load(), Failed: s.failed.Load()}
}

// ServeHTTP answers a POST with status 200 and a token of 2048 bytes, or refuses it with 400, 401, 403, 405, 413, 429, 500 or 503, or what
// Config.Place says, and the reason as text. It answers a browser's CORS preflight for a page in Config.Origins with 204.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.share(w, r) {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		s.refuse(w, &s.badMethod, http.StatusMethodNotAllowed, "bad_method")
		return
	}
	if !origins.List(s.cfg.Origins).Allows(r.Header.Get("Origin")) && s.pages.Check(r) != nil { // it would be spent for nothing: the page can't read a token
		s.refuse(w, &s.badOrigin, http.StatusForbidden, "bad_origin")
		return
	}
	from, err := s.cfg.ClientAddr(r)
	switch {
	case err != nil || !from.IsValid():
		s.refuse(w, &s.badAddr, http.StatusBadRequest, "bad_addr")
		return
	case !s.limit.Allow(from):
		s.tooMany(w)
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
	case !s.limit.AllowPlayer(player.ID):
		s.tooMany(w)
		return
	}
	if s.cfg.Place != nil {
		if err := s.cfg.Place(r, &player); err != nil {
			s.notPlace(w, err)
			return
		}
	}
	s.issue(w, &player)
}

// tooMany answers a client that is over a limit, and tells it when Rate lets it ask again.
func (s *Service) tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(1/min(1, s.cfg.Rate)), 'f', -1, 64))
	s.refuse(w, &s.limited, http.StatusTooManyRequests, "limited")
}

// notPlace answers a player for whom Place found no server.
func (s *Service) notPlace(w http.ResponseWriter, err error) {
	var why *Error
	switch {
	case errors.As(err, &why) && why.Status >= 400 && why.Status < 600:
		if why.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		s.refuse(w, &s.notPlaced, why.Status, why.Reason[:min(len(why.Reason), maxReason)])
	case errors.Is(err, ErrUnavailable):
		w.Header().Set("Retry-After", "1")
		s.refuse(w, &s.unavailable, http.StatusServiceUnavailable, "unavailable")
	default:
		w.Header().Set("Retry-After", "1")
		s.refuse(w, &s.noServers, http.StatusServiceUnavailable, "no_servers")
	}
}

// maxReason is the most bytes of an Error's Reason.
const maxReason = 100

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
		s.refuse(w, &s.failed, http.StatusInternalServerError, "failed", "error", "the clock is before 1970")
		return
	}
	unix := uint64(now)
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: s.cfg.ProtocolID, ClientID: player.ID, UserData: player.UserData,
		Create: unix, Expire: unix + uint64(seconds(s.cfg.Life)), Timeout: seconds(s.cfg.Timeout),
		Servers: servers, Internal: internal, PrivateKey: s.cfg.Key, Rand: s.cfg.Rand})
	if err != nil {
		s.refuse(w, &s.failed, http.StatusInternalServerError, "failed", "error", err)
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

// refuse answers with a status, counts, and writes a line with what else there is to say, unless one was written within the second.
func (s *Service) refuse(w http.ResponseWriter, n *atomic.Uint64, status int, reason string, more ...any) {
	n.Add(1)
	now := s.cfg.Now()
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, reason, status)
	if others, ok := s.lines.Next(now); ok {
		s.cfg.Logger.Warn("token refused", append([]any{"reason", reason, "others", others}, more...)...)
	}
}

// Error is returned by Fetch when the service refuses. Config.Place may return one, which its player's Fetch then returns.
type Error struct {
	Status int    // HTTP status
	Reason string // the first 100 bytes of the answer
}

func (e *Error) Error() string {
	return fmt.Sprintf("tokenserver: refused with %d: %q", e.Status, e.Reason)
}

// Fetch sends req, whose headers or body say who the player is, and returns the token in the answer. It returns an
// *Error when the service refuses. A nil client is http.DefaultClient. The service can't send the request to another host, unless the client has a CheckRedirect.
// It waits as long as the request's context and the client's Timeout allow.
func Fetch(client *http.Client, req *http.Request) (netcode.Token, error) {
	client = redirects.Bounded(client)
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
		return nil, &Error{resp.StatusCode, strings.TrimSpace(string(body[:min(len(body), maxReason)]))}
	case len(body) != netcode.ConnectTokenBytes:
		return nil, fmt.Errorf("tokenserver: an answer of %d bytes or more is no token", len(body))
	}
	return body, nil
}
