package udp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// offloaders is two sockets and whether the system has offload.
func offloaders(t testing.TB, host string, cfg Config) (a, b *socket) {
	open := func() *socket {
		s, err := Listen(host, cfg)
		if err != nil && strings.HasPrefix(host, "[") {
			t.Skip(err) // not every system has IPv6
		}
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s.(*socket)
	}
	a, b = open(), open()
	if !cfg.NoOffload && (!a.gso || b.gro.bufs == nil) {
		t.Skip("the system has no UDP offload")
	}
	return a, b
}

// TestOffload sends runs of equal and other sizes to two peers: all arrive as they were, and fewer
// writes and reads did it. A read of a few hands out what came as one bit by bit; one of many fills its buffers
// several times, so that not all of them can be lent.
func TestOffload(t *testing.T) {
	for _, batch := range []int{7, 300, 2000} {
		offload(t, "127.0.0.1:0", batch)
	}
	offload(t, "[::1]:0", 7)
}

func offload(t *testing.T, host string, batch int) {
	t.Run(fmt.Sprintf("%s, %d at a time", host, batch), func(t *testing.T) {
		a, b := offloaders(t, host, Config{})
		c, _ := offloaders(t, host, Config{})
		rng := rand.New(rand.NewPCG(1, 2))
		want := map[Socket][][]byte{}
		var out []Message
		for run := range 30 {
			to, size := b, 1+rng.IntN(1400)
			if run%3 == 0 {
				to = c
			}
			for i := range 1 + rng.IntN(40) {
				p := make([]byte, size)
				for j := range p {
					p[j] = byte(run + i + j)
				}
				out = append(out, Message{Buf: p, Addr: to.LocalAddr()})
				want[to] = append(want[to], p)
			}
		}
		n, err := a.WriteBatch(out)
		require.NoError(t, err)
		require.Equal(t, len(out), n)
		for _, s := range []*socket{b, c} {
			in := messages(batch)
			require.NoError(t, s.SetReadDeadline(time.Now().Add(5*time.Second)))
			for got := 0; got < len(want[s]); {
				n, err := s.ReadBatch(in)
				require.NoError(t, err)
				for i := range n {
					require.Equal(t, want[s][got], in[i].Data(), "datagram %d", got)
					require.Equal(t, a.LocalAddr(), in[i].Addr)
					got++
				}
			}
			n, err := s.TryReadBatch(in)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		sent, ok := CountersOf(a)
		require.True(t, ok)
		require.EqualValues(t, len(out), sent.Sent)
		require.Greater(t, sent.GSOSegments, uint64(len(out)/2))
		got, _ := CountersOf(b)
		require.EqualValues(t, len(want[b]), got.Received)
		require.Greater(t, got.GROSegments, uint64(len(want[b])/2))
	})
}

// TestNoOffload neither sends nor receives several as one.
func TestNoOffload(t *testing.T) {
	a, b := offloaders(t, "127.0.0.1:0", Config{NoOffload: true})
	out := messages(20)
	for i := range out {
		out[i].Buf, out[i].Addr = out[i].Buf[:100], b.LocalAddr()
	}
	n, err := a.WriteBatch(out)
	require.NoError(t, err)
	require.Equal(t, 20, n)
	c, _ := CountersOf(a)
	require.Zero(t, c.GSOWrites)
	require.EqualValues(t, 20, c.Sent)
	in := messages(32)
	require.NoError(t, b.SetReadDeadline(time.Now().Add(5*time.Second)))
	for got := 0; got < 20; got += n {
		n, err = b.ReadBatch(in)
		require.NoError(t, err)
	}
}

// refuser is a socket whose system refuses several as one to some peers.
func refuser(t *testing.T, errno syscall.Errno, refuses func(to netip.AddrPort) bool) *socket {
	a, _ := offloaders(t, "127.0.0.1:0", Config{})
	call := a.out.call
	a.out.call = func(fd uintptr) bool {
		for i := range a.out.n {
			if a.out.counts[i] > 1 && refuses(a.out.address(i)) {
				if i > 0 { // those before it go out
					a.out.n = i
					return call(fd)
				}
				a.out.done, a.out.errno = 0, errno
				return true
			}
		}
		return call(fd)
	}
	return a
}

// runTo sends some runs of ten datagrams to each of some peers.
func runTo(t *testing.T, a *socket, runs int, peers ...netip.AddrPort) {
	out := messages(10 * len(peers))
	for i := range out {
		out[i].Buf, out[i].Addr = out[i].Buf[:200], peers[i/10]
	}
	for range runs {
		n, err := a.WriteBatch(out)
		require.NoError(t, err)
		require.Equal(t, len(out), n)
	}
}

// TestOffloadIsRefusedByPeer: where a path or a device refuses several as one, those peers get theirs one by one, and the others
// don't lose anything; now and then it is tried again.
func TestOffloadIsRefusedByPeer(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.EOPNOTSUPP} {
		t.Run(errno.Error(), func(t *testing.T) {
			b, c := netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("127.0.0.1:10")
			narrow := true
			a := refuser(t, errno, func(to netip.AddrPort) bool { return narrow && to == b })
			runTo(t, a, 1000, b, c)
			n, _ := CountersOf(a)
			require.EqualValues(t, 20_000, n.Sent)
			require.EqualValues(t, 1000, n.GSOWrites, "all to the other peer")
			require.LessOrEqual(t, n.GSORefused, uint64(10))
			require.GreaterOrEqual(t, n.GSORefused, uint64(2), "it is tried again")
			narrow = false
			runTo(t, a, 2000, b, c)
			n, _ = CountersOf(a)
			require.Greater(t, n.GSOWrites, uint64(1000+2000), "the path is mended, and is found so")
			require.Empty(t, a.refused.peers)
		})
	}
	require.False(t, concerns(unix.ECONNREFUSED))
}

// TestOffloadIsRefusedByDevice: a device that refuses all peers is asked seldom, and works again when it is replaced.
func TestOffloadIsRefusedByDevice(t *testing.T) {
	broken := true
	a := refuser(t, unix.EIO, func(netip.AddrPort) bool { return broken })
	var peers []netip.AddrPort
	for i := range 1200 {
		peers = append(peers, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(20_000+i)))
	}
	runTo(t, a, 10, peers...)
	n, _ := CountersOf(a)
	require.EqualValues(t, 120_000, n.Sent)
	require.Zero(t, n.GSOWrites)
	require.Less(t, n.GSORefused, uint64(200))
	require.LessOrEqual(t, len(a.refused.peers), maxRefusing)
	broken = false
	runTo(t, a, 15, peers...)
	n, _ = CountersOf(a)
	require.Greater(t, n.GSOWrites, uint64(2000))
}

// TestRefusedAmongOthers: however many peers refuse several as one, those that take it get it, as long as there are some between them.
func TestRefusedAmongOthers(t *testing.T) {
	var r refusals
	good := netip.MustParseAddrPort("127.0.0.1:9")
	for i := range 10 * refusedInARow {
		peer := netip.AddrPortFrom(good.Addr(), uint16(20_000+i))
		r.add(peer)
		r.tookOne(peer)
		r.taken(good)
		require.False(t, r.wait(good), "after %d", i)
	}
}

// TestRefusingPeersAreBounded: only so many are remembered, the latest.
func TestRefusingPeersAreBounded(t *testing.T) {
	var r refusals
	peer := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(i)) }
	for i := range 5 * maxRefusing {
		r.add(peer(i))
	}
	require.Len(t, r.peers, maxRefusing)
	require.Contains(t, r.peers, peer(5*maxRefusing-1))
	require.Contains(t, r.peers, peer(4*maxRefusing))
}

// TestNarrowPathsAreTheirPeers: some dozens of peers on narrow paths, whatever they refuse and how often, take the offload from nobody else.
func TestNarrowPathsAreTheirPeers(t *testing.T) {
	var r refusals
	peer := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(1+i)) }
	for i := range 40 {
		r.add(peer(i))
		r.tookOne(peer(i))
		require.True(t, r.wait(peer(i)))
		require.False(t, r.wait(peer(1000)), "after %d peers", 1+i)
	}
	r.taken(peer(1000))
	for i := range 40 {
		for range 10 {
			r.add(peer(i))
		}
		r.tookOne(peer(i))
	}
	require.False(t, r.wait(peer(1000)))
}

// TestRefusingPeersAreForgottenInOrder: a peer that took several as one and then refuses them again is remembered as long as others that
// were refused then, and makes none of them forgotten before its turn.
func TestRefusingPeersAreForgottenInOrder(t *testing.T) {
	peer := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(i)) }
	t.Run("again", func(t *testing.T) {
		var r refusals
		for i := range maxRefusing - 1 {
			r.add(peer(i))
		}
		r.taken(peer(0))
		r.add(peer(0))
		r.add(peer(0))
		for i := range maxRefusing - 1 {
			require.NotNil(t, r.peers[peer(0)], "after %d later peers", i)
			require.Equal(t, 2*minWait, r.peers[peer(0)].wait)
			r.add(peer(10_000 + i))
		}
		r.add(peer(20_000))
		require.Nil(t, r.peers[peer(0)])
	})
	t.Run("again and again", func(t *testing.T) {
		var r refusals
		for i := range maxRefusing {
			r.add(peer(i))
		}
		for range 3 * maxRefusing {
			r.taken(peer(7))
			r.add(peer(7))
		}
		for i := range maxRefusing {
			require.NotNil(t, r.peers[peer(i)], "%d", i)
		}
	})
}

// TestRefusalsAreWaitedOut: after a refusal the stated number of datagrams goes out one by one before several are tried again, however
// long the runs are.
func TestRefusalsAreWaitedOut(t *testing.T) {
	b := netip.MustParseAddrPort("127.0.0.1:9")
	a := refuser(t, unix.EIO, func(netip.AddrPort) bool { return true })
	out := messages(60)
	for i := range out {
		out[i].Buf, out[i].Addr = out[i].Buf[:200], b
	}
	var refusedAt []uint64
	for range 100 {
		_, err := a.WriteBatch(out)
		require.NoError(t, err)
		if n, _ := CountersOf(a); n.GSORefused > uint64(len(refusedAt)) {
			refusedAt = append(refusedAt, n.Sent)
		}
	}
	require.Len(t, refusedAt, 4, "at once, and after 512, 1024 and 2048 more: %d", refusedAt)
	require.InDelta(t, minWait, refusedAt[1]-refusedAt[0], 120)
	require.InDelta(t, 2*minWait, refusedAt[2]-refusedAt[1], 120)
}

// TestSegments compares runs with a plain reading of the rules.
func TestSegments(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")
	msgs := func(to netip.AddrPort, sizes ...int) (m []Message) {
		for _, n := range sizes {
			m = append(m, Message{Buf: make([]byte, n), Addr: to})
		}
		return m
	}
	many := make([]int, 100)
	for i := range many {
		many[i] = 10
	}
	large := make([]int, 60)
	for i := range large {
		large[i] = 1400
	}
	for _, c := range []struct {
		msgs []Message
		want int
	}{
		{msgs(a, 5), 1},
		{msgs(a, 5, 5, 5), 3},
		{msgs(a, 5, 5, 3, 5), 3},
		{msgs(a, 5, 6), 1},
		{msgs(a, 5, 0), 1},
		{msgs(a, 0, 0), 1},
		{append(msgs(a, 5, 5), msgs(b, 5)...), 2},
		{msgs(a, many...), maxSegments},
		{msgs(a, large...), maxGSOBytes / 1400},
	} {
		require.Equal(t, c.want, segments(c.msgs), "%d messages of %d bytes and on", len(c.msgs), len(c.msgs[0].Buf))
	}
}

// BenchmarkOffload is a datagram sent and received, one of 32 to the same peer.
func BenchmarkOffload(b *testing.B) {
	for _, off := range []bool{false, true} {
		b.Run(fmt.Sprintf("offload=%v", !off), func(b *testing.B) {
			x, y := offloaders(b, "127.0.0.1:0", Config{NoOffload: off})
			out, in := messages(32), messages(32)
			for i := range out {
				out[i].Buf, out[i].Addr = out[i].Buf[:1200], y.LocalAddr()
			}
			require.NoError(b, y.SetReadDeadline(time.Now().Add(time.Minute)))
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(out) {
				if _, err := x.WriteBatch(out); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < len(out); {
					n, err := y.ReadBatch(in)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
		})
	}
}

// TestStrangersThatCannotBeAnswered: addresses that nothing can be sent to, as strangers forge them, cost nobody else the offload: neither with port 0, nor in a network that the
// machine drops.
func TestStrangersThatCannotBeAnswered(t *testing.T) {
	for _, why := range []string{"port 0", "dropped by the machine"} {
		t.Run(why, func(t *testing.T) {
			a, b := offloaders(t, "127.0.0.1:0", Config{})
			port := uint16(0)
			if why != "port 0" {
				port = 9
				call := a.out.call
				a.out.call = func(fd uintptr) bool { // a blackhole says EINVAL of whatever goes there
					for i := range a.out.n {
						if a.out.address(i).Port() != port {
							continue
						}
						if a.out.n = i; i == 0 {
							a.out.done, a.out.errno = 0, unix.EINVAL
							return true
						}
						break
					}
					return call(fd)
				}
			}
			for i := range 4 * refusedInARow {
				out := messages(2)
				for j := range out {
					out[j].Buf, out[j].Addr = out[j].Buf[:30], netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, byte(i >> 8), byte(i)}), port)
				}
				for len(out) > 0 {
					n, err := a.WriteBatch(out)
					require.ErrorIs(t, err, unix.EINVAL)
					out = out[n+1:]
				}
			}
			runTo(t, a, 10, b.LocalAddr())
			n, _ := CountersOf(a)
			require.EqualValues(t, 10, n.GSOWrites)
			require.EqualValues(t, 100, n.Sent)
		})
	}
}
