package driver

import (
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
		for _, kick := range []bool{false, true} {
			var conn *Conn
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, MaxConns: 1, Joined: func(c *Conn) { conn = c }})
			w.tick = 100 * time.Millisecond
			dial := func() *townClient {
				l := link
				if n, is := l.(Netcode); is {
					n.Key, n.Token = netcode.Key{}, townToken(t, w, 7, nil)
					l = n
				}
				return w.dial(Config{Link: l})
			}
			for i := range 10 {
				if i%2 == 1 {
					w.nextAddr = w.sockets[len(w.sockets)-1].addr
				}
				c := dial()
				began := w.now
				w.until("joined or refused", func() bool { return c.joined && conn != nil || c.Err() != nil })
				require.LessOrEqual(t, w.now.Sub(began), 5*w.tick, "%s, kicked %v, dial %d: it waited for the goodbye", name, kick, i)
				require.NoError(t, c.Err(), "%s, kicked %v", name, kick)
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
