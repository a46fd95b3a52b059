package ice

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// roaming is a socket of a machine that moves from one network to another: its address changes, its port doesn't.
type roaming struct {
	udp.Socket // the first one, for what doesn't change
	t          testing.TB
	mu         sync.Mutex
	now        udp.Socket
}

// roam has the nodes that are made from now on be of such machines, and gives their sockets in that order.
func roam(t testing.TB, ips ...string) (made func(i int) *roaming) {
	var mu sync.Mutex
	var all []*roaming
	old, every, after, pause := listen, interfacesEvery, restartAfter, restartPause
	t.Cleanup(func() { listen, interfacesEvery, restartAfter, restartPause = old, every, after, pause })
	interfacesEvery, restartAfter, restartPause = 10*time.Millisecond, 1300*time.Millisecond, time.Millisecond // paths are checked once a second
	listen = func(string, udp.Config) (udp.Socket, error) {
		mu.Lock()
		defer mu.Unlock()
		s, err := udp.Listen(ips[len(all)]+":0", udp.Config{})
		all = append(all, &roaming{Socket: s, now: s, t: t})
		return all[len(all)-1], err
	}
	return func(i int) *roaming {
		mu.Lock()
		defer mu.Unlock()
		return all[i]
	}
}

func (r *roaming) current() udp.Socket {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// move is to another network.
func (r *roaming) move(ip string) {
	s, err := udp.Listen(netip.AddrPortFrom(netip.MustParseAddr(ip), r.LocalAddr().Port()).String(), udp.Config{})
	require.NoError(r.t, err)
	r.mu.Lock()
	old := r.now
	r.now = s
	r.mu.Unlock()
	require.NoError(r.t, old.Close())
}

func (r *roaming) LocalAddr() netip.AddrPort                  { return r.current().LocalAddr() }
func (r *roaming) WriteBatch(msgs []udp.Message) (int, error) { return r.current().WriteBatch(msgs) }
func (r *roaming) Close() error                               { return r.current().Close() }
func (r *roaming) ReadBatch(msgs []udp.Message) (int, error) {
	for {
		s := r.current()
		n, err := s.ReadBatch(msgs)
		if err == nil || s == r.current() {
			return n, err
		}
	}
}

// redials makes signals between a guest and a host, which rejoins it.
func redials(t testing.TB, h *Host) (redial func(context.Context) (Signal, error), results chan error) {
	results = make(chan error, 64)
	return func(context.Context) (Signal, error) {
		a, b := wires()
		go func() {
			results <- h.Rejoin(t.Context(), b)
			a.close()
		}()
		return a, nil
	}, results
}

// TestRestart: both players go to another network at once, so that neither knows an address of the other. They restart over another signal, and the game
// goes on over the same connection, also in a game that is full.
func TestRestart(t *testing.T) {
	made := roam(t, "127.0.0.2", "127.0.0.3")
	g := newGame(t, HostConfig{Config: local(), MaxGuests: 1}, nil)
	cfg := local()
	var results chan error
	cfg.Redial, results = redials(t, g.host)
	a, b := wires()
	c, err := Dial(t.Context(), a, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, g.host.Join(t.Context(), b))
	require.NoError(t, c.Connected(t.Context()))
	a.close() // as a rendezvous does after a minute
	p := g.dial(c, nil)
	g.until("joined", func() bool { return len(g.joined) == 1 && p.conn != nil })
	moved := g.host.Moved()
	for i, ips := range [][2]string{{"127.0.0.4", "127.0.0.5"}, {"127.0.0.6", "127.0.0.7"}} {
		at := g.joined[0].RemoteAddr()
		was := p.socket.session()
		made(0).move(ips[0])
		made(1).move(ips[1])
		g.until("restarted", func() bool {
			return g.host.Counters().Restarts == uint64(i+1) && p.socket.Counters().Restarts == uint64(i+1)
		})
		require.NoError(t, <-results)
		require.True(t, isDone(moved))
		require.NotSame(t, was, p.socket.session())
		eventually(t, "the old one has ended", func() bool { return isDone(was.ended) })
		path, addr := g.host.Path(at)
		require.Equal(t, Direct, path)
		require.Equal(t, ips[1], addr.Addr().String())
		_, addr = p.socket.Path()
		require.Equal(t, ips[0], addr.Addr().String())
		p.sink.Got = nil
		g.echoes()
		require.Len(t, g.joined, 1, "it is the same connection")
		require.Empty(t, g.ended)
		require.Equal(t, 1, g.host.Len())
		require.Equal(t, at, g.joined[0].RemoteAddr())
	}
	require.EqualValues(t, 1, g.host.Counters().Sessions)
	require.ErrorIs(t, g.host.Join(t.Context(), nil), ErrFull)
}

// TestRejoinStrangers: who doesn't know the password of a session hears of no address, and takes nothing from its guest; one that knows it has its own.
func TestRejoinStrangers(t *testing.T) {
	g := newGame(t, HostConfig{Config: local()}, nil)
	p := g.dial(join(t, g.host, local()), nil)
	g.until("joined", func() bool { return len(g.joined) == 1 })
	for _, again := range []string{"", "AAAAAAAAAAAAAAAAAAAAAAAA", p.socket.session().pwd} {
		a, b := wires()
		require.NoError(t, a.Send(t.Context(), Message{Ufrag: "abcd", Password: "abcdefghijklmnopqrstuvwx", Again: again}))
		require.ErrorIs(t, g.host.Rejoin(t.Context(), b), ErrUnknown)
		require.Empty(t, a.in, "nothing was told")
	}
	require.EqualValues(t, 3, g.host.Counters().Unknown)
	for _, bad := range []Message{{Again: "AAAAAAAAAAAAAAAAAAAAAAAA"}, {Ufrag: "abcd", Password: "abcdefghijklmnopqrstuvwx", Again: "short"}, {Ufrag: "abcd", Password: "abcdefghijklmnopqrstuvwx", Again: "not plain, but long enough"}} {
		a, b := wires()
		require.NoError(t, a.Send(t.Context(), bad))
		require.ErrorIs(t, g.host.Rejoin(t.Context(), b), ErrMessage)
	}

	// A restart that finds no path leaves the session as it is.
	a, b := wires()
	ctx, stop := context.WithCancel(t.Context())
	require.NoError(t, a.Send(ctx, Message{Ufrag: "abcd", Password: "abcdefghijklmnopqrstuvwx", Again: p.socket.session().theirPwd}))
	done := make(chan error, 1)
	go func() { done <- g.host.Rejoin(ctx, b) }()
	m, err := a.Receive(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, p.socket.session().theirPwd, m.Password, "it is another one")
	stop()
	require.ErrorIs(t, <-done, ErrNoWay)
	g.echoes()
	require.Equal(t, 1, g.host.Len())
	require.Zero(t, g.host.Counters().Restarts)
}

// TestRestartsAtOnce: however often a guest begins to rejoin, it takes the place of one among MaxConnecting.
func TestRestartsAtOnce(t *testing.T) {
	g := newGame(t, HostConfig{Config: local(), MaxConnecting: 4}, nil)
	c := join(t, g.host, local())
	s := c.session()
	s.n.mu.Lock()
	again := s.theirPwd
	s.n.mu.Unlock()
	results := make(chan error, 64)
	for range 20 {
		a, b := wires()
		go func() { results <- g.host.Rejoin(t.Context(), b) }()
		require.NoError(t, a.Send(t.Context(), Message{Ufrag: "again", Password: liarPassword, Again: again}))
		_, err := a.Receive(t.Context())
		require.NoError(t, err, "it isn't full")
	}
	for range 19 {
		require.ErrorIs(t, <-results, errReplaced)
	}
	require.Equal(t, 2, g.host.Len())
	join(t, g.host, local())
}

// TestFailedRestartsBecomeRare: where this machine's addresses have changed, the path still answers, and there is no other Signal, as when the host's room has closed, the
// guest asks for one ever more seldom, and again when its addresses change again.
func TestFailedRestartsBecomeRare(t *testing.T) {
	made := roam(t, "127.0.0.2", "127.0.0.3")
	restartAfter = 30 * time.Second // the path is not the reason
	g := newGame(t, HostConfig{Config: local()}, nil)
	cfg := local()
	var asked atomic.Int64
	cfg.Redial = func(context.Context) (Signal, error) {
		asked.Add(1)
		return nil, errors.New("no such room")
	}
	a, b := wires()
	c, err := Dial(t.Context(), a, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, g.host.Join(t.Context(), b))
	require.NoError(t, c.Connected(t.Context()))
	for _, ip := range []string{"127.0.0.4", "127.0.0.5"} {
		asked.Store(0)
		made(1).move(ip)
		time.Sleep(4 * time.Second)
		require.Positive(t, asked.Load())
		require.LessOrEqual(t, asked.Load(), int64(5))
		path, _ := c.Path()
		require.NotEqual(t, NoPath, path)
	}
}
