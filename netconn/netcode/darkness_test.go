package netcode

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestConnectsAfterDarkness: a path that goes dark at any step of connecting, one way or both, for less than the token's timeout, costs nothing
// but that time; also for longer than the server remembers whom it has challenged.
func TestConnectsAfterDarkness(t *testing.T) {
	for _, dark := range []time.Duration{time.Second, 9 * time.Second, 11 * time.Second, 14 * time.Second} {
		for step := range 8 { // of 16 ms; the path takes 20
			for ways := 1; ways < 4; ways++ {
				r := newRig(t, 1, netsim.Settings{Lag: 20 * time.Millisecond}, 2)
				set := func(loss float64) {
					for i, l := range []*netsim.Link{r.up, r.down} {
						if ways>>i&1 == 1 {
							require.NoError(t, l.Set(netsim.Settings{Lag: 20 * time.Millisecond, Loss: loss}))
						}
					}
				}
				require.NoError(t, r.client.Connect(0, token(t, 1, func(c *TokenConfig) { c.Timeout = 15 })))
				for range step {
					r.step()
				}
				set(100)
				for end := r.now + dark; r.now < end; {
					r.step()
				}
				set(0)
				for range 60 {
					r.step()
				}
				require.Equal(t, Connected, r.client.State(), "dark for %v after %d steps, ways %b: %+v", dark, step, ways, r.server.Counters)
				require.Equal(t, 1, r.server.Clients())
				require.Len(t, r.infos, 1)
				require.Empty(t, r.gone)
			}
		}
	}
}

// TestConnectsToRestartedServer: a server that restarts between its challenge and the response lets the client in all the same.
func TestConnectsToRestartedServer(t *testing.T) {
	l := newHanded(t, 2)
	l.request(1, nil)
	l.toServer()
	l.toClient()
	require.Equal(t, SendingResponse, l.client.State())
	other := newHanded(t, 2)
	l.server, other.server = other.server, nil
	l.server.cfg.Handler = &l.down
	for end := l.now + askAgain + 500*time.Millisecond; l.now < end; l.now += 50 * time.Millisecond {
		l.client.Tick(l.now)
		l.toServer()
		l.toClient()
	}
	require.Equal(t, Connected, l.client.State())
	require.Equal(t, 1, l.server.Clients())
}

// TestAsksAgain: while responses go unanswered every other packet is a request again, from askAgain on; a challenge that nobody asked
// for is refused until then; and who only challenges is given up after the token's timeout all the same.
func TestAsksAgain(t *testing.T) {
	l := newHanded(t, 2)
	l.request(1, func(c *TokenConfig) { c.Servers = []netip.AddrPort{serverAddr} })
	l.toServer()
	challenges := 0
	began := l.now
	var sent []byte // the kinds of packets
	for l.client.State() > Disconnected {
		for _, p := range l.down.sent {
			challenges++
			l.client.Receive(l.now, serverAddr, p)
		}
		l.down.sent = nil
		for _, p := range l.up.up {
			sent = append(sent, p[0]&15)
			if p[0] == byte(typeRequest) {
				l.server.Receive(l.now, clientAddr, p)
			}
		}
		l.up.up = nil
		l.now += sendInterval
		l.client.Tick(l.now)
	}
	require.Equal(t, ResponseTimedOut, l.client.State())
	require.InDelta(t, 5, (l.now - began).Seconds(), 0.2, "the token's timeout")
	alone := int(askAgain / sendInterval)
	for i := range alone - 1 {
		require.EqualValues(t, typeResponse, sent[i], "packet %d", i)
	}
	require.Contains(t, sent[alone-1:alone+2], byte(typeRequest))
	require.Equal(t, 3, challenges, "the first, and one each two seconds")
	require.Zero(t, l.client.Counters.Unexpected)
}
