package rendezvous

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/internal/addrgroup"
	"github.com/bunchnet/bunchnet/netconn/internal/ratelimit"
	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// TestGuestsAtOnce: however many guests come within a second, each with a letter that its host must answer, the host says no more than it may: its room stays open.
func TestGuestsAtOnce(t *testing.T) {
	r := newRig(t, Config{TotalRate: 1e6})
	room, _ := r.party(RoomConfig{})
	key, err := newKey()
	require.NoError(t, err)
	var all sync.WaitGroup
	for address := range 16 {
		all.Go(func() {
			for range 40 {
				header := map[string][]string{"From": {fmt.Sprintf("192.0.2.%d", address)}}
				c, _, err := websocket.Dial(context.Background(), r.url+joinPath+room.Code, &websocket.DialOptions{HTTPClient: r.client, HTTPHeader: header})
				if err != nil {
					continue // too many
				}
				if _, err = receive(context.Background(), c); err == nil {
					_ = send(context.Background(), c, note{Key: key.PublicKey().Bytes()})
					_ = send(context.Background(), c, note{Sealed: make([]byte, 100)})
					drained(c)
				}
				_ = c.CloseNow()
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, r.Len())
	eventually(t, "a guest joins", func() bool {
		_, err := r.join(room.Code, "Bob")
		return err == nil
	})
}

// TestSilentHostOfGuest: a host that takes a code and says nothing costs a guest its ConnectTime, and the error says that nobody answered.
func TestSilentHostOfGuest(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	cfg := local()
	cfg.ConnectTime = time.Second
	_, err = Join(t.Context(), JoinConfig{Invitation: room.Code, URL: r.url, ICE: cfg, HTTP: r.client})
	require.ErrorIs(t, err, ice.ErrNoWay)
	require.ErrorContains(t, err, "has said nothing")
}

// mute is a signal by which nothing comes until its end.
type mute struct{ ended chan<- error }

func (m mute) Send(context.Context, ice.Message) error { return nil }

func (m mute) Receive(ctx context.Context) (ice.Message, error) {
	<-ctx.Done()
	m.ended <- fmt.Errorf("%w: %w", ErrLost, ctx.Err())
	return ice.Message{}, ctx.Err()
}

// TestEndOfAttempt: the end of an attempt ends its signal too, and the reason is the attempt's, also when the signal has said by then that it is lost.
func TestEndOfAttempt(t *testing.T) {
	g := newGuestSignal(nil)
	ended := make(chan error, 1)
	cfg := local()
	cfg.ConnectTime = 10 * time.Millisecond
	socket, err := ice.Dial(t.Context(), mute{ended}, cfg)
	require.NoError(t, err)
	defer socket.Close()
	g.refused <- <-ended
	_, err = g.wait(t.Context(), socket)
	require.ErrorIs(t, err, ice.ErrNoWay)
	require.ErrorContains(t, err, "has said nothing")
}

// TestRoomForOthers: guests of two addresses that take all places of a room and say nothing keep nobody else out, who take a place each.
func TestRoomForOthers(t *testing.T) {
	r := newRig(t, Config{MaxGuests: 4})
	room, _ := r.party(RoomConfig{})
	var silent []*websocket.Conn
	for i := range r.cfg.MaxGuests {
		c, status := r.dial(joinPath+room.Code, fmt.Sprintf("192.0.2.%d", i%2))
		require.Equal(t, 101, status)
		_, err := receive(t.Context(), c)
		require.NoError(t, err)
		silent = append(silent, c)
	}
	_, err := r.join(room.Code, "Bob")
	require.NoError(t, err)
	_, err = receive(t.Context(), silent[0])
	require.ErrorContains(t, err, errHostBusy.Error(), "the oldest of either")
	r.mu.Lock()
	p := r.open[room.Code]
	r.mu.Unlock()
	require.NotNil(t, p)
	_, status := r.dial(joinPath+room.Code, "198.51.100.1")
	require.Equal(t, 101, status)
	_, status = r.dial(joinPath+room.Code, "198.51.100.2")
	require.Equal(t, 503, status, "now all have one")
	_, err = r.join(room.Link(), "Ann")
	require.NoError(t, err, "she has the link")
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, p.guests, r.cfg.MaxGuests)
}

// TestEndlessToken: a host's token with which a dial would wait for ever, or for long, is none.
func TestEndlessToken(t *testing.T) {
	token := func(timeout int32, servers int) netcode.Token {
		at := []netip.AddrPort{ice.HostAddr()}
		for len(at) < servers {
			at = append(at, ice.HostAddr())
		}
		k, err := netcode.GenerateConnectToken(netcode.TokenConfig{Create: 1, Expire: 1 << 40, Timeout: timeout, Servers: at, PrivateKey: netcode.Key{1}})
		require.NoError(t, err)
		return k
	}
	require.True(t, ends(token(tokenTimeout, 1)))
	require.True(t, ends(token(60, 1)))
	require.True(t, ends(token(10, 6)))
	for _, bad := range []netcode.Token{token(-1, 1), token(math.MinInt32, 1), token(61, 1), token(math.MaxInt32, 32), token(2, 31)} {
		require.False(t, ends(bad))
	}
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	hostile := make(chan error, 1)
	go func() {
		n, err := receive(t.Context(), room.conn)
		if err != nil {
			hostile <- err
			return
		}
		s, err := newSecret(room.own, n.Key, true)
		if err != nil {
			hostile <- err
			return
		}
		p, err := s.seal(letter{Token: token(-1, 1)})
		if err != nil {
			hostile <- err
			return
		}
		hostile <- send(t.Context(), room.conn, note{Guest: n.Guest, Sealed: p})
	}()
	_, err = r.join(room.Code, "Bob")
	require.NoError(t, <-hostile)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "more than a minute")
}

// knock asks a service without a socket to let a guest in, and returns the status: StatusUpgradeRequired would be a connection by one.
func knock(s *Service, code, from, link string) int {
	r := httptest.NewRequest(http.MethodGet, joinPath+code, nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(from), 5000).String()
	r.Header.Set("Upgrade", "websocket")
	if link != "" {
		r.Header.Set("Authorization", bearer+link)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

// TestLinkFirst: however many strangers know the code, from however many networks, guests with the link come in, and no stranger takes their place. Nor does one network, however
// many addresses it has, keep out those of others.
func TestLinkFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{MaxGuests: 4})
		require.NoError(t, err)
		const pass, code, link, stranger = "BBBBBBBBBBA", false, true, "203.0.113.1"
		p := s.openRoom(newLine(1), &note{About: &about{}, Key: make([]byte, keyBytes), Pass: pass}, func() {})
		defer s.closeRoom(p)
		knows := fingerprint(p.key)
		first := 0
		full := func(invited bool, from ...string) {
			time.Sleep(time.Second)
			first, p.guests = p.next+1, map[int]*line{}
			for _, a := range from {
				l := newLine(1)
				l.of, _ = addrgroup.Of(netip.MustParseAddr(a))
				l.invited = invited
				p.next++
				p.guests[p.next] = l
			}
			require.Len(t, p.guests, s.cfg.MaxGuests)
		}
		apart := []string{"192.0.2.1", "198.51.100.1", "2001:db8:1::1", "2001:db8:2::1"}
		full(code, apart...)
		require.Equal(t, 503, knock(s, p.code, stranger, ""))
		require.Equal(t, 503, knock(s, p.code, stranger, knows), "it joined by the code before")
		require.Equal(t, 503, knock(s, p.code, stranger, "BBBBBBBBBBB"+knows), "it guesses")
		require.Contains(t, p.guests, first)
		require.Equal(t, 426, knock(s, p.code, stranger, pass+knows))
		require.NotContains(t, p.guests, first, "the oldest went")
		full(link, apart...)
		require.Equal(t, 503, knock(s, p.code, stranger, ""))
		require.Equal(t, 503, knock(s, p.code, stranger, pass+knows), "each has one")
		full(link, "192.0.2.1", "198.51.100.1", "198.51.100.1", "198.51.100.2")
		require.Equal(t, 503, knock(s, p.code, stranger, ""))
		require.Equal(t, 426, knock(s, p.code, stranger, pass+knows))
		require.NotContains(t, p.guests, first+1)
		full(code, "2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:1:3::1", "198.51.100.2")
		require.Equal(t, 426, knock(s, p.code, stranger, ""), "a network of many addresses")
		require.NotContains(t, p.guests, first)

		time.Sleep(time.Second)
		p.guests = map[int]*line{}
		for i := range 2 * s.cfg.atOnce() {
			link := ""
			if i >= 3*s.cfg.atOnce()/2 {
				require.Equal(t, 503, knock(s, p.code, stranger, ""), "the rest is for others")
				link = pass + knows
			}
			require.Equal(t, 426, knock(s, p.code, fmt.Sprintf("192.0.2.%d", i), link), i)
		}
		require.Equal(t, 503, knock(s, p.code, stranger, pass+knows))
	})
}

// TestRoomsOfNetworks: a line of IPv6 with 256 or 65536 /64s doesn't take all rooms of a service.
func TestRoomsOfNetworks(t *testing.T) {
	r := newRig(t, Config{MaxRoomsPerAddr: 1, Rate: 1e6, Burst: 1e6, TotalRate: 1e6})
	rooms := func(form string) (open int) {
		for i := range 40 {
			if _, status := r.dial(hostPath, fmt.Sprintf(form, i)); status == 101 {
				open++
			}
		}
		return open
	}
	require.Equal(t, ratelimit.Wide56, rooms("2001:db8::%x:0:0:0:1"))
	require.Equal(t, ratelimit.Wide48-ratelimit.Wide56, rooms("2001:db8:0:%x00::1"))
	require.Equal(t, ratelimit.Wide24, rooms("192.0.2.%d"))
	require.Equal(t, 40, rooms("192.0.%d.1")+1, "one of them is full")
}

// TestRendezvousDrops: a rendezvous that ends each connection of a host as soon as there is one isn't asked for the next one all the time.
func TestRendezvousDrops(t *testing.T) {
	var asked atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		if _, err = receive(r.Context(), c); err == nil {
			_ = send(r.Context(), c, note{Code: "QUACK-42", Again: make([]byte, secretBytes)})
		}
		_ = c.CloseNow()
	}))
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	room, err := Open(t.Context(), RoomConfig{URL: web.URL, HTTP: &http.Client{Transport: transport}})
	require.NoError(t, err)
	h, err := ice.Listen(ice.HostConfig{Config: local()})
	require.NoError(t, err)
	defer h.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	require.Error(t, room.Serve(ctx, h))
	require.Greater(t, asked.Load(), int64(1), "it comes back")
	require.LessOrEqual(t, asked.Load(), int64(4))
}

// TestRedirectsEnd: a service that sends requests elsewhere again and again is asked a few times.
func TestRedirectsEnd(t *testing.T) {
	for _, client := range []*http.Client{nil, {}} {
		var asked atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			http.Redirect(w, r, "/", http.StatusFound)
		}))
		_, err := Open(t.Context(), RoomConfig{URL: s.URL, HTTP: client})
		require.ErrorContains(t, err, "elsewhere")
		require.LessOrEqual(t, asked.Load(), int64(redirects.Most))
		http.DefaultClient.CloseIdleConnections()
		s.Close()
	}
}

// TestRedirectsToOthers: a service can't have a player's machine ask itself, or whomever else it likes.
func TestRedirectsToOthers(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %v", r.URL) }))
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:"+port+"/admin?shutdown=1", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	_, err = Open(t.Context(), RoomConfig{URL: s.URL})
	require.ErrorContains(t, err, "another host")
	_, err = Join(t.Context(), JoinConfig{Invitation: "QUACK-42", URL: s.URL})
	require.ErrorContains(t, err, "another host")
	_, err = Games(t.Context(), nil, s.URL)
	require.ErrorContains(t, err, "another host")
}
