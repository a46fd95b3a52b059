package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRefusedBeforeTheLogin: while the peer lacks a message of the control channel, its open or the end of the login, it refuses all packets of channels that
// open. That is no loss of the path, and doesn't lower the rate. A peer that refuses them again and again has it lowered.
func TestRefusedBeforeTheLogin(t *testing.T) {
	for _, c := range []struct {
		what  string
		lost  int // the packet that the path loses
		never bool
	}{{"the open is lost", 1, false}, {"the end of the login is lost", 2, false}, {"never let in", 2, true}} {
		t.Run(c.what, func(t *testing.T) {
			now, sent := time.Duration(0), 0
			var conns [2]*Conn
			var links [2]*netsim.Link
			adaptive, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
			require.NoError(t, err)
			controls := &counter{}
			for i := range conns {
				links[i], err = netsim.NewLink(netsim.Settings{Lag: 50 * time.Millisecond}, uint64(i))
				require.NoError(t, err)
				cfg := Config{Server: i == 1, Channels: testTypes(func(*channel.Channel) channel.Handler { return channel.Nop{} }), NoPacketInfo: true, LowLevelSend: func(p []byte) {
					if i == 0 {
						sent++
					}
					if i == 1 || sent != c.lost {
						links[i].Push(now, p)
					}
				}}
				if i == 0 {
					cfg.Controller = adaptive
				} else {
					cfg.Channels[0].Accept = func(*channel.Channel) channel.Handler { return controls }
					cfg.AllowOpen = func(in *bunch.In) error {
						if in.Name != bunch.Control && (c.never || controls.bunches < 2) {
							return channel.ErrMayNotOpen
						}
						return nil
					}
				}
				conns[i], err = New(cfg, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
				require.NoError(t, err)
			}
			control, err := conns[0].Open(bunch.Control, channel.Nop{})
			require.NoError(t, err)
			for range 2 {
				_, err = control.SendBunch(&bunch.Out{Data: make([]byte, 10), Reliable: true, NoMerge: true})
				require.NoError(t, err)
				conns[0].FlushNet()
			}
			ch, err := conns[0].Open(testName, channel.Nop{})
			require.NoError(t, err)
			least := adaptive.Rate()
			for ; now < 3*time.Second; now += time.Second / 600 {
				for j, c := range conns {
					for p, ok := links[1-j].Pop(now); ok; p, ok = links[1-j].Pop(now) {
						require.NoError(t, c.ReceivedPacket(now, p))
					}
					c.PostTickDispatch(now)
				}
				if ch.Room() > 10 {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 64), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				for _, c := range conns {
					c.Tick(now)
				}
				least = min(least, adaptive.Rate())
			}
			t.Logf("the lowest rate %.0f, %d packets lost", least, conns[0].Counters.PacketsLost)
			require.Greater(t, conns[0].Counters.PacketsLost, uint64(20), "they were refused")
			require.Equal(t, !c.never, ch.OpenAcked())
			require.Equal(t, !c.never, least >= 29_999)
		})
	}
}

// counter counts the bunches of its channel.
type counter struct {
	channel.Nop
	bunches int
}

func (c *counter) ReceivedBunch(*channel.Channel, *bunch.In) { c.bunches++ }
