package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMemoryIsTold: the login tells the peer of a MaxMemory that isn't the default, so that it sends no more at once than there is room for; with Unreal's
// protocols, which have no message for that, all arrives as well.
func TestMemoryIsTold(t *testing.T) {
	const chans, each = 40, 6
	for name, preset := range map[string]func(Config) Config{"netcode": func(c Config) Config { return c }, "salted": func(c Config) Config { c.Link = PlainSalted{}; return c }, "5.1": Unreal51} {
		for _, from := range []string{"client", "server"} {
			t.Run(name+", from the "+from, func(t *testing.T) {
				in := &counter{}
				types := []channel.Type{{Name: chatName, ClientOpen: true, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return in }}}
				sc, cc := Config{Channels: types}, Config{Channels: types}
				if from == "client" {
					sc.MaxMemory = 1 << 20
				} else {
					cc.MaxMemory = 1 << 20
				}
				w := newTown(t, 1, netsim.Settings{Lag: 25 * time.Millisecond, Loss: 2, Bandwidth: 8e6}, preset(sc))
				c := w.dial(preset(cc))
				w.until("joined", func() bool { return c.joined && len(w.server.conns) == 1 })
				out, peer := c.conns[0], w.server.conns[0]
				if from == "server" {
					out, peer = peer, out
				}
				var chs []*channel.Channel
				for range chans {
					ch, err := out.Open(chatName, channel.Nop{})
					require.NoError(t, err)
					chs = append(chs, ch)
				}
				sent := make([]int, chans)
				w.until("all arrived", func() bool {
					for i, ch := range chs {
						for sent[i] < each {
							_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 9000), Reliable: true, NoMerge: true})
							if errors.Is(err, channel.ErrReliableFull) {
								break
							}
							require.NoError(t, err)
							sent[i]++
						}
					}
					return in.bytes == chans*each*9000
				})
				if name != "5.1" {
					require.Zero(t, peer.Table().Counters.MemoryFull)
				}
			})
		}
	}
}

// counter counts the bytes that arrive.
type counter struct {
	channel.Nop
	bytes int
}

func (c *counter) ReceivedBunch(_ *channel.Channel, in *bunch.In) { c.bytes += in.Bits / 8 }
