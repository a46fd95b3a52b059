package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

func init() {
	register(
		attack{area: "services", name: "a /48 without a login", promise: "3,000 requests a second keep nobody with a login from a token: refused of 200", bound: none("refused"), run: loginFlood},
		attack{area: "services", name: "one address in many forms", promise: "an IPv4 address in IPv6 is limited as what it is: tokens in a moment", bound: atMost(5, "tokens"), run: manyForms},
		attack{area: "services", name: "one account from 1,000 networks", promise: "it has the limit of one address, and leaves the rest to others: tokens in a moment", bound: atMost(5, "tokens"), run: oneAccount},
		attack{area: "services", name: "a body without an end", promise: "a hook that reads the body gets a bounded one", bound: atMost(64<<10, "bytes"), run: endlessBody},
		attack{area: "services", name: "strangers at the inspector", promise: "nobody but this machine under its own names is answered, and with a token nobody without it", bound: none("answered"), run: inspectStrangers},
		attack{area: "services", name: "viewers that never read, real sockets", promise: "they give their places up: seconds until another gets one", bound: atMost(60, "s"), run: mutedViewers, alone: true},
	)
}

// tokens is a service whose every request with a login is another player's, on a clock of its own; those of "bob" are one player's.
func tokens(now *time.Time, auth func(*http.Request) error) (*tokenserver.Service, error) {
	players := uint64(1)
	player := func(r *http.Request) tokenserver.Player {
		if r.Header.Get("Authorization") == "bob" {
			return tokenserver.Player{ID: 1}
		}
		players++
		return tokenserver.Player{ID: players}
	}
	return tokenserver.New(tokenserver.Config{Key: netcode.Key{1}, ProtocolID: 1, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")},
		Now: func() time.Time { return *now }, Authenticate: func(r *http.Request) (tokenserver.Player, error) { return player(r), auth(r) }})
}

var errNobody = errors.New("nobody")

func isKnown(r *http.Request) error {
	if who := r.Header.Get("Authorization"); who != "ann" && who != "bob" {
		return errNobody
	}
	return nil
}

func ask(h http.Handler, from, who string, body io.Reader) int {
	r := httptest.NewRequest(http.MethodPost, "/token", body)
	r.RemoteAddr = from
	r.Header.Set("Authorization", who)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// issued is how many of n requests in a moment get a token.
func issued(h http.Handler, n int, who string, from func(i int) string) (got int) {
	for i := range n {
		if ask(h, from(i), who, nil) == http.StatusOK {
			got++
		}
	}
	return got
}

func loginFlood(e *env) figure {
	now := time.Unix(1_700_000_000, 0)
	s, err := tokens(&now, isKnown)
	if err != nil {
		return broken("%v", err)
	}
	refused := 0
	for i := range e.pick(50, 200) {
		for range 300 {
			ask(s, fmt.Sprintf("[2001:db8:0:%x::%x]:1", e.rng.IntN(1<<16), e.rng.IntN(1<<16)), "", nil)
		}
		if ask(s, fmt.Sprintf("198.51.%d.1:1", i), "ann", nil) != http.StatusOK {
			refused++
		}
		now = now.Add(100 * time.Millisecond)
	}
	e.notef("%+v", s.Counters())
	return figure{value: float64(refused)}
}

func manyForms(*env) figure {
	now := time.Unix(1_700_000_000, 0)
	s, err := tokens(&now, isKnown)
	if err != nil {
		return broken("%v", err)
	}
	forms := []string{"198.51.100.7:%d", "[::ffff:198.51.100.7]:%d", "[64:ff9b::198.51.100.7]:%d", "[64:ff9b::c633:6407]:%d"}
	return figure{value: float64(issued(s, 300, "ann", func(i int) string { return fmt.Sprintf(forms[i%4], 1+i) }))}
}

func oneAccount(*env) figure {
	now := time.Unix(1_700_000_000, 0)
	s, err := tokens(&now, isKnown)
	if err != nil {
		return broken("%v", err)
	}
	got := issued(s, 1000, "bob", func(i int) string { return fmt.Sprintf("10.%d.%d.1:1", i/250, i%250) })
	if ask(s, "198.51.100.1:1", "ann", nil) != http.StatusOK {
		return broken("another player is refused")
	}
	return figure{value: float64(got)}
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }

func endlessBody(e *env) figure {
	now, read := time.Unix(1_700_000_000, 0), int64(0)
	s, err := tokens(&now, func(r *http.Request) error {
		n, err := io.Copy(io.Discard, r.Body)
		read = n
		return err
	})
	if err != nil {
		return broken("%v", err)
	}
	if code := ask(s, "198.51.100.7:1", "ann", io.LimitReader(endlessReader{}, int64(e.pick(10, 300))<<20)); code != http.StatusRequestEntityTooLarge {
		return broken("answered with %d", code)
	}
	return figure{value: float64(read)}
}

func inspectStrangers(*env) figure {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	if err != nil {
		return broken("%v", err)
	}
	defer d.Close()
	open, closed := inspect.New(d, inspect.Config{}), inspect.New(d, inspect.Config{Token: "a secret of many bits"})
	answered := 0
	for _, c := range [][2]string{{"127.0.0.1:9", "evil.example"}, {"127.0.0.1:9", "localhost.evil.example:80"}, {"127.0.0.1:9", "127.0.0.1.evil.example"}, {"127.0.0.1:9", ""},
		{"127.0.0.1:9", "192.168.1.1"}, {"192.168.1.7:9", "localhost"}, {"192.168.1.7:9", "127.0.0.1:8080"}, {"[2001:db8::1]:9", "[::1]"}, {"@", "localhost"},
		{"127.0.0.1:9", "localhost"}} { // the last comes through a proxy on this machine that says nothing of it
		for _, path := range []string{"/net/", "/net/json", "/net/text", "/net/events", "/net/export", "/net/page.js", "/net/json?token=", "/net/json?token=a+secret"} {
			for _, i := range []*inspect.Inspector{open, closed} {
				if i == open && c == [2]string{"127.0.0.1:9", "localhost"} {
					continue
				}
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.RemoteAddr, r.Host = c[0], c[1]
				r.Header.Set("Authorization", "Bearer a secret of many bit")
				w := httptest.NewRecorder()
				i.ServeHTTP(w, r)
				if w.Code != http.StatusForbidden || bytes.Contains(w.Body.Bytes(), []byte("datagrams")) {
					answered++
				}
			}
		}
	}
	return figure{value: float64(answered)}
}

func mutedViewers(*env) figure {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	if err != nil {
		return broken("%v", err)
	}
	long := strings.Repeat("x", 1<<20) // so that the system's buffers are full soon
	i := inspect.New(d, inspect.Config{Interval: 10 * time.Millisecond, Figures: func() []inspect.Figure { return []inspect.Figure{{Name: long}} }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx, nil) }()
	web := httptest.NewServer(i)
	defer func() { web.CloseClientConnections(); web.Close(); cancel(); <-done }()
	for range 8 {
		c, err := net.Dial("tcp", web.Listener.Addr().String())
		if err != nil {
			return broken("%v", err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return broken("%v", err)
		}
	}
	begin := time.Now()
	for time.Since(begin) < 2*time.Minute {
		time.Sleep(50 * time.Millisecond)
		resp, err := http.Get(web.URL + "/events")
		if err != nil {
			continue
		}
		_, err = io.CopyN(io.Discard, resp.Body, 10)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK && err == nil && time.Since(begin) > time.Second {
			return figure{value: time.Since(begin).Seconds()}
		}
	}
	return broken("eight viewers that never read keep everybody else out")
}
