// Package process runs a game server of a fleet below a process manager or Kubernetes: its settings come from the environment, /ready and /live
// say over HTTP how it is, and SIGTERM drains it before it ends.
//
//	env, err := process.FromEnv()                        // FLEET_ADDR, FLEET_REGION, ...
//	server, err := fleet.NewServer(env.Server(capacity, schema))
//	store := ...
//	p, err := process.Start(process.Config{Server: server, Store: store, HTTP: env.HTTP})
//	defer p.Close()
//	each tick: p.Tick(now)                               // steps the fleet.Server; never waits
//	when p.Draining(): ask each client to dial again, by a message of the game
//	when p.Done(): end
//
// The order of an end:
//
//	SIGTERM or SIGINT  -->  the server drains: /ready is 503, nobody new is placed here; the game moves its players on
//	everybody has left, or Grace is over  -->  the server stops: its keys are deleted  -->  Done
//	another signal     -->  Done at once
//
// Kubernetes sends SIGTERM and kills after terminationGracePeriodSeconds: make that longer than Grace. See the documents compose.yaml and
// kubernetes.yaml in testdata.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/fleet"
	"github.com/bunchnet/bunchnet/netconn/kv"
)

// Env is the settings that a server of a fleet takes from the environment.
type Env struct {
	// Listen is FLEET_LISTEN, where the game listens. Default ":7777".
	Listen string
	// Addrs is FLEET_ADDR, one or more addresses that clients dial, separated by commas. Needed, but with Agones: its SDK knows.
	Addrs []netip.AddrPort
	// Name is FLEET_NAME. Default the host's name, which in Kubernetes is the pod's.
	Name string
	// Region is FLEET_REGION, Build FLEET_BUILD. Builds is FLEET_BUILDS: the builds of clients that may join, separated by commas.
	Region, Build string
	Builds        []string
	// NATS is FLEET_NATS, URLs separated by commas. Default "nats://127.0.0.1:4222".
	NATS string
	// HTTP is FLEET_HTTP, where /ready and /live are served. Default ":8080".
	HTTP string
	// Grace is FLEET_GRACE, such as "60s".
	Grace time.Duration
}

// FromEnv reads the environment.
func FromEnv() (Env, error) {
	host, _ := os.Hostname()
	e := Env{Listen: cmp.Or(os.Getenv("FLEET_LISTEN"), ":7777"), Name: cmp.Or(os.Getenv("FLEET_NAME"), clean(host)), Region: os.Getenv("FLEET_REGION"),
		Build: os.Getenv("FLEET_BUILD"), Builds: list(os.Getenv("FLEET_BUILDS")), NATS: cmp.Or(os.Getenv("FLEET_NATS"), "nats://127.0.0.1:4222"), HTTP: cmp.Or(os.Getenv("FLEET_HTTP"), ":8080")}
	for _, s := range list(os.Getenv("FLEET_ADDR")) {
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return e, fmt.Errorf("process: FLEET_ADDR: %w", err)
		}
		e.Addrs = append(e.Addrs, a)
	}
	if s := os.Getenv("FLEET_GRACE"); s != "" {
		var err error
		if e.Grace, err = time.ParseDuration(s); err != nil {
			return e, fmt.Errorf("process: FLEET_GRACE: %w", err)
		}
	}
	return e, nil
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// clean makes a host's name one that a key may have.
func clean(host string) string {
	b := []byte(host[:min(len(host), 64)])
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			b[i] = '-'
		}
	}
	return string(b)
}

// Server returns the settings of the fleet.Server.
func (e *Env) Server(capacity int, schema uint64) fleet.ServerConfig {
	return fleet.ServerConfig{Name: e.Name, Info: fleet.Info{Addrs: e.Addrs, Region: e.Region, Build: e.Build, Builds: e.Builds, Capacity: capacity, Schema: schema}}
}

// SDK is what a host of game servers is told, such as Agones: agones.SDK.
type SDK interface {
	Ready(ctx context.Context) error
	Health(ctx context.Context) error
	Shutdown(ctx context.Context) error
}

// Config configures a Process. Server and Store are needed.
type Config struct {
	Server *fleet.Server
	Store  kv.Store
	// Driver is the game's: its load is announced. May be nil; then call fleet.Server.SetLoad.
	Driver *driver.Driver
	// HTTP is the address of /ready and /live. Default none.
	HTTP string
	// Grace bounds a drain. Default 60 s.
	Grace time.Duration
	// Hang is how long Tick may not be called before /live is 503. Default 10 s.
	Hang time.Duration
	// SDK is told that the server is ready, every 2 s that it is alive (every 4 s while it doesn't answer that it is ready), and that it ends. Default none.
	SDK SDK
	// Signals are those that drain. Default, when nil, SIGTERM and SIGINT; when empty, none. With several servers in one program, let that have them.
	Signals []os.Signal
}

// Process is a game server in its process. Tick, Drain, Draining and Done belong to the goroutine that ticks the game.
type Process struct {
	cfg     Config
	signals chan os.Signal
	web     *http.Server
	addr    net.Addr
	began   time.Time
	ticked  atomic.Int64 // time of the last Tick, since began
	ready   atomic.Bool
	end     context.CancelFunc
	sdk     chan struct{} // closed when the SDK's goroutine has ended

	meter    meter
	draining bool
	until    time.Duration
	stopping bool
	done     bool
}

// Start begins to listen to signals, and to HTTP.
func Start(cfg Config) (*Process, error) {
	if cfg.Server == nil || cfg.Store == nil {
		return nil, errors.New("process: Config needs Server and Store")
	}
	cfg.Grace, cfg.Hang = cmp.Or(cfg.Grace, time.Minute), cmp.Or(cfg.Hang, 10*time.Second)
	if cfg.Signals == nil {
		cfg.Signals = []os.Signal{syscall.SIGTERM, os.Interrupt}
	}
	p := &Process{cfg: cfg, signals: make(chan os.Signal, 2), began: time.Now(), sdk: make(chan struct{})}
	if cfg.HTTP != "" {
		l, err := net.Listen("tcp", cfg.HTTP)
		if err != nil {
			return nil, fmt.Errorf("process: %w", err)
		}
		p.addr = l.Addr()
		mux := http.NewServeMux()
		mux.HandleFunc("/ready", answer(p.ready.Load))
		mux.HandleFunc("/live", answer(p.live))
		p.web = &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
		go func() { _ = p.web.Serve(l) }() // ends with ErrServerClosed
	}
	if len(cfg.Signals) > 0 { // none would be all
		signal.Notify(p.signals, cfg.Signals...)
	}
	var ctx context.Context
	ctx, p.end = context.WithCancel(context.Background())
	go p.tell(ctx)
	return p, nil
}

func answer(ok func() bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !ok() {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

func (p *Process) live() bool { return time.Since(p.began)-time.Duration(p.ticked.Load()) < p.cfg.Hang }

// Addr returns the address of /ready and /live; nil without.
func (p *Process) Addr() net.Addr { return p.addr }

// Tick steps the server with its store, and does what signals and the drain ask for. now is a clock that never goes back.
func (p *Process) Tick(now time.Duration) {
	p.ticked.Store(int64(time.Since(p.began)))
	select {
	case <-p.signals:
		if p.draining {
			p.done = true
		}
		p.Drain()
	default:
	}
	s := p.cfg.Server
	if p.draining && p.until == 0 {
		p.until = now + p.cfg.Grace
	}
	if p.draining && !p.stopping && (s.Drained() || now >= p.until) {
		p.stopping = true
		s.Stop()
	}
	if p.cfg.Driver != nil {
		s.SetLoad(p.meter.load(now, p.cfg.Driver))
	}
	kv.Tick(s, p.cfg.Store, now)
	p.done = p.done || p.stopping && s.Stopped()
	p.ready.Store(!p.draining && s.Info().State == fleet.Ready && s.Announced())
}

// Drain begins the end, as SIGTERM does.
func (p *Process) Drain() {
	p.draining = true
	p.cfg.Server.Drain()
}

// Draining reports whether the game shall move its players on.
func (p *Process) Draining() bool { return p.draining }

// Done reports whether the process may end.
func (p *Process) Done() bool { return p.done }

// sdkEvery is the time between two Health calls.
const sdkEvery = 2 * time.Second

// tell tells the SDK.
func (p *Process) tell(ctx context.Context) {
	defer close(p.sdk)
	if p.cfg.SDK == nil {
		return
	}
	told := false
	tell := func(say func(ctx context.Context) error) error {
		call, cancel := context.WithTimeout(ctx, sdkEvery)
		defer cancel()
		return say(call)
	}
	for ; ctx.Err() == nil; sleep(ctx, sdkEvery) {
		if !p.live() {
			continue
		}
		_ = tell(p.cfg.SDK.Health) // the next one tries again
		if !told && p.ready.Load() {
			told = tell(p.cfg.SDK.Ready) == nil
		}
	}
	last, cancel := context.WithTimeout(context.Background(), sdkEvery)
	defer cancel()
	_ = p.cfg.SDK.Shutdown(last) // who doesn't hear it sees the process end
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Close ends the HTTP server, and tells the SDK that the server ends.
func (p *Process) Close() {
	signal.Stop(p.signals)
	p.end()
	<-p.sdk
	if p.web != nil {
		_ = p.web.Close()
	}
}
