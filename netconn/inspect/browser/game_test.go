package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

var chat = bunch.Name{Text: "Chat"}

// clients is their names; the last tries to be more than a name.
var clients = []string{"Ann", "Bob", "<img src=x onerror=document.title='taken'>"}

// fleet is how many ships there are.
const fleet = 300

// actorsOf is a page of the ships.
func actorsOf(c *driver.Conn, q inspect.ActorQuery) inspect.ActorPage {
	page := inspect.ActorPage{Count: fleet}
	for id := q.From; id < fleet; id++ {
		if len(page.Actors) == q.Max {
			page.Next = id
			break
		}
		if strings.Contains(fmt.Sprint(id), q.Match) {
			page.Actors = append(page.Actors, inspect.Actor{ID: fmt.Sprint(id), Class: "Ship", Channel: 2, Bits: 1234, Explain: "relevant to " + c.Login().URL})
		}
	}
	return page
}

// play runs a server that talks all the time to clients behind bad networks, until the test ends.
func play(t *testing.T) *inspect.Inspector {
	chans := map[*driver.Conn]*channel.Channel{}
	rng := rand.New(rand.NewPCG(1, 0))
	types := []channel.Type{{Name: chat, ServerOpen: true}}
	server, err := driver.Listen("127.0.0.1:0", driver.Config{Channels: types, Joined: func(c *driver.Conn) {
		ch, err := c.Open(chat, nil)
		if err != nil {
			t.Error(err)
			return
		}
		chans[c] = ch
	}})
	require.NoError(t, err)
	var all []*driver.Driver
	for i, name := range clients {
		local, err := udp.Listen(":0", udp.Config{})
		require.NoError(t, err)
		bad := netsim.Settings{Loss: float64(8 * i), LagMin: 5 * time.Millisecond, LagMax: 25 * time.Millisecond}
		socket, err := proxy.Impair(local, bad, bad, uint64(2*i))
		require.NoError(t, err)
		d, err := driver.Dial(server.LocalAddr().String(), driver.Config{Channels: types, Socket: socket, Client: control.ClientConfig{URL: name}})
		require.NoError(t, err)
		all = append(all, d)
	}
	i := inspect.New(server, inspect.Config{Title: "test game", Name: func(c *driver.Conn) string { return c.Login().URL },
		Actors: actorsOf,
		Properties: func(*driver.Conn) []inspect.Property {
			return []inspect.Property{{Name: "Ship.Pos", Bits: 750}, {Name: "Ship.Armor", Bits: 250}, {Name: "Ship.Fire()", Bits: 40}}
		},
		Figures: func() []inspect.Figure {
			return []inspect.Figure{{Name: "calls sent", Value: 77}, {Name: "calls sent", Value: 78}}
		},
	})
	// One more comes and goes.
	visitor, err := driver.Dial(server.LocalAddr().String(), driver.Config{Channels: types, Client: control.ClientConfig{URL: "Zoe"}})
	require.NoError(t, err)
	all = append(all, visitor)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan bool)
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second / 60)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			now := <-tick.C
			server.TickDispatch(now)
			for c := range server.Conns {
				for k := range rng.IntN(6) {
					if ch := chans[c]; ch != nil && ch.Room() > 100 {
						_, _ = ch.SendBunch(&bunch.Out{Data: fmt.Appendf(nil, "%*d", 1+rng.IntN(60), n), Reliable: k == 0, NoMerge: true}) // a channel may be closing
					}
				}
			}
			server.TickFlush(now)
			for _, d := range all {
				d.TickDispatch(now)
				d.TickFlush(now)
			}
			if n == 60 && visitor.Server() != nil {
				visitor.Server().CloseWithReason("enough")
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, d := range all {
			require.NoError(t, d.Close())
		}
		require.NoError(t, server.Close())
	})
	return i
}
