package rendezvous

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/internal/redirects"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// JoinConfig has the settings of Join. Invitation is needed.
type JoinConfig struct {
	// Invitation is a room code or a link.
	Invitation string
	// URL is the service's, for a code; a link has its own.
	URL string
	// Name is the player's, for the host; up to 40 printable characters.
	Name string
	// ICE has the settings of the socket. The rendezvous' Servers are added to its own.
	ICE ice.Config
	// HTTP is the client for requests. Default http.DefaultClient.
	HTTP *http.Client
}

// Guest is a player who has joined. Dial with both: driver.Dial(ice.HostAddr().String(), driver.Config{Socket: g.Socket, Link: driver.Netcode{Token: g.Token}}).
type Guest struct {
	Socket *ice.Client
	Token  netcode.Token
}

// Join joins a game: it finds a path to the host and gets a connect token. When the path is lost, the Socket finds another one through the rendezvous, as long
// as the room is open. The Socket ends when ctx is done. Errors are ErrCode, ErrNoRoom, ErrBusy,
// ErrRefused, ErrImpostor, ErrLost and ice.ErrNoWay, and others, as for a letter of the host that can't be opened. Show their text to the player.
func Join(ctx context.Context, cfg JoinConfig) (*Guest, error) {
	to, err := ParseInvitation(cfg.Invitation)
	if err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(cmp.Or(to.URL, cfg.URL), "/")
	if url == "" {
		return nil, fmt.Errorf("%w: a code needs JoinConfig.URL", ErrCode)
	}
	dialing, done := context.WithTimeout(ctx, dialTime)
	defer done()
	conn, err := dial(dialing, cfg.HTTP, url+joinPath+to.Code, byLink(to.Pass, to.Host))
	if err != nil {
		return nil, err
	}
	g := newGuestSignal(conn)
	socket, token, err := g.join(ctx, dialing, cfg, to, url)
	if err != nil {
		_ = conn.CloseNow() // err is the one to return
		return nil, err
	}
	return &Guest{socket, token}, nil
}

// byLink shows the service what a guest has of a link: by the host's fingerprint its code is no guess, and with the pass it comes before others.
func byLink(pass, host string) http.Header {
	if host == "" {
		return nil
	}
	return http.Header{"Authorization": {bearer + pass + host}}
}

func newGuestSignal(conn *websocket.Conn) *guestSignal {
	return &guestSignal{conn: conn, token: make(chan netcode.Token, 1), refused: make(chan error, 1)}
}

// guestSignal is the guest's end of the signal.
type guestSignal struct {
	conn    *websocket.Conn
	token   chan netcode.Token
	refused chan error

	mu     sync.Mutex // of secret.sent, and the order of letters
	secret *secret
}

// meet greets the host, which must have the fingerprint unless that is "".
func (g *guestSignal) meet(ctx context.Context, host string, first letter) (welcome note, err error) {
	if welcome, err = receive(ctx, g.conn); err != nil {
		return welcome, err
	}
	if host != "" && subtle.ConstantTimeCompare([]byte(fingerprint(welcome.Key)), []byte(host)) == 0 {
		return welcome, ErrImpostor
	}
	own, err := newKey()
	if err != nil {
		return welcome, err
	}
	if g.secret, err = newSecret(own, welcome.Key, false); err != nil {
		return welcome, err
	}
	if err := send(ctx, g.conn, note{Key: own.PublicKey().Bytes()}); err != nil {
		return welcome, err
	}
	return welcome, g.send(ctx, first)
}

// again makes a signal to the same host.
func again(ctx context.Context, client *http.Client, url, pass, host string) (ice.Signal, error) {
	conn, err := dial(ctx, client, url, byLink(pass, host))
	if err != nil {
		return nil, err
	}
	g := newGuestSignal(conn)
	if _, err := g.meet(ctx, host, letter{Again: true}); err != nil {
		_ = conn.CloseNow() // err is the one to return
		return nil, err
	}
	return g, nil
}

func (g *guestSignal) join(ctx, dialing context.Context, cfg JoinConfig, to Invitation, url string) (*ice.Client, netcode.Token, error) {
	welcome, err := g.meet(dialing, to.Host, letter{Name: cfg.Name})
	if err != nil {
		return nil, nil, err
	}
	if cfg.ICE.Redial == nil {
		cfg.ICE.Redial = func(ctx context.Context) (ice.Signal, error) {
			return again(ctx, cfg.HTTP, url+joinPath+to.Code, to.Pass, fingerprint(welcome.Key))
		}
	}
	cfg.ICE.Servers = append(append([]ice.Server(nil), cfg.ICE.Servers...), welcome.Servers...)
	socket, err := ice.Dial(ctx, g, cfg.ICE)
	if err != nil {
		return nil, nil, err
	}
	token, err := g.wait(ctx, socket)
	if err != nil {
		return nil, nil, errors.Join(err, socket.Close())
	}
	return socket, token, nil
}

// wait waits for the path, and the token behind it. When there is none, what the signal ended by is the better reason, unless the end of the attempt ended the signal.
func (g *guestSignal) wait(ctx context.Context, socket *ice.Client) (netcode.Token, error) {
	if err := socket.Connected(ctx); err != nil {
		select {
		case refused := <-g.refused:
			if !errors.Is(refused, context.Canceled) {
				return nil, refused
			}
		default:
		}
		return nil, err
	}
	return g.waitToken(ctx)
}

// waitToken waits for the token. One that has come counts, whatever else has happened by then: a host may go once it has given it.
func (g *guestSignal) waitToken(ctx context.Context) (netcode.Token, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTime, fmt.Errorf("%w: the host gave no token", ErrLost))
	defer cancel()
	var err error
	select {
	case token := <-g.token:
		return token, nil
	case err = <-g.refused:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	select {
	case token := <-g.token:
		return token, nil
	default:
		return nil, err
	}
}

func (g *guestSignal) send(ctx context.Context, l letter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sealed, err := g.secret.seal(l)
	if err != nil {
		return err
	}
	return send(ctx, g.conn, note{Sealed: sealed})
}

// Send implements ice.Signal.
func (g *guestSignal) Send(ctx context.Context, m ice.Message) error {
	return g.send(ctx, letter{Message: &m})
}

// Receive implements ice.Signal. When ctx is done the connection closes.
func (g *guestSignal) Receive(ctx context.Context) (ice.Message, error) {
	m, err := g.hear(ctx)
	if err != nil {
		select {
		case g.refused <- err:
		default:
		}
		_ = g.conn.CloseNow() // nothing is read any more
	}
	return m, err
}

func (g *guestSignal) hear(ctx context.Context) (m ice.Message, err error) {
	for {
		n, err := receive(ctx, g.conn)
		if err != nil {
			return m, err
		}
		l, err := g.secret.open(n.Sealed)
		switch {
		case err != nil:
			return m, err
		case l.Refused != "":
			return m, fmt.Errorf("%w: %s", ErrRefused, short(l.Refused))
		case len(l.Token) == netcode.ConnectTokenBytes && !ends(l.Token):
			return m, fmt.Errorf("%w: with its token a dial would wait for more than a minute", ErrRefused)
		case len(l.Token) == netcode.ConnectTokenBytes:
			select {
			case g.token <- l.Token:
			default:
			}
		case l.Message != nil:
			return *l.Message, nil
		}
	}
}

// ends reports whether an attempt to connect by a token ends within a minute when nobody answers. A token says how long each of its servers is tried, -1 is for ever.
func ends(token []byte) bool {
	const timeoutAt = 13 + 8 + 8 + 8 + 24 + 1024 // netcode 1.02: after its version, protocol, times, nonce and private part
	timeout, servers := int32(binary.LittleEndian.Uint32(token[timeoutAt:])), binary.LittleEndian.Uint32(token[timeoutAt+4:])
	return timeout > 0 && timeout <= 60 && servers <= 60 && timeout*int32(servers) <= 60
}

// Games returns the public games of a service, at most 100.
func Games(ctx context.Context, client *http.Client, url string) (all []Game, err error) {
	ctx, done := context.WithTimeout(ctx, dialTime)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+gamesPath, nil)
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	response, err := redirects.Bounded(client).Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w (%d)", ErrBusy, response.StatusCode)
	}
	const most = 64 << 10
	if err := json.NewDecoder(io.LimitReader(response.Body, most)).Decode(&all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	all = all[:min(len(all), maxListed)]
	for i := range all {
		all[i].Name, all[i].Code = short(all[i].Name), short(all[i].Code)
	}
	return all, nil
}
