package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv"
	"github.com/bunchnet/bunchnet/netconn/fleet/natskv/embed"
	"github.com/bunchnet/bunchnet/netconn/fleet/placing"
	"github.com/bunchnet/bunchnet/netconn/fleet/process"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

const protocolID = 0x666c656574 // "fleet"

// timing is generous: a busy machine may stand still for seconds.
var timing = fleet.Timing{Beat: 500 * time.Millisecond, Expiry: 15 * time.Second, Life: 30 * time.Second, OpTimeout: 5 * time.Second}

// world is what would be a data centre: NATS, a token service, servers.
type world struct {
	o       options
	ctx     context.Context // done at an interrupt
	key     netcode.Key
	nats    *natsserver.Server
	dir     string
	conn    *nats.Conn
	bucket  *natskv.Bucket
	service *placing.Service
	store   *natskv.Store
	web     *http.Server
	url     string
	started int
	servers []*server // that run
	stopped []*server
	bots    *bots
}

func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{o: o, ctx: ctx}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.key, err = netcode.GenerateKey(nil); err != nil {
		return w, err
	}
	if w.dir, err = os.MkdirTemp("", "fleet"); err != nil {
		return w, err
	}
	if w.nats, err = embed.Start(w.dir, 0); err != nil {
		return w, err
	}
	if w.conn, err = nats.Connect(w.nats.ClientURL(), nats.MaxReconnects(-1)); err != nil {
		return w, err
	}
	if w.bucket, err = natskv.Open(context.Background(), w.conn, natskv.Config{}); err != nil {
		return w, err
	}
	return w, w.serveTokens()
}

// serveTokens starts the token service.
func (w *world) serveTokens() error {
	placer, err := fleet.NewPlacer(fleet.PlacerConfig{ListConfig: fleet.ListConfig{Timing: timing}, Policy: fleet.Spread, Deadline: 10 * time.Second})
	if err != nil {
		return err
	}
	w.store = w.bucket.Store(placer)
	w.service = placing.Start(placer, w.store)
	tokens, err := tokenserver.New(tokenserver.Config{Key: w.key, ProtocolID: protocolID, Life: timing.Life, Rate: 1e6, Burst: 1e6, TotalRate: 1e6,
		Authenticate: func(r *http.Request) (tokenserver.Player, error) { // a real one asks the game's accounts
			id, err := strconv.ParseUint(r.Header.Get("Authorization"), 10, 64)
			return tokenserver.Player{ID: id}, err
		},
		Place: w.service.Place(func(r *http.Request, _ *tokenserver.Player) (fleet.Want, error) {
			return fleet.Want{Build: r.Header.Get("Build"), Not: r.Header.Get("Not")}, nil
		})})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.url = "http://" + l.Addr().String()
	w.web = &http.Server{Handler: tokens, ReadTimeout: 10 * time.Second}
	go func() { _ = w.web.Serve(l) }() // ends with ErrServerClosed
	return nil
}

// fetch gets a token for a bot.
func (w *world) fetch(ctx context.Context, id uint64, build, not string) (netcode.Token, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", strconv.FormatUint(id, 10))
	req.Header.Set("Build", build)
	req.Header.Set("Not", not)
	return tokenserver.Fetch(http.DefaultClient, req)
}

// ready returns how many servers the token service may place bots on.
func (w *world) ready() (n int) {
	_ = w.service.Look(context.Background(), func(p *fleet.Placer) {
		for i := range p.List().All {
			if i.State == fleet.Ready && p.Free(i.ID) > 0 {
				n++
			}
		}
	})
	return n
}

func (w *world) tickBots() {
	if w.bots != nil {
		w.bots.tick(time.Now())
	}
}

func (w *world) close() {
	if w.bots != nil {
		w.bots.close()
	}
	for _, s := range w.servers {
		s.kill()
	}
	if w.web != nil {
		_ = w.web.Close()
	}
	if w.service != nil {
		w.service.Close()
	}
	if w.store != nil {
		w.store.Close()
	}
	if w.conn != nil {
		w.conn.Close()
	}
	if w.nats != nil {
		w.nats.Shutdown()
		w.nats.WaitForShutdown()
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// server is a game server: it echoes what its players send.
type server struct {
	name, build string
	drains      atomic.Bool
	kills       atomic.Bool
	most        atomic.Int64
	ended       chan struct{}
	mu          sync.Mutex
	err         error
}

func (s *server) drain()     { s.drains.Store(true) }
func (s *server) gone() bool { return isClosed(s.ended) }
func (s *server) kill()      { s.kills.Store(true); <-s.ended }

func (s *server) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// start starts a server of a build. Servers of build 2 take clients of build 1 too.
func (w *world) start(build string) error {
	w.started++
	s := &server{name: fmt.Sprintf("match%d", w.started), build: build, ended: make(chan struct{})}
	began := make(chan error, 1)
	go func() {
		defer close(s.ended)
		err := w.play(s, began)
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}()
	w.servers = append(w.servers, s)
	return <-began
}

// play is a server's life, in a goroutine of its own.
func (w *world) play(s *server, began chan<- error) (err error) {
	told := false
	tell := func(err error) error {
		if !told {
			told = true
			began <- err
		}
		return err
	}
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0"))) // a port for the announcement
	if err != nil {
		return tell(err)
	}
	addr := l.LocalAddr().(*net.UDPAddr).AddrPort()
	_ = l.Close()
	info := fleet.Info{Addrs: []netip.AddrPort{addr}, Build: s.build, Builds: []string{"1", s.build}, Capacity: w.o.capacity}
	member, err := fleet.NewServer(fleet.ServerConfig{Name: s.name, Timing: timing, Info: info})
	if err != nil {
		return tell(err)
	}
	store := w.bucket.Store(member)
	defer store.Close()
	players := map[*driver.Conn]*player{}
	says := newProtocol()
	d, err := driver.Listen(addr.String(), driver.Config{
		Link:     driver.Netcode{ProtocolID: protocolID, Key: w.key, Slots: w.o.capacity, Admit: member.Admit, FirstSequence: member.FirstSequence()},
		Channels: []channel.Type{{Name: gameName, ServerOpen: true}},
		Joined: func(c *driver.Conn) {
			p := &player{queue: says.queue()}
			if _, err := c.Open(gameName, p.queue); err == nil {
				players[c] = p
			}
		},
		Closed: func(c *driver.Conn, _ netconn.CloseResult) {
			delete(players, c)
			member.Left(c.ClientID())
		},
	})
	if err != nil {
		return tell(err)
	}
	defer d.Close()
	proc, err := process.Start(process.Config{Server: member, Store: store, Driver: d, HTTP: "127.0.0.1:0", Grace: patience,
		Signals: []os.Signal{}}) // they are this program's, which has several servers
	if err != nil {
		return tell(err)
	}
	defer proc.Close()
	member.Ready()
	_ = tell(nil)
	ticker := time.NewTicker(time.Second / 60)
	defer ticker.Stop()
	for !proc.Done() && !s.kills.Load() {
		now := <-ticker.C
		if s.drains.Load() && !proc.Draining() {
			proc.Drain() // as SIGTERM does
		}
		d.TickDispatch(now)
		if err := says.echo(players, d, now, member.ID(), s.build, proc.Draining()); err != nil {
			return err
		}
		s.most.Store(max(s.most.Load(), int64(d.Len())))
		proc.Tick(d.Time(now))
		d.TickFlush(now)
	}
	return d.Err()
}
