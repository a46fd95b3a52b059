package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBackAtOnce: as soon as a client has left in order, or the server has heard that it knows of its kick, its place and its id are free for who dials then, also from its address, though the
// link's goodbye leaves in a later tick than the connection's last words.
func TestBackAtOnce(t *testing.T) {
	for name, link := range map[string]Link{"netcode": Netcode{Key: netcode.Key{1}}, "salted": PlainSalted{}} {
		for v := range 4 {
			kick, places := v%2 == 1, 1+v/2*3
			var conn *Conn
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, MaxConns: places, MaxPerAddr: 1, Joined: func(c *Conn) { conn = c }})
			w.tick = 100 * time.Millisecond
			dial := func(id uint64) *townClient {
				l := link
				if n, is := l.(Netcode); is {
					n.Key, n.Token = netcode.Key{}, townToken(t, w, id, nil)
					l = n
				}
				return w.dial(Config{Link: l})
			}
			for i := range 10 {
				if i%2 == 1 { // the same address, perhaps with another port, and another id
					last := w.sockets[len(w.sockets)-1].addr
					w.nextAddr = netip.AddrPortFrom(last.Addr(), last.Port()+uint16(i/2%2))
				}
				c := dial(7 + uint64(i+1)/2)
				began := w.now
				w.until("joined or refused", func() bool { return c.joined && conn != nil || c.Err() != nil })
				require.LessOrEqual(t, w.now.Sub(began), 5*w.tick, "%s, kicked %v, %d places, dial %d: it waited for the goodbye", name, kick, places, i)
				require.NoError(t, c.Err(), "%s, kicked %v, %d places, dial %d", name, kick, places, i)
				if kick {
					conn.CloseWithReason("out")
				} else {
					c.Server().CloseWithReason("bye")
				}
				w.until("the client's end", func() bool { return c.result != nil })
				if kick {
					require.Equal(t, netconn.ClosedByPeer, c.result.Code)
					w.step()
				}
				conn = nil
			}
		}
	}
}
