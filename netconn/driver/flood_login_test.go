package driver

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/salted"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// crowd is the sockets of a server and its clients. The server's holds so many datagrams as a kernel's does, and reading one takes a while.
type crowd struct {
	mu    sync.Mutex
	addr  netip.AddrPort
	queue []udp.Message
	most  int
	ends  map[netip.AddrPort]*crowdSocket
}

const (
	crowdQueue  = 1700
	readCost    = time.Microsecond
	handleCost  = 40 * time.Microsecond
	floodLasts  = 3 * time.Second
	honestTick  = 16 * time.Millisecond
	honestUsers = 6
)

type crowdSocket struct {
	crowd  *crowd
	addr   netip.AddrPort
	unread [][]byte
}

func (s *crowdSocket) BatchSize() int                  { return 64 }
func (s *crowdSocket) LocalAddr() netip.AddrPort       { return s.addr }
func (s *crowdSocket) SetReadDeadline(time.Time) error { return nil }
func (s *crowdSocket) Close() error                    { return nil }

func (s *crowdSocket) ReadBatch(m []udp.Message) (int, error) {
	if n, err := s.TryReadBatch(m); n > 0 || err != nil {
		return n, err
	}
	time.Sleep(100 * time.Microsecond)
	return s.TryReadBatch(m)
}

func (s *crowdSocket) TryReadBatch(msgs []udp.Message) (n int, err error) {
	s.crowd.mu.Lock()
	if s.addr == s.crowd.addr {
		n = min(len(msgs), len(s.crowd.queue))
		for i, m := range s.crowd.queue[:n] {
			msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, m.Buf), m.Addr
		}
		s.crowd.queue = s.crowd.queue[n:]
		s.crowd.mu.Unlock()
		time.Sleep(time.Duration(n) * readCost)
		return n, nil
	}
	defer s.crowd.mu.Unlock()
	n = min(len(msgs), len(s.unread))
	for i, p := range s.unread[:n] {
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, p), s.crowd.addr
	}
	s.unread = s.unread[n:]
	return n, nil
}

func (s *crowdSocket) WriteBatch(msgs []udp.Message) (int, error) {
	s.crowd.mu.Lock()
	defer s.crowd.mu.Unlock()
	for i := range msgs {
		p := slices.Clone(msgs[i].Buf)
		if s.addr == s.crowd.addr {
			if to := s.crowd.ends[msgs[i].Addr]; to != nil {
				to.unread = append(to.unread, p)
			}
		} else if len(s.crowd.queue) < s.crowd.most {
			s.crowd.queue = append(s.crowd.queue, udp.Message{Buf: p, Addr: s.addr})
		}
	}
	return len(msgs), nil
}

func (c *crowd) socket(addr string) *crowdSocket {
	s := &crowdSocket{crowd: c, addr: netip.MustParseAddrPort(addr)}
	c.mu.Lock()
	c.ends[s.addr] = s
	c.mu.Unlock()
	return s
}

func newCrowd(most int) *crowd {
	return &crowd{addr: netip.MustParseAddrPort("10.0.0.1:7777"), most: most, ends: map[netip.AddrPort]*crowdSocket{}}
}

// client is the socket of the i-th client.
func (c *crowd) client(i int) *crowdSocket {
	return c.socket(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 1000).String())
}

// slowLink takes a while for each datagram.
type slowLink struct {
	serverLink
	cost time.Duration
}

func (l slowLink) receive(at time.Duration, from netip.AddrPort, p []byte) {
	time.Sleep(l.cost)
	l.serverLink.receive(at, from, p)
}

// lateness is the handler that measures how late messages are that were sent since a time.
type lateness struct {
	channel.Nop
	since atomic.Int64 // Unix nanoseconds
	late  []time.Duration
}

func (l *lateness) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	if sent := int64(in.Data.ReadUint64()); sent >= l.since.Load() {
		l.late = append(l.late, time.Since(time.Unix(0, sent)))
	}
}

// lastSent keeps the newest packet that a client sent.
type lastSent struct{ p []byte }

func (l *lastSent) TracePacket(p *nettrace.Packet) {
	if p.Sent {
		l.p = append(l.p[:0], p.Data...)
	}
}

// pour sends a client's packet once more, as another datagram.
func pour(d *Driver, p []byte) {
	switch l := d.client.(type) {
	case *netcodeClient:
		b := append(make([]byte, netcode.Headroom, netcode.Headroom+len(p)+netcode.Tailroom), p...)
		_ = l.m.SendPayload(l.at, b)
	case *saltedClient:
		_ = l.m.SendPayload(l.at, append(make([]byte, salted.Headroom), p...))
	case *unrealClient:
		d.write(l.to, p)
	}
}

// flood is what clients with a login send, while others play.
type flood struct {
	link   Link
	bound  int // MaxConnDatagrams
	prompt bool
	pulse  int // ms of flood, and as many without; 0: no pause
	of     int // clients
	perMs  int // datagrams of all of them
}

// run returns how late the others' messages are from the first on, the server, its ticks in the flood, and its log.
func (f flood) run(t *testing.T) (late []time.Duration, srv *Driver, ticks int, log string) {
	c := newCrowd(crowdQueue)
	measured := &lateness{}
	measured.since.Store(time.Now().Add(time.Hour).UnixNano())
	var out bytes.Buffer
	srv, err := Listen("", Config{Link: f.link, Channels: chat(measured), Socket: c.socket("10.0.0.1:7777"), MaxConnDatagrams: f.bound, Prompt: f.prompt,
		Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	srv.server = slowLink{srv.server, handleCost}
	ran := make(chan error, 1)
	var count, shed atomic.Int64
	go func() {
		ran <- srv.Run(ctx, func(time.Time) {
			count.Add(1)
			shed.Store(int64(srv.Counters.Shed))
		})
	}()

	var clients []*Driver
	var chs []*channel.Channel
	sent := make([]lastSent, f.of)
	for i := range honestUsers + f.of {
		cfg := Config{Link: f.link, Channels: chat(nil), Socket: c.client(i),
			Joined: func(c *Conn) {
				ch, err := c.Open(chatName, channel.Nop{})
				require.NoError(t, err)
				chs = append(chs, ch)
			}, Closed: func(_ *Conn, r netconn.CloseResult) { t.Error(r) }}
		if i >= honestUsers {
			cfg.Packets = &sent[i-honestUsers]
		}
		d, err := Dial("10.0.0.1:7777", cfg)
		require.NoError(t, err)
		clients = append(clients, d)
		for len(chs) <= i {
			time.Sleep(honestTick)
			for _, d := range clients {
				d.TickDispatch(time.Now())
				d.TickFlush(time.Now())
			}
		}
	}
	flooders := clients[honestUsers:]
	ms, poured := 0, 0
	play := func(flood bool, lasts time.Duration) {
		for end := time.Now().Add(lasts); time.Now().Before(end); {
			for _, d := range clients {
				d.TickDispatch(time.Now())
			}
			for _, ch := range chs[:honestUsers] {
				_, err := ch.SendBunch(&bunch.Out{Data: binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), Reliable: true, NoMerge: true})
				require.NoError(t, err)
			}
			for _, d := range clients {
				d.TickFlush(time.Now())
			}
			for range honestTick / time.Millisecond {
				if ms++; flood && (f.pulse == 0 || ms/f.pulse%2 == 0) {
					for range f.perMs {
						pour(flooders[poured%f.of], sent[poured%f.of].p)
						poured++
					}
				}
				for _, d := range flooders {
					d.flush()
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	play(false, time.Second)
	require.Zero(t, shed.Load())
	before := count.Load()
	measured.since.Store(time.Now().UnixNano())
	play(true, floodLasts)
	ticks = int(count.Load() - before)
	play(false, time.Second)
	for i, ch := range chs {
		require.NotNil(t, ch, "%d", i)
	}
	stop()
	require.NoError(t, <-ran)
	for _, d := range clients {
		d.cfg.Closed = nil
		require.NoError(t, d.Close())
	}
	require.Greater(t, len(measured.late), 100)
	slices.Sort(measured.late)
	return measured.late, srv, ticks, out.String()
}

// TestFloodWithALogin: a client that floods a server with packets that are its own delays the others by no more than a tick, and is named. Without the bound
// they lose most of what they send.
func TestFloodWithALogin(t *testing.T) {
	for name, link := range links() {
		for _, prompt := range []bool{false, true} {
			for _, pulse := range []int{0, 100} {
				synctest.Test(t, func(t *testing.T) {
					late, srv, ticks, log := flood{link, 0, prompt, pulse, 1, 60}.run(t)
					worst := late[len(late)-1]
					t.Logf("%s, prompt %v, pulses of %d ms: %v at most, %d ticks, %d shed of %d", name, prompt, pulse, worst, ticks, srv.Counters.Shed, srv.Counters.DatagramsIn)
					require.Less(t, worst, honestTick)
					require.Greater(t, ticks, int(0.85*60*floodLasts.Seconds()))
					require.Greater(t, srv.Counters.Shed, uint64(50_000))
					require.Equal(t, 1, strings.Count(log, `msg="connection floods" addr=10.0.1.6:1000`))
					require.Contains(t, log, " flood=")
				})
			}
		}
		synctest.Test(t, func(t *testing.T) {
			late, srv, ticks, _ := flood{link, -1, false, 0, 1, 60}.run(t)
			t.Logf("%s, no bound: %v at most, %v in the middle, %d ticks", name, late[len(late)-1], late[len(late)/2], ticks)
			require.Greater(t, late[len(late)/2], 50*time.Millisecond, "the flood is none")
			require.Zero(t, srv.Counters.Shed)
		})
	}
}

// TestManyFlood: where the shares of all that flood are more than the server can handle, they become smaller, and the others play on.
func TestManyFlood(t *testing.T) {
	for _, perMs := range []int{60, 200} {
		synctest.Test(t, func(t *testing.T) {
			late, srv, ticks, _ := flood{PlainSalted{}, 0, false, 0, 12, perMs}.run(t)
			most := late[len(late)*95/100]
			t.Logf("12 clients, %d a ms: %v at most, 95 %% within %v, %d ticks, a share of %d", perMs, late[len(late)-1], most, ticks, srv.share.bound)
			require.Less(t, most, 2*honestTick)
			require.Greater(t, ticks, int(0.85*60*floodLasts.Seconds()))
		})
	}
}

// uploaded is the handler that counts the bytes that come.
type uploaded struct {
	channel.Nop
	bytes atomic.Int64
}

func (u *uploaded) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	u.bytes.Add(int64(in.Data.Remaining() / 8))
}

// TestUploadsAreNoFlood: two clients that send 50 MB a second each, in one burst a tick, lose nothing to the bound while the server can handle that, and next to nothing
// after a tick that took too long.
func TestUploadsAreNoFlood(t *testing.T) {
	const users, each, lasts = 2, 50_000_000, 3 * time.Second
	for name, link := range links() {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(1 << 16)
			got := &uploaded{}
			srv, err := Listen("", Config{Link: link, Channels: chat(got), Socket: c.socket("10.0.0.1:7777")})
			require.NoError(t, err)
			srv.server = slowLink{srv.server, 500 * time.Nanosecond}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ran, ticks, first, before := make(chan error, 1), 0, uint64(0), uint64(0)
			go func() {
				ran <- srv.Run(ctx, func(time.Time) {
					switch ticks++; ticks {
					case 30: // the first burst was larger
						first = srv.Counters.Shed
					case 120:
						before = srv.Counters.Shed
						time.Sleep(20 * time.Millisecond)
					}
				})
			}()
			var clients []*Driver
			for i := range users {
				d, err := Dial("10.0.0.1:7777", Config{Link: link, Channels: chat(nil), Socket: c.client(i), NetSpeed: each})
				require.NoError(t, err)
				clients = append(clients, d)
			}
			var chs [users]*channel.Channel
			data := make([]byte, 900)
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(honestTick) {
				for i, d := range clients {
					d.TickDispatch(time.Now())
					if s := d.Server(); s != nil && s.Joined() && chs[i] == nil {
						chs[i], err = s.Open(chatName, channel.Nop{})
						require.NoError(t, err)
					}
					for chs[i] != nil {
						if _, err := chs[i].SendBunch(&bunch.Out{Data: data, Reliable: true}); err != nil {
							break
						}
					}
					d.TickFlush(time.Now())
				}
			}
			stop()
			require.NoError(t, <-ran)
			for _, d := range clients {
				require.NoError(t, d.Close())
			}
			t.Logf("%s: %.1f MB of %.1f, %d datagrams, %d shed", name, float64(got.bytes.Load())/1e6, users*each*lasts.Seconds()/1e6, srv.Counters.DatagramsIn, srv.Counters.Shed)
			require.Equal(t, first, before)
			require.Less(t, srv.Counters.Shed, srv.Counters.DatagramsIn/50)
			require.Greater(t, float64(got.bytes.Load()), 0.9*users*each*lasts.Seconds())
		})
	}
}

// TestSlowTicksAreNoFlood: a server that is ticked by hand, ten times a second to once, handles in a fiftieth of its time what 40 clients send it at 60 Hz. It keeps up,
// and drops nothing of theirs, though what waits for a tick takes longer to read than it does at 60 Hz.
func TestSlowTicksAreNoFlood(t *testing.T) {
	const users, lasts, cost = 40, 12 * time.Second, 7 * time.Microsecond
	for _, apart := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(1 << 16)
			srv, err := Listen("", Config{Link: PlainSalted{}, Channels: chat(&uploaded{}), Socket: c.socket("10.0.0.1:7777")})
			require.NoError(t, err)
			srv.server = slowLink{srv.server, cost}
			var clients []*Driver
			for i := range users {
				d, err := Dial("10.0.0.1:7777", Config{Link: PlainSalted{}, Channels: chat(nil), Socket: c.client(i)})
				require.NoError(t, err)
				clients = append(clients, d)
			}
			var chs [users]*channel.Channel
			begin := time.Now()
			for next := begin; time.Since(begin) < lasts; time.Sleep(honestTick) {
				for i, d := range clients {
					d.TickDispatch(time.Now())
					if s := d.Server(); s != nil && s.Joined() && chs[i] == nil {
						chs[i], err = s.Open(chatName, channel.Nop{})
						require.NoError(t, err)
						_, err = chs[i].SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
						require.NoError(t, err)
					} else if chs[i] != nil {
						_, _ = chs[i].SendBunch(&bunch.Out{Data: make([]byte, 20)})
					}
					d.TickFlush(time.Now())
				}
				if now := time.Now(); !now.Before(next) {
					next = next.Add(apart)
					srv.TickDispatch(now)
					srv.TickFlush(now)
				}
			}
			t.Logf("%v apart: %d datagrams, %d shed, %d bounded, a share of %d", apart, srv.Counters.DatagramsIn, srv.Counters.Shed, srv.Counters.ReadsBounded, srv.share.bound)
			require.Greater(t, srv.Counters.DatagramsIn, uint64(users*30*lasts.Seconds()))
			require.Zero(t, srv.Counters.Shed)
			for _, d := range append(clients, srv) {
				require.NoError(t, d.Close())
			}
		})
	}
}

// TestShare: connections are held from when the socket hasn't been empty for a quarter of a tick, 4 ms at most, until it is; a single connection never. While it takes
// twice as long, their share is halved each tick, to 16; it is doubled after 300 ticks without that.
func TestShare(t *testing.T) {
	for rate, lag := range map[int]time.Duration{0: 4 * time.Millisecond, 10: 4 * time.Millisecond, 1000: 250 * time.Microsecond} {
		m := newMemory(t, Config{Link: PlainSalted{}, Channels: chat(&echo{}), TickRate: rate, MaxConnDatagrams: 100}, Config{Link: PlainSalted{}, Channels: chat(nil)})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		d := m.server
		now := time.Unix(1000, 0)
		d.cfg.Clock = func() time.Time { return now }
		d.hasRead(false)
		now = now.Add(lag - 1)
		d.hasRead(false)
		require.False(t, d.share.late)
		now = now.Add(1)
		d.hasRead(true)
		d.hasRead(false)
		now = now.Add(lag - 1)
		d.hasRead(false)
		require.False(t, d.share.late, "it was empty")
		now = now.Add(1)
		d.hasRead(false)
		require.True(t, d.share.late)
		from := m.client.LocalAddr()
		m.sc.datagrams = 100
		require.False(t, d.excess(from), "alone")
		d.conns = append(d.conns, m.sc)
		require.True(t, d.excess(from))
		require.False(t, d.excess(netip.MustParseAddrPort("192.0.2.9:9")), "nobody's")
		m.sc.datagrams = 99
		require.False(t, d.excess(from))
		require.EqualValues(t, 1, d.Counters.Shed)
		d.hasRead(true)
		m.sc.datagrams = 1000
		require.False(t, d.excess(from), "the server keeps up")
		d.conns = d.conns[:1]

		d.endShare()
		require.Equal(t, 100, d.share.bound, "in time")
		for _, want := range []int{50, 25, 16, 16} {
			d.hasRead(false)
			now = now.Add(2 * lag)
			d.hasRead(true)
			d.endShare()
			require.Equal(t, want, d.share.bound)
		}
		for _, want := range []int{16, 32, 64, 100, 100} {
			require.Equal(t, want, d.share.bound)
			for range calmTicks {
				d.endShare()
			}
		}
	}
}
