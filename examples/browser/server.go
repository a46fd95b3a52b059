package main

import (
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	tankpage "github.com/bunchnet/bunchnet/examples/tanks/page"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/netconn/web"
)

//go:embed page/index.html
var indexHTML string

var index = template.Must(template.New("").Parse(indexHTML))

const path = "/bunchnet" // of sessions

// server is the game, and all that lets players in.
type server struct {
	game  *game.Server
	door  *web.Server
	pages *http.Server
	key   netcode.Key
	addr  netip.AddrPort // in the tokens
	url   string         // of the page
}

// listen opens the game's socket, the door for browsers, the token service and the page.
func listen(o options, c *client) (s *server, err error) {
	s = &server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if text := os.Getenv(driver.KeyEnv); text != "" {
		s.key, err = netcode.ParseKey(text)
	} else {
		s.key, err = netcode.GenerateKey(nil)
	}
	if err != nil {
		return s, err
	}
	socket, err := udp.Listen(o.udp, udp.Config{NoPoller: true, Whole: true})
	if err != nil {
		return s, err
	}
	if s.addr = socket.LocalAddr(); o.public != "" {
		if s.addr, err = netip.ParseAddrPort(o.public); err != nil {
			return s, errors.Join(err, socket.Close())
		}
	}
	if s.addr.Addr().IsUnspecified() {
		return s, errors.Join(fmt.Errorf("%v is no address that a player could send to: say with -public which one is", s.addr), socket.Close())
	}
	var site net.Listener
	s.url = "https://" + o.domain
	if _, port, _ := net.SplitHostPort(o.https); port != "443" {
		s.url += ":" + port
	}
	if o.domain == "" {
		if site, err = net.Listen("tcp", o.http); err != nil {
			return s, errors.Join(err, socket.Close())
		}
		s.url = "http://" + site.Addr().String()
	}
	if s.door, err = web.NewServer(web.ServerConfig{Origins: []string{s.url}}); err != nil {
		return s, errors.Join(err, socket.Close())
	}
	link := driver.Netcode{Key: s.key, TakeOver: true, Addrs: []netip.AddrPort{s.addr}}
	cfg := driver.Config{Socket: udp.Join(web.Answer(socket), s.door), Link: link, Timeout: 10 * time.Second}
	if s.game, err = game.Listen("", cfg, o.seed); err != nil {
		return s, err
	}
	s.door.Tell(s.game.Driver) // who closes the page is gone at once

	// A page asks at its own origin for tokens, and for sessions by WebSocket; so does WebTransport where a domain has a certificate.
	page := map[string]string{"Server": s.addr.String(), "Token": s.url + "/token", "WebSocket": s.url + path}
	mux := http.NewServeMux()
	if o.domain != "" {
		manager := &autocert.Manager{Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(o.domain), Cache: autocert.DirCache(o.certs),
			Client: &acme.Client{DirectoryURL: o.acme}}
		page["WebTransport"] = s.url + path
		_, err = s.door.Listen(o.https, web.ListenConfig{TLS: manager.TLSConfig(), Path: path, Handler: mux})
	} else if o.ways != web.WebSocket.String() {
		var at netip.AddrPort
		at, page["Hash"], err = s.listenLocal(o.web)
		page["WebTransport"] = "https://" + at.String() + path
	}
	if err != nil {
		return s, err
	}
	if err := s.handle(mux, page, c); err != nil || site == nil {
		return s, err
	}
	s.pages = &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() { _ = s.pages.Serve(site) }() // ends with close
	return s, nil
}

// listenLocal lets browsers on this machine in by WebTransport, with a certificate that they know by its hash.
func (s *server) listenLocal(addr string) (netip.AddrPort, string, error) {
	cert, hash, err := web.NewCertificate(time.Now())
	if err != nil {
		return netip.AddrPort{}, "", err
	}
	at, err := s.door.Listen(addr, web.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, Path: path})
	return at, hex.EncodeToString(hash[:]), err
}

// handle is what is at the page's address.
func (s *server) handle(mux *http.ServeMux, page map[string]string, c *client) error {
	config, err := json.Marshal(page)
	if err != nil {
		return err
	}
	tokens, err := s.tokens()
	if err != nil {
		return err
	}
	mux.Handle("POST /token", tokens)
	mux.Handle(path, s.door)
	inspector, err := tankpage.New(s.game, "")
	if err != nil {
		return err
	}
	mux.Handle("/net/", inspector) // only for this machine
	mux.HandleFunc("GET /player.wasm", c.serveWASM)
	mux.HandleFunc("GET /wasm_exec.js", c.serveSupport)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = index.Execute(w, string(config)) // who asked is gone
	})
	return nil
}

// tokens is the token service. A game asks for a login here; this one believes that who has a secret is who had it before.
func (s *server) tokens() (*tokenserver.Service, error) {
	return tokenserver.New(tokenserver.Config{Key: s.key, Servers: []netip.AddrPort{s.addr}, Authenticate: func(r *http.Request) (tokenserver.Player, error) {
		secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || len(secret) < 16 {
			return tokenserver.Player{}, errors.New("a player is who has its secret, of at least 16 characters")
		}
		sum := sha256.Sum256([]byte(secret))
		return tokenserver.Player{ID: binary.LittleEndian.Uint64(sum[:])}, nil
	}, Rate: 5, Burst: 20})
}

// native is a player in this process, over UDP.
func (s *server) native(name string, bad netsim.Settings, seed uint64, play game.Player) (*game.Client, error) {
	socket, err := udp.Listen(":0", udp.Config{})
	if err != nil {
		return nil, err
	}
	impaired, err := proxy.Impair(socket, bad, bad, seed)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return game.Dial(s.addr.String(), driver.Config{Socket: impaired, Link: driver.Netcode{Key: s.key}, Timeout: 10 * time.Second}, name, play)
}

// close ends the game and all that lets players in.
func (s *server) close() (err error) {
	if s.pages != nil {
		err = s.pages.Close()
	}
	if s.game != nil {
		return errors.Join(err, s.game.Driver.Close())
	}
	if s.door != nil {
		err = errors.Join(err, s.door.Close())
	}
	return err
}
