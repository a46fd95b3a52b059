package control

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Errors that Receive returns. Each ends the connection.
var (
	ErrOrder   = errors.New("control: message out of order")
	ErrVersion = errors.New("control: network versions differ")
	ErrRefused = errors.New("control: login refused")
)

// Reasons for refusing a login. Authorize returns one of them, or an error that wraps one (fmt.Errorf("%w: until May", ErrBanned)). The
// client's Receive returns an error that wraps the same one. On the wire a reason is the beginning of the Failure's text.
var (
	ErrFull             = errors.New("server full")
	ErrBanned           = errors.New("banned")
	ErrAlreadyConnected = errors.New("already connected")
	ErrShuttingDown     = errors.New("shutting down")
)

// More reasons for ending a connection. On the wire a reason is the beginning of the CloseReason's text.
var (
	ErrKicked   = errors.New("kicked")
	ErrReplaced = errors.New("replaced by a new connection")
)

var reasons = [...]error{ErrFull, ErrBanned, ErrAlreadyConnected, ErrShuttingDown, ErrKicked, ErrReplaced}

// Ended returns the error for the text of a CloseReason: it wraps the reason that the text begins with. It returns nil if
// the text begins with none of the reasons.
func Ended(text string) error {
	for _, r := range reasons {
		if startsWith(text, r.Error()) {
			return fmt.Errorf("%w%s", r, bitio.Printable(text[len(r.Error()):]))
		}
	}
	return nil
}

// Text returns the text that a Failure or CloseReason carries for an error: the error's own text. If it wraps one of the reasons
// and doesn't begin with that reason, the reason and a colon are put in front. A zero byte, which a string of a message can't hold, becomes U+FFFD.
func Text(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "\uFFFD")
	for _, r := range reasons {
		if errors.Is(err, r) && !startsWith(text, r.Error()) {
			return r.Error() + ": " + text
		}
	}
	return text
}

// Short returns the text to send when Text is too long for a message. It names the reason alone.
func Short(err error) string {
	const long = "the words were too many to send"
	for _, r := range reasons {
		if errors.Is(err, r) {
			return r.Error() + ": " + long
		}
	}
	return long
}

// Refused returns the error of a client whose login ended with that text: it wraps ErrRefused, and the reason that the text begins with.
func Refused(text string) error {
	if why := Ended(text); why != nil {
		return fmt.Errorf("%w: %w", ErrRefused, why)
	}
	return fmt.Errorf("%w: %s", ErrRefused, bitio.Printable(text))
}

// startsWith reports whether text equals words, or begins with words and a colon.
func startsWith(text, words string) bool {
	rest, ok := strings.CutPrefix(text, words)
	return ok && (rest == "" || rest[0] == ':')
}

// Sender sends a message on channel 0 as a reliable bunch. If it returns an error, Receive returns that error.
type Sender func(Message) error

// memory is what the ends tell each other of their MaxMemory.
type memory struct {
	own  int
	peer func(bytes uint32)
}

func (m *memory) tell(send Sender) error {
	if m.own == 0 {
		return nil
	}
	return send(&Memory{Bytes: uint32(m.own)})
}

// told takes the peer's; it is false for a peer that mustn't tell it.
func (m *memory) told(msg *Memory) bool {
	if m.peer != nil {
		m.peer(msg.Bytes)
	}
	return m.peer != nil
}

// MinNetSpeed is the lowest bandwidth that a server grants, in bytes a second.
const MinNetSpeed = 1800

// ServerConfig configures the server's side of the login. The zero value accepts every client.
type ServerConfig struct {
	// NetworkVersion is the version that clients must have. A client with another one gets an Upgrade and is refused with
	// ErrVersion. 0 accepts any.
	NetworkVersion uint32
	// Features says that Hello and Upgrade carry the runtime features (engine 5.3 and later). Both ends must agree.
	Features bool
	// Map and GameMode are sent in Welcome.
	Map, GameMode string
	// Level returns them for each client that is accepted. It is for games whose map changes. If it is nil, Map and GameMode are sent.
	// A text of more than 4096 characters ends the connection by a failure of this end.
	Level func() (mapName, gameMode string)
	// Challenge is the text sent to clients, which their Respond answers.
	Challenge string
	// Authorize accepts or refuses a login. If it returns an error, the client is refused and is sent the error's text, or a shorter one above 4096 characters; see
	// ErrFull for errors that the client can test for. A nil func accepts every login.
	Authorize func(*Login) error
	// MaxNetSpeed is the highest bandwidth that a client is granted, in bytes a second; at least MinNetSpeed. Default 100000.
	MaxNetSpeed int
	// NetSpeed is called with the bandwidth that the client is granted. May be nil.
	NetSpeed func(bytesPerSecond int)
	// Admitted is called once, when the client joins. May be nil.
	Admitted func()
}

// Validate returns an error for a text that is longer than the client reads, and for a MaxNetSpeed below MinNetSpeed.
func (c *ServerConfig) Validate() error {
	if n := c.MaxNetSpeed; n != 0 && n < MinNetSpeed {
		return fmt.Errorf("control: ServerConfig.MaxNetSpeed %d must be at least %d, or 0 for the default", n, MinNetSpeed)
	}
	return errors.Join(carried("ServerConfig.Challenge", &Challenge{Text: c.Challenge}), carried("ServerConfig.Map and GameMode", &Welcome{Map: c.Map, GameMode: c.GameMode}))
}

// carried returns an error that names settings, unless a message of these can be sent.
func carried(settings string, m Message) error {
	if _, err := Encode(m, false); err != nil {
		return fmt.Errorf("control: %s can't be sent: %w", settings, err)
	}
	return nil
}

// Server is the server's side of the login.
type Server struct {
	cfg    ServerConfig
	send   Sender
	expect ID
	joined bool
	login  Login
	reason string
	memory memory
}

// NewServer returns a server that waits for Hello.
func NewServer(cfg ServerConfig, send Sender) *Server {
	if cfg.MaxNetSpeed == 0 {
		cfg.MaxNetSpeed = 100_000
	}
	return &Server{cfg: cfg, send: send, expect: HelloID}
}

// ExchangeMemory has the server tell its client that it holds so many bytes at most for it, unless they are 0, and call peer when the client tells the same of itself. Call it before
// Receive. Without it a client that tells so breaks the rules.
func (s *Server) ExchangeMemory(own int, peer func(bytes uint32)) { s.memory = memory{own, peer} }

// Joined reports whether the client has joined.
func (s *Server) Joined() bool { return s.joined }

// Login returns the client's Login message; its zero value before it arrives.
func (s *Server) Login() *Login { return &s.login }

// PeerReason returns the reason that the client gave for closing the connection; "" if none.
func (s *Server) PeerReason() string { return s.reason }

// Receive handles the messages of one bunch. If it returns an error, the caller closes the connection.
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
	case *Memory:
		if s.memory.told(m) {
			return nil
		}
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
	if err := s.send(&Challenge{Text: s.cfg.Challenge}); err != nil {
		return err
	}
	return s.memory.tell(s.send)
}

// sendFailure sends the client a Failure with the error's text.
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

// ClientConfig configures the client's side of the login.
type ClientConfig struct {
	// NetworkVersion and Features: see ServerConfig.
	NetworkVersion uint32
	Features       bool
	// Token is sent in Hello; URL, UniqueID and Platform in Login. Texts have at most 4096 characters, UniqueID at most 256 bytes.
	Token, URL, Platform string
	UniqueID             []byte
	// Respond returns the answer to the server's challenge, of at most 4096 characters: a longer one ends the connection by a failure of this end. A nil func answers "".
	Respond func(challenge string) string
	// NetSpeed is the bandwidth that the client asks for, in bytes a second: MinNetSpeed to 2147483647. Default 100000.
	NetSpeed int
	// Welcomed is called when the server has accepted the login. If it is set, the client joins when Join is called, for
	// example after loading the map. The server's LoginTimeout limits how long that may take. If it is nil, the client joins at once.
	Welcomed func(*Welcome)
	// Entered is called once, when the client joins. May be nil.
	Entered func(*Welcome)
}

// Validate returns an error for a text or UniqueID that is longer than the server reads, and for a NetSpeed below MinNetSpeed or above 2147483647.
func (c *ClientConfig) Validate() error {
	if n := c.NetSpeed; n != 0 && (n < MinNetSpeed || int64(n) > math.MaxInt32) {
		return fmt.Errorf("control: ClientConfig.NetSpeed %d must be from %d to %d, or 0 for the default", n, MinNetSpeed, math.MaxInt32)
	}
	return errors.Join(carried("ClientConfig.Token", &Hello{Token: c.Token}), carried("ClientConfig.URL, UniqueID and Platform", &Login{URL: c.URL, UniqueID: c.UniqueID, Platform: c.Platform}))
}

// Client is the client's side of the login.
type Client struct {
	cfg     ClientConfig
	send    Sender
	expect  ID
	joined  bool
	reason  string
	welcome *Welcome
	memory  memory
}

// NewClient returns a client. Start begins the login.
func NewClient(cfg ClientConfig, send Sender) *Client {
	if cfg.NetSpeed == 0 {
		cfg.NetSpeed = 100_000
	}
	return &Client{cfg: cfg, send: send, expect: ChallengeID}
}

// ExchangeMemory is Server.ExchangeMemory. Call it before Start.
func (c *Client) ExchangeMemory(own int, peer func(bytes uint32)) { c.memory = memory{own, peer} }

// Start sends Hello.
func (c *Client) Start() error {
	if err := c.send(&Hello{LittleEndian: true, NetworkVersion: c.cfg.NetworkVersion, Token: c.cfg.Token}); err != nil {
		return err
	}
	return c.memory.tell(c.send)
}

// Joined reports whether the client has joined: the server accepted it and Join was sent.
func (c *Client) Joined() bool { return c.joined }

// PeerReason returns the reason that the server gave for closing the connection; "" if none.
func (c *Client) PeerReason() string { return c.reason }

// Welcome is the server's message; nil before it arrives.
func (c *Client) Welcome() *Welcome { return c.welcome }

// Receive handles the messages of one bunch. If it returns an error, the caller closes the connection.
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
		return Refused(m.Reason)
	case *Memory:
		if c.memory.told(m) {
			return nil
		}
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

// nothing is the ID that a client expects after Welcome. No message has it.
const nothing ID = 0xFF

// ErrNotWelcome: Join was called before Welcome arrived.
var ErrNotWelcome = errors.New("control: the server hasn't accepted the login yet")

// Join tells the server that the client is ready. Call it after Welcomed. A second call does nothing.
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
