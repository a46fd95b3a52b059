package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// held is a game that knows which server has each player.
type held struct {
	pairGame
	t   *testing.T
	has map[uint64]int
}

func (g held) Play(id uint64, state []byte) {
	_, ok := g.has[id]
	require.False(g.t, ok, "player %d is another server's still", id)
	g.has[id] = g.i
}

func (g held) Moved(id uint64) {
	require.Equal(g.t, g.i, g.has[id])
	delete(g.has, id)
}

// TestCarriedAtOnce: a carrier may give a packet to the other server within ToServer, as servers in one process do, whatever it loses of them.
func TestCarriedAtOnce(t *testing.T) {
	for seed := range 200 {
		const players = 5
		sent := seed
		p := &pair{saved: 10}
		clients, has := map[uint64]*Client{}, map[uint64]int{}
		for i := range p.servers {
			var err error
			p.servers[i], err = NewServer(ServerConfig{ID: name(i), Game: held{pairGame{p, i}, t, has}, Key: [32]byte{1}, Rand: &counted{},
				ToServer: func(id string, b []byte) {
					if sent++; seed > 0 && sent%(seed%9+3) == 0 {
						return // lost
					}
					require.NoError(t, p.servers[1-i].Receive(name(i), b))
				},
				ToClient: func(id uint64, b []byte) { require.NoError(t, clients[id].Receive(name(i), b)) }})
			require.NoError(t, err)
		}
		for id := range uint64(players) {
			var err error
			clients[id+1], err = NewClient(ClientConfig{Session: 9 + id, Server: name(0), Message: func([]byte) {}, Send: func(server string, b []byte) {
				for i, s := range p.servers {
					if name(i) == server {
						require.NoError(t, s.ReceiveClient(id+1, b))
					}
				}
			}})
			require.NoError(t, err)
			require.NoError(t, p.servers[0].Enter(id+1))
			has[id+1] = 0
			for _, s := range p.servers {
				s.Connected(id + 1)
			}
		}
		n := 0
		for i := range 400 {
			p.now += 20 * time.Millisecond
			for id := range uint64(players) {
				clients[id+1].Step(p.now)
			}
			for _, s := range p.servers {
				s.Step(p.now)
			}
			for k, s := range p.servers {
				for id := range uint64(players) {
					if (i/100)%2 == k && s.Plays(id+1) && s.Travel(id+1, name(1-k)) == nil {
						n++
					}
				}
			}
		}
		require.GreaterOrEqual(t, n, 4*players, "seed %d", seed)
		for id := range uint64(players) {
			require.True(t, p.servers[0].Plays(id+1), "seed %d: player %d", seed, id+1)
		}
	}
}

// TestClientFlood: what a client sends in one tick costs its servers one packet to each other, and one to it, however often it changes what it says.
func TestClientFlood(t *testing.T) {
	p := newPair(t)
	p.servers[1].cfg.Game = longTicket{pairGame{p, 1}}
	p.step(t)
	require.NoError(t, p.servers[0].Travel(1, name(1)))
	p.servers[0].Step(p.now)
	p.hold = true
	sent := p.sent
	p.sent = nil
	for _, s := range sent {
		require.NoError(t, p.servers[s.to].Receive(name(s.from), s.b))
	}
	require.Len(t, p.servers[1].arrivals, 1)
	p.sent = nil
	toClient := 0
	p.servers[1].cfg.ToClient = func(uint64, []byte) { toClient++ }
	for i := range uint64(10_000) {
		c := Client{cfg: ClientConfig{Session: 9, Send: func(_ string, b []byte) { require.NoError(t, p.servers[1].ReceiveClient(1, slices.Clone(b))) }}, next: 1, out: stream{first: 1}}
		c.send("", (1+i%2)<<1)
	}
	p.servers[1].Step(p.now + 20*time.Millisecond)
	require.LessOrEqual(t, len(p.sent), 2, fmt.Sprint(toClient))
	require.Equal(t, 1, toClient)
}
