package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestOpenedInAcceptedWaits: what both games send on channels that they open in Accepted, while the client loads for seconds, waits until it has joined. Nothing of it is refused
// meanwhile, and it is there a few round trips after that.
func TestOpenedInAcceptedWaits(t *testing.T) {
	const chans = 100
	for name, preset := range map[string]func(Config) Config{"netcode": func(c Config) Config { return c }, "4.27": Unreal427, "5.3": func(c Config) Config { return Unreal53(true, c) }} {
		for _, loss := range []float64{0, 5} {
			t.Run(fmt.Sprintf("%s, %v %%", name, loss), func(t *testing.T) {
				var in [2]counter
				open := func(c *Conn) {
					if name != "netcode" && c.IsServer() {
						return // both ends would take the same index
					}
					for range chans {
						ch, err := c.Open(chatName, channel.Nop{})
						require.NoError(t, err)
						_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 700), Reliable: true})
						require.NoError(t, err)
					}
				}
				config := func(i int) Config {
					return Config{Accepted: open, Channels: []channel.Type{{Name: chatName, ClientOpen: true, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return &in[i] }}}}
				}
				w := newTown(t, 1, netsim.Settings{Lag: 25 * time.Millisecond, Loss: loss}, preset(config(0)))
				welcomed := false
				cc := config(1)
				cc.Client.Welcomed = func(*control.Welcome) { welcomed = true }
				c := w.dial(preset(cc))
				w.until("welcomed", func() bool { return welcomed })
				for range 600 {
					w.step()
				}
				server, client := w.server.conns[0], c.conns[0]
				require.Zero(t, server.Table().Counters.Refused+client.Table().Counters.Refused)
				require.NoError(t, client.Join())
				began := w.now
				all := [2]int{700 * chans, 700 * chans}
				if name != "netcode" {
					all[1] = 0
				}
				w.until("all there", func() bool { return in[0].bytes == all[0] && in[1].bytes == all[1] })
				t.Log(w.now.Sub(began))
				require.Less(t, w.now.Sub(began), 2*time.Second)
			})
		}
	}
}
