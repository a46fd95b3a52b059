package driver

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/salted"
)

// TestKickWithFullMemory: a connection of which unacked data takes all the memory that there is for it is told why it is closed, with as
// many words as the protocol has room for.
func TestKickWithFullMemory(t *testing.T) {
	types := []channel.Type{{Name: chatName, ServerOpen: true}}
	for name, link := range links() {
		for _, words := range []string{"you are too slow", strings.Repeat("x", 4000)} {
			var result *netconn.CloseResult
			cfg := Config{Link: link, Channels: types, MaxMemory: 256 << 10, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }}
			w := newTown(t, 1, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 25 * time.Millisecond}, cfg)
			c := w.dial(Config{Link: link, Channels: types})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			conn := w.server.conns[0]
			for size := 800; size > 0; size /= 2 {
				for err := error(nil); err == nil; {
					ch, oerr := conn.Open(chatName, nil)
					require.NoError(t, oerr)
					for err = nil; err == nil && ch.NumOutRec() < 200; {
						_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, size), Reliable: true, NoMerge: true})
					}
					if err != nil {
						require.ErrorIs(t, err, channel.ErrReliableFull)
					}
				}
			}
			conn.CloseWithReason(words)
			w.until("both have ended", func() bool { return result != nil && c.result != nil })
			require.Equal(t, netconn.ClosedByPeer, c.result.Code, name)
			require.Equal(t, words, c.result.Reason, name)
		}
	}
}

// TestKickAmidBulk: a client that is kicked amid a download over a narrow path is told why, though the queue of the path is full of it.
func TestKickAmidBulk(t *testing.T) {
	const why = "out with you"
	types := []channel.Type{{Name: chatName, ServerOpen: true}}
	for name, link := range links() {
		for _, tick := range []time.Duration{16 * time.Millisecond, 100 * time.Millisecond} {
			for seed := range uint64(12) {
				var result *netconn.CloseResult
				net := netsim.Settings{LagMin: 30 * time.Millisecond, LagMax: 35 * time.Millisecond, Bandwidth: 400e3, QueueDelay: 200 * time.Millisecond}
				w := newTown(t, seed, net, Config{Link: link, Channels: types, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }})
				c := w.dial(Config{Link: link, Channels: types})
				w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
				w.tick = tick
				ch, err := w.server.conns[0].Open(chatName, nil)
				require.NoError(t, err)
				for begin := w.now; w.now.Sub(begin) < 2*time.Second; w.step() {
					for ch.NumOutRec() < 400 {
						_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true, NoMerge: true})
						require.NoError(t, err)
					}
				}
				w.server.conns[0].CloseWithReason(why)
				w.until("both have ended", func() bool { return result != nil && c.result != nil })
				require.Equal(t, netconn.ClosedByPeer, c.result.Code, "%s, %v, seed %d", name, tick, seed)
				require.Equal(t, why, c.result.Reason, "%s, %v, seed %d", name, tick, seed)
			}
		}
	}
}

// TestKickedInSlowTicks: where a tick takes as long as half of LingerTimeout, and packets get lost and overtake each other, the connection's last words and the link's
// goodbye don't leave together, and whoever is left learns why.
func TestKickedInSlowTicks(t *testing.T) {
	const why = "kicked for good"
	for name, link := range links() {
		for _, kick := range []bool{true, false} {
			for seed := range uint64(150) {
				var conn *Conn
				var result *netconn.CloseResult
				cfg := Config{Link: link, Joined: func(c *Conn) { conn = c }, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }}
				w := newTown(t, seed, netsim.Settings{Loss: 5, LagMin: 20 * time.Millisecond, LagMax: 25 * time.Millisecond}, cfg)
				w.tick = time.Second
				c := w.dial(Config{Link: link})
				w.until("joined", func() bool { return c.joined && conn != nil || c.result != nil || c.Err() != nil })
				if c.result != nil || c.Err() != nil {
					continue // connecting takes too long for it
				}
				if kick {
					conn.CloseWithReason(why)
				} else {
					c.Server().CloseWithReason(why)
				}
				w.until("both have ended", func() bool { return c.result != nil && result != nil })
				if !kick {
					require.Equal(t, why, result.Reason, "%s, seed %d: %v", name, seed, result)
				}
				require.Equal(t, why, c.result.Reason, "%s, seed %d: %v", name, seed, c.result)
			}
		}
	}
}

// TestLastWordsAreNotOvertaken: of a client that was in the dark until its kick has lingered, the last words alone say why. The link's goodbye doesn't overtake them on a path
// of much jitter, though others' packets that the server no longer knows come in meanwhile.
func TestLastWordsAreNotOvertaken(t *testing.T) {
	for name, link := range links() {
		for seed := range uint64(30) {
			var kicked *Conn
			w := newTown(t, seed, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 200 * time.Millisecond}, Config{Link: link, Joined: func(c *Conn) { kicked = c }})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && kicked != nil })
			w.dark(0, true, true)
			kicked.CloseWithReason("out with you")
			for end := w.now.Add(1900 * time.Millisecond); w.now.Before(end); {
				w.step()
			}
			w.dark(0, true, false)
			w.until("told", func() bool {
				w.server.server.receive(w.server.Now(), netip.MustParseAddrPort("10.9.9.9:9"), make([]byte, 30))
				return c.result != nil
			})
			require.Equal(t, "out with you", c.result.Reason, "%s, seed %d: %v", name, seed, c.result)
		}
	}
}

// TestBothSayWhy: when both ends close at once, each learns why the other did.
func TestBothSayWhy(t *testing.T) {
	for name, link := range links() {
		for seed := range uint64(20) {
			var conn *Conn
			var result *netconn.CloseResult
			cfg := Config{Link: link, Joined: func(c *Conn) { conn = c }, Closed: func(_ *Conn, r netconn.CloseResult) { result = &r }}
			w := newTown(t, seed, netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 25 * time.Millisecond}, cfg)
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && conn != nil })
			conn.CloseWithReason("back in an hour")
			c.Server().CloseWithReason("bed\ntime")
			w.until("both have ended", func() bool { return c.result != nil && result != nil })
			require.Equal(t, netconn.ClosedByUs, c.result.Code, name)
			require.Equal(t, "bed\ntime", c.result.Reason)
			require.Equal(t, "back in an hour", c.result.PeerReason, "%s, seed %d: %v", name, seed, c.result)
			require.Equal(t, "bed\ntime", result.PeerReason, "%s, seed %d: %v", name, seed, result)
			require.Contains(t, result.String(), `back in an hour; the peer closed too: bed?time`)
		}
	}
}

// TestOthersDontHurryTheGoodbye: on a server with free slots, neither strangers' datagrams of a request's size nor clients that dial make the link's goodbye overtake the last
// words to another client.
func TestOthersDontHurryTheGoodbye(t *testing.T) {
	sizes := map[string]int{"netcode": netcode.RequestBytes, "salted": salted.PaddedSize, "unreal": 30}
	for name, link := range links() {
		for _, dials := range []bool{false, true} {
			for seed := range uint64(6) {
				var kicked *Conn
				w := newTown(t, seed, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 200 * time.Millisecond}, Config{Link: link, Joined: func(c *Conn) {
					if kicked == nil {
						kicked = c
					}
				}})
				c := w.dial(Config{Link: link})
				w.until("joined", func() bool { return c.joined && kicked != nil })
				w.dark(0, true, true)
				kicked.CloseWithReason("out with you")
				for end := w.now.Add(1900 * time.Millisecond); w.now.Before(end); {
					w.step()
				}
				w.dark(0, true, false)
				for i := 0; c.result == nil; i++ {
					require.Less(t, i, 10_000)
					if !dials {
						w.server.server.receive(w.server.Now(), netip.MustParseAddrPort("10.9.9.9:9"), make([]byte, sizes[name]))
					} else if i%6 == 0 && i < 60 {
						w.dial(Config{Link: link})
					}
					w.step()
				}
				require.Equal(t, "out with you", c.result.Reason, "%s, dials %v, seed %d: %v", name, dials, seed, c.result)
			}
		}
	}
}

// TestWhoGetsNoSlotHurriesNobody: on a full server, whose request brings no slot, as that of a used token, of another build or of a client that is connected, doesn't make the
// link's goodbye overtake the last words to another client.
func TestWhoGetsNoSlotHurriesNobody(t *testing.T) {
	link := Netcode{Key: netcode.Key{1}}
	for _, why := range []string{"used", "another build", "connected"} {
		for seed := range uint64(6) {
			var kicked *Conn
			w := newTown(t, seed, netsim.Settings{LagMin: 5 * time.Millisecond, LagMax: 200 * time.Millisecond}, Config{Link: link, MaxConns: 2, Joined: func(c *Conn) {
				if kicked == nil {
					kicked = c
				}
			}})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && kicked != nil })
			used := townToken(t, w, 77, nil)
			other := w.dial(Config{Link: Netcode{Token: used}})
			w.until("joined", func() bool { return other.joined })
			w.dark(0, true, true)
			kicked.CloseWithReason("out with you")
			for end := w.now.Add(1900 * time.Millisecond); w.now.Before(end); {
				w.step()
			}
			w.dark(0, true, false)
			for i := uint64(0); c.result == nil; i++ {
				token := used
				switch why {
				case "another build":
					token = townToken(t, w, 1000+i, func(c *netcode.TokenConfig) { c.ProtocolID++ })
				case "connected":
					token = townToken(t, w, 77, nil)
				}
				w.server.server.receive(w.server.Now(), netip.MustParseAddrPort("10.9.9.9:9"), requestOf(token))
				w.step()
			}
			require.Equal(t, "out with you", c.result.Reason, "%s, seed %d: %v", why, seed, c.result)
		}
	}
}

// requestOf is the request that a token's client begins with: the token's public part without the time of its making.
func requestOf(token netcode.Token) []byte {
	const version, create = 13 + 8, 8
	p := append([]byte{0}, token[:version]...)
	return append(p, token[version+create:][:netcode.RequestBytes-1-version]...)
}
