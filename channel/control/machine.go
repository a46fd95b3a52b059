package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Errors of the machines; each ends the connection.
var (
	ErrOrder   = errors.New("control: message out of order")
	ErrVersion = errors.New("control: network versions differ")
	ErrRefused = errors.New("control: login refused")
	ErrPeer    = errors.New("control: the peer ended it")
)

// Reasons to refuse a login for. Authorize returns one, with more words if it likes (fmt.Errorf("%w: until May", ErrBanned)), and
// the client's Receive gives the same one: they go over the wire as the words that a Failure begins with.
var (
	ErrFull             = errors.New("server full")
	ErrBanned           = errors.New("banned")
	ErrAlreadyConnected = errors.New("already connected")
	ErrShuttingDown     = errors.New("shutting down")
)

// Reasons to end a connection for, besides those: the words that a CloseReason begins with.
var (
	ErrKicked   = errors.New("kicked")
	ErrReplaced = errors.New("replaced by a new connection")
)

var reasons = [...]error{ErrFull, ErrBanned, ErrAlreadyConnected, ErrShuttingDown, ErrKicked, ErrReplaced}

// Ended is the error that a CloseReason's text stands for: one of the reasons with the text, or nil when it begins with none's words.
func Ended(text string) error {
	for _, r := range reasons {
		if startsWith(text, r.Error()) {
			return fmt.Errorf("%w%s", r, text[len(r.Error()):])
		}
	}
	return nil
}

// Text is what a Failure or a CloseReason says of an error: its words, behind those of the reason that it wraps.
func Text(err error) string {
	text := err.Error()
	for _, r := range reasons {
		if errors.Is(err, r) && !startsWith(text, r.Error()) {
			return r.Error() + ": " + text
		}
	}
	return text
}

// Short is what is said instead of a Text that is too long for a message: of its words only those of the reason.
func Short(err error) string {
	short := ErrRefused
	for _, r := range reasons {
		if errors.Is(err, r) {
			short = r
		}
	}
	return short.Error() + ": the words were too many to send"
}

// refusal is the error that a Failure's text stands for.
func refusal(text string) error {
	if why := Ended(text); why != nil {
		return fmt.Errorf("%w: %w", ErrRefused, why)
	}
	return fmt.Errorf("%w: %s", ErrRefused, text)
}

// startsWith reports whether a text is the words, or the words and more behind a colon.
func startsWith(text, words string) bool {
	rest, ok := strings.CutPrefix(text, words)
	return ok && (rest == "" || rest[0] == ':')
}

// Sender sends a message reliably on channel 0.
type Sender func(Message) error

// MinNetSpeed is the lowest Netspeed a server grants, in bytes a second.
const MinNetSpeed = 1800

// ServerConfig is what a server says and asks. The zero value lets everyone in.
type ServerConfig struct {
	// NetworkVersion must be the client's; 0 accepts any.
	NetworkVersion uint32
	// Features is whether Hello and Upgrade carry runtime features (5.3 and later).
	Features bool
	// Map and GameMode go into Welcome.
	Map, GameMode string
	// Level is asked for them instead when a client is let in, where they change. May be nil.
	Level func() (mapName, gameMode string)
	// Challenge is the text clients get to answer.
	Challenge string
	// Authorize decides on a login; its error's text goes to the client, and ErrFull, ErrBanned and ErrAlreadyConnected as
	// such. nil accepts.
	Authorize func(*Login) error
	// MaxNetSpeed bounds what clients may ask for, in bytes a second. Default 100000.
	MaxNetSpeed int
	// NetSpeed is told the bandwidth granted. May be nil.
	NetSpeed func(bytesPerSecond int)
	// Admitted is called once the client is in. May be nil.
	Admitted func()
}

// Server is the server's side of the login.
type Server struct {
	cfg    ServerConfig
	send   Sender
	expect ID
	joined bool
	login  Login
	reason string
}

// NewServer returns a server that waits for Hello.
func NewServer(cfg ServerConfig, send Sender) *Server {
	if cfg.MaxNetSpeed == 0 {
		cfg.MaxNetSpeed = 100_000
	}
	return &Server{cfg: cfg, send: send, expect: HelloID}
}

// Joined reports whether the client is in.
func (s *Server) Joined() bool { return s.joined }

// Login is what the client said of itself.
func (s *Server) Login() *Login { return &s.login }

// PeerReason is why the client says it ends the connection.
func (s *Server) PeerReason() string { return s.reason }

// Receive takes the messages of a bunch. An error ends the connection; ErrPeer means the client
// is about to end it.
func (s *Server) Receive(r *bitio.Reader) error {
	for r.Remaining() > 0 {
		m, err := Read(r, s.cfg.Features)
		if err != nil {
			return err
		}
		if err := s.receive(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) receive(m Message) error {
	if s.expect == HelloID && m.ID() != HelloID {
		return fmt.Errorf("%w: %T before Hello", ErrOrder, m)
	}
	switch m := m.(type) {
	case *CloseReason:
		s.reason = m.Reason
		return nil
	case *Failure:
		s.reason = m.Reason
		return nil
	case *Netspeed:
		if s.expect != JoinID && !s.joined {
			break
		}
		if s.cfg.NetSpeed != nil {
			s.cfg.NetSpeed(max(MinNetSpeed, min(int(m.BytesPerSecond), s.cfg.MaxNetSpeed)))
		}
		return nil
	}
	if m.ID() != s.expect || s.joined {
		return fmt.Errorf("%w: %T", ErrOrder, m)
	}
	switch m := m.(type) {
	case *Hello:
		return s.hello(m)
	case *Login:
		return s.receiveLogin(m)
	case *Join:
		s.joined = true
		if s.cfg.Admitted != nil {
			s.cfg.Admitted()
		}
	}
	return nil
}

func (s *Server) hello(m *Hello) error {
	if s.cfg.NetworkVersion != 0 && m.NetworkVersion != s.cfg.NetworkVersion {
		_ = s.send(&Upgrade{NetworkVersion: s.cfg.NetworkVersion}) // the connection ends anyway
		return fmt.Errorf("%w: the client has %#x, we %#x", ErrVersion, m.NetworkVersion, s.cfg.NetworkVersion)
	}
	s.expect = LoginID
	return s.send(&Challenge{Text: s.cfg.Challenge})
}

// sendFailure tells the client why.
func (s *Server) sendFailure(err error) {
	if s.send(&Failure{Reason: Text(err)}) != nil {
		_ = s.send(&Failure{Reason: Short(err)}) // the connection ends anyway
	}
}

func (s *Server) receiveLogin(m *Login) error {
	s.login = *m
	if s.cfg.Authorize != nil {
		if err := s.cfg.Authorize(m); err != nil {
			s.sendFailure(err)
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	s.expect = JoinID
	w := &Welcome{Map: s.cfg.Map, GameMode: s.cfg.GameMode}
	if s.cfg.Level != nil {
		w.Map, w.GameMode = s.cfg.Level()
	}
	return s.send(w)
}

// ClientConfig is what a client says.
type ClientConfig struct {
	NetworkVersion uint32
	Features       bool
	// Token, URL, UniqueID and Platform are passed on to the server.
	Token, URL, Platform string
	UniqueID             []byte
	// Respond answers the server's challenge. nil answers "".
	Respond func(challenge string) string
	// NetSpeed asks for a bandwidth in bytes a second. Default 100000.
	NetSpeed int
	// Welcomed is called when the server has let us in. With it the client joins only when Join is called, as when the map is
	// loaded; the server's LoginTimeout bounds how long that may take. nil joins at once.
	Welcomed func(*Welcome)
	// Entered is called once we are in: at the welcome, or when Join was called after it. May be nil.
	Entered func(*Welcome)
}

// Client is the client's side of the login.
type Client struct {
	cfg    ClientConfig
	send   Sender
	expect ID
	joined bool
	reason string
	// welcome is the server's, nil before.
	welcome *Welcome
}

// NewClient returns a client; Start begins.
func NewClient(cfg ClientConfig, send Sender) *Client {
	if cfg.NetSpeed == 0 {
		cfg.NetSpeed = 100_000
	}
	return &Client{cfg: cfg, send: send, expect: ChallengeID}
}

// Start says Hello.
func (c *Client) Start() error {
	return c.send(&Hello{LittleEndian: true, NetworkVersion: c.cfg.NetworkVersion, Token: c.cfg.Token})
}

// Joined reports whether the server has let us in.
func (c *Client) Joined() bool { return c.joined }

// PeerReason is why the server says it ends the connection.
func (c *Client) PeerReason() string { return c.reason }

// Receive takes the messages of a bunch. An error ends the connection.
func (c *Client) Receive(r *bitio.Reader) error {
	for r.Remaining() > 0 {
		m, err := Read(r, c.cfg.Features)
		if err != nil {
			return err
		}
		if err := c.receive(m); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) receive(m Message) error {
	switch m := m.(type) {
	case *CloseReason:
		c.reason = m.Reason
		return nil
	case *Failure:
		c.reason = m.Reason
		return refusal(m.Reason)
	case *Upgrade:
		return fmt.Errorf("%w: the server has %#x, we %#x", ErrVersion, m.NetworkVersion, c.cfg.NetworkVersion)
	}
	if m.ID() != c.expect || c.joined {
		return fmt.Errorf("%w: %T", ErrOrder, m)
	}
	switch m := m.(type) {
	case *Challenge:
		return c.login(m.Text)
	case *Welcome:
		c.welcome, c.expect = m, nothing
		if c.cfg.Welcomed == nil {
			return c.Join()
		}
		c.cfg.Welcomed(m)
	}
	return nil
}

// nothing is what a client expects of a server once it was let in: no message has this number.
const nothing ID = 0xFF

// ErrNotWelcome is a Join before the server has let us in.
var ErrNotWelcome = errors.New("control: the server hasn't let us in yet")

// Join says that the client is ready, after Welcomed. Again it does nothing.
func (c *Client) Join() error {
	switch {
	case c.welcome == nil:
		return ErrNotWelcome
	case c.joined:
		return nil
	}
	return c.join(c.welcome)
}

func (c *Client) login(challenge string) error {
	response := ""
	if c.cfg.Respond != nil {
		response = c.cfg.Respond(challenge)
	}
	c.expect = WelcomeID
	return c.send(&Login{Response: response, URL: c.cfg.URL, UniqueID: c.cfg.UniqueID, Platform: c.cfg.Platform})
}

func (c *Client) join(m *Welcome) error {
	if err := c.send(&Netspeed{BytesPerSecond: int32(c.cfg.NetSpeed)}); err != nil {
		return err
	}
	if err := c.send(&Join{}); err != nil {
		return err
	}
	c.joined = true
	if c.cfg.Entered != nil {
		c.cfg.Entered(m)
	}
	return nil
}
