package session_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// TestNextServer: a token names servers of which the first don't answer: its client comes to the next one, with the usual timeouts of tokens, as it does without a Redialer.
func TestNextServer(t *testing.T) {
	for _, timeout := range []int32{2, 5, 8} {
		for silent := 1; silent <= 2; silent++ {
			r := newRig(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, nil)
			r.link = func(client string) driver.Link {
				if client == "" {
					return driver.Netcode{Key: netcode.Key{1}, TakeOver: true}
				}
				now := uint64(simtest.Epoch.Add(r.world.Now()).Unix())
				servers := append([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:7777"), netip.MustParseAddrPort("10.0.0.8:7777")}[:silent:silent], netip.MustParseAddrPort(serverAddr))
				token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: uint64(len(client)), Create: now, Expire: now + 60, Timeout: timeout, Servers: servers, PrivateKey: netcode.Key{1}})
				require.NoError(t, err)
				return driver.Netcode{Token: token}
			}
			r.world.RunUntil(time.Duration(silent)*time.Duration(timeout)*time.Second + 2*time.Second)
			require.Nil(t, r.world.Failure())
			require.Contains(t, r.joins, "Ann", "timeout %d s, %d servers don't answer", timeout, silent)
			require.Equal(t, 1, r.dials)
		}
	}
}

// TestNobodyAnswersIsTold: the game hears in Failed that nobody answers its dials.
func TestNobodyAnswersIsTold(t *testing.T) {
	for _, link := range []driver.Link{nil, driver.PlainSalted{}} {
		r := newRig(t, 1, netsim.Settings{Lag: 30 * time.Millisecond}, func(r *rig) { r.over(link) })
		var why []error
		r.world = simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
			g := &clientGame{}
			var err error
			g.Redialer, err = session.NewRedialer(session.RedialConfig{Dial: func() (*driver.Driver, error) {
				return driver.Dial(serverAddr, driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: h.Open(), Link: r.link("Ann")})
			}, Failed: func(err error) { why = append(why, err) }})
			return g, err
		})
		r.world.AddHost("Ann", false)
		r.world.RunUntil(20 * time.Second)
		require.NotEmpty(t, why, "%T", link)
		require.ErrorIs(t, why[0], driver.ErrNoAnswer)
	}
}

// TestServerIsBackAmidALogin: a server of PlainUnreal that crashes while a client logs in, and is back within two seconds, has the client soon.
func TestServerIsBackAmidALogin(t *testing.T) {
	for _, lag := range []time.Duration{60 * time.Millisecond, 120 * time.Millisecond} {
		for after := 100 * time.Millisecond; after < 1500*time.Millisecond; after += 25 * time.Millisecond {
			r := newRig(t, 1, netsim.Settings{Lag: lag}, func(r *rig) { r.over(driver.PlainUnreal53()) })
			r.world.RunUntil(after)
			r.world.Host("server1").Crash(2 * time.Second)
			r.world.RunUntil(r.world.Now() + 10*time.Second)
			require.Nil(t, r.world.Failure())
			g := r.clients["Ann"]
			if !(g.conn != nil && g.conn.Joined() && !g.conn.Closed() && g.conn.Silence() < 500*time.Millisecond) {
				t.Errorf("lag %v, crash after %v: %v", lag, after, r.told)
			}
		}
	}
}

// bystander is another server of the same tokens.
type bystander struct{ *driver.Driver }

func (b bystander) Tick(now time.Time) error {
	b.TickDispatch(now)
	b.TickFlush(now)
	return b.Err()
}

// TestDarkBesideAnotherServer: a player whose token names another server besides, and whose path is dark for longer than a server is asked, and who has another address then, comes back to the
// server that keeps it.
func TestDarkBesideAnotherServer(t *testing.T) {
	const other = "10.0.0.4:7777"
	for _, dark := range []time.Duration{6 * time.Second, 8 * time.Second, 17 * time.Second} {
		r := newRig(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, func(r *rig) {
			r.world = simtest.NewSimulation(1, func(h *simtest.Host) (simtest.Program, error) {
				if h.Name() != "other" {
					return r.boot(h)
				}
				socket, err := h.Listen(7777)
				require.NoError(t, err)
				d, err := driver.Listen(other, driver.Config{Clock: h.Time, Rand: h.Secrets(), Socket: socket, Link: driver.Netcode{Key: netcode.Key{1}}})
				return bystander{d}, err
			})
			link := r.link
			r.link = func(client string) driver.Link {
				if client != "Ann" {
					return link(client)
				}
				now := uint64(simtest.Epoch.Add(r.world.Now()).Unix())
				token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: 1, Create: now, Expire: now + 60, Timeout: 5,
					Servers: []netip.AddrPort{netip.MustParseAddrPort(serverAddr), netip.MustParseAddrPort(other)}, PrivateKey: netcode.Key{1}})
				require.NoError(t, err)
				return driver.Netcode{Token: token}
			}
		})
		ann, second := r.world.Host("Ann"), r.world.AddHost("other", true)
		r.world.RunUntil(4 * time.Second)
		r.dark()
		r.world.Cut(ann, second)
		ann.Rebind()
		r.world.RunUntil(r.world.Now() + dark)
		r.light()
		r.world.Join(ann, second)
		r.world.RunUntil(r.world.Now() + 2*time.Second)
		require.Nil(t, r.world.Failure())
		require.Equal(t, []string{"new", "away", "back"}, r.of("Ann"), "dark for %v", dark)
	}
}
