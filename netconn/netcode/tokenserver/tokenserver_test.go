package tokenserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

var key = netcode.Key{0xaa, 0xbb, 0xcc}

type rig struct {
	*Service
	now    time.Time
	log    bytes.Buffer
	people uint64
}

func newRig(t *testing.T, edit func(*Config)) *rig {
	r := &rig{now: time.Unix(1_700_000_000, 0)}
	cfg := Config{Key: key, ProtocolID: 7, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")},
		Now: func() time.Time { return r.now }, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Authenticate: func(req *http.Request) (Player, error) {
			switch name := req.Header.Get("Authorization"); name {
			case "":
				return Player{}, errors.New("the secret is hunter2")
			case "later":
				return Player{}, fmt.Errorf("the database is gone: %w", ErrUnavailable)
			case "nowhere":
				return Player{ID: 1, Servers: []netip.AddrPort{}}, nil
			case "broken":
				return Player{ID: 1, Servers: make([]netip.AddrPort, 1)}, nil
			case "somebody": // another one each time
				r.people++
				return Player{ID: 1000 + r.people}, nil
			case "elsewhere":
				return Player{ID: 1, Servers: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.1:1")}, Internal: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")}}, nil
			}
			return Player{ID: 42}, nil
		}}
	if edit != nil {
		edit(&cfg)
	}
	var err error
	r.Service, err = New(cfg)
	require.NoError(t, err)
	return r
}

func (r *rig) ask(method, from, who string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/token", nil)
	req.RemoteAddr = from
	req.Header.Set("Authorization", who)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func TestAnswers(t *testing.T) {
	r := newRig(t, nil)
	for i, c := range []struct {
		method, from, who string
		status            int
		counter           func(c Counters) uint64
	}{
		{"GET", "192.0.2.1:1", "ann", http.StatusMethodNotAllowed, func(c Counters) uint64 { return c.BadMethod }},
		{"POST", "nowhere", "ann", http.StatusBadRequest, func(c Counters) uint64 { return c.BadAddr }},
		{"POST", "192.0.2.2:1", "", http.StatusUnauthorized, func(c Counters) uint64 { return c.Unauthorized }},
		{"POST", "192.0.2.3:1", "later", http.StatusServiceUnavailable, func(c Counters) uint64 { return c.Unavailable }},
		{"POST", "192.0.2.4:1", "nowhere", http.StatusServiceUnavailable, func(c Counters) uint64 { return c.NoServers }},
		{"POST", "192.0.2.5:1", "broken", http.StatusInternalServerError, func(c Counters) uint64 { return c.Failed }},
		{"POST", "192.0.2.6:1", "ann", http.StatusOK, func(c Counters) uint64 { return c.Issued }},
	} {
		w := r.ask(c.method, c.from, c.who)
		require.Equal(t, c.status, w.Code, "%d", i)
		require.EqualValues(t, 1, c.counter(r.Counters()), "%d", i)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.NotContains(t, w.Body.String(), "hunter2")
		r.now = r.now.Add(time.Second) // so that each is logged
	}
	require.Contains(t, r.log.String(), netcode.ErrServers.Error(), "what is wrong with a player that Authenticate made")
	require.NotContains(t, r.log.String(), "hunter2")
	require.NotContains(t, strings.ToLower(r.log.String()), "aabbcc")
}

// TestLimits: one address has its burst and then its rate; others aren't touched by it; an IPv6 customer has one
// limit for all of its addresses.
func TestLimits(t *testing.T) {
	r := newRig(t, nil)
	ok := func(from string, n int) (good int) {
		for i := range n {
			if r.ask("POST", fmt.Sprintf(from, i), "somebody").Code == http.StatusOK {
				good++
			}
		}
		return good
	}
	require.Equal(t, 5, ok("192.0.2.1:%d", 100))
	require.Equal(t, 5, ok("192.0.2.2:%d", 100))
	require.Equal(t, 5, ok("[2001:db8::%d]:1", 100))
	require.Equal(t, 5, ok("[2001:db8:0:1::%d]:1", 100))
	r.now = r.now.Add(2 * time.Second)
	require.Equal(t, 2, ok("192.0.2.1:%d", 100))
	require.EqualValues(t, 4*95+98, r.Counters().Limited)
	require.LessOrEqual(t, strings.Count(r.log.String(), "\n"), 2, "a line a second at most")
}

// TestOnePlayerEverywhere: a player has the limits of one address, however many addresses ask in the player's name, and takes nothing beyond them from TotalRate.
func TestOnePlayerEverywhere(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TotalRate, c.Rate = 20, 0.5 })
	ok := func(who string) (good int) {
		for i := range 1000 {
			w := r.ask("POST", fmt.Sprintf("10.%d.%d.1:1", i/250, i%250), who)
			if w.Code == http.StatusOK {
				good++
			} else {
				require.Equal(t, http.StatusTooManyRequests, w.Code)
				require.Equal(t, "2", w.Header().Get("Retry-After"))
			}
		}
		return good
	}
	require.Equal(t, 5, ok("ann"))
	require.Equal(t, 15, ok("somebody"), "others have the rest")
	r.now = r.now.Add(time.Minute)
	require.Equal(t, 5, ok("ann"))
	r.now = r.now.Add(2 * time.Second)
	require.Equal(t, 1, ok("ann"))
}

// TestNoLimits: the largest numbers are no limit, and no number is refused.
func TestNoLimits(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Rate, c.TotalRate, c.Burst = math.Inf(1), math.Inf(1), math.MaxInt })
	for i := range 100 {
		require.Equal(t, http.StatusOK, r.ask("POST", "192.0.2.1:1", "ann").Code, "%d", i)
		require.Equal(t, http.StatusOK, r.ask("POST", "[2001:db8::1]:1", "ann").Code, "%d", i)
		r.now = r.now.Add(time.Duration(i))
	}
	for _, edit := range []func(*Config){func(c *Config) { c.Rate = math.NaN() }, func(c *Config) { c.TotalRate = math.NaN() }} {
		cfg := r.cfg
		edit(&cfg)
		_, err := New(cfg)
		require.Error(t, err)
	}
}

// TestLogAfterClockSetBack: a clock that is set back doesn't silence the log until it has caught up.
func TestLogAfterClockSetBack(t *testing.T) {
	r := newRig(t, nil)
	require.Equal(t, http.StatusUnauthorized, r.ask("POST", "192.0.2.1:1", "").Code)
	r.now = r.now.Add(-time.Hour)
	for range 10 {
		r.now = r.now.Add(100 * time.Millisecond)
		require.Equal(t, http.StatusUnauthorized, r.ask("POST", "192.0.2.2:1", "").Code)
		r.now = r.now.Add(time.Minute)
	}
	require.Greater(t, strings.Count(r.log.String(), "\n"), 9)
}

// TestPrefixLimits: who has many addresses has the limits of the networks they are in; an address within another is taken as
// the one it holds.
func TestPrefixLimits(t *testing.T) {
	r := newRig(t, nil)
	ok := func(n int, from func(i int) string) (good int) {
		for i := range n {
			if r.ask("POST", from(i), "somebody").Code == http.StatusOK {
				good++
			}
		}
		return good
	}
	require.Equal(t, 5, ok(1000, func(i int) string { return fmt.Sprintf("[2001:db8:2:0:%x::1]:1", i) }), "a /64")
	require.Equal(t, 5*ratelimit.Wide56, ok(1000, func(i int) string { return fmt.Sprintf("[2001:db8:0:%x::1]:1", i%256) }), "a /56")
	require.Equal(t, 5*ratelimit.Wide48, ok(5000, func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]:1", i) }), "a /48")
	require.Equal(t, 5*ratelimit.Wide24, ok(5000, func(i int) string { return fmt.Sprintf("192.0.2.%d:1", i%256) }), "a /24")
	require.Equal(t, 5, ok(300, func(i int) string {
		return fmt.Sprintf([]string{"198.51.100.7:%d", "[::ffff:198.51.100.7]:%d", "[64:ff9b::198.51.100.7]:%d"}[i%3], i)
	}), "one address in three forms")

	r = newRig(t, nil)
	require.Equal(t, 5, ok(1000, func(int) string { return "[2001:db8::1]:1" }))
	require.Equal(t, 5, ok(10, func(int) string { return "[2001:db8:0:1::1]:1" }), "what a neighbour was refused isn't counted as the network's")
	r = newRig(t, nil)
	ok(5000, func(i int) string { return fmt.Sprintf("[2001:db8:0:%x::1]:1", i) })
	require.Less(t, r.limit.Len(), 200, "a network at its limit takes no room for its addresses")
}

// TestFloodWithoutLogin: a /48 whose requests have no login takes nothing from who has one.
func TestFloodWithoutLogin(t *testing.T) {
	r := newRig(t, nil)
	issued := 0
	for i := range 100 {
		for k := range 300 { // 3000 a second
			r.ask("POST", fmt.Sprintf("[2001:db8:0:%x::1]:1", i*300+k), "")
		}
		if r.ask("POST", fmt.Sprintf("198.51.%d.1:1", i), "somebody").Code == http.StatusOK {
			issued++
		}
		r.now = r.now.Add(100 * time.Millisecond)
	}
	require.Equal(t, 100, issued)
	require.Less(t, r.Counters().Unauthorized, uint64(5*ratelimit.Wide48+10*ratelimit.Wide48+1), "Authenticate is asked at the rate of a /48")

	r = newRig(t, func(c *Config) { c.TotalRate = 1 })
	for i := range 100 {
		r.ask("POST", fmt.Sprintf("203.0.%d.1:1", i), "") // one address each, no login
	}
	require.Equal(t, http.StatusOK, r.ask("POST", "198.51.100.1:1", "somebody").Code, "the total is of those with a login")
}

// TestBody: a body has a limit, whether its length was told or not, and whether the hook reads it or not.
func TestBody(t *testing.T) {
	read := int64(0)
	r := newRig(t, func(c *Config) {
		c.MaxBody, c.Burst = 1000, 100
		c.Authenticate = func(r *http.Request) (Player, error) {
			n, err := io.Copy(io.Discard, r.Body)
			read = n
			return Player{ID: 1}, err
		}
	})
	post := func(length, told int64) int {
		req := httptest.NewRequest(http.MethodPost, "/token", io.LimitReader(zeros{}, length))
		req.RemoteAddr, req.ContentLength = "192.0.2.1:1", told
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w.Code
	}
	require.Equal(t, http.StatusOK, post(1000, 1000))
	require.Equal(t, http.StatusOK, post(1000, -1))
	read = 0
	require.Equal(t, http.StatusRequestEntityTooLarge, post(1001, 1001))
	require.Zero(t, read)
	require.Equal(t, http.StatusRequestEntityTooLarge, post(300<<20, -1))
	require.LessOrEqual(t, read, int64(1000))
	require.EqualValues(t, 2, r.Counters().TooLarge)
	r.cfg.MaxBody = Config{}.filled().MaxBody
	require.EqualValues(t, 64<<10, r.cfg.MaxBody)
	require.Equal(t, http.StatusRequestEntityTooLarge, post(300<<20, -1), "without a setting too")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestChallenge: a 401 says how to log in, as HTTP wants.
func TestChallenge(t *testing.T) {
	r := newRig(t, nil)
	require.Equal(t, "Bearer", r.ask("POST", "192.0.2.1:1", "").Header().Get("WWW-Authenticate"))
	require.Empty(t, r.ask("POST", "192.0.2.1:1", "ann").Header().Get("WWW-Authenticate"))
	r = newRig(t, func(c *Config) { c.Challenge = `Basic realm="arena"` })
	require.Equal(t, `Basic realm="arena"`, r.ask("POST", "192.0.2.1:1", "").Header().Get("WWW-Authenticate"))
}

func TestTotalRateAndTableBound(t *testing.T) {
	r := newRig(t, func(c *Config) { c.TotalRate, c.MaxAddrs = 50, 10 })
	good := 0
	for i := range 1000 {
		if r.ask("POST", fmt.Sprintf("10.%d.%d.1:1", i/250, i%250), "somebody").Code == http.StatusOK {
			good++
		}
	}
	require.Equal(t, 50, good)
	require.Equal(t, 10, r.limit.Len())
}

// TestTokenConnects fetches over real HTTP and connects with it to a real server, once.
func TestTokenConnects(t *testing.T) {
	srv, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.Netcode{ProtocolID: 7, Key: key}})
	require.NoError(t, err)
	defer srv.Close()
	r := newRig(t, func(c *Config) { c.Servers, c.Now = []netip.AddrPort{srv.LocalAddr()}, time.Now })
	web := httptest.NewServer(r)
	defer web.Close()

	req, err := http.NewRequest(http.MethodPost, web.URL, nil)
	require.NoError(t, err)
	_, err = Fetch(nil, req) // http.DefaultClient
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusUnauthorized, refused.Status)
	require.Equal(t, "unauthorized", refused.Reason)

	req.Header.Set("Authorization", "ann")
	token, err := Fetch(web.Client(), req)
	require.NoError(t, err)
	joined := false
	cl, err := driver.Dial(srv.LocalAddr().String(), driver.Config{Link: driver.Netcode{ProtocolID: 7, Token: token}, Joined: func(*driver.Conn) { joined = true }})
	require.NoError(t, err)
	defer cl.Close()
	for i := 0; !joined; i++ {
		require.Less(t, i, 100_000)
		for _, d := range []*driver.Driver{srv, cl} {
			d.TickDispatch(time.Now())
			d.TickFlush(time.Now())
		}
	}
	for c := range srv.Conns {
		require.EqualValues(t, 42, c.ClientID())
	}
}

// TestFetchFails: an error says which host, and nothing of a login in the URL.
func TestFetchFails(t *testing.T) {
	web := httptest.NewServer(nil)
	web.Close()
	req, err := http.NewRequest(http.MethodPost, web.URL+"/token?ticket=hunter2", nil)
	require.NoError(t, err)
	_, err = Fetch(web.Client(), req)
	require.ErrorContains(t, err, req.URL.Host)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestFetchBounds(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20))
	}))
	defer web.Close()
	req, err := http.NewRequest(http.MethodPost, web.URL, nil)
	require.NoError(t, err)
	_, err = Fetch(web.Client(), req)
	require.ErrorContains(t, err, "no token")
}

// TestInternal: a player's own servers may have other names behind the gateway, as the service's may.
func TestInternal(t *testing.T) {
	r := newRig(t, nil)
	w := r.ask("POST", "192.0.2.1:1", "elsewhere")
	require.Equal(t, http.StatusOK, w.Code)
	var request firstRequest
	c, err := netcode.NewClient(netcode.ClientConfig{ProtocolID: 7, Handler: &request})
	require.NoError(t, err)
	require.NoError(t, c.Connect(0, w.Body.Bytes()))
	require.Equal(t, "203.0.113.1:1", request.to.String())
	m, err := netcode.NewServer(netcode.ServerConfig{ProtocolID: 7, PrivateKey: key, Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1")}, Handler: &nobody{},
		UnixAtZero: uint64(r.now.Unix())})
	require.NoError(t, err)
	m.Receive(0, netip.MustParseAddrPort("192.0.2.1:1"), request.p)
	require.EqualValues(t, 1, m.Counters.Challenges, "%+v", m.Counters)
}

// firstRequest is what a client sends, and where.
type firstRequest struct {
	to netip.AddrPort
	p  []byte
}

func (f *firstRequest) Send(to netip.AddrPort, p []byte)        { f.to, f.p = to, bytes.Clone(p) }
func (*firstRequest) StateChanged(netcode.State, netcode.State) {}
func (*firstRequest) Payload([]byte)                            {}

type nobody struct{ netcode.ServerHandler }

func (*nobody) Send(netip.AddrPort, []byte) {}

// TestExtremes: durations beyond what a token can say are the most that it can.
func TestExtremes(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Life, c.Timeout, c.Rate = math.MaxInt64, math.MaxInt64, 0.3 })
	require.Equal(t, http.StatusOK, r.ask("POST", "192.0.2.1:1", "ann").Code)
	for d, want := range map[time.Duration]int32{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, -1: -1, math.MinInt64: -1, math.MaxInt64: math.MaxInt32} {
		require.Equal(t, want, seconds(d), d)
	}
	for range 10 {
		if w := r.ask("POST", "192.0.2.1:1", "ann"); w.Code == http.StatusTooManyRequests {
			require.Equal(t, "4", w.Header().Get("Retry-After"))
		}
	}
	require.NotZero(t, r.Counters().Limited)
	require.Contains(t, (&Error{401, "line\nbreak"}).Error(), `line\nbreak`)
	for _, v := range []any{r.Service, r.cfg} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d"} {
			text := strings.ToLower(fmt.Sprintf(verb, v))
			for _, leak := range []string{"aabbcc", "170 187", "0xaa, 0xbb"} {
				require.NotContains(t, text, leak)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	auth, one := func(*http.Request) (Player, error) { return Player{}, nil }, netip.MustParseAddrPort("192.0.2.1:1")
	for _, c := range []Config{{}, {Key: key}, {Authenticate: auth}, {Key: key, Authenticate: auth, Rate: -1},
		{Key: key, Authenticate: auth, Servers: make([]netip.AddrPort, 33)}, {Key: key, Authenticate: auth, Servers: make([]netip.AddrPort, 1)},
		{Key: key, Authenticate: auth, Internal: make([]netip.AddrPort, 1)},
		{Key: key, Authenticate: auth, Servers: []netip.AddrPort{one, one}, Internal: []netip.AddrPort{one}}} {
		_, err := New(c)
		require.Error(t, err)
	}
}

// TestOrigins: browsers let pages in Origins ask and see the answers, refusals too, and no others; "*" shares nothing that a cookie gives.
func TestOrigins(t *testing.T) {
	const page = "https://play.example"
	for name, test := range map[string]struct {
		origins            []string
		origin             string
		allow, creds, vary string
	}{
		"closed":       {nil, page, "", "", ""},
		"listed":       {[]string{"https://other.example", page}, page, page, "true", "Origin"},
		"other":        {[]string{"https://other.example"}, page, "", "", "Origin"},
		"every":        {[]string{"*"}, page, "*", "", "Origin"},
		"no browser":   {[]string{page}, "", "", "", "Origin"},
		"null, listed": {[]string{page}, "null", "", "", "Origin"},
	} {
		r := newRig(t, func(c *Config) { c.Origins = test.origins })
		ask := func(method, who string, preflight bool) *httptest.ResponseRecorder {
			req := httptest.NewRequest(method, "/token", nil)
			req.RemoteAddr = "192.0.2.1:1"
			if test.origin != "" {
				req.Header.Set("Origin", test.origin)
			}
			if who != "" {
				req.Header.Set("Authorization", who)
			}
			if preflight {
				req.Header.Set("Access-Control-Request-Method", "POST")
				req.Header.Set("Access-Control-Request-Headers", "authorization")
			}
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			return w
		}
		preflight := ask("OPTIONS", "", true)
		if test.allow == "" {
			require.Equal(t, http.StatusMethodNotAllowed, preflight.Code, name)
			require.Empty(t, preflight.Header().Get("Access-Control-Allow-Headers"), name)
		} else {
			require.Equal(t, http.StatusNoContent, preflight.Code, name)
			require.Equal(t, "POST", preflight.Header().Get("Access-Control-Allow-Methods"), name)
			require.Equal(t, "authorization", preflight.Header().Get("Access-Control-Allow-Headers"), name)
			require.EqualValues(t, 1, r.Counters().Preflights)
			require.Equal(t, http.StatusMethodNotAllowed, ask("OPTIONS", "", false).Code, "no question")
		}
		for who, want := range map[string]int{"ann": http.StatusOK, "": http.StatusUnauthorized} {
			if test.allow == "" && test.origin != "" {
				want = http.StatusForbidden
			}
			w := ask("POST", who, false)
			require.Equal(t, want, w.Code, name)
			require.Equal(t, test.allow, w.Header().Get("Access-Control-Allow-Origin"), name)
			require.Equal(t, test.creds, w.Header().Get("Access-Control-Allow-Credentials"), name)
			require.Equal(t, test.vary, w.Header().Get("Vary"), name)
		}
	}
	_, err := New(Config{Key: key, Authenticate: func(*http.Request) (Player, error) { return Player{}, nil }, Origins: []string{"play.example"}})
	require.ErrorContains(t, err, "play.example")
}

// TestForeignPages: a page that isn't in Origins can make a browser post, with the player's cookies, though not read the answer (CSRF). Its requests get no token, reach
// neither the login nor Place, and take nothing of the rate of the player, whose own client is answered.
func TestForeignPages(t *testing.T) {
	const home = "https://play.example.com"
	for _, page := range []struct {
		name    string
		headers map[string]string
		origins []string
		status  int
	}{
		{"another site's", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, nil, http.StatusForbidden},
		{"another site's, with a list", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, []string{home}, http.StatusForbidden},
		{"a neighbour's", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://evil.example.com"}, []string{home}, http.StatusForbidden},
		{"a frame's without an origin", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "null"}, nil, http.StatusForbidden},
		{"in a browser that tells the origin only", map[string]string{"Origin": "https://evil.example"}, nil, http.StatusForbidden},
		{"in a list", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": home}, []string{home}, http.StatusOK},
		{"any", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, []string{"*"}, http.StatusOK},
		{"the service's own", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://tokens.example.com"}, nil, http.StatusOK},
		{"the service's own in a browser that tells the origin only", map[string]string{"Origin": "https://tokens.example.com"}, nil, http.StatusOK},
		{"no page's", nil, nil, http.StatusOK},
	} {
		t.Run(page.name, func(t *testing.T) {
			logins, placed := 0, 0
			r := newRig(t, func(c *Config) {
				c.Origins = page.origins
				login := c.Authenticate
				c.Authenticate = func(r *http.Request) (Player, error) { logins++; return login(r) }
				c.Place = func(*http.Request, *Player) error { placed++; return nil }
			})
			post := func(headers map[string]string) int {
				req := httptest.NewRequest("POST", "https://tokens.example.com/token", nil)
				req.RemoteAddr = "192.0.2.1:1"
				req.Header.Set("Authorization", "ann")
				for name, value := range headers {
					req.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				r.ServeHTTP(w, req)
				return w.Code
			}
			n := r.cfg.Burst - 1
			for range n {
				require.Equal(t, page.status, post(page.headers))
			}
			if page.status == http.StatusForbidden {
				for range 100 {
					post(page.headers)
				}
				require.Zero(t, logins)
				require.Zero(t, placed)
				require.EqualValues(t, n+100, r.Counters().BadOrigin)
			}
			require.Equal(t, http.StatusOK, post(nil), "the player's own client")
		})
	}
}

// TestFetchGoesNowhereElse: a service that redirects can't have a player's machine ask another host, nor send it the login.
func TestFetchGoesNowhereElse(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/reboot", http.StatusTemporaryRedirect)
	}))
	defer service.Close()
	req, err := http.NewRequest(http.MethodPost, service.URL+"/token", strings.NewReader("password=secret"))
	require.NoError(t, err)
	_, err = Fetch(nil, req)
	require.Error(t, err)
	require.False(t, asked)
}
