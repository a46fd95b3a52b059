package rendezvous

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Player is who joins. RoomConfig.Admit returns it.
type Player struct {
	// ID is the client id in the connect token. A host accepts one connection at a time for each ID. Default: a random one.
	ID uint64
	// UserData goes to the host's driver in the token.
	UserData [netcode.UserDataBytes]byte
}

// RoomConfig has the settings of Open. URL is needed.
type RoomConfig struct {
	// URL is the service's, such as "https://play.example.com/meet".
	URL string
	// Name is the game's in the list of public games, up to 40 printable characters.
	Name string
	// Public has the game in that list. Anybody may join it then.
	Public bool
	// MaxPlayers is told in the list.
	MaxPlayers int
	// Key is the match's key, which the driver's Netcode has too. Default: a new one; see Room.Key.
	Key netcode.Key
	// ProtocolID is that of driver.Netcode.
	ProtocolID uint64
	// Admit decides who may join, by the name that the guest gave, and is called by many goroutines at once. An error's text is shown to the guest.
	// Default: everybody who knows the code.
	Admit func(name string) (Player, error)
	// HTTP is the client for requests. Default http.DefaultClient.
	HTTP *http.Client
}

// Errors, for errors.Is. Show their text to the player.
var (
	// ErrNoRoom: no game has this code, or not any more.
	ErrNoRoom = errors.New("rendezvous: no game has this code now; ask the host for its code")
	// ErrBusy: the rendezvous or the game has no room, or had too many requests. Try again in a moment.
	ErrBusy = errors.New("rendezvous: busy")
	// ErrRefused: the host didn't let the guest in.
	ErrRefused = errors.New("rendezvous: the host refused")
	// ErrImpostor: who answers isn't the host that the link names.
	ErrImpostor = errors.New("rendezvous: who answers isn't the host that made this link; don't trust this rendezvous")
	// ErrLost: the connection to the rendezvous is lost. Players who have joined play on; for more, open another room.
	ErrLost = errors.New("rendezvous: the connection is lost")
)

const (
	aliveEvery   = 20 * time.Second
	dialTime     = 10 * time.Second
	tokenLife    = 30 // seconds
	tokenTimeout = 10 // seconds

	backTime  = 30 * time.Second // to come back to a room
	tryTime   = 3 * time.Second  // of it, for one try
	backAgain = 250 * time.Millisecond
	// backRarely is the longest pause before a connection is made anew: those that are lost sooner than that have pauses, each twice the one before.
	backRarely = 10 * time.Second
	movedTime  = time.Second // instead, when this machine's addresses have changed
)

// pingEvery is how often the connection to the service is checked, and pingTime how long the answer may take.
var pingEvery, pingTime = 5 * time.Second, 3 * time.Second

// Room is a game that guests can join by its code.
type Room struct {
	// Code is what players tell each other, such as QUACK-42.
	Code string
	// Servers are for ice.Config.Servers.
	Servers []ice.Server

	cfg    RoomConfig
	own    *ecdh.PrivateKey
	secret []byte // to come back with
	pass   string // of the link

	peers map[int]*peer // Serve's

	mu      sync.Mutex
	about   about
	conn    *websocket.Conn
	closing chan struct{}
	closed  bool
}

// peer is a guest that is joining.
type peer struct {
	room *Room
	id   int
	key  []byte
	in   chan []byte
	stop context.CancelFunc

	mu     sync.Mutex // of secret.sent, and the order of letters
	secret *secret
}

// Open opens a room at a service. Close closes it.
func Open(ctx context.Context, cfg RoomConfig) (*Room, error) {
	if !(&about{Name: cfg.Name, Max: cfg.MaxPlayers}).valid() {
		return nil, fmt.Errorf("rendezvous: a Name has up to %d printable characters, and MaxPlayers is 0 to 65536", maxName)
	}
	if cfg.Key.IsZero() {
		var err error
		if cfg.Key, err = netcode.GenerateKey(rand.Reader); err != nil {
			return nil, err
		}
	}
	if cfg.Admit == nil {
		cfg.Admit = func(string) (Player, error) { return Player{}, nil }
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	own, err := newKey()
	if err != nil {
		return nil, err
	}
	pass := make([]byte, passBytes)
	_, _ = rand.Read(pass) // never fails
	ctx, done := context.WithTimeout(ctx, dialTime)
	defer done()
	r := &Room{cfg: cfg, own: own, pass: base64.RawURLEncoding.EncodeToString(pass), about: about{Name: cfg.Name, Public: cfg.Public, Max: cfg.MaxPlayers}, peers: map[int]*peer{}, closing: make(chan struct{})}
	n, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	r.Code, r.Servers, r.secret = n.Code, n.Servers, n.Again
	return r, nil
}

// connect opens the room, or comes back to it.
func (r *Room) connect(ctx context.Context) (n note, err error) {
	path, header := hostPath, http.Header{}
	if r.Code != "" {
		path += "/" + r.Code
		header.Set("Authorization", bearer+base64.StdEncoding.EncodeToString(r.secret))
	}
	conn, err := dial(ctx, r.cfg.HTTP, r.cfg.URL+path, header)
	if err != nil {
		return n, err
	}
	r.mu.Lock()
	a := r.about
	r.mu.Unlock()
	err = send(ctx, conn, note{Key: r.own.PublicKey().Bytes(), Pass: r.pass, About: &a})
	if err == nil {
		n, err = receive(ctx, conn)
	}
	if err == nil && (checkCode(n.Code) != nil || r.Code != "" && n.Code != r.Code) {
		err = fmt.Errorf("%w: the rendezvous gave no code", ErrLost)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.closed {
		err = net.ErrClosed
	}
	if err != nil {
		_ = conn.CloseNow() // err is the one to return
		return n, err
	}
	r.conn = conn
	return n, nil
}

// line is the connection to the service.
func (r *Room) line() *websocket.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// Key returns the match's key, for driver.Netcode.
func (r *Room) Key() netcode.Key { return r.cfg.Key }

// Format implements fmt.Formatter, so that printing a Room doesn't show its key.
func (r *Room) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "rendezvous.Room(%s)", r.Code) }

// Link returns the link to send to friends. By its part behind # guests notice a rendezvous that pretends to be the host, their
// code is no guess to the service, and strangers who join by the code alone don't keep them out.
func (r *Room) Link() string {
	return r.cfg.URL + joinPath + r.Code + "#" + r.pass + fingerprint(r.own.PublicKey().Bytes())
}

// Update tells the list how many players there are. When ctx ends it amid a write the connection is lost.
func (r *Room) Update(ctx context.Context, players int) error {
	r.mu.Lock()
	r.about.Players = players
	a := r.about
	r.mu.Unlock()
	return send(ctx, r.line(), note{About: &a})
}

// Close closes the room. Players who have joined play on.
func (r *Room) Close() error {
	r.mu.Lock()
	conn, closed := r.conn, r.closed
	if r.closed = true; !closed {
		close(r.closing)
	}
	r.mu.Unlock()
	ctx, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	_ = send(ctx, conn, note{Gone: true}) // it may be lost
	_ = conn.CloseNow()
	return nil
}

// Serve lets guests in to a host, each on a goroutine of its own, until ctx is done, which closes the room, or the connection is lost: then the error wraps
// ErrLost. A connection that is lost without a word, as when the machine has moved to another network, is made anew: for 30 s Serve tries to come back to the
// room. Guests get their tokens when there is a path to them; those whose paths all failed find another one. When Serve has returned, players who have joined
// play on.
func (r *Room) Serve(ctx context.Context, h *ice.Host) error {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { r.keepAlive(ctx) })
	wg.Go(func() { r.watch(ctx, h) })
	defer context.AfterFunc(ctx, func() { _ = r.Close() })() // says so; a read that is cut short doesn't
	pause := time.Duration(0)
	for {
		began := time.Now()
		err := r.serve(ctx, h, &wg)
		if pause = min(max(2*pause, backAgain), backRarely); time.Since(began) > backRarely {
			pause = 0
		}
		for id, p := range r.peers { // what they said may be lost
			p.stop()
			delete(r.peers, id)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(said)) || r.comeBack(ctx, pause) != nil:
			return err
		}
	}
}

// comeBack makes a connection anew, after a pause.
func (r *Room) comeBack(ctx context.Context, pause time.Duration) error {
	for end := time.Now().Add(backTime); ; pause = backAgain {
		select {
		case <-time.After(pause):
		case <-r.closing:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
		dialing, done := context.WithTimeout(ctx, tryTime)
		_, err := r.connect(dialing)
		done()
		if err == nil || errors.As(err, new(said)) || errors.Is(err, ErrNoRoom) || time.Now().After(end) {
			return err
		}
	}
}

// watch notices a connection that is lost: TCP itself may take minutes.
func (r *Room) watch(ctx context.Context, h *ice.Host) {
	for ctx.Err() == nil {
		patience := pingTime
		select {
		case <-time.After(pingEvery):
		case <-h.Moved():
			patience = movedTime
		case <-ctx.Done():
			return
		}
		conn := r.line()
		pinging, done := context.WithTimeout(ctx, patience)
		err := conn.Ping(pinging)
		done()
		if err != nil && ctx.Err() == nil {
			_ = conn.CloseNow() // serve notices
		}
	}
}

// serve is Serve over one connection.
func (r *Room) serve(ctx context.Context, h *ice.Host, wg *sync.WaitGroup) error {
	conn := r.line()
	for {
		n, err := receive(context.WithoutCancel(ctx), conn)
		if err != nil {
			return err
		}
		p := r.peers[n.Guest]
		switch {
		case n.Guest == 0:
		case p == nil && len(n.Key) == keyBytes && len(r.peers) < maxPeers:
			p = &peer{room: r, id: n.Guest, key: n.Key, in: make(chan []byte, maxWaiting)}
			var joining context.Context
			joining, p.stop = context.WithCancel(ctx)
			r.peers[n.Guest] = p
			wg.Go(func() { p.join(joining, h) })
		case p == nil && len(n.Key) > 0:
			_ = send(ctx, conn, note{Guest: n.Guest, Gone: true}) // told when it is lost
		case p == nil:
		case n.Gone:
			p.stop()
			delete(r.peers, n.Guest)
		case len(p.in) < maxWaiting:
			p.in <- n.Sealed // only here, so there is room
		}
	}
}

// maxPeers bounds the guests that are joining, whatever the service says.
const maxPeers = 64

func (r *Room) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(aliveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		players := r.about.Players
		r.mu.Unlock()
		_ = r.Update(ctx, players) // Serve notices
	}
}

// join lets a guest in, or tells it why not.
func (p *peer) join(ctx context.Context, h *ice.Host) {
	secret, err := newSecret(p.room.own, p.key, true)
	if err == nil {
		p.secret = secret
		err = p.admit(ctx, h)
	}
	if err != nil && ctx.Err() == nil {
		if secret != nil { // else its key was none
			_ = p.send(ctx, letter{Refused: short(err.Error())})
		}
		_ = p.post(ctx, note{Guest: p.id, Gone: true})
	}
	<-ctx.Done()
}

func (p *peer) admit(ctx context.Context, h *ice.Host) error {
	r := p.room
	first, err := p.receive(ctx)
	if err != nil {
		return err
	}
	if utf8.RuneCountInString(first.Name) > maxName || strings.ContainsFunc(first.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("a name has up to %d printable characters", maxName)
	}
	if first.Again { // it was admitted, as it must show
		return h.Rejoin(ctx, p)
	}
	player, err := r.cfg.Admit(first.Name)
	if err != nil {
		return err
	}
	if player.ID == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		player.ID = binary.LittleEndian.Uint64(b[:])
	}
	if err := h.Join(ctx, p); err != nil {
		return err
	}
	now := uint64(time.Now().Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: r.cfg.ProtocolID, ClientID: player.ID, UserData: player.UserData, Create: now,
		Expire: now + tokenLife, Timeout: tokenTimeout, Servers: []netip.AddrPort{ice.HostAddr()}, PrivateKey: r.cfg.Key})
	if err != nil {
		return err
	}
	return p.send(ctx, letter{Token: token})
}

// short is what may be shown of a text of somebody else: its beginning, without what a terminal would obey.
func short(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
}

func (p *peer) send(ctx context.Context, l letter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sealed, err := p.secret.seal(l)
	if err != nil {
		return err
	}
	return p.post(ctx, note{Guest: p.id, Sealed: sealed})
}

// post sends a note, unless the guest has gone. All guests have one connection, which a write that is cut short would close.
func (p *peer) post(ctx context.Context, n note) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return send(context.WithoutCancel(ctx), p.room.line(), n)
}

func (p *peer) receive(ctx context.Context) (letter, error) {
	select {
	case sealed := <-p.in:
		return p.secret.open(sealed)
	case <-ctx.Done():
		return letter{}, ctx.Err()
	}
}

// Send implements ice.Signal.
func (p *peer) Send(ctx context.Context, m ice.Message) error {
	return p.send(ctx, letter{Message: &m})
}

// Receive implements ice.Signal.
func (p *peer) Receive(ctx context.Context) (ice.Message, error) {
	for {
		l, err := p.receive(ctx)
		if err != nil {
			return ice.Message{}, err
		}
		if l.Message != nil {
			return *l.Message, nil
		}
	}
}

// dial connects by WebSocket.
func dial(ctx context.Context, client *http.Client, url string, header http.Header) (*websocket.Conn, error) {
	conn, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: redirects.Bounded(client), HTTPHeader: header, CompressionMode: websocket.CompressionDisabled})
	if err == nil {
		conn.SetReadLimit(2 * maxMessage)
		return conn, nil
	}
	if response == nil {
		return nil, fmt.Errorf("%w: can't reach the rendezvous: %w", ErrLost, err)
	}
	why := ""
	if response.Body != nil {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxReason)) // what came is enough
		why = strings.TrimSpace(short(string(body)))
	}
	kind := ErrLost
	switch response.StatusCode {
	case http.StatusNotFound:
		kind = ErrNoRoom
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		kind = ErrBusy
	case http.StatusBadRequest:
		kind = ErrCode
	}
	return nil, fmt.Errorf("%w (%d: %s)", kind, response.StatusCode, why)
}

const maxReason = 300 // bytes

func send(ctx context.Context, conn *websocket.Conn, n note) error {
	p, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := conn.Write(ctx, websocket.MessageText, p); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// said is why the service ended a connection, in its own words.
type said string

func (s said) Error() string { return string(s) }

func receive(ctx context.Context, conn *websocket.Conn) (n note, err error) {
	kind, p, err := conn.Read(ctx)
	if err == nil && kind != websocket.MessageText {
		err = errBadMessage
	}
	if err == nil {
		err = json.Unmarshal(p, &n)
	}
	if err == nil {
		return n, nil
	}
	var closed websocket.CloseError
	if errors.As(err, &closed) && closed.Reason != "" {
		err = said(short(closed.Reason))
	}
	return note{}, fmt.Errorf("%w: %w", ErrLost, err)
}
