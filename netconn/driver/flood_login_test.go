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
	ends  map[netip.AddrPort]*crowdSocket
}

const (
	crowdQueue  = 1700
	readCost    = time.Microsecond
	handleCost  = 40 * time.Microsecond
	floodPerMs  = 60
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
		} else if len(s.crowd.queue) < crowdQueue {
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

// slowLink takes a while for each datagram.
type slowLink struct{ serverLink }

func (l slowLink) receive(at time.Duration, from netip.AddrPort, p []byte) {
	time.Sleep(handleCost)
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

// flooding has a client with a login send far more than a server can handle, while others play, in pulses of some ms with as long a pause, or without. It returns how late the others are
// from the first on, the server, its ticks in the flood, and its log.
func flooding(t *testing.T, link Link, maxConn int, prompt bool, pulse int) (late []time.Duration, srv *Driver, ticks int, log string) {
	c := &crowd{addr: netip.MustParseAddrPort("10.0.0.1:7777"), ends: map[netip.AddrPort]*crowdSocket{}}
	measured := &lateness{}
	measured.since.Store(time.Now().Add(time.Hour).UnixNano())
	var out bytes.Buffer
	srv, err := Listen("", Config{Link: link, Channels: chat(measured), Socket: c.socket("10.0.0.1:7777"), MaxConnDatagrams: maxConn, Prompt: prompt,
		Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	srv.server = slowLink{srv.server}
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
	sent := &lastSent{}
	for i := range honestUsers + 1 {
		cfg := Config{Link: link, Channels: chat(nil), Socket: c.socket(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 1000).String()),
			Joined: func(c *Conn) {
				ch, err := c.Open(chatName, channel.Nop{})
				require.NoError(t, err)
				chs = append(chs, ch)
			}, Closed: func(_ *Conn, r netconn.CloseResult) { t.Error(r) }}
		if i == honestUsers {
			cfg.Packets = sent
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
	flooder := clients[honestUsers]
	ms := 0
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
				if ms++; flood && (pulse == 0 || ms/pulse%2 == 0) {
					for range floodPerMs {
						pour(flooder, sent.p)
					}
				}
				flooder.flush()
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

// TestFloodWithALogin: a client that floods a server with packets that are its own delays the others by no more than two ticks, and is named. Without the bound
// they lose most of what they send.
func TestFloodWithALogin(t *testing.T) {
	for name, link := range links() {
		for _, prompt := range []bool{false, true} {
			for _, pulse := range []int{0, 100} {
				synctest.Test(t, func(t *testing.T) {
					late, srv, ticks, log := flooding(t, link, 0, prompt, pulse)
					worst := late[len(late)-1]
					t.Logf("%s, prompt %v, pulses of %d ms: %v at most, %d ticks, %d shed of %d", name, prompt, pulse, worst, ticks, srv.Counters.Shed, srv.Counters.DatagramsIn)
					require.Less(t, worst, 2*honestTick)
					require.Greater(t, ticks, int(0.85*60*floodLasts.Seconds()))
					require.Greater(t, srv.Counters.Shed, uint64(50_000))
					require.Equal(t, 1, strings.Count(log, `msg="connection floods" addr=10.0.1.6:1000`))
					require.Contains(t, log, " flood=")
				})
			}
		}
		synctest.Test(t, func(t *testing.T) {
			late, srv, ticks, _ := flooding(t, link, -1, false, 0)
			t.Logf("%s, no bound: %v at most, %v in the middle, %d ticks", name, late[len(late)-1], late[len(late)/2], ticks)
			require.Greater(t, late[len(late)/2], 50*time.Millisecond, "the flood is none")
			require.Zero(t, srv.Counters.Shed)
		})
	}
}

// TestShare: connections are held from 1024 datagrams in a row on, or a quarter of MaxDatagrams, for 10 s after the last one that wanted more than its share; a single connection never.
func TestShare(t *testing.T) {
	for bound, streak := range map[int]int{64: 1024, 4096: 1024, 8192: 2048} {
		m := newMemory(t, Config{Link: PlainSalted{}, Channels: chat(&echo{}), MaxDatagrams: bound, MaxConnDatagrams: 5}, Config{Link: PlainSalted{}, Channels: chat(nil)})
		m.until("joined", func() bool { return m.sc != nil && m.cc != nil })
		d := m.server
		full := len(d.in)
		d.hasRead(0, full-1)
		for n := full; n < streak; n += full {
			d.hasRead(0, full)
			require.False(t, d.share.held, "%d of %d", n, bound)
		}
		d.hasRead(time.Second, full)
		require.True(t, d.share.held)
		from := m.client.LocalAddr()
		m.sc.datagrams = 5
		require.False(t, d.excess(from), "alone")
		d.conns = append(d.conns, m.sc)
		require.True(t, d.excess(from))
		require.False(t, d.excess(netip.MustParseAddrPort("192.0.2.9:9")), "nobody's")
		m.sc.datagrams = 4
		require.False(t, d.excess(from))
		d.conns = d.conns[:1]
		require.EqualValues(t, 1, d.Counters.Shed)
		d.endShare(2 * time.Second)
		d.endShare(12*time.Second - 1)
		require.True(t, d.share.held)
		d.endShare(12 * time.Second)
		require.False(t, d.share.held)
	}
}
