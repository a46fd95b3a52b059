package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestSwappedAddresses: two clients whose addresses are swapped, as by a router that restarts, are both heard again.
func TestSwappedAddresses(t *testing.T) {
	// With a MaxPerAddr of 1 they swap their places, too.
	for name, preset := range map[string]func(Config) Config{"4.27": Unreal427, "5.1": Unreal51, "5.3": func(c Config) Config { return Unreal53(false, c) }} {
		for seed := range uint64(8) {
			heard := map[netip.AddrPort]int{}
			types := []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler {
				c := ConnOf(ch)
				return counting{count: func() { heard[c.RemoteAddr()]++ }}
			}}}
			w := newTown(t, seed, netsim.Settings{Lag: 40 * time.Millisecond}, preset(Config{Channels: types, MaxPerAddr: int(seed % 2), Closed: func(c *Conn, r netconn.CloseResult) {
				t.Errorf("%s, seed %d: %v ended: %v", name, seed, c.RemoteAddr(), r)
			}}))
			var chats []*channel.Channel
			play := func(ticks int) {
				for i := range ticks {
					w.step()
					for _, ch := range chats {
						if i%10 == 0 {
							_, _ = ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
						}
					}
				}
			}
			for i := range 2 {
				c := w.dial(preset(Config{Channels: types}))
				w.until("joined", func() bool { return c.joined && w.server.Len() == i+1 })
				ch, err := c.Server().Open(chatName, nil)
				require.NoError(t, err)
				chats = append(chats, ch)
				play(60 + 30*int(seed)) // one sends more than the other
			}
			play(700) // the server's requests are believed from then on
			a, b := w.sockets[0], w.sockets[1]
			a.addr, b.addr = b.addr, a.addr
			w.byAddr[a.addr], w.byAddr[b.addr] = a, b
			play(500)
			clear(heard)
			play(300)
			require.Len(t, heard, 2, "%s, seed %d", name, seed)
			w.server.cfg.Closed = nil
		}
	}
}
