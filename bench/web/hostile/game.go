package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/web"
)

const (
	maxConns = 256
	joinTime = 10 * time.Second // in which a newcomer has to be let in
)

var name = bunch.Name{Index: 300}

// game is the server.
type game struct {
	door *web.Server
	key  netcode.Key
	hash [sha256.Size]byte
	at   netip.AddrPort // of the door
	udp  netip.AddrPort
	end  chan error
	stop context.CancelFunc
}

// echo sends back what it gets.
type echo struct{ channel.Nop }

func (echo) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	b := make([]byte, in.Bits/8)
	in.Data.ReadBytes(b)
	_, _ = ch.SendBunch(&bunch.Out{Data: b, Reliable: true, NoMerge: true}) // a player that falls behind has an error of its own
}

func open(ctx context.Context) (g *game, err error) {
	g = &game{end: make(chan error, 1)}
	if g.key, err = netcode.GenerateKey(nil); err != nil {
		return nil, err
	}
	// Addresses of the loopback have no bounds of their own, so each is taken for one elsewhere.
	elsewhere := func(r *http.Request) (netip.AddrPort, error) {
		a, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return a, err
		}
		b := a.Addr().Unmap().As4()
		b[0] = 100
		return netip.AddrPortFrom(netip.AddrFrom4(b), a.Port()), nil
	}
	if g.door, err = web.NewServer(web.ServerConfig{MaxConns: maxConns, ClientAddr: elsewhere, HalfOpen: 2 * time.Second}); err != nil {
		return nil, err
	}
	var cert tls.Certificate
	if cert, g.hash, err = web.NewCertificate(time.Now()); err != nil {
		return nil, err
	}
	if g.at, err = g.door.Listen("127.0.0.1:0", web.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, Handler: http.HandlerFunc(page)}); err != nil {
		return nil, err
	}
	socket, err := udp.Listen("127.0.0.1:0", udp.Config{NoPoller: true})
	if err != nil {
		return nil, errors.Join(err, g.door.Close())
	}
	g.udp = socket.LocalAddr()
	d, err := driver.Listen("", driver.Config{Socket: udp.Join(socket, g.door), Link: driver.Netcode{Key: g.key}, Prompt: true, MaxConns: maxConns,
		Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return echo{} }}}})
	if err != nil {
		return nil, err
	}
	g.door.Tell(d)
	ctx, g.stop = context.WithCancel(ctx)
	go func() { g.end <- d.Run(ctx, nil) }()
	return g, nil
}

// page is large.
func page(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(noise) }

func (g *game) close() error {
	g.stop()
	return <-g.end
}

func (g *game) url() string { return "https://" + g.at.String() + "/bunchnet" }

// player has messages echoed.
type player struct {
	channel.Nop
	way    web.Way
	driver *driver.Driver
	joined chan *channel.Channel
	stop   context.CancelFunc
	ended  chan error

	began      time.Time
	sent, back int             // both belong to the driver's goroutine
	took       []time.Duration // as well
	lost       error           // as well
}

func (p *player) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	var b [8]byte
	in.Data.ReadBytes(b[:])
	p.back++
	p.took = append(p.took, time.Since(p.began)-time.Duration(binary.LittleEndian.Uint64(b[:])))
}

// join begins to come by a way.
func (g *game) join(ctx context.Context, way web.Way) (*player, error) {
	p := &player{way: way, joined: make(chan *channel.Channel, 1), ended: make(chan error, 1), began: time.Now()}
	cfg := driver.Config{Link: driver.Netcode{Key: g.key}, Prompt: true, Channels: []channel.Type{{Name: name, ClientOpen: true}},
		Joined: func(c *driver.Conn) {
			if ch, err := c.Open(name, p); err == nil {
				p.joined <- ch
			}
		},
		Closed: func(_ *driver.Conn, r netconn.CloseResult) { p.lost = errors.New(r.String()) }}
	if way != web.UDP {
		s, err := web.Dial(ctx, g.url(), web.DialConfig{Way: way, CertificateHash: g.hash})
		if err != nil {
			return nil, err
		}
		cfg.Socket = s
	}
	d, err := driver.Dial(g.udp.String(), cfg)
	if err != nil {
		return nil, err
	}
	p.driver = d
	ctx, p.stop = context.WithCancel(ctx)
	go func() { p.ended <- d.Run(ctx, nil) }()
	return p, nil
}

// enter joins by a way, dialing again when the session is refused or ends, as driver/session's Redialer does, but not for longer than joinTime.
func (g *game) enter(ctx context.Context, way web.Way) (p *player, ch *channel.Channel, tries int, err error) {
	late := time.After(joinTime)
	for {
		if p, err = g.join(ctx, way); err != nil {
			return nil, nil, tries, err
		}
		tries++
		select {
		case ch := <-p.joined:
			return p, ch, tries, nil
		case err = <-p.ended:
			p.stop()
		case <-late:
			return nil, nil, tries, errors.Join(fmt.Errorf("a newcomer by %v wasn't let in within %v", way, joinTime), p.close())
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-late:
			return nil, nil, tries, fmt.Errorf("a newcomer by %v wasn't let in within %v: %w", way, joinTime, err)
		case <-ctx.Done():
			return nil, nil, tries, ctx.Err()
		}
	}
}

// play sends until ctx is done.
func (p *player) play(ctx context.Context, ch *channel.Channel) {
	tick := time.NewTicker(time.Second / 60)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.driver.Do(func() {
				var b [32]byte
				binary.LittleEndian.PutUint64(b[:], uint64(time.Since(p.began)))
				if _, err := ch.SendBunch(&bunch.Out{Data: b[:], Reliable: true, NoMerge: true}); err == nil {
					p.sent++
				}
			})
		}
	}
}

// figures is how it went since the last call: messages without an echo, how long 99 of 100 took, and the end of its connection.
func (p *player) figures() (waiting int, p99 time.Duration, lost error) {
	done := make(chan struct{})
	p.driver.Do(func() {
		defer close(done)
		slices.Sort(p.took)
		if len(p.took) > 0 {
			p99 = p.took[len(p.took)*99/100]
		}
		p.took = p.took[:0]
		waiting, lost = p.sent-p.back, p.lost
	})
	select {
	case <-done:
	case err := <-p.ended:
		p.ended <- err
		lost = fmt.Errorf("its driver has ended: %w", err)
	}
	return waiting, p99, lost
}

func (p *player) close() error {
	p.stop()
	return <-p.ended
}
