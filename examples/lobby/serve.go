package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/turn/v5"

	"github.com/bunchnet/bunchnet/netconn/ice"
	"github.com/bunchnet/bunchnet/netconn/ice/rendezvous"
)

// site is the rendezvous and the relay.
type site struct {
	url   string
	meet  *rendezvous.Service
	pages *http.Server
	relay *turn.Server
}

// open opens both.
func open(o options) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	secret := rand.Text()
	ip := net.ParseIP(o.relayAddr).To4()
	if ip == nil {
		return s, fmt.Errorf("-public %q is no IPv4 address", o.relayAddr)
	}
	public := netip.AddrFrom4([4]byte(ip))
	allowed := func(_ net.Addr, peer net.IP) bool {
		to, ok := netip.AddrFromSlice(peer)
		return ok && relays(public, to.Unmap())
	}
	given := &given{of: map[string]int{}}
	pc, err := net.ListenPacket("udp4", o.relay)
	if err != nil {
		return s, err
	}
	at := pc.LocalAddr().(*net.UDPAddr)
	listen, _, _ := net.SplitHostPort(o.relay)
	if listen == "" {
		listen = "0.0.0.0"
	}
	generator := &turn.RelayAddressGeneratorStatic{RelayAddress: ip, Address: listen}
	cfg := turn.ServerConfig{Realm: "lobby", LoggerFactory: quiet{}, AuthHandler: turn.LongTermTURNRESTAuthHandler(secret, quiet{}.NewLogger("")),
		QuotaHandler: given.may, EventHandler: turn.EventHandler{
			OnAllocationCreated: func(_, _ net.Addr, _, room, _ string, _ net.Addr, _ int) { given.add(room, 1) },
			OnAllocationDeleted: func(_, _ net.Addr, _, room, _ string) { given.add(room, -1) }},
		PacketConnConfigs: []turn.PacketConnConfig{{PacketConn: pc, RelayAddressGenerator: generator, PermissionHandler: allowed}}}
	urls := []string{fmt.Sprintf("turn:%v:%d?transport=udp", ip, at.Port)}
	var conf *tls.Config
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return s, errors.Join(err, pc.Close())
		}
		conf = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	if o.relayTLS != "" {
		if conf == nil {
			return s, errors.Join(errors.New("-tls needs -cert and -key"), pc.Close())
		}
		ln, err := tls.Listen("tcp4", o.relayTLS, conf)
		if err != nil {
			return s, errors.Join(err, pc.Close())
		}
		cfg.ListenerConfigs = []turn.ListenerConfig{{Listener: ln, RelayAddressGenerator: generator, PermissionHandler: allowed}}
		urls = append(urls, fmt.Sprintf("turns:%v:%d?transport=tcp", ip, ln.Addr().(*net.TCPAddr).Port))
	}
	if s.relay, err = turn.NewServer(cfg); err != nil {
		return s, errors.Join(err, pc.Close())
	}
	s.meet, err = rendezvous.New(rendezvous.Config{Servers: []ice.Server{{URL: fmt.Sprintf("stun:%v:%d", ip, at.Port)}}, Relays: urls, TURNSecret: secret})
	if err != nil {
		return s, err
	}
	ln, err := net.Listen("tcp", o.serve)
	if err != nil {
		return s, err
	}
	s.url = "http://" + ln.Addr().String()
	if conf != nil {
		conf = conf.Clone()
		conf.NextProtos = []string{"http/1.1"} // WebSocket's
		ln = tls.NewListener(ln, conf)
		s.url = "https" + s.url[4:]
	}
	s.pages = &http.Server{Handler: s.meet, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	go func() { _ = s.pages.Serve(ln) }() // ends with close
	return s, nil
}

func (s *site) close() (err error) {
	if s.meet != nil {
		err = s.meet.Close()
	}
	if s.pages != nil {
		err = errors.Join(err, s.pages.Close())
	}
	if s.relay != nil {
		err = errors.Join(err, s.relay.Close())
	}
	return err
}

// serve serves until it is interrupted.
func serve(ctx context.Context, o options) error {
	s, err := open(o)
	if err != nil {
		return err
	}
	fmt.Println("the rendezvous is at", s.url)
	<-ctx.Done()
	return s.close()
}

// relays reports whether the relay sends to a machine: not to its own, whose services may listen for itself only, and not to those of its own network. On one machine or in one
// network, where its public address is such a one, it does.
func relays(public, to netip.Addr) bool {
	switch {
	case to == public:
		return true // another player's address at the relay
	case public.IsLoopback():
		return to.IsLoopback() || to.IsPrivate()
	case public.IsPrivate():
		return to.IsPrivate() || to.IsGlobalUnicast()
	}
	return to.IsGlobalUnicast() && !to.IsPrivate() && !shared.Contains(to)
}

// shared is the network between providers and their customers (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// Bounds of the relay. Whoever opens a room may use it.
const (
	maxOfRoom = 64 // addresses
	maxOfAll  = 2048
)

// given is how many addresses the players of each room have at the relay.
type given struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// may reports whether a player of a room may have one more.
func (g *given) may(room, _ string, _ net.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.of[room] < maxOfRoom && g.all < maxOfAll
}

func (g *given) add(room string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all += n
	if g.of[room] += n; g.of[room] == 0 {
		delete(g.of, room)
	}
}

// quiet has the relay say nothing.
type quiet struct{}

func (quiet) NewLogger(string) logging.LeveledLogger { return &logging.DefaultLeveledLogger{} }
