package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// line is a message that says when it was sent.
type line struct{ at uint64 }

func (l *line) Serialize(s *message.Stream) { s.Uint64(&l.at) }

// TestMessagesBesideReliable: ten messages a second come within a second while another channel always has more reliable bunches than the rate carries, with each controller and whoever is
// first in a tick.
func TestMessagesBesideReliable(t *testing.T) {
	for name, x := range map[string]struct {
		bits           float64
		speed, payload int
		bulkFirst      bool
	}{
		"1 Mbit/s":                     {bits: 1e6, payload: 500},
		"1 Mbit/s, payloads of 20 kB":  {bits: 1e6, payload: 20_000},
		"1 Mbit/s, behind the payload": {bits: 1e6, payload: 500, bulkFirst: true},
		"10 Mbit/s":                    {bits: 1e7, payload: 900},
		"NetSpeed 20,000":              {speed: 20_000, payload: 500},
	} {
		t.Run(name, func(t *testing.T) {
			queue := func() (*message.Attached, *message.Kind) {
				r := &message.Registry{}
				k := r.Add("line", func() message.Message { return &line{} })
				return message.Attach(message.New(message.Config{Kinds: r})), k
			}
			var in *message.Attached
			cfg := Config{NetSpeed: x.speed, Channels: []channel.Type{
				{Name: chatName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { in, _ = queue(); return in }},
				{Name: bunch.Name{Index: 700}, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }},
			}}
			w := newTown(t, 1, netsim.Settings{Lag: 50 * time.Millisecond, Bandwidth: x.bits}, cfg)
			c := w.dial(cfg)
			w.until("joined", func() bool { return len(c.conns) > 0 && c.conns[0].Joined() && w.server.conns[0].Joined() })
			out, kind := queue()
			_, err := w.server.conns[0].Open(chatName, out)
			require.NoError(t, err)
			bulk, err := w.server.conns[0].Open(bunch.Name{Index: 700}, nil)
			require.NoError(t, err)
			fill := func() {
				for bulk.NumOutRec() < 1000 {
					if _, err := bulk.SendBunch(&bunch.Out{Data: make([]byte, x.payload), Reliable: true, NoMerge: true}); err != nil {
						return
					}
				}
			}
			sent, came, most := 0, 0, time.Duration(0)
			for i := range 30 * 60 {
				if in != nil {
					for m, k := in.Receive(); m != nil; m, k = in.Receive() {
						came++
						most = max(most, time.Duration(w.now.UnixNano()-int64(m.(*line).at)))
						k.Free(m)
					}
					in.Tick(c.Driver.Time(w.now))
				}
				if x.bulkFirst {
					fill()
				}
				if i%6 == 0 {
					require.NoError(t, out.Send(kind, &line{uint64(w.now.UnixNano())}))
					sent++
				}
				out.Tick(w.server.Time(w.now))
				if !x.bulkFirst {
					fill()
				}
				w.step()
			}
			t.Logf("%d of %d came, after %v at most", came, sent, most)
			require.Greater(t, came, sent-10)
			require.Less(t, most, time.Second)
			require.Greater(t, bulk.NumOutRec(), 50, "there is more than the rate carries")
		})
	}
}
