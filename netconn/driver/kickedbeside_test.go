package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// lastText is a message of some bytes.
type lastText struct{ b []byte }

func (m *lastText) Serialize(s *message.Stream) { s.Bytes(&m.b, 1000) }

// TestKickedBesideMessages: who is kicked while a queue has more messages for him than the path carries until LingerTimeout ends is told why.
func TestKickedBesideMessages(t *testing.T) {
	const ms = time.Millisecond
	var kinds message.Registry
	kind := kinds.Add("text", func() message.Message { return new(lastText) })
	queue := func() *message.Queue { return message.New(message.Config{Kinds: &kinds, Mode: message.Ordered}) }
	types := []channel.Type{{Name: chatName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return message.Attach(queue()) }}}
	for _, tick := range []time.Duration{16 * ms, 100 * ms, 250 * ms} {
		for seed := range uint64(6) {
			bandwidth := []float64{400e3, 100e3}[seed%2]
			cfg := Config{Link: PlainUnreal51(), Channels: types, Timeout: 15 * time.Second}
			w := newTown(t, seed, netsim.Settings{LagMin: 30 * ms, LagMax: 35 * ms, Bandwidth: bandwidth, QueueDelay: 100 * ms}, cfg)
			c := w.dial(cfg)
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			w.tick = tick
			sc, q := w.server.conns[0], queue()
			a := message.Attach(q)
			_, err := sc.Open(chatName, a)
			require.NoError(t, err)
			for begin := w.now; w.now.Sub(begin) < 3*time.Second; w.step() {
				for q.Send(kind, &lastText{make([]byte, 700)}) == nil {
				}
				a.Tick(sc.Now())
			}
			sc.CloseWithReason("out with you")
			w.until("the client's end", func() bool { return c.result != nil })
			require.Equal(t, "out with you", c.result.Reason, "ticks of %v, seed %d", tick, seed)
		}
	}
}
