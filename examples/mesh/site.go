package main

import (
	_ "embed"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

//go:embed page.html
var html []byte

// site is the page. It answers requests from its own machine only.
type site struct {
	addr   string
	server *http.Server

	mu   sync.Mutex
	last []byte // the last snapshot, as JSON
}

func (s *site) start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(html) // who asked may have gone
	})
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		b := s.last
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(b)
	})
	s.server = &http.Server{ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !local(r) {
				http.Error(w, "this page is for its own machine", http.StatusForbidden)
				return
			}
			mux.ServeHTTP(w, r)
		})}
	go func() { _ = s.server.Serve(l) }() // ends with ErrServerClosed
	return nil
}

// local reports whether a request comes from this machine, and names it: another site's page can't read this one under a name of its own.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	host, _, split := net.SplitHostPort(r.Host)
	if split != nil {
		host = r.Host
	}
	to, notAddr := netip.ParseAddr(host)
	return err == nil && from.Addr().Unmap().IsLoopback() && (host == "localhost" || notAddr == nil && to.IsLoopback())
}

func (s *site) set(v snapshot) {
	b, err := json.Marshal(v)
	if err != nil {
		return // there is nothing that JSON can't have
	}
	s.mu.Lock()
	s.last = b
	s.mu.Unlock()
}

func (s *site) close() {
	if s.server != nil {
		_ = s.server.Close()
	}
}
