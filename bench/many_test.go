package bench

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// wire is sockets in memory, by address. A datagram waits in the receiver's queue until it reads.
type wire map[netip.AddrPort]*wireSocket

type wireSocket struct {
	wire  wire
	addr  netip.AddrPort
	queue []udp.Message // those from head to tail wait
	head  int
	tail  int
	limit int
}

func (w wire) open(port uint16, limit int) *wireSocket {
	s := &wireSocket{wire: w, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(port >> 8), byte(port)}), port), limit: limit}
	w[s.addr] = s
	return s
}

func (s *wireSocket) TryReadBatch(msgs []udp.Message) (int, error) {
	n := min(len(msgs), s.tail-s.head)
	for i := range n {
		m := &s.queue[s.head+i]
		msgs[i].N, msgs[i].Addr = copy(msgs[i].Buf, m.Buf), m.Addr
	}
	if s.head += n; s.head == s.tail {
		s.head, s.tail = 0, 0
	}
	return n, nil
}

func (s *wireSocket) WriteBatch(msgs []udp.Message) (int, error) {
	for i := range msgs {
		to := s.wire[msgs[i].Addr]
		if to == nil || to.tail == to.limit {
			continue
		}
		if to.tail == len(to.queue) {
			to.queue = append(to.queue, udp.Message{})
		}
		m := &to.queue[to.tail]
		m.Buf, m.Addr = append(m.Buf[:0], msgs[i].Buf...), s.addr
		to.tail++
	}
	return len(msgs), nil
}

func (s *wireSocket) ReadBatch(msgs []udp.Message) (int, error) { return s.TryReadBatch(msgs) }
func (s *wireSocket) BatchSize() int                            { return min(s.limit, 64) }
func (s *wireSocket) LocalAddr() netip.AddrPort                 { return s.addr }
func (s *wireSocket) SetReadDeadline(time.Time) error           { return nil }
func (s *wireSocket) Close() error                              { delete(s.wire, s.addr); return nil }

// BenchmarkMany is what a server's driver spends on an echo of 100 B, its socket left out: a client's datagram received and answered, with its
// part of the ticks, of which there are two a datagram. With many connections most of it is waiting for memory.
func BenchmarkMany(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("plain/%d", n), func(b *testing.B) { manyEchoes(b, n, driver.PlainUnreal51()) })
	}
	b.Run("netcode/1000", func(b *testing.B) { manyEchoes(b, 1000, driver.Netcode{Key: netcode.Key{1}, Slots: 1000}) })
}

func manyEchoes(b *testing.B, n int, link driver.Link) {
	const rate, ticks = 30, 60
	w := wire{}
	name := bunch.Name{Index: 100}
	got := &counter{}
	echo := channel.Type{Name: name, ClientOpen: true, Accept: func(ch *channel.Channel) channel.Handler { return &echoHandler{} }}
	cfg := driver.Config{Link: link, Channels: []channel.Type{echo}, MaxConns: n, AckDelay: 50 * time.Millisecond, NoPacketInfo: true, Socket: w.open(1, n)}
	srv, err := driver.Listen("", cfg)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	type client struct {
		d  *driver.Driver
		ch *channel.Channel
	}
	var clients []*client
	out := bunch.Out{Data: make([]byte, 100)}
	var spent time.Duration
	step := 0
	tick := func() {
		now = now.Add(time.Second / ticks)
		step++
		for i, c := range clients {
			c.d.TickDispatch(now)
			if (step+i)%(ticks/rate) == 0 && c.ch != nil {
				if _, err := c.ch.SendBunch(&out); err != nil {
					b.Fatal(err)
				}
			}
			c.d.TickFlush(now)
		}
		begin := time.Now()
		srv.TickDispatch(now)
		srv.TickFlush(now)
		spent += time.Since(begin)
	}
	for i := range n {
		c := &client{}
		clients = append(clients, c)
		cfg := driver.Config{Link: link, Channels: []channel.Type{echo}, AckDelay: 50 * time.Millisecond, NoPacketInfo: true, Socket: w.open(uint16(i+2), 4)}
		cfg.Joined = func(dc *driver.Conn) {
			if c.ch, err = dc.Open(name, got); err == nil {
				_, err = c.ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			}
			if err != nil {
				b.Error(err)
			}
		}
		if c.d, err = driver.Dial(srv.LocalAddr().String(), cfg); err != nil {
			b.Fatal(err)
		}
		if i%1000 == 999 {
			tick() // of more than 4096 that a server is asked by in one tick, some begin again after five seconds
		}
	}
	for srv.Counters.Joined < uint64(n) || got.bunches < n {
		if step > 2000 {
			b.Fatalf("%d of %d clients are there, %d answers came", srv.Counters.Joined, n, got.bunches)
		}
		tick()
	}
	for range 200 {
		tick()
	}
	got.bunches, spent = 0, 0
	echoes := 0
	b.ReportAllocs()
	b.ResetTimer()
	for b.N > echoes {
		tick()
		echoes += n * rate / ticks
	}
	b.StopTimer()
	if got.bunches < echoes*9/10 {
		b.Fatalf("%d of %d echoes", got.bunches, echoes)
	}
	b.ReportMetric(float64(spent)/float64(got.bunches), "server-ns/echo")
}

type echoHandler struct {
	channel.Nop
	buf [200]byte
}

func (h *echoHandler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	n := in.Bits / 8
	in.Data.ReadBytes(h.buf[:n])
	_, _ = ch.SendBunch(&bunch.Out{Data: h.buf[:n]})
}
