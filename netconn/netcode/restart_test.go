package netcode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestStartsAgainAtItsAddress: a client that crashed and starts again at the same address with another client id, or with the same one and without TakeOver, is
// in 2 s after it was heard last, on a full server too; the former connection ends, and others don't.
func TestStartsAgainAtItsAddress(t *testing.T) {
	for _, id := range []uint64{5, 99} {
		for _, loss := range []float64{0, 30} {
			for seed := range uint64(20) {
				r := newRig(t, seed, netsim.Settings{Loss: loss, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, 2)
				r.join(addrOf(2), 7)
				r.join(clientAddr, id)
				heard := r.now
				require.NoError(t, r.client.Connect(r.now, token(t, 1000+seed, func(c *TokenConfig) { c.Timeout = 10 })))
				for r.client.State() > Disconnected && r.client.State() != Connected {
					r.server.slots[0].heard = r.now // the other one plays on
					r.step()
				}
				require.Equal(t, Connected, r.client.State(), "id %d, loss %v, seed %d: %v", id, loss, seed, r.client.Denial())
				why := AddrTaken
				if id == 99 {
					why = Replaced
				}
				require.Equal(t, []Reason{why}, r.gone, "id %d, loss %v, seed %d", id, loss, seed)
				require.Equal(t, 2, r.server.Clients())
				if took := r.now - heard; loss == 0 {
					require.Less(t, took, goneAfter+500*time.Millisecond)
				}
			}
		}
	}
}

// TestHeardIsNotReplaced: who listens on the path of a client, has tokens of his own and sends from its address ends nothing while the client is heard, and who doesn't
// listen ends nothing at all.
func TestHeardIsNotReplaced(t *testing.T) {
	for _, listens := range []bool{true, false} {
		l := newHanded(t, 4)
		l.connect()
		l.toServer()
		var evil relay
		c := newClient(t, &evil)
		for i := range 200 {
			l.now += 100 * time.Millisecond
			if i%50 == 0 {
				require.NoError(t, c.Connect(l.now, token(t, uint64(10+i), func(c *TokenConfig) { c.ClientID = 666 })))
			}
			if listens {
				l.client.Tick(l.now)
			} else if i > 45 {
				break // the token's timeout of the client that is silent is 5 s
			}
			l.toServer()
			c.Tick(l.now)
			for _, p := range evil.up {
				l.server.Receive(l.now, clientAddr, p)
			}
			evil.up = nil
			if listens {
				for _, p := range l.down.sent {
					c.Receive(l.now, serverAddr, append([]byte(nil), p...))
				}
			}
			l.toClient()
			l.server.Tick(l.now)
		}
		require.Empty(t, l.down.gone)
		require.Equal(t, Connected, l.client.State())
		require.NotEqual(t, Connected, c.State())
		require.Positive(t, l.server.Counters.AddrConnected)
		if listens {
			require.Zero(t, l.server.mappings.byAddr[clientAddr], "nor is anything kept")
		} else {
			require.Positive(t, l.server.Counters.Challenges-1, "it was challenged")
		}
	}
}

// TestHeardAgain: a client that is heard between the challenge and the response keeps its slot.
func TestHeardAgain(t *testing.T) {
	l := newHanded(t, 4)
	l.connect()
	l.toServer()
	l.down.sent = nil
	l.now += goneAfter
	var up relay
	c := newClient(t, &up)
	require.NoError(t, c.Connect(l.now, token(t, 10, func(c *TokenConfig) { c.ClientID = 5 })))
	l.server.Receive(l.now, clientAddr, up.up[0])
	require.Len(t, l.down.sent, 1)
	c.Receive(l.now, serverAddr, l.down.sent[0])
	l.client.Tick(l.now)
	l.toServer()
	l.server.Receive(l.now, clientAddr, up.up[1])
	require.Empty(t, l.down.gone)
	require.EqualValues(t, 1, l.server.Counters.AddrConnected)
}

// TestAddressOfAHeldConnection: a client that gets the address of one whose former connection is held gets that one's place when it is free, and is told that the server is full otherwise.
func TestAddressOfAHeldConnection(t *testing.T) {
	l := newHanded(t, 1)
	cfg := l.server.cfg
	cfg.Slots, cfg.TakeOver, cfg.HoldFormer = 1, true, true
	var err error
	l.server, err = NewServer(cfg)
	require.NoError(t, err)
	l.joins(addrOf(1), 1, 99)
	l.joins(addrOf(2), 2, 99) // isn't settled
	l.now += goneAfter
	c := l.joins(addrOf(1), 3, 5)
	require.Equal(t, Denied, c.State())
	require.Equal(t, Full, c.Denial())
	require.Equal(t, []Reason{AddrTaken}, l.down.gone)
	require.Equal(t, 1, l.server.Clients())
	c = l.joins(addrOf(2), 4, 6)
	require.Equal(t, Connected, c.State())
	require.Equal(t, []Reason{AddrTaken, AddrTaken}, l.down.gone)
	require.Equal(t, 1, l.server.Clients())
}
