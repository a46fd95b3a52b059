package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/bunchnet/bunchnet/bench/internal/tunnel"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/netconn/web"
)

var name = bunch.Name{Index: 300}

// gate is a socket that passes nothing once it is shut.
type gate struct {
	udp.Socket
	shut *atomic.Bool
}

func (g gate) TryReadBatch(msgs []udp.Message) (int, error) {
	n, err := g.Socket.TryReadBatch(msgs)
	if g.shut.Load() {
		n = 0
	}
	return n, err
}

func (g gate) WriteBatch(msgs []udp.Message) (int, error) {
	if g.shut.Load() {
		return len(msgs), nil
	}
	return g.Socket.WriteBatch(msgs)
}

// settings are what a client is told.
type settings struct {
	Key, UDP, WebTransport, Hash, WebSocket string
	Token, Redial                           bool
	Ways                                    []web.Way
}

// result is how long nothing came to the players, and how many connections they made after their first.
type result struct {
	Took  []time.Duration
	Dials int
}

// measure has the paths of some players die.
func measure(ctx context.Context, loss float64, seed uint64, m [2]web.Way, how means) (r result, err error) {
	net, err := tunnel.New(netsim.Settings{Lag: delay, Loss: loss}, seed)
	if err != nil {
		return r, err
	}
	defer net.Close()
	key, err := netcode.GenerateKey(nil)
	if err != nil {
		return r, err
	}
	door, err := web.NewServer(web.ServerConfig{Rate: 100, Burst: 1000}) // all players have one address
	if err != nil {
		return r, err
	}
	cert, hash, err := web.NewCertificate(time.Now(), tunnel.ServerAddr)
	if err != nil {
		return r, err
	}
	var socket udp.Socket
	var quic *proxy.Proxy
	var s settings
	net.Server(func() {
		at, e := door.Listen(tunnel.ServerAddr+":0", web.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
		if err = e; err != nil {
			return
		}
		if socket, err = udp.Listen(tunnel.ServerAddr+":0", udp.Config{NoPoller: true}); err != nil {
			return
		}
		if quic, err = proxy.New(proxy.Config{Listen: tunnel.ServerAddr + ":0", To: at.String()}); err != nil { // of WebTransport only
			return
		}
		s = settings{Key: key.Hex(), UDP: socket.LocalAddr().String(), WebTransport: "https://" + quic.LocalAddr().String() + "/bunchnet", Hash: hex.EncodeToString(hash[:]),
			WebSocket: "https://" + at.String() + "/bunchnet", Token: how.token, Redial: how.redial, Ways: []web.Way{web.UDP, web.WebTransport, web.WebSocket}}
	})
	if err != nil {
		return r, errors.Join(err, door.Close())
	}
	if m[0] == web.WebTransport {
		s.Ways = s.Ways[1:]
	}
	shut := new(atomic.Bool)
	d, err := serve(udp.Join(web.Answer(gate{socket, shut}), door), door, key)
	if err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	ended, stepped := make(chan error, 1), make(chan error, 1)
	go func() { ended <- d.driver.Run(ctx, d.step) }()
	dark := new(atomic.Bool)
	go func() {
		var err error
		for was := false; ctx.Err() == nil && err == nil; time.Sleep(2 * time.Millisecond) {
			net.Server(func() {
				if is := dark.Load(); is != was {
					was, err = is, quic.Set(netsim.Settings{Loss: 100}, netsim.Settings{Loss: 100})
				}
				err = errors.Join(err, quic.Step(time.Now()))
			})
		}
		stepped <- err
	}()
	defer func() {
		stop()
		err = errors.Join(err, <-ended, <-stepped, quic.Close())
	}()
	text, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	own, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, own, "-player", string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if net.Client(func() { err = cmd.Start() }); err != nil {
		return r, err
	}
	lines := bufio.NewReader(said)
	if _, err = lines.ReadString('\n'); err == nil { // all play
		shut.Store(m[0] == web.UDP)
		dark.Store(m[1] == web.WebSocket)
		if _, err = io.WriteString(in, "now\n"); err == nil {
			err = json.NewDecoder(lines).Decode(&r)
		}
	}
	_ = in.Close()
	if e := cmd.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("the client: %w", e))
	}
	return r, err
}

// game is the server's: it sends 60 messages a second to each player.
type game struct {
	driver *driver.Driver
	all    map[*channel.Channel]bool
}

func serve(s udp.Socket, door *web.Server, key netcode.Key) (g *game, err error) {
	g = &game{all: map[*channel.Channel]bool{}}
	g.driver, err = driver.Listen("", driver.Config{Socket: s, Link: driver.Netcode{Key: key, TakeOver: true}, Prompt: true, TickRate: 60,
		Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
			g.all[ch] = true
			return channel.Nop{}
		}}}})
	if err == nil {
		door.Tell(g.driver)
	}
	return g, err
}

func (g *game) step(time.Time) {
	for ch := range g.all {
		if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 32)}); err != nil {
			delete(g.all, ch) // its player has gone
		}
	}
}
