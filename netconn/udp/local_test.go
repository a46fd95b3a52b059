//go:build !wasm

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLocalDialsAnyAddress: a server at an unspecified address is reached in memory by every address that the host's client may dial, and
// answers from that.
func TestLocalDialsAnyAddress(t *testing.T) {
	s, other := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	in := messages(4)
	for _, dialed := range []string{"127.0.0.1:7777", "[::1]:7777", "192.0.2.1:7777"} {
		to := netip.MustParseAddrPort(dialed)
		_, err := own.WriteBatch([]Message{{Buf: []byte("hi"), Addr: to}})
		require.NoError(t, err)
		_, err = other.WriteBatch([]Message{{Buf: []byte("hi too"), Addr: s.LocalAddr()}})
		require.NoError(t, err)
		n, err := both.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []netip.AddrPort{local, other.LocalAddr()}, []netip.AddrPort{in[0].Addr, in[1].Addr})
		_, err = both.WriteBatch([]Message{{Buf: []byte("ho"), Addr: in[1].Addr}, {Buf: []byte("ho"), Addr: in[0].Addr}, {Buf: []byte("ho"), Addr: in[1].Addr}})
		require.NoError(t, err)
		n, err = own.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, to, in[0].Addr)
		n, err = other.TryReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
}

// TestLocalBound: what nobody reads is lost beyond 1024 datagrams, and a player in memory is read before a flood of others.
func TestLocalBound(t *testing.T) {
	s, other := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	for range 2000 {
		_, err := other.WriteBatch([]Message{{Buf: []byte("flood"), Addr: s.LocalAddr()}})
		require.NoError(t, err)
	}
	_, err := own.WriteBatch([]Message{{Buf: []byte("hi"), Addr: s.LocalAddr()}})
	require.NoError(t, err)
	in, got := messages(64), 0
	for first := true; ; first = false {
		n, err := both.TryReadBatch(in)
		require.NoError(t, err)
		if n == 0 {
			break
		}
		if first {
			require.Equal(t, local, in[0].Addr)
		}
		got += n
	}
	require.Equal(t, 1025, got)
}

func TestAllocsMemory(t *testing.T) {
	s, _ := Pair(netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
	both, own := WithLocal(s, local)
	there, back, in := messages(8), messages(8), messages(8)
	for i := range there {
		there[i].Buf, there[i].Addr, back[i].Buf, back[i].Addr = there[i].Buf[:100], s.LocalAddr(), back[i].Buf[:100], local
	}
	round := func() {
		if _, err := own.WriteBatch(there); err != nil {
			t.Error(err)
		}
		if _, err := both.WriteBatch(back); err != nil {
			t.Error(err)
		}
		for _, s := range []Socket{own, both} {
			if _, err := s.TryReadBatch(in); err != nil {
				t.Error(err)
			}
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(200, round))
	require.NoError(t, both.SetReadDeadline(time.Unix(1, 0)))
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if _, err := both.ReadBatch(in); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}), "a deadline that has passed")
}

// TestLocalStress: a reader that waits gets all that comes from both sides, while deadlines are set by others, and Close ends it.
func TestLocalStress(t *testing.T) {
	const each = 100
	for name, cfg := range kinds {
		s, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		other, err := Listen("127.0.0.1:0", cfg)
		require.NoError(t, err)
		both, own := WithLocal(s, local)
		got, ended := make(chan netip.AddrPort, 1), make(chan error)
		go func() {
			in := messages(16)
			for {
				n, err := both.ReadBatch(in)
				for i := range in[:n] {
					got <- in[i].Addr
				}
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					ended <- err
					return
				}
			}
		}()
		stop, stopped := make(chan bool), make(chan bool)
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := both.SetReadDeadline([]time.Time{{}, time.Now().Add(time.Hour), time.Unix(1, 0), time.Now().Add(time.Millisecond)}[i%4]); err != nil {
					t.Error(err)
				}
			}
		}()
		for range each { // one of each is under way, so that none is lost
			for _, from := range []Socket{own, other} {
				_, err := from.WriteBatch([]Message{{Buf: []byte("x"), Addr: s.LocalAddr()}})
				require.NoError(t, err, name)
				require.Equal(t, from.LocalAddr(), <-got, name)
			}
		}
		close(stop)
		<-stopped
		require.NoError(t, both.SetReadDeadline(time.Time{}))
		require.NoError(t, both.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed, name)
		require.NoError(t, errors.Join(own.Close(), other.Close()))
	}
}

// TestLocalWakes: what comes in memory ends a read that waits for the others, whatever deadlines are set meanwhile.
func TestLocalWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.0.2:2"))
		both, own := WithLocal(s, local)
		defer both.Close()
		got := make(chan netip.AddrPort, 1)
		go func() {
			defer close(got)
			for in := messages(1); ; {
				n, err := both.ReadBatch(in)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					n, _ = both.TryReadBatch(in)
				}
				if n > 0 {
					got <- in[0].Addr
				}
			}
		}()
		begin := time.Now()
		for range 300 {
			for _, from := range []Socket{own, other, own} {
				synctest.Wait() // it waits
				_, err := from.WriteBatch([]Message{{Buf: []byte("x"), Addr: s.LocalAddr()}})
				require.NoError(t, err)
				require.NoError(t, both.SetReadDeadline(time.Now().Add(time.Hour)))
				require.Equal(t, from.LocalAddr(), <-got)
			}
		}
		require.Zero(t, time.Since(begin), "nothing waits for the deadline")
	})
}
