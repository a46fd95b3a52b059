package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestShutdown: a server that shuts down delivers what it has sent, tells all why, and refuses with the same words those that come
// again, also in the midst of a login: so it comes to an end.
func TestShutdown(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			const words, last = "back in an hour", 40
			got := map[*Conn]int{}
			types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
				return counting{count: func() { got[ConnOf(ch)]++ }}
			}}}
			var chats []*channel.Channel
			cfg := Config{Link: link, Channels: types, LingerTimeout: 10 * time.Second, Joined: func(c *Conn) {
				ch, err := c.Open(chatName, nil)
				require.NoError(t, err)
				chats = append(chats, ch)
			}}
			client := Config{Link: link, Channels: types}
			w := newTown(t, 1, netsim.Settings{Loss: 10, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, cfg)
			for range 3 {
				c := w.dial(client)
				w.until("joined", func() bool { return c.joined && w.server.Len() == len(chats) })
			}
			late := w.dial(client)
			w.until("the fourth is about to join", func() bool { return w.server.Len() == 4 })
			for _, ch := range chats {
				for range last {
					_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
			}
			w.server.Shutdown(words)
			again := w.dial(client)
			w.until("the server is empty", func() bool { return w.server.Len() == 0 })
			w.until("all know", func() bool {
				for _, c := range w.clients {
					if c.result == nil {
						return false
					}
				}
				return true
			})
			for i, c := range w.clients {
				require.Equal(t, netconn.ClosedByPeer, c.result.Code, i)
				require.Equal(t, "shutting down: "+words, c.result.Reason, i)
				require.ErrorIs(t, c.result.Err, ErrShuttingDown, i)
			}
			require.Len(t, got, 3)
			for _, n := range got {
				require.Equal(t, last, n)
			}
			require.ErrorIs(t, again.result.Err, ErrDenied)
			require.False(t, again.joined)
			require.ErrorIs(t, late.result.Err, ErrDenied)
		})
	}
}

// TestShutdownWithoutLogin: a server with a control channel of its own lets nobody in either.
func TestShutdownWithoutLogin(t *testing.T) {
	for name, link := range links() {
		joined := 0
		types := []channel.Type{{Name: bunch.Control, Static: true, ClientOpen: true, ServerOpen: true}}
		w := newTown(t, 1, netsim.Settings{}, Config{Link: link, Channels: types, Joined: func(*Conn) { joined++ }})
		w.server.Shutdown("no more")
		c := w.dial(Config{Link: link, Channels: types})
		w.until("refused", func() bool { return c.result != nil && w.server.Len() == 0 })
		require.Zero(t, joined, name)
	}
}

// counting counts bunches.
type counting struct {
	channel.Nop
	count func()
}

func (c counting) ReceivedBunch(*channel.Channel, *bunch.In) { c.count() }
