package driver

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestClosedConnsAreReleased: a server holds nothing of connections that have ended, what the game hung on them included.
func TestClosedConnsAreReleased(t *testing.T) {
	const clients = fetchFrom + 8
	for name, link := range map[string]Link{"netcode": Netcode{Key: netcode.Key{1}, Slots: 256}, "unreal": PlainUnreal53(), "salted": PlainSalted{Slots: 256}} {
		t.Run(name, func(t *testing.T) {
			var hung []weak.Pointer[[64]byte]
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, MaxConns: 256, Joined: func(c *Conn) {
				of := new([64]byte)
				c.User = of
				hung = append(hung, weak.Make(of))
			}, Closed: func(*Conn, netconn.CloseResult) {}})
			for i := range clients {
				l := link
				if n, ok := link.(Netcode); ok {
					n.Token = townToken(t, w, uint64(i), nil)
					l = n
				}
				w.dial(Config{Link: l})
			}
			w.until("all are in", func() bool { return len(hung) == clients })
			for range 60 {
				w.step()
			}
			for _, c := range w.clients {
				c.Server().CloseWithReason("leaving")
			}
			w.until("all have left", func() bool { return w.server.Len() == 0 })
			for range 20 { // in which their links end
				w.step()
			}
			runtime.GC()
			held := 0
			for _, p := range hung {
				if p.Value() != nil {
					held++
				}
			}
			require.Zero(t, held, "of %d", clients)
			runtime.KeepAlive(w)
		})
	}
}
