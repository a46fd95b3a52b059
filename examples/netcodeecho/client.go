package main

import (
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

type clientOptions struct {
	secrets
	servers               list
	id                    uint64
	packets, payload      int
	expire, timeout       int
	idle, seconds         float64
	tokenFile, writeToken string
	noDisconnect          bool
}

func clientMain(args []string) error {
	var o clientOptions
	f := flag.NewFlagSet("client", flag.ContinueOnError)
	o.flags(f)
	f.Var(&o.servers, "server", "a server's address; up to 32 of them, tried in order")
	f.Uint64Var(&o.id, "client-id", 1, "the client id in the token")
	f.IntVar(&o.packets, "packets", 100, "payloads to have echoed")
	f.IntVar(&o.payload, "payload", 100, "bytes of a payload, 8 to 1200")
	f.IntVar(&o.expire, "expire", 30, "seconds that the token is good for; negative for ever")
	f.IntVar(&o.timeout, "timeout", 5, "seconds of silence that end a connection; negative never")
	f.Float64Var(&o.idle, "idle", 0, "seconds to stay connected after the last echo")
	f.StringVar(&o.tokenFile, "token-file", "", "read the token from a file instead of making one")
	f.StringVar(&o.writeToken, "write-token", "", "write the token to a file")
	f.BoolVar(&o.noDisconnect, "no-disconnect", false, "leave without a word, for the server to time out")
	f.Float64Var(&o.seconds, "seconds", 30, "give up after so many seconds")
	if err := o.parse(f, args); err != nil {
		return fail(2, "%v", err)
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	c, err := newClient(o)
	if err != nil {
		return err
	}
	return c.run(token)
}

// token is read or made.
func (o *clientOptions) token() (token []byte, err error) {
	switch {
	case o.payload < 8 || o.payload > netcode.MaxPayload || o.packets < 0:
		return nil, fail(2, "--payload is 8 to %d, --packets not negative", netcode.MaxPayload)
	case o.tokenFile != "":
		token, err = os.ReadFile(o.tokenFile)
	default:
		token, err = o.makeToken()
	}
	if err == nil && o.writeToken != "" {
		err = os.WriteFile(o.writeToken, token, 0o600)
	}
	return token, err
}

func (o *clientOptions) makeToken() ([]byte, error) {
	now := uint64(time.Now().Unix())
	cfg := netcode.TokenConfig{ProtocolID: o.protocol, ClientID: o.id, Create: now, Expire: math.MaxUint64, Timeout: int32(o.timeout), UserData: userData(), PrivateKey: o.key}
	if o.expire >= 0 {
		cfg.Expire = now + uint64(o.expire)
	}
	for _, text := range o.servers {
		a, err := netcode.ParseAddr(text)
		if err != nil {
			return nil, fail(2, "--server %s: %v", text, err)
		}
		cfg.Servers = append(cfg.Servers, a)
	}
	token, err := netcode.GenerateConnectToken(cfg)
	if err != nil {
		return nil, fail(2, "%v", err)
	}
	return token, nil
}

// client sends payloads until all have come back. It is the machine's handler.
type client struct {
	*wire
	o      clientOptions
	m      *netcode.Client
	sent   map[uint64]time.Duration // not echoed yet: when sent last
	next   uint64
	echoed int
	twice  int
	wrong  string
	ended  time.Duration // when the last echo came
	buf    []byte
}

// window is how many payloads wait for their echo at most.
const window = 64

func newClient(o clientOptions) (*client, error) {
	w, err := newWire(":0")
	if err != nil {
		return nil, err
	}
	c := &client{wire: w, o: o, sent: map[uint64]time.Duration{}, ended: -1, buf: make([]byte, o.payload)}
	c.m, err = netcode.NewClient(netcode.ClientConfig{ProtocolID: o.protocol, Handler: c})
	return c, err
}

func (c *client) run(token []byte) error {
	defer c.socket.Close()
	start := c.now()
	if err := c.m.Connect(start, token); err != nil {
		return fail(10-int(netcode.InvalidToken), "state %v: %v", c.m.State(), err)
	}
	for c.m.State() > netcode.Disconnected && c.wrong == "" && !c.done() && c.now().Seconds() < c.o.seconds {
		err := c.receive(2*time.Millisecond, func(from netip.AddrPort, p []byte) { c.m.Receive(c.now(), from, p) })
		if err != nil {
			return err
		}
		c.m.Tick(c.now())
		if c.m.State() == netcode.Connected {
			c.transmit()
		}
	}
	err := c.verdict()
	if !c.o.noDisconnect {
		c.m.Disconnect(c.now())
	}
	return err
}

func (c *client) done() bool {
	return c.ended >= 0 && (c.now()-c.ended).Seconds() >= c.o.idle
}

func (c *client) verdict() error {
	state := c.m.State()
	progress := fmt.Sprintf("state %v, %d of %d echoed", state, c.echoed, c.o.packets)
	switch {
	case c.wrong != "":
		return fail(22, "%s: %s", progress, c.wrong)
	case c.done():
		slot, slots := c.m.Slot()
		_, err := fmt.Printf("PASS: %s, slot %d of %d, %d echoes twice, %.2f s\n", progress, slot, slots, c.twice, c.now().Seconds())
		return err
	case state <= netcode.Disconnected:
		return fail(10-int(state), "%s", progress)
	case state < netcode.Connected:
		return fail(20, "out of time: %s", progress)
	}
	return fail(21, "out of time: %s", progress)
}

// transmit sends new payloads, and old ones again.
func (c *client) transmit() {
	now := c.now()
	if c.ended < 0 && c.echoed == c.o.packets {
		c.ended = now
	}
	for c.next < uint64(c.o.packets) && len(c.sent) < window {
		c.send(now, c.next)
		c.next++
	}
	for n := range c.sent {
		if now-c.sent[n] >= 100*time.Millisecond {
			c.send(now, n)
		}
	}
}

func (c *client) send(now time.Duration, n uint64) {
	payload(c.buf, n)
	if err := c.m.SendPayload(now, c.room(c.buf)); err != nil {
		c.wrong = err.Error()
	}
	c.sent[n] = now
}

// StateChanged is the machine's.
func (c *client) StateChanged(from, to netcode.State) {
	fmt.Printf("%6.3f s  %v -> %v\n", c.now().Seconds(), from, to)
}

// Payload is the machine's.
func (c *client) Payload(p []byte) {
	n, ok := number(p)
	switch _, waits := c.sent[n]; {
	case !ok || len(p) != c.o.payload || n >= c.next:
		c.wrong = fmt.Sprintf("an echo of %d bytes isn't what was sent", len(p))
	case waits:
		delete(c.sent, n)
		c.echoed++
	default:
		c.twice++
	}
}
