package driver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// faulty is a socket that fails as systems do.
type faulty struct {
	udp.Socket
	rng     *rand.Rand
	write   func(m *udp.Message) error // of each datagram
	read    func() error               // of each read
	short   bool                       // batches end early, without an error
	mtu     int                        // larger ones are refused with EMSGSIZE
	failed  int
	refused int
}

func newFaulty(s udp.Socket) *faulty { return &faulty{Socket: s, rng: rand.New(rand.NewPCG(1, 2))} }

func (f *faulty) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		if f.short && f.rng.IntN(4) == 0 {
			return i, nil // even none at all
		}
		if f.mtu > 0 && len(msgs[i].Buf) > f.mtu {
			f.refused++
			return i, os.NewSyscallError("sendmmsg", syscall.EMSGSIZE)
		}
		if f.write != nil {
			if err := f.write(&msgs[i]); err != nil {
				f.failed++
				return i, os.NewSyscallError("sendmmsg", err)
			}
		}
		if n, err := f.Socket.WriteBatch(msgs[i : i+1]); err != nil {
			return i + n, err
		}
	}
	return len(msgs), nil
}

func (f *faulty) TryReadBatch(msgs []udp.Message) (int, error) {
	if f.read != nil {
		if err := f.read(); err != nil {
			f.failed++
			return 0, os.NewSyscallError("recvmmsg", err)
		}
	}
	if f.short {
		msgs = msgs[:1+f.rng.IntN(3)]
	}
	return f.Socket.TryReadBatch(msgs)
}

// ReadBatch wakes up for nothing now and then.
func (f *faulty) ReadBatch(msgs []udp.Message) (int, error) {
	if f.rng.IntN(3) == 0 {
		return 0, nil
	}
	return f.Socket.ReadBatch(msgs)
}

// links is each kind of link.
func links() map[string]Link {
	return map[string]Link{"netcode": Netcode{Key: netcode.Key{1}}, "unreal": PlainUnreal51(), "salted": PlainSalted{}}
}

// talk has a client say n things and counts what the server echoes.
func (m *memory) talk(n int) {
	m.t.Helper()
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	got := &sink{}
	ch, err := m.cc.Open(chatName, got)
	require.NoError(m.t, err)
	for i := range n {
		_, err = ch.SendBunch(&bunch.Out{Data: []byte(strconv.Itoa(i)), Reliable: true, NoMerge: true})
		require.NoError(m.t, err)
		m.step()
	}
	m.until("echoed", func() bool { return len(got.got) >= n })
	for i := range n {
		require.Equal(m.t, strconv.Itoa(i), got.got[i])
	}
	require.Len(m.t, got.got, n)
}

// TestSystemErrors: whatever the system refuses of single datagrams, reading and writing, costs those only.
func TestSystemErrors(t *testing.T) {
	for name, link := range links() {
		for _, errno := range []syscall.Errno{syscall.ENOBUFS, syscall.EAGAIN, syscall.ECONNREFUSED, syscall.EMSGSIZE, syscall.EPERM, syscall.ENETUNREACH, syscall.EINTR} {
			m := newMemory(t, Config{Link: link, Channels: chat(&echo{})}, Config{Link: link, Channels: chat(&echo{})})
			for _, d := range []*Driver{m.server, m.client} {
				f := newFaulty(d.socket)
				sometimes := func() error {
					if f.rng.IntN(4) == 0 {
						return errno
					}
					return nil
				}
				f.write, f.read = func(*udp.Message) error { return sometimes() }, sometimes
				d.socket = f
			}
			m.talk(40)
			for _, d := range []*Driver{m.server, m.client} {
				require.NoError(t, d.Err(), "%s %v", name, errno)
				require.NotZero(t, d.Counters.SendErrors, "%s %v", name, errno)
				require.NotZero(t, d.Counters.ReadErrors, "%s %v", name, errno)
				require.EqualValues(t, d.socket.(*faulty).failed, d.Counters.SendErrors+d.Counters.ReadErrors)
			}
			require.Nil(t, m.sres)
			require.Nil(t, m.cres)
		}
	}
}

// TestErrorsBeforeDatagrams: the errors that unreachable clients cause, one for each datagram to them on some systems, don't
// keep the others waiting.
func TestErrorsBeforeDatagrams(t *testing.T) {
	m := newMemory(t, Config{Link: PlainSalted{}}, Config{Link: PlainSalted{}})
	m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
	f, left := newFaulty(m.server.socket), 0
	f.read = func() error {
		if left--; left > 0 {
			return syscall.ECONNRESET
		}
		return nil
	}
	m.server.socket = f
	for range 20 {
		left = 500
		m.step()
		require.LessOrEqual(t, left, 0, "all were read past in a tick")
	}
	f.read = func() error { return syscall.ECONNRESET }
	m.step() // ends
	require.NoError(t, m.server.Err())
}

// TestShortBatches: sockets that take or give less than asked, or nothing, without an error.
func TestShortBatches(t *testing.T) {
	for _, link := range links() {
		m := newMemory(t, Config{Link: link, Channels: chat(&echo{})}, Config{Link: link, Channels: chat(&echo{})})
		for _, d := range []*Driver{m.server, m.client} {
			f := newFaulty(d.socket)
			f.short = true
			d.socket = f
		}
		m.talk(40)
		require.NoError(t, m.server.Err())
		require.NoError(t, m.client.Err())
	}
}

// TestSpuriousWakeups: reads that return nothing before the deadline don't end Run's wait, nor spoil its ticks.
func TestSpuriousWakeups(t *testing.T) {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	d, err := Listen("", Config{Socket: newFaulty(s), Link: PlainSalted{}})
	require.NoError(t, err)
	defer d.Close()
	for range 3 {
		until := time.Now().Add(5 * time.Millisecond)
		d.wait(until)
		require.False(t, time.Now().Before(until))
		require.NoError(t, d.Err())
	}
	require.Zero(t, d.Counters.ReadErrors)
}

// TestNarrowPath: packets larger than the path takes, with or without the system's saying so, end the connection with
// a reason that says what to do; a smaller MaxPacket works.
func TestNarrowPath(t *testing.T) {
	for _, told := range []bool{true, false} {
		for _, maxPacket := range []int{0, 500} {
			var p netconn.Protocol
			if maxPacket > 0 {
				p = netconn.Bunchnet()
				p.Bunch.MaxPacket = maxPacket
			}
			got := &sink{}
			m := newMemory(t, Config{Link: PlainSalted{}, Protocol: p, Channels: chat(got)}, Config{Link: PlainSalted{}, Protocol: p, Channels: chat(got)})
			m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
			f := newFaulty(m.client.socket)
			m.client.socket = f
			if told {
				f.mtu = 576
			} else {
				m.client.socket = &narrow{f, 576}
			}
			ch, err := m.cc.Open(chatName, got)
			require.NoError(t, err)
			_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 2000), Reliable: true})
			require.NoError(t, err)
			if maxPacket > 0 {
				m.until("arrived", func() bool { return len(got.got) == 1 })
				continue
			}
			began := m.now
			m.until("ended", func() bool { return m.cres != nil && m.sres != nil })
			require.Equal(t, netconn.PathNarrow, m.cres.Code, m.cres)
			require.ErrorContains(t, m.cres.Err, "MaxPacket")
			require.Less(t, m.now.Sub(began), 30*time.Second)
			require.Equal(t, netconn.ClosedByPeer, m.sres.Code)
			require.Equal(t, told, m.client.Counters.SendErrors > 0)
		}
	}
}

// narrow is a path that loses large datagrams and doesn't say so.
type narrow struct {
	udp.Socket
	mtu int
}

func (n *narrow) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		if len(msgs[i].Buf) > n.mtu {
			continue
		}
		if _, err := n.Socket.WriteBatch(msgs[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(msgs), nil
}

// rebound is a server and a client on real sockets, ticked by hand, the client saying things.
type rebound struct {
	t              *testing.T
	server, client *Driver
	now            time.Time
	ch             *channel.Channel
	got            *sink
	said           int
	result         *netconn.CloseResult
}

func newRebound(t *testing.T, link Link) *rebound {
	r := &rebound{t: t, got: &sink{}}
	var err error
	r.server, err = Listen("127.0.0.1:0", Config{Link: link, Channels: chat(&echo{})})
	require.NoError(t, err)
	r.client, err = Dial(r.server.LocalAddr().String(), Config{Link: link, Channels: chat(r.got),
		Closed: func(_ *Conn, res netconn.CloseResult) { r.result = &res },
		Joined: func(c *Conn) { r.ch, _ = c.Open(chatName, r.got) }})
	require.NoError(t, err)
	r.now = time.Now()
	t.Cleanup(func() {
		_ = r.server.Close()
		_ = r.client.Close()
	})
	r.until("joined", func() bool { return r.ch != nil })
	return r
}

func (r *rebound) step() {
	r.now = r.now.Add(16 * time.Millisecond)
	for _, d := range []*Driver{r.server, r.client} {
		d.TickDispatch(r.now)
		d.TickFlush(r.now)
	}
}

func (r *rebound) until(what string, f func() bool) {
	r.t.Helper()
	for range 20_000 {
		if f() {
			return
		}
		r.step()
	}
	r.t.Fatalf("never: %s; %v %v", what, r.client.Err(), r.result)
}

func (r *rebound) say(n int) {
	for range n {
		_, err := r.ch.SendBunch(&bunch.Out{Data: []byte(strconv.Itoa(r.said)), Reliable: true, NoMerge: true})
		require.NoError(r.t, err)
		r.said++
	}
}

// heard waits until all that was said is echoed, once and in order.
func (r *rebound) heard() {
	r.t.Helper()
	r.until("all heard", func() bool { return len(r.got.got) >= r.said })
	for i, s := range r.got.got {
		require.Equal(r.t, strconv.Itoa(i), s)
	}
	require.Len(r.t, r.got.got, r.said)
}

// TestRebind: a client's socket is closed under it, and then the server's; with new ones at the same addresses all goes on. An address
// of its own is followed by the Unreal link, and elsewhere ends in a timeout at both ends.
func TestRebind(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			r := newRebound(t, link)
			r.say(3)
			r.heard()
			for _, d := range []*Driver{r.client, r.server} {
				addr := d.LocalAddr().String()
				require.NoError(t, d.socket.Close())
				for range 20 {
					r.say(1)
					r.step()
				}
				require.ErrorIs(t, d.Err(), net.ErrClosed)
				require.Nil(t, r.result, "it waits")
				s, err := udp.Listen(addr, udp.Config{})
				require.NoError(t, err)
				require.NoError(t, d.Rebind(s))
				require.NoError(t, d.Err())
				r.heard()
			}
			s, err := udp.Listen("127.0.0.1:0", udp.Config{})
			require.NoError(t, err)
			require.NoError(t, r.client.Rebind(s), "the old socket works; it is closed")
			r.say(20)
			if name == "unreal" {
				r.heard()
				for c := range r.server.Conns {
					require.Equal(t, s.LocalAddr(), c.RemoteAddr())
				}
				return
			}
			r.until("timed out", func() bool { return r.result != nil && r.server.Len() == 0 })
			require.Equal(t, netconn.TimedOut, r.result.Code, r.result)
			require.Equal(t, 20, r.result.Unacked)
		})
	}
}

// TestRebindMisuse: what Rebind can't do.
func TestRebindMisuse(t *testing.T) {
	d, err := Listen("127.0.0.1:0", Config{Link: PlainSalted{}})
	require.NoError(t, err)
	require.ErrorIs(t, d.Rebind(nil), ErrNoSocket)
	require.NoError(t, d.Rebind(d.socket), "the same again")
	require.NoError(t, d.Close())
	s := keepSocket()
	require.ErrorIs(t, d.Rebind(s), net.ErrClosed)

	m := newMemory(t, Config{Link: PlainSalted{ProtocolID: 1}}, Config{Link: PlainSalted{ProtocolID: 2}})
	m.until("refused", func() bool { return m.cres != nil })
	require.NoError(t, m.client.Rebind(m.client.socket))
	require.ErrorIs(t, m.client.Err(), ErrNoAnswer, "another socket doesn't mend that")
}

// TestClockSetBack: times without a monotonic reading that go back, or stand still, stall nothing.
func TestClockSetBack(t *testing.T) {
	for name, link := range links() {
		m := newMemory(t, Config{Link: link, Channels: chat(&echo{})}, Config{Link: link, Channels: chat(&echo{})})
		m.now = m.now.Round(0)
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		before := m.server.Time(m.now)
		for range 3 {
			m.now = m.now.Add(-time.Hour)
			m.talk(5)
		}
		require.Greater(t, m.server.Time(m.now), before, name)
		require.Less(t, m.server.Time(m.now), time.Minute, name)
	}
}

// TestAnyClockOfTheGame: a game's clock may count from whenever it likes, and leap by any time and back: connections' time goes on, and they talk.
func TestAnyClockOfTheGame(t *testing.T) {
	for name, link := range links() {
		for _, begins := range []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0), time.Unix(-1<<40, 0)} {
			m := newMemory(t, Config{Link: link, Channels: chat(&echo{})}, Config{Link: link, Channels: chat(&echo{})})
			goesOn := func(what string) {
				m.talk(3)
				before := m.server.Now()
				for range 100 {
					m.step()
				}
				require.Equal(t, 1600*time.Millisecond, m.server.Now()-before, "%s, %s: %v", name, what, begins)
				require.Nil(t, m.cres, name)
			}
			m.now = begins
			goesOn("from the beginning")
			for _, ticks := range []int{1, 2, 3, 50} {
				m.now = m.server.cfg.Clock()
				goesOn("another clock")
				m.now = begins
				for range ticks {
					m.step()
				}
			}
		}
	}
}

// TestTokensExpireByTheTimeOfDay: tokens are good or expired by Config.Clock, whatever a game's ticks count from.
func TestTokensExpireByTheTimeOfDay(t *testing.T) {
	for _, begins := range []time.Time{{}, time.Unix(0, 0), time.Unix(1<<40, 0), time.Now()} {
		w := newTown(t, 1, netsim.Settings{}, Config{Link: Netcode{Key: netcode.Key{1}}})
		w.server.cfg.Clock = time.Now
		w.now = begins
		w.began = begins
		for i, good := range []bool{true, false, true} {
			c := w.dial(Config{Link: Netcode{Token: townToken(t, w, uint64(i), func(c *netcode.TokenConfig) {
				if c.Create = uint64(time.Now().Unix()); !good {
					c.Create -= 3600
				}
				c.Expire = c.Create + 60
			})}})
			w.until("an answer, or none", func() bool { return c.joined || c.result != nil })
			require.Equal(t, good, c.joined, "token %d, ticks from %v: %v", i, begins, c.result)
		}
	}
}

// TestWallClockSteps: a wall clock that is set leaves those who play alone. Newcomers' tokens are good or expired by the new time.
func TestWallClockSteps(t *testing.T) {
	key := netcode.Key{7}
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	for _, c := range []struct {
		step    time.Duration
		expired uint64
	}{{0, 0}, {-24 * time.Hour, 0}, {24 * time.Hour, 1}} {
		set := time.Duration(0)
		clock := func() time.Time { return time.Now().Add(set) }
		m := newMemory(t, Config{Link: Netcode{Key: key}, Channels: chat(&echo{}), Clock: clock}, Config{Link: Netcode{Key: key}, Channels: chat(&echo{})})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		set = c.step
		for range 1000 {
			m.step()
		}
		require.Nil(t, m.sres, c.step)
		require.Nil(t, m.cres, c.step)
		k := &keep{Socket: a}
		d, err := Dial("127.0.0.1:7777", Config{Link: Netcode{Key: key}, Socket: k})
		require.NoError(t, err)
		d.TickFlush(d.epoch.Add(time.Second))
		m.server.server.receive(m.server.Time(m.now), netip.MustParseAddrPort("127.0.0.1:4321"), k.sent[0].Buf)
		counters := m.server.server.(*netcodeServer).m.Counters
		require.Equal(t, c.expired, counters.Expired, c.step)
		require.Equal(t, 2-c.expired, counters.Challenges, c.step)
		m.talk(3)
	}
}

// TestHitch: a tick that takes ten seconds. Both at once notice nothing; where only one end hangs the other gives up if that is longer than
// Config.Timeout, on every link, and the other learns of it.
func TestHitch(t *testing.T) {
	type hitch struct {
		name     string
		link     Link
		hang     string
		timeout  time.Duration
		survives bool
	}
	var all []hitch
	for name, link := range links() {
		all = append(all, hitch{name, link, "both", 4 * time.Second, true}, hitch{name, link, "client", 4 * time.Second, false},
			hitch{name, link, "client", 0, true}, hitch{name, link, "server", 0, true})
	}
	for _, c := range all {
		t.Run(fmt.Sprintf("%s, %s, %v", c.name, c.hang, c.timeout), func(t *testing.T) {
			m := newMemory(t, Config{Link: c.link, Channels: chat(&echo{}), Timeout: c.timeout}, Config{Link: c.link, Channels: chat(&echo{}), Timeout: c.timeout})
			m.talk(3)
			switch c.hang {
			case "both":
				m.now = m.now.Add(10 * time.Second)
			case "client":
				for range 625 {
					m.now = m.now.Add(16 * time.Millisecond)
					m.server.TickDispatch(m.now)
					m.server.TickFlush(m.now)
				}
			case "server":
				for range 625 {
					m.now = m.now.Add(16 * time.Millisecond)
					m.client.TickDispatch(m.now)
					m.client.TickFlush(m.now)
				}
			}
			if c.survives {
				m.talk(10)
				require.Nil(t, m.sres)
				require.Nil(t, m.cres)
				return
			}
			m.until("ended", func() bool { return m.sres != nil && m.cres != nil })
			require.Equal(t, netconn.TimedOut, m.sres.Code, m.sres)
			require.GreaterOrEqual(t, m.sres.Silence, c.timeout)
			if c.name != "unreal" { // whose link has no word for it
				require.Equal(t, netconn.ClosedByPeer, m.cres.Code, m.cres)
			}
		})
	}
}

// TestMovedAgainInTheRestart: a client whose address changes while it proves its last one is heard again after a few seconds.
func TestMovedAgainInTheRestart(t *testing.T) {
	for name, link := range map[string]Link{"4.27": PlainUnreal427(), "5.1": PlainUnreal51(), "5.3": PlainUnreal53()} {
		for between := time.Duration(0); between < 400*time.Millisecond; between += 16 * time.Millisecond {
			got := 0
			types := []channel.Type{{Name: chatName, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return counting{count: func() { got++ }} }}}
			w := newTown(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, Config{Link: link, Channels: types})
			c := w.dial(Config{Link: link, Channels: types})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
			wait := func(d time.Duration) {
				for end := w.now.Add(d); w.now.Before(end); {
					w.step()
				}
			}
			wait(12 * time.Second) // the server's requests are believed from then on
			ch, err := c.Server().Open(chatName, nil)
			require.NoError(t, err)
			say := func() {
				_, err := ch.SendBunch(&bunch.Out{Data: []byte("x"), Reliable: true})
				require.NoError(t, err)
			}
			w.move(0, netip.MustParseAddrPort("10.3.0.1:1000"))
			say()
			wait(between)
			w.move(0, netip.MustParseAddrPort("10.3.0.2:1000"))
			moved := w.now
			say()
			w.until("heard", func() bool { return got > 0 && w.server.conns[0].addr == w.sockets[0].addr })
			require.Less(t, w.now.Sub(moved), 5*time.Second, "%s, moved again after %v", name, between)
		}
	}
}

// TestMovedBack: what a client sent at an address, and that arrives after the client has moved on, or back to the address before, leaves its connection where it is.
func TestMovedBack(t *testing.T) {
	for name, link := range map[string]Link{"4.27": PlainUnreal427(), "5.1": PlainUnreal51(), "5.3": PlainUnreal53()} {
		for _, last := range []string{"10.1.0.0:1000", "10.3.0.9:1000"} {
			w := newTown(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, Config{Link: link})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
			sent := &keep{Socket: c.socket, forward: true}
			c.socket = sent
			there := netip.MustParseAddrPort("10.3.0.1:1000")
			for _, at := range []netip.AddrPort{there, netip.MustParseAddrPort(last)} {
				if at != there {
					c.socket = sent.Socket
				}
				w.move(0, at)
				w.until("heard from there", func() bool { return w.server.conns[0].addr == at })
				for range 50 { // so that the client knows it
					w.step()
				}
			}
			for _, m := range sent.sent {
				w.server.server.receive(w.server.Now(), there, m.Buf)
			}
			require.Equal(t, last, w.server.conns[0].addr.String(), "%s: it went back", name)
			w.move(0, there)
			w.until("heard from there once more", func() bool { return w.server.conns[0].addr == there })
		}
	}
}

// TestMovedWhileConnecting: a client whose address changes at any time before it has joined joins all the same.
func TestMovedWhileConnecting(t *testing.T) {
	for after := time.Duration(0); after < 500*time.Millisecond; after += 16 * time.Millisecond {
		w := newTown(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, Config{Link: PlainUnreal51()})
		c := w.dial(Config{Link: PlainUnreal51()})
		for end := w.now.Add(after); w.now.Before(end); {
			w.step()
		}
		w.move(0, netip.MustParseAddrPort("10.3.0.1:1000"))
		moved := w.now
		w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
		require.Less(t, w.now.Sub(moved), 6*time.Second, "moved after %v", after)
	}
}

// TestMovedAndClosing: a client whose address changes and that closes right after it is heard, also in the first 10 s, in which it doesn't
// believe the server's requests to restart.
func TestMovedAndClosing(t *testing.T) {
	for after := time.Duration(0); after < 2*time.Second; after += 160 * time.Millisecond {
		var told *netconn.CloseResult
		w := newTown(t, 1, netsim.Settings{Lag: 150 * time.Millisecond}, Config{Link: PlainUnreal51(), Closed: func(_ *Conn, r netconn.CloseResult) { told = &r }})
		c := w.dial(Config{Link: PlainUnreal51()})
		w.until("joined", func() bool { return c.joined && w.server.Len() == 1 })
		moved := w.now
		w.move(0, netip.MustParseAddrPort("10.3.0.1:1000"))
		w.until("some time later", func() bool { return w.now.Sub(moved) >= after })
		c.Server().CloseWithReason("bye")
		w.until("ended", func() bool { return c.result != nil && told != nil })
		require.Equal(t, netconn.ClosedByPeer, told.Code, "closed %v after it", after)
		require.Equal(t, 0, c.result.Unacked, "closed %v after it", after)
	}
}

// TestRunWithAClockSetBack: Run goes on ticking when a clock without a monotonic reading is set back, or ahead.
func TestRunWithAClockSetBack(t *testing.T) {
	for _, prompt := range []bool{false, true} {
		for _, set := range []time.Duration{-time.Hour, time.Hour} {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			offset, steps := time.Duration(0), 0
			d, err := Listen("127.0.0.1:0", Config{Link: PlainSalted{}, TickRate: 100, Prompt: prompt, Clock: func() time.Time { return time.Now().Round(0).Add(offset) }})
			require.NoError(t, err)
			require.NoError(t, d.Run(ctx, func(time.Time) {
				switch steps++; steps {
				case 5:
					offset = set
				case 10:
					cancel()
				}
			}))
			require.Equal(t, 10, steps, "prompt %v, set by %v", prompt, set)
			cancel()
		}
	}
}
