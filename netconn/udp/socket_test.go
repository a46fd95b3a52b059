//go:build !wasm

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func messages(n int) []Message {
	msgs := make([]Message, n)
	for i := range msgs {
		msgs[i].Buf = make([]byte, 1500)
	}
	return msgs
}

// kinds is the settings that change how a socket works.
var kinds = map[string]Config{"udp": {}, "udp without poller": {NoPoller: true}}

// local is the address of a peer in memory.
var local = netip.MustParseAddrPort("127.0.0.1:1")

func TestDualStack(t *testing.T) {
	s, err := Listen(":0", Config{})
	require.NoError(t, err)
	defer s.Close()
	c, err := Listen("127.0.0.1:0", Config{})
	require.NoError(t, err)
	defer c.Close()
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.LocalAddr().Port())
	_, err = c.WriteBatch([]Message{{Buf: []byte("hi"), Addr: to}})
	require.NoError(t, err)
	in := messages(1)
	require.NoError(t, s.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err = s.ReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, c.LocalAddr(), in[0].Addr, "an IPv4 peer has its IPv4 address")
	_, err = s.WriteBatch([]Message{{Buf: []byte("ho"), Addr: in[0].Addr}})
	require.NoError(t, err)
}

// TestUnreachable: addresses that nothing can be sent to, as strangers and tokens may have them, cost one datagram
// each, and those around them arrive.
func TestUnreachable(t *testing.T) {
	for _, host := range []string{"127.0.0.1:0", ":0"} {
		s, err := Listen(host, Config{})
		require.NoError(t, err)
		good := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), s.LocalAddr().Port())
		for _, to := range []string{"127.0.0.1:0", "[2001:db8::1]:7", "[::1]:0", "0.0.0.0:0", "255.255.255.255:7", "192.0.2.1:7", "[ff02::1]:7"} {
			batch := []Message{{Buf: []byte("x"), Addr: good}, {Buf: []byte("y"), Addr: netip.MustParseAddrPort(to)}, {Buf: []byte("z"), Addr: good}}
			for len(batch) > 0 {
				n, err := s.WriteBatch(batch)
				batch = batch[n:]
				if err != nil {
					require.True(t, IsTemporary(err), "%s to %s: %v", host, to, err)
					batch = batch[1:]
				}
			}
			in := messages(2)
			require.NoError(t, s.SetReadDeadline(time.Now().Add(5*time.Second)))
			for got := 0; got < 2; {
				n, err := s.ReadBatch(in)
				require.NoError(t, err, "%s to %s", host, to)
				got += n
			}
		}
		_, err = s.WriteBatch([]Message{{Buf: []byte("x")}})
		require.Error(t, err, "an address that was never set")
		require.NoError(t, s.Close())
	}
}

func TestIsTemporary(t *testing.T) {
	require.True(t, IsTemporary(os.NewSyscallError("sendmmsg", syscall.ENOBUFS)))
	require.True(t, IsTemporary(syscall.ECONNREFUSED))
	require.True(t, IsTemporary(syscall.Errno(10040)), "on Windows, a stranger's datagram larger than the buffer")
	require.True(t, IsTemporary(syscall.Errno(10054)), "on Windows, a client that has gone")
	for _, e := range []syscall.Errno{syscall.ENOMEM, syscall.ENODEV, syscall.ENXIO, syscall.EDESTADDRREQ, errNoKey} {
		require.True(t, IsTemporary(os.NewSyscallError("sendmmsg", e)), "what a tunnel, or a machine without memory, says of a datagram: %v", e)
	}
	require.False(t, IsTemporary(syscall.EBADF))
	require.False(t, IsTemporary(net.ErrClosed))
	require.False(t, IsTemporary(errors.New("other")))
}

func TestAllocsSocket(t *testing.T) {
	for name, cfg := range kinds {
		a, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		out := messages(8)
		for i := range out {
			out[i].Buf, out[i].Addr = out[i].Buf[:100], a.LocalAddr()
		}
		in := messages(8)
		require.Zero(t, testing.AllocsPerRun(200, func() {
			if err := a.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Error(err)
			}
			if _, err := a.WriteBatch(out); err != nil {
				t.Error(err)
			}
			if _, err := a.ReadBatch(in); err != nil {
				t.Error(err)
			}
		}), name)
		if !cfg.NoPoller {
			require.NoError(t, a.Close())
			continue // package net makes an error for each deadline
		}
		require.Zero(t, testing.AllocsPerRun(20, func() { // a read that waits
			if err := a.SetReadDeadline(time.Now().Add(100 * time.Microsecond)); err != nil {
				t.Error(err)
			}
			if _, err := a.ReadBatch(in); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		}), name)
		require.NoError(t, a.Close())
	}
}

func BenchmarkSend(b *testing.B) {
	a, err := Listen("127.0.0.1:0", Config{})
	require.NoError(b, err)
	defer a.Close()
	for _, n := range []int{1, 32} {
		b.Run(map[int]string{1: "one by one", 32: "batch of 32"}[n], func(b *testing.B) {
			out := messages(n)
			for i := range out {
				out[i].Buf, out[i].Addr = out[i].Buf[:200], a.LocalAddr()
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i += n {
				if _, err := a.WriteBatch(out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestSendsWhole: sockets of a system that can send without fragments say so when they were asked for that, as do those in memory.
func TestSendsWhole(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", ":0"} {
		for _, whole := range []bool{false, true} {
			s, err := Listen(addr, Config{Whole: whole})
			require.NoError(t, err)
			require.Equal(t, whole && runtime.GOOS == "linux", SendsWhole(s))
			require.False(t, SendsWhole(struct{ Socket }{s}), "one that may do otherwise")
			both, own := WithLocal(s, netip.MustParseAddrPort("127.0.0.1:1"))
			require.True(t, SendsWhole(own))
			require.Equal(t, SendsWhole(s), SendsWhole(both))
			require.NoError(t, both.Close())
		}
	}
}
