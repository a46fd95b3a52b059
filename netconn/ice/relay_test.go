package ice

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
	"github.com/stretchr/testify/require"
)

// restarting is the UDP socket of a relay that is started again, and so has forgotten what it gave away. Some servers say so to who asks, pion's don't answer.
type restarting struct {
	net.PacketConn
	says       stun.ErrorCode // 0 is nothing
	permission time.Duration  // that it lets somebody in; 0 is its default
	relayed    byte           // the last of its address, 127.0.0.x; 0 is 1
	elsewhere  atomic.Bool    // it sees its clients at another address than before

	mu      sync.Mutex
	known   map[string]bool
	strange map[string]bool // known before it was started again
}

// run is the socket of a server from its start to its end.
type run struct {
	*restarting
	ending, ended chan struct{}
}

// Close ends the server's reads. The socket stays open.
func (r *run) Close() error {
	close(r.ending)
	err := r.SetReadDeadline(time.Unix(1, 0))
	<-r.ended
	return errors.Join(err, r.SetReadDeadline(time.Time{}))
}

// ReadFrom implements net.PacketConn.
func (r *run) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := r.PacketConn.ReadFrom(p)
		if isDone(r.ending) {
			close(r.ended)
			return 0, nil, net.ErrClosed
		}
		if err != nil {
			return n, from, err
		}
		r.mu.Lock()
		r.known[from.String()] = true
		strange := r.strange[from.String()] && r.says != 0
		r.mu.Unlock()
		m := stun.Message{Raw: p[:n]}
		if r.elsewhere.Load() && m.Decode() == nil && m.Type == stun.BindingRequest {
			answer, err := stun.Build(&m, stun.BindingSuccess, &stun.XORMappedAddress{IP: net.IPv4(192, 0, 2, 7), Port: 5000})
			if err == nil {
				_, err = r.WriteTo(answer.Raw, from)
			}
			if err != nil {
				return 0, from, err
			}
			continue
		}
		if !strange || m.Decode() != nil || m.Type.Method == stun.MethodBinding || m.Type.Class != stun.ClassRequest {
			return n, from, nil
		}
		answer, err := stun.Build(&m, stun.NewType(m.Type.Method, stun.ClassErrorResponse), r.says)
		if err == nil {
			_, err = r.WriteTo(answer.Raw, from)
		}
		if err != nil {
			return 0, from, err
		}
	}
}

// start starts a server that knows nobody.
func (r *restarting) start(t *testing.T) (stop func()) {
	r.mu.Lock()
	r.strange, r.known = r.known, map[string]bool{}
	r.mu.Unlock()
	at := net.IPv4(127, 0, 0, max(1, r.relayed))
	s, err := turn.NewServer(turn.ServerConfig{Realm: "test", LoggerFactory: quietLoggers{},
		AuthHandler: func(ra *turn.RequestAttributes) (string, []byte, bool) {
			return ra.Username, turn.GenerateAuthKey(ra.Username, ra.Realm, "secret"), ra.Username == "ann"
		},
		PermissionTimeout: r.permission,
		PacketConnConfigs: []turn.PacketConnConfig{{PacketConn: &run{r, make(chan struct{}), make(chan struct{})}, RelayAddressGenerator: &turn.RelayAddressGeneratorStatic{RelayAddress: at, Address: at.String()}}}})
	require.NoError(t, err)
	return sync.OnceFunc(func() { require.NoError(t, s.Close()) })
}

// impatient has relays be asked soon, and sessions restart soon.
func impatient(t *testing.T) {
	silent, answer, write, after, pause := relaySilent, relayAnswer, relayWrite, restartAfter, restartPause
	t.Cleanup(func() {
		relaySilent, relayAnswer, relayWrite, restartAfter, restartPause = silent, answer, write, after, pause
	})
	relaySilent, relayAnswer, relayWrite, restartAfter, restartPause = 300*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond, 1300*time.Millisecond, time.Millisecond
}

// server returns the settings for a player who is reached by this relay only.
func (r *restarting) server(t *testing.T) Config {
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pc.Close()) })
	r.PacketConn = pc
	cfg := local()
	cfg.Servers, cfg.RelayOnly = []Server{{URL: "turn:" + pc.LocalAddr().String() + "?transport=udp", Username: "ann", Password: "secret"}}, true
	return cfg
}

// TestRelayForgets: a relay that has forgotten this end, since it was started again or this machine slept for too long, is asked for another address. The game
// goes on over the same connection.
func TestRelayForgets(t *testing.T) {
	impatient(t)
	for name, says := range map[string]stun.ErrorCode{"and says so": stun.CodeAllocMismatch, "and knows no such name": stun.CodeUnauthorized,
		"and calls that a bad request": stun.CodeBadRequest, "and is silent": 0} {
		t.Run(name, func(t *testing.T) {
			r := &restarting{says: says}
			cfg := r.server(t)
			stop := r.start(t)
			t.Cleanup(func() { stop() })
			g := newGame(t, HostConfig{Config: cfg}, nil)
			cfg.Redial, _ = redials(t, g.host)
			p := g.dial(join(t, g.host, cfg), nil)
			var was []Candidate // none for a moment where a busy machine has taken the relay for lost
			g.until("joined", func() bool {
				was = g.host.Candidates()
				return len(g.joined) == 1 && p.conn != nil && len(was) == 1
			})
			lost := g.host.Counters().RelaysLost

			stop()
			stop = r.start(t)

			g.until("the host has another address", func() bool {
				is := g.host.Candidates()
				return len(is) == 1 && is[0] != was[0]
			})
			require.Equal(t, lost+1, g.host.Counters().RelaysLost)
			g.until("the path is another one", func() bool {
				path, at := g.host.Path(g.joined[0].RemoteAddr())
				return path == ByRelay && slices.Contains(p.socket.Candidates(), Candidate{Relayed, at})
			})
			g.echoes()
			require.Empty(t, g.ended, "it is the same connection")
		})
	}
}

// TestRelayForgetsPermissions: a relay that has forgotten whom it lets in, since this machine slept, is asked again as soon as nothing comes.
func TestRelayForgetsPermissions(t *testing.T) {
	impatient(t)
	const permission = time.Second
	var cfgs []Config
	for i := range byte(2) { // each lets itself in when it is asked, not the other
		r := &restarting{permission: permission, relayed: 1 + i}
		cfgs = append(cfgs, r.server(t))
		t.Cleanup(r.start(t))
	}
	g := newGame(t, HostConfig{Config: cfgs[0]}, nil)
	p := g.dial(join(t, g.host, cfgs[1]), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 && p.conn != nil })
	for range 3 {
		asleep := time.Now().Add(2 * permission)
		g.until("they are forgotten", func() bool { return time.Now().After(asleep) })
		p.sink.Got = nil
		g.echoes()
	}
	require.Zero(t, g.host.Counters().RelaysLost)
	require.Empty(t, g.ended)
}
