package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestEndWithinATakeOver: a game that ends its server, or shuts it down, when it is told that a connection was replaced, hears of no other connection; and one that
// ends another client's connection then, ends that.
func TestEndWithinATakeOver(t *testing.T) {
	for name, end := range map[string]func(d *Driver, other *Conn){
		"Close":    func(d *Driver, _ *Conn) { _ = d.Close() },
		"Shutdown": func(d *Driver, _ *Conn) { d.Shutdown("enough") },
		"Abort":    func(_ *Driver, other *Conn) { other.Abort(other.Now(), "you too") },
	} {
		var w *town
		ended := false
		told, closed := 0, 0
		byID := map[uint64]*Conn{}
		after := func(*Conn) {
			if ended {
				told++
			}
		}
		w = newTown(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, Config{Link: Netcode{Key: netcode.Key{1}, TakeOver: true, Slots: 2},
			Accepted: after,
			Joined:   func(c *Conn) { byID[c.ClientID()] = c; after(c) },
			Closed: func(c *Conn, _ netconn.CloseResult) {
				if c.Joined() {
					closed++
				}
				if c.ClientID() == 99 && !ended {
					ended = true
					end(w.server, byID[7])
				}
			}})
		dial := func(id uint64) *townClient { return w.dial(Config{Link: Netcode{Token: townToken(t, w, id, nil)}}) }
		first, other := dial(99), dial(7)
		w.until("joined", func() bool { return first.joined && other.joined && len(byID) == 2 })
		second := dial(99)
		w.until("replaced", func() bool { return ended })
		for range 200 {
			w.step()
		}
		if name == "Abort" {
			require.Equal(t, 2, closed)
			require.True(t, second.joined)
			require.NotNil(t, other.result)
			require.Equal(t, 1, w.server.Len())
			continue
		}
		require.Zero(t, told, name)
		require.Equal(t, 2, closed, name)
		require.Zero(t, w.server.Len(), name)
		require.NotNil(t, second.result, "it had joined as far as it knew")
	}
}

// TestReplacedIsTold: a client whose place another one of its id takes hears why, where packets get lost and overtake each other; and the one that has taken it keeps it when a
// third one is refused right after that.
func TestReplacedIsTold(t *testing.T) {
	for third, seeds := range []uint64{10, 60} {
		for seed := range seeds {
			var second *Conn
			w := newTown(t, seed*1000, netsim.Settings{Loss: 5, LagMin: 30 * time.Millisecond, LagMax: 60 * time.Millisecond, Dup: 20}, Config{Link: Netcode{Key: netcode.Key{1}, TakeOver: true, Slots: 1},
				Server: control.ServerConfig{Authorize: func(l *control.Login) error {
					if l.URL == "third" {
						return errors.New("not you")
					}
					return nil
				}},
				Joined: func(c *Conn) {
					if c.Login().URL == "second" {
						second = c
					}
				}})
			dial := func(name string) *townClient {
				return w.dial(Config{Link: Netcode{Token: townToken(t, w, 7, nil)}, Client: control.ClientConfig{URL: name}})
			}
			a := dial("first")
			w.until("joined", func() bool { return a.joined })
			_ = dial("second")
			if third == 0 {
				w.until("replaced", func() bool { return a.result != nil })
				require.ErrorIs(t, a.result.Err, ErrReplaced, "seed %d", seed)
				continue
			}
			for range seed % 16 {
				w.step()
			}
			c := dial("third")
			w.until("refused", func() bool { return c.result != nil })
			require.False(t, second != nil && second.Closed(), "seed %d", seed)
		}
	}
}
