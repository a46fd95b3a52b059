package udp

import (
	"net/netip"
	"testing"

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
}
