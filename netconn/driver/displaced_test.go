package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// TestDisplaced: a server's game is told by ErrReplaced of a connection from whose address somebody has connected anew, unless its client had said that it leaves. One that leaves without a
// word, or is silent for too long, isn't replaced.
func TestDisplaced(t *testing.T) {
	key := netcode.Key{1}
	for _, link := range []Link{Netcode{Key: key}, PlainSalted{}, PlainUnreal51(), PlainUnreal53()} {
		for what, want := range map[string]error{"crashed": ErrReplaced, "leaves": nil, "silent": nil, "says so, then crashed": nil} {
			_, tokens := link.(Netcode)
			if tokens && what == "says so, then crashed" {
				continue // nobody has the address for 2 s
			}
			clock := time.Unix(1_700_000_000, 0)
			to, addr := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:7777")), netip.MustParseAddrPort("192.0.2.1:1000")
			chat := channel.Type{Name: bunch.Name{Text: "chat"}, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
			cfg := Config{Clock: func() time.Time { return clock }, Timeout: 5 * time.Second, Channels: []channel.Type{chat}, Socket: to, Link: link}
			var ended []netconn.CloseResult
			cfg.Closed = func(_ *Conn, r netconn.CloseResult) { ended = append(ended, r) }
			server, err := Listen("", cfg)
			require.NoError(t, err)
			cfg.Closed = nil
			dial := func(id uint64) (*Driver, *udptest.Wire) {
				s := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:1234"))
				cfg.Socket = s
				if tokens {
					unix := uint64(clock.Unix())
					token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: unix, Expire: unix + 60, Timeout: 5, Servers: []netip.AddrPort{to.LocalAddr()}, PrivateKey: key})
					require.NoError(t, err)
					cfg.Link = Netcode{Token: token}
				}
				d, err := Dial(to.LocalAddr().String(), cfg)
				require.NoError(t, err)
				return d, s
			}
			run := func(c *Driver, s *udptest.Wire, d time.Duration) {
				for until := clock.Add(d); clock.Before(until); {
					clock = clock.Add(16 * time.Millisecond)
					if c != nil {
						c.TickDispatch(clock)
						c.TickFlush(clock)
						for _, m := range s.Out {
							to.In = append(to.In, udp.Message{Buf: m.Buf, Addr: addr})
						}
						s.Out = nil
					}
					server.TickDispatch(clock)
					server.TickFlush(clock)
					if c != nil {
						for _, m := range to.Out {
							s.In = append(s.In, udp.Message{Buf: m.Buf, Addr: to.LocalAddr()})
						}
					}
					to.Out = nil
				}
			}
			one, s := dial(1)
			run(one, s, time.Second)
			require.True(t, one.Server().Joined(), "%T", link)
			conn := one.Server()
			switch what {
			case "leaves":
				conn.CloseWithReason("")
				run(one, s, time.Second)
			case "silent":
				run(nil, nil, 6*time.Second)
			case "says so, then crashed":
				ch, err := conn.Open(chat.Name, channel.Nop{})
				require.NoError(t, err)
				for range 200 {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
					require.NoError(t, err)
				}
				conn.CloseWithReason("enough")
				run(one, s, 100*time.Millisecond)
				fallthrough
			default:
				run(nil, nil, 2500*time.Millisecond)
				require.Empty(t, ended, "%T, %s", link, what)
				two, s := dial(2)
				run(two, s, time.Second)
			}
			require.Len(t, ended, 1, "%T, %s", link, what)
			if want == nil {
				require.NotErrorIs(t, ended[0].Err, ErrReplaced, "%T, %s", link, what)
			} else {
				require.ErrorIs(t, ended[0].Err, want, "%T, %s", link, what)
			}
		}
	}
}
