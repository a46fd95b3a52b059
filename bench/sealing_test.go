package bench

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// smallBatches is a client's socket, for which a driver keeps room for few datagrams.
type smallBatches struct{ udp.Socket }

func (smallBatches) BatchSize() int { return 4 }

// sealingRig is a server with Netcode and its clients, over real sockets. In each tick, 20 a second, every client sends 100 B and is sent them back.
type sealingRig struct {
	b               *testing.B
	now             time.Time
	srv             *driver.Driver
	clients         []*sealingClient
	got             counter
	dispatch, flush []time.Duration // of each tick
}

type sealingClient struct {
	*driver.Driver
	ch *channel.Channel
}

func newSealingRig(b *testing.B, clients int, cores driver.Cores) *sealingRig {
	r := &sealingRig{b: b, now: time.Now()}
	name := bunch.Name{Index: 100}
	cfg := driver.Config{Link: driver.Netcode{Key: netcode.Key{1}}, MaxConns: clients, Parallel: cores, AckDelay: 50 * time.Millisecond, NoPacketInfo: true,
		Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return &echoHandler{} }}}}
	var err error
	if r.srv, err = driver.Listen("127.0.0.1:0", cfg); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.srv.Close() })
	cfg.Parallel = 0
	for range clients {
		c := &sealingClient{}
		s, err := udp.Listen("127.0.0.1:0", udp.Config{NoPoller: true, NoOffload: true})
		if err != nil {
			b.Fatal(err)
		}
		cfg.Socket = smallBatches{s}
		cfg.Joined = func(dc *driver.Conn) {
			if c.ch, err = dc.Open(name, &r.got); err == nil {
				_, err = c.ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			}
			if err != nil {
				b.Error(err)
			}
		}
		if c.Driver, err = driver.Dial(r.srv.LocalAddr().String(), cfg); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		r.clients = append(r.clients, c)
	}
	for range 100 {
		r.tick()
	}
	r.got.bunches = 0
	for range 20 {
		r.tick()
	}
	if want := 20 * clients; r.got.bunches < want*9/10 {
		b.Fatalf("%d of %d echoes", r.got.bunches, want)
	}
	r.dispatch, r.flush = nil, nil
	return r
}

// tick has the server read four times, as the system's buffer doesn't hold what all clients send.
func (r *sealingRig) tick() {
	const reads = 4
	r.now = r.now.Add(time.Second / 20)
	var dispatch time.Duration
	for i := range reads {
		for _, c := range r.clients[i*len(r.clients)/reads : (i+1)*len(r.clients)/reads] {
			c.TickDispatch(r.now)
			if c.ch != nil {
				if _, err := c.ch.SendBunch(&bunch.Out{Data: make([]byte, 100)}); err != nil {
					r.b.Fatal(err)
				}
			}
			c.TickFlush(r.now)
		}
		began := cputime.Thread()
		r.srv.TickDispatch(r.now)
		dispatch += cputime.Thread() - began
	}
	began := cputime.Thread()
	r.srv.TickFlush(r.now)
	r.flush = append(r.flush, cputime.Thread()-began)
	r.dispatch = append(r.dispatch, dispatch)
}

// BenchmarkSealing is the tick of a server with 1,000 clients over Netcode and the loopback, on one core and with Config.Parallel on two, in turns: the
// medians of its two halves, system calls included, and how many times faster two cores are. Times are the CPU time of the tick's goroutine: what it waits for
// the other core, at most for 32 packets, doesn't count. Where their memory lies makes more of a difference, so each of the two servers is once the first.
func BenchmarkSealing(b *testing.B) {
	runtime.LockOSThread() // for cputime.Thread
	defer runtime.UnlockOSThread()
	for _, order := range [][]driver.Cores{{1, 2}, {2, 1}} {
		b.Run(fmt.Sprintf("%d-first", order[0]), func(b *testing.B) {
			rigs := map[driver.Cores]*sealingRig{}
			for _, cores := range order {
				rigs[cores] = newSealingRig(b, 1000, cores)
			}
			b.ResetTimer()
			for range b.N {
				for _, cores := range order {
					rigs[cores].tick()
				}
			}
			us := func(took []time.Duration) float64 {
				slices.Sort(took)
				return float64(took[len(took)/2].Nanoseconds()) / 1000
			}
			one, two := rigs[1], rigs[2]
			b.ReportMetric(us(one.dispatch), "us/dispatch-1")
			b.ReportMetric(us(two.dispatch), "us/dispatch-2")
			b.ReportMetric(us(one.flush), "us/flush-1")
			b.ReportMetric(us(two.flush), "us/flush-2")
			b.ReportMetric(us(one.flush)/us(two.flush), "flush-times-faster")
			b.ReportMetric((us(one.dispatch)+us(one.flush))/(us(two.dispatch)+us(two.flush)), "tick-times-faster")
			b.ReportMetric(0, "ns/op")
		})
	}
}
