package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
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
