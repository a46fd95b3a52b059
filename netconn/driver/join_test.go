package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestOpenedBeforeItsJoinIsThere: a client may open channels as soon as it has joined. Where its Join is lost, or overtaken, they wait
// for it, with Unreal's presets as well.
func TestOpenedBeforeItsJoinIsThere(t *testing.T) {
	for name, preset := range map[string]func(Config) Config{"bunchnet": func(c Config) Config { return c }, "4.27": Unreal427, "5.1": Unreal51, "5.3": func(c Config) Config { return Unreal53(true, c) }} {
		t.Run(name, func(t *testing.T) {
			const seed, clients = 1, 100
			got := make([]*sink, 0, clients)
			types := chat(nil)
			types[0].Accept = func(*channel.Channel) channel.Handler {
				got = append(got, &sink{})
				return got[len(got)-1]
			}
			set := netsim.Settings{Lag: 30 * time.Millisecond, LagVariance: 20 * time.Millisecond, Loss: 20}
			w := newTown(t, seed, set, preset(Config{Channels: types}))
			opened := make([]bool, clients)
			for range clients {
				w.dial(preset(Config{Channels: chat(&sink{})}))
			}
			for range 1000 {
				w.step()
				for i, c := range w.clients {
					require.Nil(t, c.result, "client %d: %v", i, c.result)
					if !c.joined || opened[i] {
						continue
					}
					opened[i] = true
					ch, err := c.conns[0].Open(chatName, &sink{})
					require.NoError(t, err)
					_, err = ch.SendBunch(&bunch.Out{Data: []byte("at once"), Reliable: true})
					require.NoError(t, err)
				}
			}
			require.Len(t, got, clients)
			for _, s := range got {
				require.Equal(t, []string{"at once"}, s.got)
			}
		})
	}
}

// TestJoinsWhenReady: a client with Welcomed loads the level that it was told, and joins when it says so; the server's game hears of it then.
// Who never says so is told that its login took too long.
func TestJoinsWhenReady(t *testing.T) {
	for name, link := range links() {
		present, order := "forest", []string(nil)
		w := newTown(t, 1, netsim.Settings{Loss: 10, Lag: 30 * time.Millisecond}, Config{Link: link, LoginTimeout: 20 * time.Second,
			Joined: func(*Conn) { order = append(order, "server joined") },
			Server: control.ServerConfig{Level: func() (string, string) { return present, "race" }, Admitted: func() { order = append(order, "login joined") }}})
		var told []string
		welcomed := func(m *control.Welcome) { told = append(told, m.Map+" "+m.GameMode) }
		early := w.dial(Config{Link: link})
		require.ErrorIs(t, early.joinNow(), control.ErrNotWelcome, name)
		w.until("joined", func() bool { return early.joined && len(order) == 2 })
		require.Equal(t, []string{"server joined", "login joined"}, order)

		present = "desert"
		c := w.dial(Config{Link: link, Client: control.ClientConfig{Welcomed: welcomed}})
		never := w.dial(Config{Link: link, Client: control.ClientConfig{Welcomed: welcomed}})
		w.until("welcomed", func() bool { return len(told) == 2 })
		for range 300 {
			w.step()
		}
		require.Equal(t, []string{"desert race", "desert race"}, told, name)
		require.Len(t, order, 2, name)
		require.False(t, c.joined, name)
		require.NoError(t, c.joinNow())
		require.NoError(t, c.joinNow(), "again")
		require.True(t, c.joined)
		w.until("joined", func() bool { return len(order) == 4 })
		w.until("told", func() bool { return never.result != nil })
		require.Contains(t, never.result.String(), "login", name)
		require.Len(t, order, 4)
		require.Nil(t, c.result)
	}
}

// joinNow is its connection's Join, or what it would be before there is one.
func (c *townClient) joinNow() error {
	if len(c.conns) == 0 {
		return (&Conn{}).Join()
	}
	return c.conns[0].Join()
}

// TestDialOverAVerySlowPath: a client joins over 500 B/s to 1 kB/s with a queue of 4 s, which is full of what its handshake repeats, when its token's Timeout is 8 s.
func TestDialOverAVerySlowPath(t *testing.T) {
	for name, link := range links() {
		if name == "salted" {
			continue // its steps have 5 s each
		}
		for _, bits := range []float64{4000, 6000, 8000} {
			for seed := range uint64(5) {
				w := newTown(t, seed, netsim.Settings{Lag: 25 * time.Millisecond, Bandwidth: bits, QueueDelay: 4 * time.Second}, Config{Link: link})
				if n, ok := link.(Netcode); ok {
					n.Token = townToken(t, w, seed, func(c *netcode.TokenConfig) { c.Timeout = 8 })
					link = n
				}
				c := w.dial(Config{Link: link})
				w.until("joined", func() bool {
					require.Nil(t, c.result, "%s, %v bit/s, seed %d: %v", name, bits, seed, c.result)
					return c.joined
				})
			}
		}
	}
}

// TestRefusedInJoined: a server whose Joined closes the connection isn't asked to accept channels of who it has refused, though the client has joined at its own end and sends at once;
// the client learns why, and what the server sent before arrives.
func TestRefusedInJoined(t *testing.T) {
	for name, preset := range map[string]func(Config) Config{"bunchnet": func(c Config) Config { return c }, "5.3": func(c Config) Config { return Unreal53(true, c) }} {
		for _, loss := range []float64{0, 20} {
			for seed := range uint64(20) {
				server := Config{Channels: chat(nil)}
				server.Channels[0].ServerOpen = true
				server.Channels[0].Accept = func(*channel.Channel) channel.Handler {
					t.Errorf("%s, loss %v, seed %d: Accept is called", name, loss, seed)
					return nil
				}
				server.Joined = func(c *Conn) {
					if name == "bunchnet" { // with Unreal's protocols both ends would open the channel of one index
						ch, err := c.Open(chatName, &sink{})
						require.NoError(t, err)
						_, err = ch.SendBunch(&bunch.Out{Data: []byte("ask for pardon"), Reliable: true})
						require.NoError(t, err)
					}
					c.CloseWithError(fmt.Errorf("%w: until Monday", ErrBanned))
				}
				w := newTown(t, seed, netsim.Settings{Lag: 25 * time.Millisecond, LagVariance: 5 * time.Millisecond, Loss: loss}, preset(server))
				heard := &sink{}
				client := Config{Channels: chat(heard)}
				client.Channels[0].ServerOpen = true
				client.Joined = func(c *Conn) {
					ch, err := c.Open(chatName, &sink{})
					require.NoError(t, err)
					_, err = ch.SendBunch(&bunch.Out{Data: []byte("I bid"), Reliable: true})
					require.NoError(t, err)
				}
				c := w.dial(preset(client))
				w.until("ended", func() bool { return c.result != nil })
				require.ErrorIs(t, c.result.Err, ErrBanned, "%v", c.result)
				require.Equal(t, name == "bunchnet", len(heard.got) == 1, "what was sent before")
			}
		}
	}
}
