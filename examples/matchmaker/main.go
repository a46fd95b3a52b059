// Matchmaker is the way into an encrypted game, end to end: a token service over HTTP, two game servers
// with few slots, and players who log in, fetch a token, and join the first server that has room.
//
//	go run ./examples/matchmaker
//	go run ./examples/matchmaker -players 9 -slots 4
//
// It ends by itself; the verdict is that every player with a login is on a server, that the second server took
// those the first had no room for, and that nobody else got in.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

const protocolID = 0x6d61746368 // "match": clients of other games are refused

func main() {
	players := flag.Int("players", 5, "players with a login")
	slots := flag.Int("slots", 3, "slots of each of the two servers")
	flag.Parse()
	if flag.NArg() > 0 || *players < 1 || *slots < 1 {
		fmt.Fprintln(os.Stderr, "a flag is out of range; see -help")
		os.Exit(2)
	}
	if err := run(*players, *slots); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

func run(players, slots int) error {
	key, err := netcode.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	servers, err := newServers(key, slots)
	if err != nil {
		return err
	}
	defer servers.close()
	url, stop, err := serveTokens(key, servers.addrs(), players)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Printf("tokens at %s, servers at %v, %d slots each\n\n", url, servers.addrs(), slots)

	list, err := join(url, players, servers)
	defer func() {
		for _, p := range list {
			p.close()
		}
	}()
	if err != nil {
		return err
	}
	table(list)
	return verdict(list, servers, slots)
}

// serveTokens starts the service on a port of its own.
func serveTokens(key netcode.Key, servers []netip.AddrPort, players int) (url string, stop func(), err error) {
	service, err := tokenserver.New(tokenserver.Config{Key: key, ProtocolID: protocolID, Servers: servers, Burst: players + 2,
		Authenticate: authenticate, Challenge: `Basic realm="matchmaker"`})
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/token", service)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() { _ = web.Serve(l) }() // ends with ErrServerClosed
	return "http://" + l.Addr().String() + "/token", func() { _ = web.Close() }, nil
}

// authenticate stands for a game's accounts. A real one checks a session or a ticket of a store.
func authenticate(r *http.Request) (tokenserver.Player, error) {
	name, password, ok := r.BasicAuth()
	digits, known := strings.CutPrefix(name, "player")
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || !known || err != nil || strconv.FormatUint(number, 10) != digits || password != "swordfish" {
		return tokenserver.Player{}, errors.New("no such account")
	}
	p := tokenserver.Player{ID: number}
	copy(p.UserData[:], name) // the server learns the name from the token, not from the client
	return p, nil
}

func table(list []*player) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "player\ttoken\tserver\tjoined after")
	for _, p := range list {
		server, after := "-", "-"
		if p.server >= 0 {
			server, after = fmt.Sprint(p.server+1), fmt.Sprintf("%.0f ms", float64(p.after.Microseconds())/1000)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.name, p.ticket, server, after)
	}
	w.Flush()
	fmt.Println()
}

func verdict(list []*player, servers *servers, slots int) error {
	on := [2]int{}
	for _, p := range list {
		switch {
		case p.server >= 0 && !p.invited:
			return fmt.Errorf("%s got in without a login", p.name)
		case p.server >= 0:
			on[p.server]++
		}
	}
	invited := len(list) - 1
	first, second := min(invited, slots), min(max(invited-slots, 0), slots)
	if on != [2]int{first, second} {
		return fmt.Errorf("%d players on the first server and %d on the second, not %d and %d", on[0], on[1], first, second)
	}
	for i, s := range servers.list {
		for reason, n := range s.Refusals {
			if n > 0 {
				fmt.Printf("server %d refused %d: %s\n", i+1, n, reason)
			}
		}
	}
	_, err := fmt.Printf("PASS: %d players on the first server, %d on the second, %d turned away\n", first, second, len(list)-first-second)
	return err
}

// poll ticks drivers once.
func poll(ds ...*driver.Driver) {
	now := time.Now()
	for _, d := range ds {
		d.TickDispatch(now)
		d.TickFlush(now)
	}
}
