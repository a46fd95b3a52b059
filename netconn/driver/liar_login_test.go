package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLoginBesideRefused: a client that sends on a channel before its login is done, which a server refuses until then, logs in.
func TestLoginBesideRefused(t *testing.T) {
	types := []channel.Type{{Name: bunch.Name{Index: 300}, ClientOpen: true, ServerOpen: true}}
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{LagMin: 50 * time.Millisecond, LagMax: 50 * time.Millisecond}, Config{Link: link, Channels: types})
		c := w.dial(Config{Link: link, Channels: types, NetSpeed: 20_000, Accepted: func(c *Conn) {
			ch, err := c.Open(types[0].Name, channel.Nop{})
			require.NoError(t, err)
			for range 50 {
				_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
				require.NoError(t, err)
			}
		}})
		w.until("joined", func() bool { return c.joined || c.result != nil })
		if c.result != nil {
			t.Errorf("%s: %v after %v", name, c.result, w.now.Sub(w.began))
		} else {
			t.Logf("%s: %v", name, w.now.Sub(w.began))
		}
	}
}

// TestLoginBeforeSends is the same with the default pace, sent after the login has begun.
func TestLoginBeforeSends(t *testing.T) {
	types := []channel.Type{{Name: bunch.Name{Index: 300}, ClientOpen: true, ServerOpen: true}}
	for name, link := range links() {
		w := newTown(t, 1, netsim.Settings{LagMin: 50 * time.Millisecond, LagMax: 50 * time.Millisecond}, Config{Link: link, Channels: types})
		c := w.dial(Config{Link: link, Channels: types})
		w.until("connected", func() bool { return c.Server() != nil })
		ch, err := c.Server().Open(types[0].Name, channel.Nop{})
		require.NoError(t, err)
		for range 250 {
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			require.NoError(t, err)
		}
		w.until("joined", func() bool { return c.joined || c.result != nil })
		if c.result != nil {
			t.Errorf("%s: %v after %v", name, c.result, w.now.Sub(w.began))
		} else {
			t.Logf("%s: %v", name, w.now.Sub(w.began))
		}
	}
}
