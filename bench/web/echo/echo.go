// Package echo is the two ends of the measurement of bench/web: messages at a steady rate, and how long each takes to come back.
package echo

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

const (
	rate     = 60 // messages a second
	bytes    = 32 // of a message
	patience = 30 * time.Second
)

var name = bunch.Name{Index: 300}

// server sends back what it gets.
type server struct{ channel.Nop }

func (server) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	var b [bytes]byte
	in.Data.ReadBytes(b[:])
	_, _ = ch.SendBunch(&bunch.Out{Data: b[:], Reliable: true, NoMerge: true}) // a client that falls behind has an error of its own
}

// Serve echoes until ctx is done.
func Serve(ctx context.Context, socket udp.Socket, key netcode.Key) error {
	d, err := driver.Listen("", driver.Config{Socket: socket, Link: driver.Netcode{Key: key}, Prompt: true,
		Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return server{} }}}})
	if err != nil {
		return err
	}
	return d.Run(ctx, nil)
}

// client sends, and notes how long each message takes. All of it belongs to the driver's goroutine.
type client struct {
	channel.Nop
	began time.Time
	sent  int
	took  []float64
}

func (c *client) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	var b [bytes]byte
	in.Data.ReadBytes(b[:])
	sent := time.Duration(binary.LittleEndian.Uint64(b[:]))
	c.took = append(c.took, (time.Since(c.began)-sent).Seconds()*1000)
}

// Run sends for so long to a server, over a socket, and returns the milliseconds that each message took to come back, all of them.
func Run(ctx context.Context, socket udp.Socket, addr string, key netcode.Key, length time.Duration) ([]float64, error) {
	ctx, stop := context.WithTimeout(ctx, length+2*patience)
	defer stop()
	c := &client{began: time.Now()}
	joined := make(chan *channel.Channel, 1)
	d, err := driver.Dial(addr, driver.Config{Socket: socket, Link: driver.Netcode{Key: key}, Prompt: true, Channels: []channel.Type{{Name: name, ClientOpen: true}},
		Joined: func(conn *driver.Conn) {
			if ch, err := conn.Open(name, c); err == nil {
				joined <- ch
			}
		}})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, nil) }()
	var ch *channel.Channel
	select {
	case ch = <-joined:
	case err := <-ended:
		return nil, fmt.Errorf("it didn't come to the server: %w", err)
	}
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	all := make(chan []float64, 1)
	for begin := time.Now(); ; {
		select {
		case err := <-ended:
			return nil, fmt.Errorf("%d of %d came back: %w", len(c.took), c.sent, err)
		case took := <-all:
			stop()
			return took, <-ended
		case <-tick.C:
		}
		sending := time.Since(begin) < length
		d.Do(func() {
			if !sending {
				if len(c.took) == c.sent {
					select {
					case all <- c.took:
					default:
					}
				}
				return
			}
			var b [bytes]byte
			binary.LittleEndian.PutUint64(b[:], uint64(time.Since(c.began)))
			if _, err := ch.SendBunch(&bunch.Out{Data: b[:], Reliable: true, NoMerge: true}); err == nil {
				c.sent++
			}
		})
	}
}
