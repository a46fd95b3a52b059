package driver

import (
	"fmt"
	"net/netip"
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

// TestShutdownCountsLogins: Len counts clients whose login hasn't begun when the server shuts down until they have been told, so a
// server that is closed at 0 has told them.
func TestShutdownCountsLogins(t *testing.T) {
	for name, link := range links() {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s begun %v", name, begun), func(t *testing.T) {
				w := newTown(t, 1, netsim.Settings{LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, Config{Link: link, LingerTimeout: 10 * time.Second})
				var late []*townClient
				for range 5 {
					late = append(late, w.dial(Config{Link: link}))
				}
				w.until("logins are about to begin", func() bool { return len(w.server.conns) == 5 })
				if begun {
					w.until("logins have begun", func() bool { return w.server.conns[4].Channel(0) != nil })
				}
				w.server.Shutdown("good night")
				require.Equal(t, 5, w.server.Len())
				w.dial(Config{Link: link})
				w.until("another has come", func() bool { return len(w.server.conns) == 6 })
				w.server.Shutdown("good night")
				require.LessOrEqual(t, w.server.Len(), 5, "who comes later doesn't count")
				w.until("the server is empty", func() bool { return w.server.Len() == 0 })
				require.NoError(t, w.server.Close())
				for _, c := range late {
					w.until("told", func() bool { return c.result != nil })
					require.Equal(t, "shutting down: good night", c.result.Reason)
					require.ErrorIs(t, c.result.Err, ErrDenied)
				}
			})
		}
	}
}

// TestShutdownEndsWithoutAnswers: clients that are gone hold a shutdown up no longer than they may.
func TestShutdownEndsWithoutAnswers(t *testing.T) {
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, Config{Link: link, LingerTimeout: 3 * time.Second})
		c := w.dial(Config{Link: link})
		w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
		w.dial(Config{Link: link})
		w.until("a login is about to begin", func() bool { return len(w.server.conns) == 2 })
		w.dark(0, true, true)
		w.dark(1, true, true)
		w.server.Shutdown("good night")
		at := w.now
		w.until("the server is empty", func() bool { return w.server.Len() == 0 })
		require.LessOrEqual(t, w.now.Sub(at), turnedAwayTimeout+3*time.Second+goodbyeAfter+100*time.Millisecond, name)
	}
}

// TestShutdownEndsAmidDials: clients that dial while the server shuts down, ten a second from an address each, are refused and don't hold up its end.
func TestShutdownEndsAmidDials(t *testing.T) {
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 30 * time.Millisecond}, Config{Link: link})
		c := w.dial(Config{Link: link})
		w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
		w.dial(Config{Link: link})
		for range 6 {
			w.step()
		}
		w.server.Shutdown("good night")
		at := w.now
		for i := 0; w.server.Len() > 0; i++ {
			require.Less(t, w.now.Sub(at), 2*time.Second, "%s: %d hold it up", name, w.server.Len())
			if i%6 == 0 {
				w.nextAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 2, 0, byte(i)}), 1000)
				w.dial(Config{Link: link})
			}
			w.step()
		}
	}
}

// TestShutdownToldBeforeClose: a server that shuts down, ticks until Len is 0 and closes has told its clients why, also one that was in the dark until LingerTimeout was
// almost over: on a path of much jitter the goodbyes of Close don't overtake the last words.
func TestShutdownToldBeforeClose(t *testing.T) {
	for name, link := range links() {
		for seed := range uint64(20) {
			var conn *Conn
			w := newTown(t, seed, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 200 * time.Millisecond}, Config{Link: link, Joined: func(c *Conn) { conn = c }})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && conn != nil })
			w.dark(0, true, true)
			w.server.Shutdown("good night")
			for end := w.now.Add(1900 * time.Millisecond); w.now.Before(end); {
				w.step()
			}
			w.dark(0, true, false)
			w.until("the server is empty", func() bool { return w.server.Len() == 0 })
			require.NoError(t, w.server.Close())
			w.until("told", func() bool { return c.result != nil })
			require.Equal(t, "shutting down: good night", c.result.Reason, "%s, seed %d: %v", name, seed, c.result)
		}
	}
}

// TestShutdownOfBusyChannels: a thousand channels that are all busy are delivered before the words, at 5 % loss.
func TestShutdownOfBusyChannels(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			const channels = 1000
			got := map[uint32]int{}
			types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
				return counting{count: func() { got[ch.Index()]++ }}
			}}}
			w := newTown(t, 1, netsim.Settings{Loss: 5, LagMin: 20 * time.Millisecond, LagMax: 30 * time.Millisecond}, Config{Link: link, Channels: types, LingerTimeout: time.Minute})
			c := w.dial(Config{Link: link, Channels: types})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			conn := w.server.conns[0]
			for range channels {
				ch, err := conn.Open(chatName, nil)
				require.NoError(t, err)
				for range 3 {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 50), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
			}
			w.server.Shutdown("good night")
			w.until("the server is empty", func() bool { return w.server.Len() == 0 })
			require.NoError(t, w.server.Close())
			require.Zero(t, conn.Result().Unacked, conn.Result())
			w.until("told", func() bool { return c.result != nil })
			require.Equal(t, "shutting down: good night", c.result.Reason)
			require.Len(t, got, channels)
			for _, n := range got {
				require.Equal(t, 3, n)
			}
		})
	}
}

// TestShutdownAmidAddressChanges: with the cookie handshake, clients whose addresses change before, while and after the server shuts down get
// what was sent to them, and its words.
func TestShutdownAmidAddressChanges(t *testing.T) {
	for _, lag := range []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond} {
		for wait := range 12 { // the address changes in the seventh tick
			got := 0
			types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return counting{count: func() { got++ }} }}}
			w := newTown(t, uint64(wait), netsim.Settings{Lag: lag}, Config{Link: PlainUnreal53(), Channels: types, LingerTimeout: 20 * time.Second})
			c := w.dial(Config{Link: PlainUnreal53(), Channels: types})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			ch, err := w.server.conns[0].Open(chatName, nil)
			require.NoError(t, err)
			for range 50 {
				_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			for i := range 12 {
				if i == 6 {
					w.move(0, netip.MustParseAddrPort("10.9.0.1:99"))
				}
				if i == wait {
					w.server.Shutdown("good night")
				}
				w.step()
			}
			w.until("the server is empty", func() bool { return w.server.Len() == 0 })
			require.NoError(t, w.server.Close())
			w.until("told", func() bool { return c.result != nil })
			require.Equal(t, "shutting down: good night", c.result.Reason, "%v %d: %v", lag, wait, c.result)
			require.Equal(t, 50, got, "%v %d", lag, wait)
		}
	}
}

// TestShutdownAtOneTickASecond: a server and clients that tick once a second end in order too.
func TestShutdownAtOneTickASecond(t *testing.T) {
	for name, link := range links() {
		got := 0
		types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return counting{count: func() { got++ }} }}}
		cfg := Config{Link: link, Channels: types, LingerTimeout: 30 * time.Second, LoginTimeout: time.Minute}
		w := newTown(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, cfg)
		w.tick = time.Second
		client := Config{Link: link, Channels: types, LoginTimeout: time.Minute}
		c := w.dial(client)
		w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
		late := w.dial(client)
		w.until("a login is about to begin", func() bool { return len(w.server.conns) == 2 })
		ch, err := w.server.conns[0].Open(chatName, nil)
		require.NoError(t, err)
		for range 50 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 500), Reliable: true, NoMerge: true})
			require.NoError(t, err)
		}
		w.server.Shutdown("good night")
		at := w.now
		w.until("the server is empty", func() bool { return w.server.Len() == 0 })
		require.LessOrEqual(t, w.now.Sub(at), 10*time.Second, name)
		require.NoError(t, w.server.Close())
		for _, c := range []*townClient{c, late} {
			w.until("told", func() bool { return c.result != nil })
			require.Equal(t, "shutting down: good night", c.result.Reason, "%s: %v", name, c.result)
		}
		require.Equal(t, 50, got, name)
	}
}
