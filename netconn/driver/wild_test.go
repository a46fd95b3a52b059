package driver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// wildGame is a game whose callbacks, at a server and its clients, do anything that the API has.
type wildGame struct {
	rng    *rand.Rand
	town   *town
	seldom int // acts are so much rarer
	depth  int // of callbacks in callbacks
	heard  map[*Conn]*wildHeard
	fault  string // the first
}

// wildHeard is what the game was told of a connection.
type wildHeard struct{ accepted, joined, closed int }

const wildDepth = 6

var wildName = bunch.Name{Index: 300}

func (g *wildGame) faultf(format string, args ...any) {
	if g.fault == "" {
		g.fault = fmt.Sprintf(format, args...) + "\n" + string(debug.Stack())
	}
}

func (g *wildGame) of(c *Conn) *wildHeard {
	if g.heard[c] == nil {
		g.heard[c] = &wildHeard{}
	}
	return g.heard[c]
}

// wildHandler is the game's handler of a channel.
type wildHandler struct {
	g      *wildGame
	closed bool
}

func (h *wildHandler) heard(ch *channel.Channel, what string) {
	if h.closed {
		h.g.faultf("%s after Closed", what)
	}
	h.g.act(ConnOf(ch), ch)
}

func (h *wildHandler) ReceivedBunch(ch *channel.Channel, _ *bunch.In) { h.heard(ch, "bunch") }
func (h *wildHandler) ReceivedAck(ch *channel.Channel, _ int64)       { h.heard(ch, "ack") }
func (h *wildHandler) ReceivedNak(ch *channel.Channel, _ int64)       { h.heard(ch, "nak") }
func (h *wildHandler) Closed(ch *channel.Channel, _ channel.CloseReason) {
	h.heard(ch, "Closed")
	h.closed = true
}

// act does something with a connection, its driver, and a channel of it if there is one, or nothing.
func (g *wildGame) act(c *Conn, ch *channel.Channel) {
	if g.depth == wildDepth || g.rng.IntN(2) == 0 {
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	d, rarely := c.driver, g.rng.IntN(6) == 0
	switch g.rng.IntN(24 * g.seldom) {
	case 0:
		c.CloseWithReason("enough")
	case 1:
		c.CloseWithError(fmt.Errorf("%w: %s", ErrKicked, strings.Repeat("x", g.rng.IntN(3000))))
	case 2:
		c.Close(c.Now(), "enough")
	case 3:
		c.Abort(c.Now(), "enough")
	case 4:
		c.Fail(errors.New("enough"), rarely)
	case 5:
		if rarely {
			d.Shutdown("enough")
		}
	case 6:
		if rarely {
			_ = d.Close()
		}
	case 7:
		s := d.socket
		if b, ok := s.(batchOf); ok {
			s = b.Socket
		}
		_ = d.Rebind(batchOf{s, 1 + g.rng.IntN(64)})
	case 8:
		d.Do(func() { g.act(c, nil) })
	case 9:
		d.BeforeFlush(func() { g.act(c, nil) })
	case 10:
		left := g.rng.IntN(5)
		c.SendSpare(func() int {
			g.act(c, nil)
			if left--; left < 0 || c.Closed() {
				return 0
			}
			return 100
		})
	case 11:
		for o := range d.Conns {
			g.act(o, nil)
		}
	case 12:
		c.LinkClosed(c.Now(), "enough")
	case 13:
		_ = c.Join()
	case 14:
		c.SetNetSpeed(1000 + g.rng.IntN(1_000_000))
	case 15:
		_ = fmt.Sprint(d, d.Len(), d.Server(), c.Stats(), c.Result())
	case 16, 17:
		c.FlushNet()
	case 18:
		c.FlushWritten(c.Now())
	case 19:
		if control := c.Channel(0); control != nil {
			_ = control.Close(bunch.Destroyed)
		}
	default:
		g.say(c, ch)
	}
}

// say sends on a new channel, and on ch.
func (g *wildGame) say(c *Conn, ch *channel.Channel) {
	p := make([]byte, g.rng.IntN(200))
	if g.rng.IntN(10) == 0 {
		p = make([]byte, g.rng.IntN(60_000))
	}
	if o, err := c.Open(wildName, &wildHandler{g: g}); err == nil {
		if g.rng.IntN(3) == 0 {
			_, _ = o.SendTemporary(&bunch.Out{Data: p[:min(len(p), 2000)]})
		} else {
			_, _ = o.SendBunch(&bunch.Out{Data: p, Reliable: true})
		}
		if g.rng.IntN(3) == 0 {
			_ = o.Close(bunch.Destroyed)
		}
	}
	if ch == nil {
		return
	}
	_, _ = ch.SendBunch(&bunch.Out{Data: p, Reliable: g.rng.IntN(2) == 0})
	if g.rng.IntN(8) == 0 {
		_ = ch.Close(bunch.Destroyed)
	}
}

// actOn does something with each connection of a driver.
func (g *wildGame) actOn(d *Driver) {
	if d == nil {
		return // Dial hasn't returned yet
	}
	for c := range d.Conns {
		g.act(c, nil)
	}
}

// config is the settings of a driver whose callbacks act. it is the driver, once it is there.
func (g *wildGame) config(it **Driver) Config {
	return Config{
		Channels: []channel.Type{{Name: wildName, ClientOpen: true, ServerOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
			g.act(ConnOf(ch), ch)
			return &wildHandler{g: g}
		}}},
		Accepted: func(c *Conn) {
			h := g.of(c)
			if h.accepted++; h.accepted > 1 || h.closed > 0 || c.driver.ended {
				g.faultf("Accepted: %+v, the driver closed %v", *h, c.driver.ended)
			}
			g.act(c, nil)
		},
		Joined: func(c *Conn) {
			h := g.of(c)
			if h.joined++; h.accepted != 1 || h.joined > 1 || h.closed > 0 || c.Closing() || c.driver.ended {
				g.faultf("Joined: %+v, closing %v, the driver closed %v", *h, c.Closing(), c.driver.ended)
			}
			g.act(c, nil)
		},
		Closed: func(c *Conn, _ netconn.CloseResult) {
			if c == nil {
				return
			}
			h := g.of(c)
			if h.closed++; h.closed > 1 || !c.Closed() {
				g.faultf("Closed: %+v, really %v", *h, c.Closed())
			}
			g.act(c, nil)
		},
		Server: control.ServerConfig{
			Authorize: func(*control.Login) error {
				if g.actOn(*it); g.rng.IntN(4) == 0 {
					return ErrBanned
				}
				return nil
			},
			NetSpeed: func(int) { g.actOn(*it) },
			Admitted: func() { g.actOn(*it) },
			Level:    func() (mapName, gameMode string) { g.actOn(*it); return "hill", "king" },
		},
		Client: control.ClientConfig{
			Respond: func(string) string { g.actOn(*it); return "" },
			Entered: func(*control.Welcome) { g.actOn(*it) },
		},
		Timeout: 5 * time.Second, LoginTimeout: 3 * time.Second, LingerTimeout: time.Second, MaxConns: 4,
		MaxMemory: []int{0, 0, 256 << 10}[g.rng.IntN(3)],
	}
}

// dial makes a client, now and then at the address of an earlier one.
func (g *wildGame) dial(link Link, proto netconn.Protocol) {
	w := g.town
	if n := len(w.sockets); n > 0 && g.rng.IntN(3) == 0 {
		i := g.rng.IntN(n)
		w.nextAddr = w.sockets[i].addr
		w.sockets = append(w.sockets[:i:i], w.sockets[i+1:]...)
	}
	var it *Driver
	cfg := g.config(&it)
	cfg.Link, cfg.Protocol = link, proto
	if _, ok := link.(Netcode); ok {
		cfg.Link = Netcode{Token: townToken(w.t, w, uint64(g.rng.IntN(3)), nil)}
	}
	if g.rng.IntN(3) == 0 {
		cfg.Client.Welcomed = func(*control.Welcome) {
			g.actOn(it)
			for c := range it.Conns {
				if g.rng.IntN(2) == 0 {
					_ = c.Join()
				} else {
					it.Do(func() { _ = c.Join() })
				}
			}
		}
	}
	it = w.dial(cfg).Driver
}

// wildRun is one game, which its seed determines, and what was wrong with it.
func wildRun(t *testing.T, seed uint64) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	g := &wildGame{rng: rand.New(rand.NewPCG(seed, 9)), heard: map[*Conn]*wildHeard{}}
	pick := func(list ...int) int { return list[g.rng.IntN(len(list))] }
	g.seldom = pick(1, 1, 3, 10)
	var link Link
	var proto netconn.Protocol
	switch g.rng.IntN(5) {
	case 0:
		link = Netcode{Key: netcode.Key{1}, TakeOver: g.rng.IntN(2) == 0}
	case 1:
		link = PlainSalted{}
	case 2:
		link = PlainUnreal53()
	case 3:
		link, proto = PlainUnreal53(), netconn.Unreal53(false)
	case 4:
		link, proto = PlainUnreal427(), netconn.Unreal427()
	}
	low := time.Duration(g.rng.IntN(60)) * time.Millisecond
	var server *Driver
	cfg := g.config(&server)
	cfg.Link, cfg.Protocol, cfg.Parallel = link, proto, Cores(seed%3)
	g.town = newTown(t, seed, netsim.Settings{Loss: float64(pick(0, 0, 5, 30)), LagMin: low, LagMax: low + time.Duration(1+g.rng.IntN(30))*time.Millisecond, Dup: float64(pick(0, 5))}, cfg)
	server = g.town.server
	g.town.tick = time.Duration(pick(5, 16, 100)) * time.Millisecond
	for i := 0; i < 600 && g.fault == ""; i++ {
		if i%40 == 0 && len(g.town.clients) < 12 {
			g.dial(link, proto)
		}
		for _, c := range g.town.clients {
			if g.rng.IntN(8) == 0 {
				g.actOn(c.Driver)
			}
		}
		if g.town.step(); server.Err() != nil && !server.ended {
			g.faultf("the server's socket failed: %v", server.Err())
		}
	}
	_ = server.Close()
	for _, c := range g.town.clients {
		_ = c.Close()
	}
	for c, h := range g.heard {
		if h.closed != 1 {
			g.faultf("%v: %+v at the end", c.driver, *h)
		}
	}
	return g.fault
}

// TestWildCallbacks: whatever a game does from within whatever callback, at either end, nothing panics, no socket is given up, and each connection
// is told of in order: Accepted, Joined if it hasn't ended before, and Closed once; and each channel's handler of nothing behind its Closed.
func TestWildCallbacks(t *testing.T) {
	seeds := 40
	if os.Getenv("CI") != "" {
		seeds = 400
	}
	for seed := range uint64(seeds) {
		require.Empty(t, wildRun(t, seed), "seed %d", seed)
	}
}
