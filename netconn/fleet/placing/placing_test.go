package placing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv/embed"
	"github.com/bunchnet/bunchnet/netconn/fleet/placing"
	"github.com/bunchnet/bunchnet/netconn/kv"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

var key = netcode.Key{1, 2, 3}

// match is a game server.
type match struct {
	*fleet.Server
	d     *driver.Driver
	store *natskv.Store
	dead  bool
}

// town is a fleet over real sockets, in one goroutine but for NATS and the token service.
type town struct {
	t       *testing.T
	bucket  *natskv.Bucket
	matches []*match
	service *placing.Service
	web     *httptest.Server
	clients []*driver.Driver
	began   time.Time
}

func newTown(t *testing.T, capacities ...int) *town {
	s, err := embed.Start(t.TempDir(), 0)
	require.NoError(t, err)
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	w := &town{t: t, began: time.Now()}
	w.bucket, err = natskv.Open(context.Background(), nc, natskv.Config{})
	require.NoError(t, err)
	timing := fleet.Timing{Expiry: time.Minute}
	placer, err := fleet.NewPlacer(fleet.PlacerConfig{ListConfig: fleet.ListConfig{Timing: timing}})
	require.NoError(t, err)
	store := w.bucket.Store(placer)
	w.service = placing.Start(placer, store)
	tokens, err := tokenserver.New(tokenserver.Config{Key: key, Timeout: time.Second, Rate: 1e6, Burst: 1e6,
		Authenticate: func(r *http.Request) (tokenserver.Player, error) {
			id, err := strconv.ParseUint(r.Header.Get("Authorization"), 10, 64)
			return tokenserver.Player{ID: id}, err
		},
		Place: w.service.Place(func(r *http.Request, _ *tokenserver.Player) (fleet.Want, error) {
			n, _ := strconv.Atoi(r.Header.Get("Players"))
			return fleet.Want{Build: r.Header.Get("Build"), Server: r.Header.Get("Server"), Players: n}, nil
		})})
	require.NoError(t, err)
	w.web = httptest.NewServer(tokens)
	for _, n := range capacities {
		w.match(timing, n)
	}
	w.until("the list is whole", func() bool {
		n := 0
		require.NoError(t, w.service.Look(context.Background(), func(p *fleet.Placer) {
			for i := range p.List().All {
				if p.Free(i.ID) > 0 {
					n++
				}
			}
		}))
		return n == len(capacities)
	})
	t.Cleanup(func() {
		for _, d := range w.clients {
			_ = d.Close()
		}
		for _, m := range w.matches {
			m.store.Close()
			_ = m.d.Close()
		}
		w.web.Close()
		w.service.Close()
		store.Close()
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
	})
	return w
}

func (w *town) match(timing fleet.Timing, capacity int, builds ...string) {
	m := &match{}
	var err error
	link := driver.Netcode{Key: key, Slots: capacity + 1, Admit: func(c netcode.ClientInfo) netcode.Admission { return m.Admit(c) }, FirstSequence: uint64(len(w.matches)+1) << 40}
	m.d, err = driver.Listen("127.0.0.1:0", driver.Config{Link: link, Closed: func(c *driver.Conn, _ netconn.CloseResult) { m.Left(c.ClientID()) }})
	require.NoError(w.t, err)
	m.Server, err = fleet.NewServer(fleet.ServerConfig{Name: "m" + strconv.Itoa(len(w.matches)), Timing: timing,
		Info: fleet.Info{Addrs: []netip.AddrPort{m.d.LocalAddr()}, Capacity: capacity, Build: "7", Builds: builds}})
	require.NoError(w.t, err)
	m.Ready()
	m.store = w.bucket.Store(m.Server)
	w.matches = append(w.matches, m)
}

func (w *town) until(what string, f func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(2 * time.Millisecond) {
		require.True(w.t, time.Now().Before(end), "never: %s", what)
		now := time.Now()
		for _, m := range w.matches {
			if !m.dead {
				m.d.TickDispatch(now)
				kv.Tick(m.Server, m.store, time.Since(w.began))
				m.d.TickFlush(now)
			}
		}
		for _, d := range w.clients {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
	}
}

// fetch gets a token.
func (w *town) fetch(id int, header ...string) (netcode.Token, error) {
	req, err := http.NewRequest(http.MethodPost, w.web.URL, nil)
	require.NoError(w.t, err)
	req.Header.Set("Authorization", strconv.Itoa(id))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	type answer struct {
		token netcode.Token
		err   error
	}
	out := make(chan answer, 1)
	go func() {
		t, err := tokenserver.Fetch(http.DefaultClient, req)
		out <- answer{t, err}
	}()
	var a *answer
	w.until("an answer", func() bool {
		select {
		case got := <-out:
			a = &got
		default:
		}
		return a != nil
	})
	return a.token, a.err
}

// dial dials with a token, and waits for the end of that.
func (w *town) dial(token netcode.Token) error {
	var joined bool
	var end *netconn.CloseResult
	d, err := driver.Dial("127.0.0.1:1", driver.Config{Link: driver.Netcode{Token: token}, Joined: func(*driver.Conn) { joined = true },
		Closed: func(_ *driver.Conn, r netconn.CloseResult) { end = &r }})
	require.NoError(w.t, err)
	w.clients = append(w.clients, d)
	w.until("joined or not", func() bool { return joined || end != nil })
	if end != nil {
		return end.Err
	}
	return nil
}

// TestNextServer: with one token a player whose server is dead comes to the next one in it, and when that is full to the one after; when all are full it is told so.
func TestNextServer(t *testing.T) {
	w := newTown(t, 3, 1, 2)
	a, b, c := w.matches[0], w.matches[1], w.matches[2]
	token := func(id int) netcode.Token {
		t.Helper()
		tok, err := w.fetch(id, "Server", a.ID())
		require.NoError(t, err)
		return tok
	}
	require.NoError(t, w.dial(token(1)))
	require.Equal(t, 1, a.Players())
	tokens := []netcode.Token{token(2), token(3)}
	filler, err := w.fetch(10, "Server", b.ID())
	require.NoError(t, err)
	require.NoError(t, w.dial(filler))
	require.Equal(t, 1, b.Players())
	a.dead = true
	require.NoError(t, w.dial(tokens[0]))
	require.Equal(t, []int{1, 1}, []int{b.Players(), c.Players()}, "a is dead, b full")
	filler, err = w.fetch(11, "Server", c.ID())
	require.NoError(t, err)
	require.NoError(t, w.dial(filler))
	err = w.dial(tokens[1])
	require.ErrorIs(t, err, driver.ErrFull)
	require.Equal(t, []int{1, 2}, []int{b.Players(), c.Players()})
	require.EqualValues(t, 1, c.Counters.WalkIns)
}

// TestLongReason: a reason lists as many builds as have room, whole ones, and says when there are more.
func TestLongReason(t *testing.T) {
	w := newTown(t, 1)
	long := strings.Repeat("f", 30)
	var builds []string
	for i := range 5 {
		builds = append(builds, strconv.Itoa(i)+long)
	}
	w.match(fleet.Timing{Expiry: time.Minute}, 1, builds...)
	w.until("the list is whole", func() bool {
		n := 0
		require.NoError(t, w.service.Look(context.Background(), func(p *fleet.Placer) { n = p.List().Len() }))
		return n == 2
	})
	_, err := w.fetch(1, "Build", "6")
	var refused *tokenserver.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, `fleet: no server takes this build; servers take ["0`+long+`"] and others`, refused.Reason)
}

// TestRefusals: what a placer has no server for is told by the token service, before a client dials.
func TestRefusals(t *testing.T) {
	w := newTown(t, 1)
	for _, c := range []struct {
		status int
		reason string
		header []string
	}{
		{http.StatusUpgradeRequired, `fleet: no server takes this build; servers take ["7"]`, []string{"Build", "6"}},
		{http.StatusConflict, "party_too_large", []string{"Players", "2"}},
	} {
		_, err := w.fetch(1, c.header...)
		var refused *tokenserver.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, tokenserver.Error{Status: c.status, Reason: c.reason}, *refused)
	}
	_, err := w.fetch(1)
	require.NoError(t, err)
	_, err = w.fetch(2)
	var refused *tokenserver.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, tokenserver.Error{Status: http.StatusServiceUnavailable, Reason: "full"}, *refused)
	w.service.Close()
	_, err = w.fetch(3)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusServiceUnavailable, refused.Status)
}
