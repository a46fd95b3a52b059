package rendezvous

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take, on a machine that has much else to do.
const patience = time.Minute

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// rig is a service, and a client for its requests.
type rig struct {
	*Service
	t      testing.TB
	url    string
	client *http.Client
}

func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{t: t}
	if cfg.Rate == 0 {
		cfg.Rate, cfg.Burst = 1000, 1000
	}
	cfg.ClientAddr = func(req *http.Request) (netip.Addr, error) {
		if a := req.Header.Get("From"); a != "" {
			return netip.ParseAddr(a)
		}
		ap, err := netip.ParseAddrPort(req.RemoteAddr)
		return ap.Addr(), err
	}
	var err error
	r.Service, err = New(cfg)
	require.NoError(t, err)
	web := httptest.NewServer(r.Service)
	transport := &http.Transport{}
	r.url, r.client = web.URL, &http.Client{Transport: transport}
	t.Cleanup(func() {
		require.NoError(t, r.Service.Close())
		web.Close()
		transport.CloseIdleConnections()
	})
	return r
}

func (r *rig) get(path string, from string) (int, string) {
	req, err := http.NewRequest(http.MethodGet, r.url+path, nil)
	require.NoError(r.t, err)
	req.Header.Set("From", from)
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(b)
}

// dial connects by hand.
func (r *rig) dial(path, from string) (*websocket.Conn, int) {
	return r.dialAs(path, http.Header{"From": {from}})
}

// dialAs connects by hand, with a header.
func (r *rig) dialAs(path string, header http.Header) (*websocket.Conn, int) {
	c, resp, err := websocket.Dial(context.Background(), r.url+path, &websocket.DialOptions{HTTPClient: r.client, HTTPHeader: header})
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	if err != nil {
		return nil, status
	}
	r.t.Cleanup(func() { _ = c.CloseNow() })
	return c, status
}

// drained reads until the connection ends.
func drained(c *websocket.Conn) (n int) {
	for {
		if _, _, err := c.Read(context.Background()); err != nil {
			return n
		}
		n++
	}
}

// party is a host's room and socket, which lets guests in.
func (r *rig) party(cfg RoomConfig) (*Room, *ice.Host) {
	cfg.URL, cfg.HTTP = r.url, r.client
	room, err := Open(context.Background(), cfg)
	require.NoError(r.t, err)
	h, err := ice.Listen(ice.HostConfig{Config: local()})
	require.NoError(r.t, err)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- room.Serve(ctx, h) }()
	r.t.Cleanup(func() {
		stop()
		<-served
		require.NoError(r.t, room.Close())
		require.NoError(r.t, h.Close())
	})
	return room, h
}

func local() ice.Config {
	return ice.Config{Addr: "127.0.0.1:0", Loopback: true, ConnectTime: patience}
}

func (r *rig) join(invitation, name string) (*Guest, error) {
	g, err := Join(context.Background(), JoinConfig{Invitation: invitation, URL: r.url, Name: name, ICE: local(), HTTP: r.client})
	if err == nil {
		r.t.Cleanup(func() { require.NoError(r.t, g.Socket.Close()) })
	}
	return g, err
}

// TestJoin: guests join by the code and by the link, and get tokens that the host's driver takes; nobody else's does.
func TestJoin(t *testing.T) {
	r := newRig(t, Config{Servers: []ice.Server{{URL: "stun:127.0.0.1:9"}}})
	room, h := r.party(RoomConfig{Name: "Ann's", Public: true, MaxPlayers: 4, Admit: func(name string) (Player, error) {
		if name == "Mallory" {
			return Player{}, errors.New("not you")
		}
		return Player{ID: 7 + uint64(len(name))}, nil
	}})
	require.Len(t, room.Servers, 1)
	var joined []uint64
	srv, err := driver.Listen("", driver.Config{Socket: h, Link: driver.Netcode{Key: room.Key()}, Joined: func(c *driver.Conn) { joined = append(joined, c.ClientID()) }})
	require.NoError(t, err)
	_, err = r.join(room.Code, "Mallory")
	require.ErrorIs(t, err, ErrRefused)
	require.Contains(t, err.Error(), "not you")
	var drivers []*driver.Driver
	for _, invitation := range []string{" " + strings.ToLower(room.Code) + "\n", room.Link()} {
		g, err := r.join(invitation, "Bob"+strings.Repeat("b", len(drivers)))
		require.NoError(t, err)
		d, err := driver.Dial(ice.HostAddr().String(), driver.Config{Socket: g.Socket, Link: driver.Netcode{Token: g.Token}})
		require.NoError(t, err)
		drivers = append(drivers, d)
	}
	eventually(t, "joined", func() bool {
		now := time.Now()
		for _, d := range append(drivers, srv) {
			d.TickDispatch(now)
			d.TickFlush(now)
		}
		return len(joined) == 2
	})
	require.ElementsMatch(t, []uint64{10, 11}, joined)
	require.NoError(t, room.Update(context.Background(), 3))
	eventually(t, "listed", func() bool {
		games, err := Games(context.Background(), r.client, r.url)
		require.NoError(t, err)
		return len(games) == 1 && games[0] == Game{room.Code, "Ann's", 3, 4}
	})
	for _, d := range append(drivers, srv) {
		require.NoError(t, d.Close())
	}
	status, page := r.get(joinPath+room.Code, "192.0.2.1")
	require.Equal(t, 200, status)
	require.Contains(t, page, room.Code)
	require.NotContains(t, fmt.Sprintf("%v %+v", room, room), room.Key().Hex())
	require.NoError(t, room.Close())
	eventually(t, "closed", func() bool { return r.Len() == 0 })
	_, err = r.join(room.Code, "Bob")
	require.ErrorIs(t, err, ErrNoRoom)
}

// lying is a rendezvous that gives its guests to whatever host it likes.
type lying struct{ http.RoundTripper }

func (l lying) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	return l.RoundTripper.RoundTrip(r)
}

// TestLyingRendezvous: who sits between the players can't read or change what they say with a link: a key of its own is noticed, and so is a letter that is
// changed, repeated or left out.
func TestLyingRendezvous(t *testing.T) {
	r := newRig(t, Config{})
	room, _ := r.party(RoomConfig{})
	mallory, _ := r.party(RoomConfig{})
	_, fingerprint, _ := strings.Cut(room.Link(), "#")
	link, _, _ := strings.Cut(mallory.Link(), "#")
	_, err := r.join(link+"#"+fingerprint, "Bob")
	require.ErrorIs(t, err, ErrNoRoom, "an honest one knows")
	transport := r.client.Transport
	r.client.Transport = lying{transport}
	_, err = r.join(link+"#"+fingerprint, "Bob")
	require.ErrorIs(t, err, ErrImpostor)
	r.client.Transport = transport

	host, err := newKey()
	require.NoError(t, err)
	guest, err := newKey()
	require.NoError(t, err)
	ends := func() (a, b *secret) {
		a, err := newSecret(host, guest.PublicKey().Bytes(), true)
		require.NoError(t, err)
		b, err = newSecret(guest, host.PublicKey().Bytes(), false)
		require.NoError(t, err)
		return a, b
	}
	a, b := ends()
	for i := range 3 {
		p, err := a.seal(letter{Name: fmt.Sprint(i)})
		require.NoError(t, err)
		require.False(t, bytes.Contains(p, []byte("name")))
		_, err = a.open(p)
		require.ErrorIs(t, err, errForged, "sent back")
		p[3] ^= 1
		_, err = b.open(p)
		require.ErrorIs(t, err, errForged, "changed")
		p[3] ^= 1
		l, err := b.open(p)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), l.Name)
		_, err = b.open(p)
		require.ErrorIs(t, err, errForged, "repeated")
	}
	a, b = ends()
	_, err = a.seal(letter{})
	require.NoError(t, err)
	p, err := a.seal(letter{})
	require.NoError(t, err)
	_, err = b.open(p)
	require.ErrorIs(t, err, errForged, "one is left out")
	for _, key := range [][]byte{nil, make([]byte, 31), make([]byte, 32)} {
		_, err := newSecret(host, key, true)
		require.Error(t, err)
	}
}

// TestInvitation: codes and links are read, and what is neither is told.
func TestInvitation(t *testing.T) {
	i, err := ParseInvitation("https://play.example.com/meet/join/quack-42#BBBBBBBBBBAAAAAAAAAAAAAAAAAAAAAAA")
	require.NoError(t, err)
	require.Equal(t, Invitation{"https://play.example.com/meet", "QUACK-42", "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBA"}, i)
	for _, bad := range []string{"", "QUACK", "QUACK-", "-42", "QUACK-42-1", "QUACK-42222222222", "QU CK-42", "ftp://x/join/QUACK-42", "https://x/QUACK-42", "https://x/join/QUACK",
		"https://x/join/QUACK-42#AAAA", "https://x/join/QUACK-42#!", "https://x/join/QUACK-42#AAAAAAAAAAAAAAAAAAAAAA", "https://x/join/QUACK-42#BBBBBBBBBB!AAAAAAAAAAAAAAAAAAAAAA"} {
		_, err := ParseInvitation(bad)
		require.ErrorIs(t, err, ErrCode, bad)
	}
	seen := map[string]bool{}
	for range 200 {
		require.Regexp(t, `^[A-Z]{5}-\d\d$`, newCode(2))
		code := newCode(4)
		require.NoError(t, checkCode(code))
		seen[code] = true
	}
	require.Greater(t, len(seen), 195, "of a million codes; one in 70 such sets has two that are the same")
}

// TestBadInput: what is wrong, too long, too much or too fast gets an answer with what to do, is counted, and leaves nothing.
func TestBadInput(t *testing.T) {
	r := newRig(t, Config{MaxRooms: 3, MaxRoomsPerAddr: 2, MaxGuests: 2, MaxGuestsPerAddr: 1})
	for path, want := range map[string]int{"/": 404, "/host": 426, "/join/": 400, "/join/QUACK": 400, "/join/" + strings.Repeat("A", 50) + "-1": 400} {
		status, text := r.get(path, "192.0.2.1")
		require.Equal(t, want, status, path)
		require.NotEmpty(t, text)
	}
	_, status := r.dial("/join/QUACK-0000001", "192.0.2.1")
	require.Equal(t, 404, status)
	require.EqualValues(t, 1, r.Counters().NoRoom)
	status, _ = r.get("/games", "nonsense")
	require.Equal(t, 400, status)

	host := func(from string) (*websocket.Conn, string) {
		c, status := r.dial("/host", from)
		require.Equal(t, 101, status)
		key, err := newKey()
		require.NoError(t, err)
		require.NoError(t, send(context.Background(), c, note{Key: key.PublicKey().Bytes(), About: &about{}}))
		n, err := receive(context.Background(), c)
		require.NoError(t, err)
		return c, n.Code
	}
	closed, used := host("192.0.2.1")
	require.NoError(t, send(context.Background(), closed, note{Gone: true}))
	eventually(t, "the room is closed", func() bool { return r.Len() == 0 })
	_, status = r.dial(joinPath+used, "192.0.2.1")
	require.Equal(t, 404, status, "a code that was used")
	_, err := r.join(used, "Bob")
	require.ErrorIs(t, err, ErrNoRoom)
	require.ErrorContains(t, err, "ask the host for its code")
	require.EqualValues(t, 3, r.Counters().NoRoom)
	_, code := host("192.0.2.1")
	_, other := host("192.0.2.1")
	_, status = r.dial("/host", "192.0.2.1")
	require.Equal(t, 503, status, "a third room of one address")
	_, _ = host("192.0.2.2")
	_, status = r.dial("/host", "192.0.2.3")
	require.Equal(t, 503, status, "a fourth room")
	require.Equal(t, 3, r.Len())
	one, status := r.dial(joinPath+code, "192.0.2.9")
	require.Equal(t, 101, status)
	_, status = r.dial(joinPath+other, "192.0.2.9")
	require.Equal(t, 503, status, "a second guest of one address")
	_, status = r.dial(joinPath+code, "192.0.2.10")
	require.Equal(t, 101, status)
	_, status = r.dial(joinPath+code, "192.0.2.11")
	require.Equal(t, 503, status, "a third guest of one room")
	n := r.Counters()
	require.EqualValues(t, []uint64{1, 2, 1}, []uint64{n.Full, n.TooManyFromAddress, n.RoomFull})

	require.NoError(t, one.Write(context.Background(), websocket.MessageText, make([]byte, maxMessage+1)))
	eventually(t, "too long", func() bool { return r.Counters().BadMessage == 1 })
	for i, text := range []string{"x", `{}`, `{"sealed":"AAAA"}`, `{"key":"AAAA"}`} {
		c, status := r.dial(joinPath+other, "192.0.2.20")
		require.Equal(t, 101, status)
		require.NoError(t, c.Write(context.Background(), websocket.MessageText, []byte(text)))
		drained(c)
		eventually(t, text, func() bool { return r.Counters().BadMessage == uint64(2+i) })
		eventually(t, "it went", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.open[other].guests) == 0 })
	}
	c, _ := r.dial(joinPath+other, "192.0.2.21")
	go func() {
		for c.Write(context.Background(), websocket.MessageText, []byte(`{"key":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)) == nil && r.Counters().BadMessage == 5 {
		}
	}()
	eventually(t, "a second key", func() bool { return r.Counters().BadMessage == 6 })
	for name, a := range map[string]about{"a long name": {Name: strings.Repeat("x", maxName+1)}, "a bell": {Name: "\a"}, "players": {Players: -1}, "most": {Max: 1 << 20}} {
		require.False(t, a.valid(), name)
	}
}

// TestFlood: requests beyond the rate get a 429, and messages beyond theirs end the connection.
func TestFlood(t *testing.T) {
	r := newRig(t, Config{Rate: 0.001, Burst: 5})
	limited := 0
	for range 20 {
		if status, _ := r.get("/games", "192.0.2.1"); status == 429 {
			limited++
		}
	}
	require.Equal(t, 15, limited)
	_, err := r.join("QUACK-42", "Bob")
	require.ErrorIs(t, err, ErrNoRoom, "another address")
	require.EqualValues(t, 15, r.Counters().Limited)

	r = newRig(t, Config{MaxGuests: 1})
	room, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	go drained(room.conn)
	eventually(t, "too fast", func() bool {
		for range 100 {
			if room.Update(context.Background(), 1) != nil {
				break
			}
		}
		return r.Counters().TooFast == 1
	})
	eventually(t, "the room is closed", func() bool { return r.Len() == 0 })
}

// TestGuestsFlood: the letters of guests end no host's connection: one who says too much goes, and what a host hasn't read yet has a bound, behind which there is room for
// who comes and goes.
func TestGuestsFlood(t *testing.T) {
	r := newRig(t, Config{})
	key, err := newKey()
	require.NoError(t, err)
	flood := func(code string) {
		c, status := r.dial(joinPath+code, "192.0.2.1")
		require.Equal(t, 101, status)
		require.NoError(t, send(context.Background(), c, note{Key: key.PublicKey().Bytes()}))
		const size = 4 << 10
		for range maxJoining/size + 1 {
			_ = send(context.Background(), c, note{Sealed: make([]byte, size)}) // the last one may not go
		}
	}
	silent, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client}) // a host that serves may have sent the guest away before
	require.NoError(t, err)
	defer silent.Close()
	flood(silent.Code)
	eventually(t, "it goes", func() bool { return r.Counters().TooFast == 1 })
	room, _ := r.party(RoomConfig{})
	flood(room.Code)
	_, err = r.join(room.Code, "Bob")
	require.NoError(t, err)

	var ended error
	l := &line{out: make(chan []byte, maxWaiting+maxControl), stop: func(err error) { ended = err }}
	n := 0
	for l.pass(note{Guest: 1, Sealed: make([]byte, 10)}) {
		n++
	}
	require.Equal(t, maxWaiting, n)
	for range maxControl {
		l.post(note{Guest: 1, Gone: true})
	}
	require.NoError(t, ended)
	l.post(note{Guest: 1, Gone: true})
	require.ErrorIs(t, ended, errSlow)
}

// TestLastWords: a guest that its host sends away at once has all that the host said to it before, and is told why it goes.
func TestLastWords(t *testing.T) {
	r := newRig(t, Config{MaxGuests: 100})
	room, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	for range 20 {
		c, _ := r.dial(joinPath+room.Code, "192.0.2.1")
		_, err := receive(context.Background(), c)
		require.NoError(t, err)
		require.NoError(t, send(context.Background(), c, note{Key: make([]byte, keyBytes)}))
		n, err := receive(context.Background(), room.conn)
		for ; err == nil && n.Gone; n, err = receive(context.Background(), room.conn) { // the one before
		}
		require.NoError(t, err)
		for i := range 3 {
			require.NoError(t, send(context.Background(), room.conn, note{Guest: n.Guest, Sealed: []byte{byte(i)}}))
		}
		require.NoError(t, send(context.Background(), room.conn, note{Guest: n.Guest, Gone: true}))
		for i := range 3 {
			got, err := receive(context.Background(), c)
			require.NoError(t, err)
			require.Equal(t, []byte{byte(i)}, got.Sealed)
		}
		_, err = receive(context.Background(), c)
		require.ErrorContains(t, err, errSentAway.Error())
	}
}

// TestSilentHosts: connections of hosts that open no room count as rooms.
func TestSilentHosts(t *testing.T) {
	r := newRig(t, Config{MaxRooms: 2})
	first, _ := r.dial("/host", "192.0.2.1")
	_, status := r.dial("/host", "192.0.2.2")
	require.Equal(t, 101, status)
	_, status = r.dial("/host", "192.0.2.3")
	require.Equal(t, 503, status)
	require.NoError(t, first.CloseNow())
	eventually(t, "its place is free", func() bool { _, status := r.dial("/host", "192.0.2.3"); return status == 101 })
	require.Zero(t, r.Len())
}

// TestForeignPages: a page of another site can't use a player's browser, and takes nothing of the player's Rate. A link to a room works from anywhere.
func TestForeignPages(t *testing.T) {
	r := newRig(t, Config{Rate: 0.001, Burst: 2})
	ask := func(path string, header ...string) int {
		request := httptest.NewRequest(http.MethodGet, "https://meet.example"+path, nil)
		request.RemoteAddr = "192.0.2.9:1234"
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		r.ServeHTTP(w, request)
		return w.Code
	}
	for range 10 {
		require.Equal(t, http.StatusForbidden, ask("/host", "Upgrade", "websocket", "Origin", "https://evil.example"))
		require.Equal(t, http.StatusForbidden, ask("/games", "Origin", "null"))
		require.Equal(t, http.StatusForbidden, ask("/games", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"))
	}
	require.EqualValues(t, 30, r.Counters().BadOrigin)
	require.Equal(t, http.StatusOK, ask("/join/QUACK-42", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"))
	require.Equal(t, http.StatusOK, ask("/games", "Origin", "https://meet.example"))
	require.Equal(t, http.StatusTooManyRequests, ask("/games"), "the Burst is spent by those that were let in")
}

// TestShort: what others say is shown to players without what their terminals would obey.
func TestShort(t *testing.T) {
	require.Equal(t, "no [2J room", short("no\x1b[2J\nroom"))
	require.Len(t, short(strings.Repeat("x", maxReason+1)), maxReason)
	require.Equal(t, strings.Repeat("x", maxReason-1), short(strings.Repeat("x", maxReason-1)+"é"))
}

// TestExpiry: a room ends at the end of its life, or when its host is silent; so does a guest's connection. The ends are told why.
func TestExpiry(t *testing.T) {
	r := newRig(t, Config{Idle: time.Second, GuestTime: 100 * time.Millisecond})
	room, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	c, _ := r.dial(joinPath+room.Code, "192.0.2.1")
	_, err = receive(context.Background(), c)
	require.NoError(t, err)
	_, err = receive(context.Background(), c)
	require.ErrorContains(t, err, "the time is over")
	_, err = receive(context.Background(), room.conn)
	require.ErrorContains(t, err, "the time is over")
	require.ErrorIs(t, err, ErrLost)
	eventually(t, "no room", func() bool { return r.Len() == 0 })
	require.EqualValues(t, 2, r.Counters().Expired)
	require.NoError(t, room.Close())
}

// TestLife: a room ends at the end of its life, whether its host is there or away.
func TestLife(t *testing.T) {
	r := newRig(t, Config{Life: time.Second, Idle: time.Hour})
	there, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	away, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	require.NoError(t, away.conn.CloseNow())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = receive(ctx, there.conn)
	require.ErrorContains(t, err, "the time is over")
	eventually(t, "no room", func() bool { return r.Len() == 0 })
	require.EqualValues(t, 1, r.Counters().Expired)
	require.NoError(t, there.Close())
	require.NoError(t, away.Close())
}

// TestHostVanishes: when a host's connection is lost amid joining the guest is told, and its room closes unless it comes back; a host that closes its room
// does so at once.
func TestHostVanishes(t *testing.T) {
	r := newRig(t, Config{Idle: 500 * time.Millisecond})
	room, err := Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	joined := make(chan error, 1)
	go func() {
		_, err := r.join(room.Code, "Bob")
		joined <- err
	}()
	n, err := receive(context.Background(), room.conn)
	require.NoError(t, err)
	require.Len(t, n.Key, keyBytes)
	require.NoError(t, room.conn.CloseNow())
	err = <-joined
	require.ErrorContains(t, err, "the host's connection was lost")
	eventually(t, "no room", func() bool { return r.Len() == 0 })
	require.EqualValues(t, 1, r.Counters().Expired)

	room, err = Open(context.Background(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	require.NoError(t, room.Close())
	require.NoError(t, room.Close())
	eventually(t, "no room", func() bool { return r.Len() == 0 })
	require.EqualValues(t, 1, r.Counters().Expired)
}

// mortal is a connection that may die without a word.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (m mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

func (m mortal) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		if err != nil || !m.dead.Load() {
			return n, err
		}
	}
}

// TestHostComesBack: a host whose connection dies without a word notices, and has its room back, with its code. Guests that were joining are told to try
// again, and can.
func TestHostComesBack(t *testing.T) {
	every, wait := pingEvery, pingTime
	t.Cleanup(func() { pingEvery, pingTime = every, wait })
	pingEvery, pingTime = 20*time.Millisecond, 2*time.Second
	r := newRig(t, Config{MaxRooms: 1})
	transport := r.client.Transport.(*http.Transport)
	dead := &atomic.Bool{}
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return mortal{c, dead}, err
	}
	room, _ := r.party(RoomConfig{Name: "Ann's game", Public: true})
	code := room.Code
	transport.DialContext = nil
	_, err := r.join(code, "Bob")
	require.NoError(t, err)
	c, status := r.dial(joinPath+code, "192.0.2.1")
	require.Equal(t, 101, status)
	_, err = receive(t.Context(), c)
	require.NoError(t, err)
	dead.Store(true)
	_, err = receive(t.Context(), c)
	require.ErrorContains(t, err, "try again in a moment")
	eventually(t, "it is back", func() bool { return r.Counters().Returned == 1 })
	_, err = r.join(code, "Cid")
	require.NoError(t, err)
	_, err = r.join(room.Link(), "Dan")
	require.NoError(t, err)
	require.Equal(t, 1, r.Len())
	eventually(t, "its place is counted once", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.hosts == 1
	})
}

// TestComesBackStrangers: the room of a host that is away is nobody else's, keeps its place, and isn't kept for ever.
func TestComesBackStrangers(t *testing.T) {
	r := newRig(t, Config{Idle: 2 * time.Second, MaxRooms: 1, MaxRoomsPerAddr: 1})
	own, err := newKey()
	require.NoError(t, err)
	hello := note{Key: own.PublicKey().Bytes(), About: &about{Name: "a game", Public: true}}
	enter := func(path string, secret []byte) (n note, c *websocket.Conn, status int) {
		c, status = r.dialAs(path, http.Header{"From": {"192.0.2.1"}, "Authorization": {"Bearer " + base64.StdEncoding.EncodeToString(secret)}})
		if c != nil {
			require.NoError(t, send(t.Context(), c, hello))
			n, err = receive(t.Context(), c)
			require.NoError(t, err)
		}
		return n, c, status
	}
	welcome, c, _ := enter(hostPath, nil)
	require.Len(t, welcome.Again, secretBytes)
	require.NoError(t, c.CloseNow())
	eventually(t, "it is away", func() bool {
		_, status := r.dial(joinPath+welcome.Code, "192.0.2.2")
		return status == 503
	})
	require.NotZero(t, r.Counters().HostAway)
	for _, secret := range [][]byte{nil, make([]byte, secretBytes), welcome.Again[1:]} {
		_, _, status := enter(hostPath+"/"+welcome.Code, secret)
		require.Equal(t, 404, status)
	}
	_, _, status := enter(hostPath+"/QUACK-0", welcome.Again)
	require.Equal(t, 404, status)
	require.EqualValues(t, 4, r.Counters().NoRoom)
	_, _, status = enter(hostPath, nil)
	require.Equal(t, 503, status, "its place isn't free")
	again, first, _ := enter(hostPath+"/"+welcome.Code, welcome.Again)
	require.Equal(t, welcome, again)
	_, second, _ := enter(hostPath+"/"+welcome.Code, welcome.Again) // before the loss was noticed
	_, err = receive(t.Context(), first)
	require.ErrorContains(t, err, "came back")
	require.EqualValues(t, 2, r.Counters().Returned)
	require.Equal(t, 1, r.Len())
	require.NoError(t, second.CloseNow())
	eventually(t, "its time is over", func() bool { return r.Len() == 0 })
	eventually(t, "all places are free", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.hosts == 0
	})
}

// TestSilentHost: a host that says nothing, not even pings, counts as away long before its room ends, and has it back when it returns. A ping is enough.
func TestSilentHost(t *testing.T) {
	every, silent := pingEvery, silentTime
	t.Cleanup(func() { pingEvery, silentTime = every, silent })
	pingEvery, silentTime = 20*time.Millisecond, 2*time.Second
	r := newRig(t, Config{})
	room, _ := r.party(RoomConfig{})
	mute, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	c, status := r.dial(joinPath+mute.Code, "192.0.2.1")
	require.Equal(t, 101, status)
	_, err = receive(t.Context(), c)
	require.NoError(t, err)
	_, err = receive(t.Context(), c)
	require.ErrorContains(t, err, "try again in a moment", "the guest is told")
	_, status = r.dial(joinPath+mute.Code, "192.0.2.1")
	require.Equal(t, 503, status)
	require.Equal(t, 2, r.Len())
	h, err := ice.Listen(ice.HostConfig{Config: local()})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- mute.Serve(ctx, h) }()
	eventually(t, "it is back", func() bool { return r.Counters().Returned == 1 })
	for _, code := range []string{room.Code, mute.Code} {
		_, err = r.join(code, "Bob")
		require.NoError(t, err)
	}
	stop()
	require.ErrorIs(t, <-served, context.Canceled)
	require.NoError(t, h.Close())
	require.EqualValues(t, 1, r.Counters().Returned, "who pings isn't away")
}

// TestNothingToComeBackTo: a host whose room has ended meanwhile doesn't ask again.
func TestNothingToComeBackTo(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	h, err := ice.Listen(ice.HostConfig{Config: local()})
	require.NoError(t, err)
	defer h.Close()
	r.mu.Lock()
	p := r.open[room.Code]
	p.host.stop(errSilent)
	r.closeRoom(p)
	p.host = nil
	r.mu.Unlock()
	require.ErrorIs(t, room.Serve(t.Context(), h), ErrLost)
	require.EqualValues(t, 1, r.Counters().NoRoom)
}

// TestPings: pings count as messages.
func TestPings(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	c, _ := r.dial(joinPath+room.Code, "192.0.2.1")
	go drained(c)
	for c.Ping(t.Context()) == nil {
	}
	eventually(t, "counted", func() bool { return r.Counters().TooFast == 1 })
}

// TestHostFlood: a host that sends a guest more than joining takes loses that guest, so that what waits for guests that don't read is bounded.
func TestHostFlood(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	c, _ := r.dial(joinPath+room.Code, "192.0.2.1")
	require.NoError(t, send(t.Context(), c, note{Key: make([]byte, keyBytes)}))
	n, err := receive(t.Context(), room.conn)
	require.NoError(t, err)
	for range maxJoining/4096 + 1 {
		require.NoError(t, send(t.Context(), room.conn, note{Guest: n.Guest, Sealed: make([]byte, 4096)}))
	}
	require.Equal(t, 1+maxJoining/4096, drained(c))
	require.Equal(t, 1, r.Len())
}

// TestAgainStrangers: a guest that claims to have joined, and hasn't, is told so; it hears no address, and isn't admitted by that.
func TestAgainStrangers(t *testing.T) {
	r := newRig(t, Config{})
	room, h := r.party(RoomConfig{Admit: func(string) (Player, error) { return Player{}, errors.New("nobody") }})
	sig, err := again(t.Context(), r.client, r.url+joinPath+room.Code, "", fingerprint(room.own.PublicKey().Bytes()))
	require.NoError(t, err)
	require.NoError(t, sig.Send(t.Context(), ice.Message{Ufrag: "abcd", Password: "abcdefghijklmnopqrstuvwx"}))
	_, err = sig.Receive(t.Context())
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, ice.ErrUnknown.Error())
	require.EqualValues(t, 1, h.Counters().Unknown)
	_, err = again(t.Context(), r.client, r.url+joinPath+room.Code, "", "another host's")
	require.ErrorIs(t, err, ErrNoRoom)
	_, err = again(t.Context(), &http.Client{Transport: lying{r.client.Transport}}, r.url+joinPath+room.Code, "", "another host's")
	require.ErrorIs(t, err, ErrImpostor)
}

// TestLyingGuest: a guest with a key that is no key, or with letters that aren't sealed, is refused, and the host lets in the next one.
func TestLyingGuest(t *testing.T) {
	r := newRig(t, Config{})
	room, _ := r.party(RoomConfig{})
	for i, n := range []note{{Key: make([]byte, keyBytes)}, {Key: bytes.Repeat([]byte{9}, keyBytes)}} {
		c, status := r.dial(joinPath+room.Code, "192.0.2.1")
		require.Equal(t, 101, status)
		require.NoError(t, send(context.Background(), c, n))
		if i > 0 {
			require.NoError(t, send(context.Background(), c, note{Sealed: make([]byte, 100)}))
		}
		require.Equal(t, 1+i, drained(c), "its welcome, and to one with a key why not")
	}
	_, err := r.join(room.Code, "Bob")
	require.NoError(t, err)
}

// TestGuestsVanish: guests that go amid joining, at any moment, leave the host's connection as it is.
func TestGuestsVanish(t *testing.T) {
	r := newRig(t, Config{MaxGuests: 100})
	room, _ := r.party(RoomConfig{})
	for i := range 100 {
		c, status := r.dial(joinPath+room.Code, "192.0.2.1")
		require.Equal(t, 101, status, "the %d-th", i)
		welcome, err := receive(context.Background(), c)
		require.NoError(t, err)
		own, err := newKey()
		require.NoError(t, err)
		s, err := newSecret(own, welcome.Key, false)
		require.NoError(t, err)
		name, err := s.seal(letter{Name: "Bob"})
		require.NoError(t, err)
		require.NoError(t, send(context.Background(), c, note{Key: own.PublicKey().Bytes()}))
		require.NoError(t, send(context.Background(), c, note{Sealed: name}))
		time.Sleep(time.Duration(i%10) * 50 * time.Microsecond)
		require.NoError(t, c.CloseNow())
		eventually(t, "it went", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.open[room.Code] == nil || len(r.open[room.Code].guests) == 0
		})
	}
	_, err := r.join(room.Code, "Bob")
	require.NoError(t, err)
}

// TestNoRendezvous: a service that isn't there is told, and settings that can't work.
func TestNoRendezvous(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	_, err = Open(context.Background(), RoomConfig{URL: "http://" + ln.Addr().String()})
	require.ErrorIs(t, err, ErrLost)
	_, err = Join(context.Background(), JoinConfig{Invitation: "QUACK-42"})
	require.ErrorIs(t, err, ErrCode)
	_, err = Open(context.Background(), RoomConfig{Name: "\n"})
	require.Error(t, err)
	_, err = New(Config{Relays: []string{"turn:x"}})
	require.Error(t, err)
	_, err = New(Config{MaxRooms: -1})
	require.Error(t, err)
}

// TestRelayNames: what players show to relays, in clear text, is neither the relays' secret nor the room's code, and is the same for all in a room.
func TestRelayNames(t *testing.T) {
	r := newRig(t, Config{Relays: []string{"turn:192.0.2.1?transport=udp"}, TURNSecret: "secret"})
	var names []string
	for range 2 {
		room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
		require.NoError(t, err)
		defer room.Close()
		c, _ := r.dial(joinPath+room.Code, "192.0.2.1")
		guest, err := receive(t.Context(), c)
		require.NoError(t, err)
		for _, list := range [][]ice.Server{room.Servers, guest.Servers} {
			require.Len(t, list, 1)
			require.NotContains(t, fmt.Sprint(list), "secret")
			require.NotContains(t, fmt.Sprint(list), room.Code)
			_, name, _ := strings.Cut(list[0].Username, ":")
			names = append(names, name)
		}
	}
	require.Equal(t, names[0], names[1])
	require.NotEqual(t, names[0], names[2])
}

// TestURLWithSlash: a service's URL may end with a slash.
func TestURLWithSlash(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(context.Background(), RoomConfig{URL: r.url + "/", HTTP: r.client})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(room.Link(), r.url+joinPath+room.Code+"#"), room.Link())
	require.NoError(t, room.Close())
}

// TestTokenBeforeTheEnd: a token that has come counts, although the host has gone, or the caller has given up, by the time it is looked at.
func TestTokenBeforeTheEnd(t *testing.T) {
	gone := errors.New("gone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // a select takes any of what is ready
		g := &guestSignal{token: make(chan netcode.Token, 1), refused: make(chan error, 1)}
		g.token <- netcode.Token{1}
		g.refused <- gone
		token, err := g.waitToken(ctx)
		require.NoError(t, err)
		require.Len(t, token, 1)
		if len(g.refused) == 0 {
			g.refused <- gone
		}
		_, err = g.waitToken(t.Context())
		require.ErrorIs(t, err, gone)
	}
}
