package driver

import (
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/bench/cputime"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/internal/sealing"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// ledger notes what is written, in its order.
type ledger struct {
	udp.Socket
	sum   uint32
	n     int
	bytes int
	check func(m *udp.Message) // may be nil
	every int                  // it refuses each one of so many; 0: none
}

func (l *ledger) WriteBatch(msgs []udp.Message) (int, error) {
	if len(msgs) > l.BatchSize() {
		panic("more datagrams than a call handles")
	}
	for i := range msgs {
		l.sum = crc32.Update(l.sum, castagnoli, []byte(msgs[i].Addr.String()))
		l.sum = crc32.Update(l.sum, castagnoli, msgs[i].Buf)
		l.bytes += len(msgs[i].Buf)
		if l.n++; l.check != nil {
			l.check(&msgs[i])
		}
		if l.every > 0 && l.n%l.every == 0 {
			n, _ := l.Socket.WriteBatch(msgs[:i])
			return n, errBoom
		}
	}
	return l.Socket.WriteBatch(msgs)
}

// besiege plays a server whose clients talk, leave, crash and come back over bad paths, beside liars at two of their addresses and a system that refuses some packets, and returns everything
// that can be observed at the server.
func besiege(t *testing.T, cores Cores) string {
	const clients, ticks = 12, 36
	var seen strings.Builder
	link := Netcode{Key: netcode.Key{1}, TakeOver: true}
	fast := Config{Link: link, Checksum: true, NetSpeed: 10_000_000, Channels: chat(&sink{})}
	cfg := fast
	cfg.Parallel = cores
	cfg.Channels = chat(&echo{})
	cfg.Joined = func(c *Conn) { fmt.Fprintln(&seen, "joined", c.ID(), c.ClientID()) }
	var w *town
	cfg.Closed = func(c *Conn, r netconn.CloseResult) {
		fmt.Fprintln(&seen, "closed", c.ID(), r)
		for o := range w.server.Conns {
			if o.ClientID() == c.ClientID()+1 {
				o.Abort(o.Now(), "its neighbour has gone")
			}
		}
	}
	w = newTown(t, 1, netsim.Settings{Loss: 5, Dup: 5, LagMin: 10 * time.Millisecond, LagMax: 30 * time.Millisecond}, cfg)
	wrote := &ledger{Socket: w.server.socket, every: 150}
	w.server.socket = wrote
	dial := func(id uint64) *townClient {
		cfg := fast
		cfg.Link = Netcode{Token: townToken(t, w, id, nil)}
		cfg.Joined = func(c *Conn) {
			ch, err := c.Open(chatName, &sink{})
			require.NoError(t, err)
			_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
			require.NoError(t, err)
			c.User = ch
		}
		return w.dial(cfg)
	}
	for id := range uint64(clients) {
		dial(id)
	}
	large := 0 // flushes on several cores
	for tick := range ticks {
		for _, c := range w.clients {
			if conn := c.Server(); conn != nil && conn.User != nil {
				_, _ = conn.User.(*channel.Channel).SendBunch(&bunch.Out{Data: make([]byte, 9000), Reliable: true, NoMerge: true}) // it may have ended
			}
		}
		for i := range 20 { // payloads with a tag that is wrong
			lie := append([]byte{0x45, byte(i), 0, 0, 1}, make([]byte, 100)...)
			lie = binary.LittleEndian.AppendUint32(lie, crc32.Checksum(lie, castagnoli))
			w.sockets[i%2].up.Push(w.now.Sub(w.began), lie)
		}
		if i := clients / 2; tick == 24 || tick == 30 { // one crashes and dials again from its address, with its id or another
			w.nextAddr = w.sockets[i].addr
			w.sockets = append(w.sockets[:i:i], w.sockets[i+1:]...)
			dial(uint64(tick/30*100 + i))
		}
		if tick == 27 {
			w.clients[clients-2].Server().CloseWithReason("enough")
			w.server.Conns(func(c *Conn) bool { c.CloseWithError(ErrKicked); return false })
		}
		before := wrote.n
		w.step()
		if wrote.n-before > fewToSeal {
			large++
		}
	}
	require.Positive(t, large)
	require.NotZero(t, w.server.Counters.SendErrors)
	require.NoError(t, w.server.Close())
	require.EqualValues(t, wrote.bytes-wrote.n*checksumBytes, w.server.Counters.BytesOut)
	for _, c := range w.clients[:clients/2] { // the addresses of those behind it had others before
		require.Zero(t, c.client.(*netcodeClient).m.Counters.NotSealed)
	}
	fmt.Fprintln(&seen, wrote.n, wrote.sum, w.server.Counters, w.server.server.(*netcodeServer).m.Counters)
	return seen.String()
}

// TestCoresSealTheSame: what a server sends, in which order, and all else that is seen of it are the same on any number of cores.
func TestCoresSealTheSame(t *testing.T) {
	want := besiege(t, 1)
	for _, cores := range []Cores{2, 4, 8} {
		require.Equal(t, want, besiege(t, cores), "%d cores", cores)
	}
}

// marks is a Sealer that marks packets, or panics.
type marks struct{ err error }

func (m *marks) Seal(p []byte, _ *sealing.Room) []byte {
	if m.err != nil {
		panic(m.err)
	}
	p[0]++
	return append(p, make([]byte, sealing.Overhead)...)
}

// ledgerOf is a driver on so many cores, and what it writes.
func ledgerOf(t *testing.T, cores Cores) (*Driver, *ledger) {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	wrote := &ledger{Socket: a}
	d, err := Listen("", Config{Socket: wrote, Parallel: cores})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, wrote
}

// TestPanicSendsNothingUnsealed: what is collected when the sealing of one packet panics is lost, from the socket's batch with that packet on, and what comes
// after it is sealed once.
func TestPanicSendsNothingUnsealed(t *testing.T) {
	for _, cores := range []Cores{1, 2, 4} {
		d, wrote := ledgerOf(t, cores)
		wrote.check = func(m *udp.Message) {
			require.Equal(t, byte(8), m.Buf[0])
			require.Len(t, m.Buf, 1+sealing.Overhead)
		}
		n := len(d.out.msgs) - 1
		for i := range n {
			s := &marks{}
			if i == n/2 {
				s.err = errBoom
			}
			d.writeUnsealed(d.LocalAddr(), []byte{7}, s)
		}
		panicked := func() (p any) {
			defer func() { p = recover() }()
			d.flush()
			return nil
		}
		require.ErrorIs(t, panicked().(error), errBoom)
		size := d.socket.BatchSize()
		require.LessOrEqual(t, wrote.n, n/2/size*size)
		wrote.n = 0
		for range n {
			d.writeUnsealed(d.LocalAddr(), []byte{7}, &marks{})
		}
		d.flush()
		require.Equal(t, n, wrote.n)
	}
}

// TestPlainBatches: with several cores what isn't sealed goes to the socket in batches that it handles as well.
func TestPlainBatches(t *testing.T) {
	d, wrote := ledgerOf(t, 2)
	n := len(d.out.msgs) - 1
	for range n {
		d.write(d.LocalAddr(), []byte{7})
	}
	d.flush()
	require.Equal(t, n, wrote.n)
}

// writesNone is a socket that writes nothing, without an error.
type writesNone struct{ udp.Socket }

func (writesNone) WriteBatch([]udp.Message) (int, error) { return 0, nil }

// TestNothingWritten: datagrams of which the socket takes none, without an error, are lost and counted, and the flush ends.
func TestNothingWritten(t *testing.T) {
	d, wrote := ledgerOf(t, 2)
	d.socket = writesNone{wrote}
	for range 3 {
		d.write(d.LocalAddr(), []byte{7})
	}
	d.flush()
	require.EqualValues(t, 3, d.Counters.SendErrors)
}

// TestMixedBatch: what needs sealing is sealed though what comes behind it doesn't, and what is larger than any datagram isn't sent, and counted.
func TestMixedBatch(t *testing.T) {
	d, wrote := ledgerOf(t, 2)
	var sizes []int
	wrote.check = func(m *udp.Message) { sizes = append(sizes, len(m.Buf)) }
	const most = maxDatagram - checksumBytes
	for _, size := range []int{most - sealing.Overhead, most - sealing.Overhead + 1} {
		d.writeUnsealed(d.LocalAddr(), make([]byte, size), &marks{})
	}
	for _, size := range []int{most, most + 1} {
		d.write(d.LocalAddr(), make([]byte, size))
	}
	d.flush()
	require.Equal(t, []int{most, most}, sizes)
	require.EqualValues(t, 2, d.Counters.SendErrors)
	require.EqualValues(t, 2, d.Counters.DatagramsOut)
}

// called is a Sealer that calls a function with its number, and whether another core seals than the one that sends.
type called struct {
	i    int
	d    *Driver
	seal func(i int, other bool)
}

func (c *called) Seal(p []byte, room *sealing.Room) []byte {
	c.seal(c.i, room != &c.d.out.rooms[0].Room)
	return append(p, make([]byte, sealing.Overhead)...)
}

// TestSendsWhileOthersSeal: what is sealed is sent, in its order, while another core is still sealing what comes behind it.
func TestSendsWhileOthersSeal(t *testing.T) {
	d, wrote := ledgerOf(t, 2)
	size, waits := d.socket.BatchSize(), 10*sealPart // the other core waits with the first that it gets from here on
	var want int
	var here, there bool
	waiting, sent := make(chan int), make(chan struct{})
	told := func() {
		if wrote.n == want {
			close(sent)
		}
	}
	wrote.check = func(m *udp.Message) {
		require.EqualValues(t, wrote.n-1, binary.LittleEndian.Uint32(m.Buf))
		told()
	}
	seal := func(i int, other bool) {
		switch {
		case i < waits:
		case other && !there:
			there = true
			waiting <- i
			select {
			case <-sent:
			case <-time.After(20 * time.Second):
				t.Error("nothing is sent while a core seals")
			}
		case !other && !here:
			here = true
			want = min(i, <-waiting) / size * size
			told()
		}
	}
	n := len(d.out.msgs) - 1
	for i := range n {
		d.writeUnsealed(d.LocalAddr(), binary.LittleEndian.AppendUint32(nil, uint32(i)), &called{i, d, seal})
	}
	d.flush()
	require.Equal(t, n, wrote.n)
	require.True(t, here && there)
}

func TestAllocsSealing(t *testing.T) {
	d, wrote := ledgerOf(t, 4)
	d.socket = discards{wrote.Socket}
	p, s := make([]byte, 100), &marks{}
	tick := func() {
		for range 1000 {
			d.writeUnsealed(d.LocalAddr(), p, s)
		}
		d.flush()
	}
	tick()
	require.Zero(t, testing.AllocsPerRun(100, tick))
}

type discards struct{ udp.Socket }

func (discards) WriteBatch(msgs []udp.Message) (int, error) { return len(msgs), nil }

// chacha seals with the cipher of netcode.
type chacha struct{ cipher.AEAD }

func (c chacha) Seal(p []byte, room *sealing.Room) []byte {
	return c.AEAD.Seal(p[:2], room[:chacha20poly1305.NonceSize], p[2:], room[chacha20poly1305.NonceSize:])
}

// discarding is a server whose socket drops all that is sent.
func discarding(b *testing.B, cores Cores) *Driver {
	a, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	d, err := Listen("", Config{Socket: discards{a}, Parallel: cores})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close()) })
	return d
}

// chachas makes the sealers of n clients.
func chachas(b *testing.B, n int) []sealing.Sealer {
	all := make([]sealing.Sealer, n)
	for i := range all {
		aead, err := chacha20poly1305.New(make([]byte, chacha20poly1305.KeySize))
		require.NoError(b, err)
		all[i] = &chacha{aead}
	}
	return all
}

// us is the median of times in microseconds.
func us(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1000
}

// BenchmarkSealing is how long a tick's packets to 1,000 clients take to be encrypted on one core and on two, in turns: the medians, and how many
// times faster two are. Times are CPU time, on two cores that of the one that took longer: what else runs on the machine doesn't count, and neither does how
// long a core takes to begin, for which see BenchmarkCores.
func BenchmarkSealing(b *testing.B) {
	const packets = 1000
	var work, done = make(chan func()), make(chan time.Duration)
	took := func(f func()) time.Duration {
		began := cputime.Thread()
		f()
		return cputime.Thread() - began
	}
	go func() {
		runtime.LockOSThread()
		for f := range work {
			done <- took(f)
		}
	}()
	defer close(work)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, size := range []int{100, 400, 1200} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d, sealers, p := discarding(b, 2), chachas(b, packets), make([]byte, size)
			var times [3][]time.Duration // by cores
			turn := func(cores int, f func(part func(worker int)) time.Duration) {
				for _, s := range sealers {
					d.writeUnsealed(d.LocalAddr(), p, s)
				}
				times[cores] = append(times[cores], f(func(worker int) {
					for part := worker; part*sealPart < packets; part += cores {
						d.finishPart(part, worker)
					}
				}))
				d.out.reset()
			}
			for range b.N {
				turn(1, func(part func(int)) time.Duration { return took(func() { part(0) }) })
				turn(2, func(part func(int)) time.Duration {
					work <- func() { part(1) }
					here := took(func() { part(0) })
					return max(here, <-done)
				})
			}
			b.ReportMetric(us(times[1]), "us/1-core")
			b.ReportMetric(us(times[2]), "us/2-cores")
			b.ReportMetric(us(times[1])/us(times[2]), "times-faster")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// plain is a Sealer that doesn't encrypt.
type plain struct{}

func (plain) Seal(p []byte, _ *sealing.Room) []byte { return p[:len(p)+sealing.Overhead] }

// BenchmarkClock is what encryption adds to sending a tick's packets to 1,000 clients at other addresses of the loopback, by the clock: without it, with it on one
// core and on two, in turns. Times are medians. Nobody else may need the cores.
func BenchmarkClock(b *testing.B) {
	far, err := udp.Listen("0.0.0.0:0", udp.Config{NoPoller: true})
	require.NoError(b, err)
	defer func() { require.NoError(b, far.Close()) }()
	in := buffers(far.BatchSize())
	to := make([]netip.AddrPort, 1000)
	for i := range to {
		to[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 1 + byte(i>>8), byte(i)}), far.LocalAddr().Port())
	}
	for _, size := range []int{100, 400, 1200} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var drivers [3]*Driver // by cores; the first one doesn't encrypt
			for cores := range drivers {
				d, err := Listen("127.0.0.1:0", Config{Parallel: Cores(cores)})
				require.NoError(b, err)
				defer func() { require.NoError(b, d.Close()) }()
				drivers[cores] = d
			}
			sealers, p := chachas(b, len(to)), make([]byte, size)
			var times [3][]time.Duration
			for range b.N {
				for cores, d := range drivers {
					began := time.Now()
					for i, s := range sealers {
						if cores == 0 {
							s = plain{}
						}
						d.writeUnsealed(to[i], p, s)
					}
					d.flush()
					times[cores] = append(times[cores], time.Since(began))
					for n := 1; n > 0; {
						n, err = far.TryReadBatch(in)
						require.NoError(b, err)
					}
					time.Sleep(time.Millisecond) // so that the other core has gone to sleep, as between ticks
				}
			}
			none, one, two := us(times[0]), us(times[1]), us(times[2])
			b.ReportMetric(none, "us/plain")
			b.ReportMetric(one-none, "us/added-on-1")
			b.ReportMetric(two-none, "us/added-on-2")
			b.ReportMetric((one-none)/(two-none), "times-less")
			b.ReportMetric(0, "ns/op")
		})
	}
}
