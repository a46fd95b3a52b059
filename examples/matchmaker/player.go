package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

// player is one who wants in.
type player struct {
	name    string
	invited bool // has an account
	ticket  string
	driver  *driver.Driver
	server  int // that he is on, or -1
	after   time.Duration
}

func (p *player) close() {
	if p.driver != nil {
		_ = p.driver.Close()
	}
}

// join brings all players in, one after the other, and last one with a wrong password.
func join(url string, n int, servers *servers) (list []*player, err error) {
	for i := range n + 1 {
		p := &player{name: fmt.Sprintf("player%d", i+1), invited: i < n, server: -1}
		list = append(list, p)
		if err := p.join(url, servers, list[:i]); err != nil {
			return list, err
		}
	}
	return list, nil
}

func (p *player) join(url string, servers *servers, others []*player) error {
	start := time.Now()
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	password := "swordfish"
	if !p.invited {
		password = "guess"
	}
	req.SetBasicAuth(p.name, password)
	token, err := tokenserver.Fetch(http.DefaultClient, req)
	var refused *tokenserver.Error
	if errors.As(err, &refused) {
		p.ticket = fmt.Sprint(refused.Status)
		return nil
	}
	if err != nil {
		return err
	}
	p.ticket = "200"
	return p.connect(token, start, servers, others)
}

// connect joins a server. The players who are in go on meanwhile.
func (p *player) connect(token []byte, start time.Time, servers *servers, others []*player) error {
	joined, turnedAway := false, false
	d, err := driver.Dial(servers.addrs()[0].String(), driver.Config{
		Link:   driver.Netcode{ProtocolID: protocolID, Token: token},
		Joined: func(*driver.Conn) { joined = true },
		Closed: func(*driver.Conn, netconn.CloseResult) { turnedAway = true },
	})
	if err != nil {
		return err
	}
	p.driver = d
	all := append(slices.Clone(servers.list), d)
	for _, o := range others {
		if o.driver != nil {
			all = append(all, o.driver)
		}
	}
	for (!joined || servers.where(p.name) < 0) && !turnedAway {
		poll(all...)
		time.Sleep(time.Millisecond)
		if time.Since(start) > time.Minute {
			return fmt.Errorf("%s neither joined nor was turned away", p.name)
		}
	}
	p.server, p.after = servers.where(p.name), time.Since(start)
	return nil
}
