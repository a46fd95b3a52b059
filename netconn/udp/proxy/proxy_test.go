package proxy

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) udp.Socket {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	require.NoError(t, s.SetReadDeadline(time.Now().Add(10*time.Second)))
	return s
}

func TestProxyCarriesBothWays(t *testing.T) {
	server, a, b := listen(t), listen(t), listen(t)
	p, err := New(Config{Listen: "127.0.0.1:0", To: server.LocalAddr().String(), Up: netsim.Settings{Dup: 100}, Seed: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	in := []udp.Message{{Buf: make([]byte, 100)}}
	for _, c := range []udp.Socket{a, b} {
		_, err = c.WriteBatch([]udp.Message{{Buf: []byte("ping"), Addr: p.LocalAddr()}})
		require.NoError(t, err)
		for range 2 { // every datagram comes twice
			_, err = server.ReadBatch(in)
			require.NoError(t, err)
			require.Equal(t, "ping", string(in[0].Data()))
		}
		_, err = server.WriteBatch([]udp.Message{{Buf: []byte("pong"), Addr: in[0].Addr}})
		require.NoError(t, err)
		_, err = c.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, "pong", string(in[0].Data()))
		require.Equal(t, p.LocalAddr(), in[0].Addr)
	}
	cancel()
	require.NoError(t, <-done)
	n := p.Counters()
	require.EqualValues(t, 2, n.Up.Pushed)
	require.EqualValues(t, 2, n.Up.Duplicated)
	require.EqualValues(t, 2, n.Down.Passed)
}

func TestImpair(t *testing.T) {
	server, c := listen(t), listen(t)
	i, err := Impair(c, netsim.Settings{}, netsim.Settings{Loss: 100}, 1)
	require.NoError(t, err)
	_, err = i.WriteBatch([]udp.Message{{Buf: []byte("hi"), Addr: server.LocalAddr()}})
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, 100)}}
	_, err = server.ReadBatch(in)
	require.NoError(t, err)
	_, err = server.WriteBatch([]udp.Message{{Buf: []byte("ho"), Addr: in[0].Addr}})
	require.NoError(t, err)
	require.NoError(t, i.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := i.ReadBatch(in)
	require.Zero(t, n)
	require.Error(t, err)
	_, down := i.Counters()
	require.EqualValues(t, 1, down.Lost)
}

// TestImpairedEnd: what is under way when the client's program ends arrives, as on a real network, so that the server hears of the end. What was lost stays lost.
func TestImpairedEnd(t *testing.T) {
	server, c := listen(t), listen(t)
	i, err := Impair(c, netsim.Settings{Lag: time.Hour}, netsim.Settings{}, 1)
	require.NoError(t, err)
	_, err = i.WriteBatch([]udp.Message{{Buf: []byte("one"), Addr: server.LocalAddr()}, {Buf: []byte("two"), Addr: server.LocalAddr()}})
	require.NoError(t, err)
	require.NoError(t, i.Set(netsim.Settings{Lag: time.Hour, Loss: 100}, netsim.Settings{}))
	_, err = i.WriteBatch([]udp.Message{{Buf: []byte("lost"), Addr: server.LocalAddr()}})
	require.NoError(t, err)
	require.NoError(t, i.Close())
	in := []udp.Message{{Buf: make([]byte, 100)}}
	for _, want := range []string{"one", "two"} {
		_, err = server.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, want, string(in[0].Data()))
	}
	n, err := server.TryReadBatch(in)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Error(t, i.Close(), "its socket is closed")
}

// TestStrangersAreNotThePeer: what others than the peer send doesn't come as the peer's.
func TestStrangersAreNotThePeer(t *testing.T) {
	server, stranger, c := listen(t), listen(t), listen(t)
	i, err := Impair(c, netsim.Settings{}, netsim.Settings{}, 1)
	require.NoError(t, err)
	forge := func() {
		_, err := stranger.WriteBatch([]udp.Message{{Buf: []byte("forged"), Addr: c.LocalAddr()}})
		require.NoError(t, err)
	}
	forge() // before there is a peer
	_, err = i.WriteBatch([]udp.Message{{Buf: []byte("hi"), Addr: server.LocalAddr()}})
	require.NoError(t, err)
	forge()
	in := []udp.Message{{Buf: make([]byte, 100)}}
	_, err = server.ReadBatch(in)
	require.NoError(t, err)
	_, err = server.WriteBatch([]udp.Message{{Buf: []byte("ho"), Addr: in[0].Addr}})
	require.NoError(t, err)
	require.NoError(t, i.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = i.ReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, "ho", string(in[0].Data()))
	require.Equal(t, server.LocalAddr(), in[0].Addr)
	_, down := i.Counters()
	require.EqualValues(t, 1, down.Pushed)

	for _, peer := range []string{"127.0.0.1:7", "[::ffff:127.0.0.1]:7", "[fe80::1%eth0]:7", "[fe80::1%2]:7"} {
		for _, from := range []string{"127.0.0.1:7", "[fe80::1%eth0]:7", "[fe80::1]:7"} {
			p, f := netip.MustParseAddrPort(peer), netip.MustParseAddrPort(from)
			require.Equal(t, p.Addr().Unmap().Is4() == f.Addr().Is4(), sameHost(p, f), "%s %s", peer, from)
			require.False(t, sameHost(p, netip.AddrPortFrom(f.Addr(), 8)))
		}
	}
}

func TestImpairedSet(t *testing.T) {
	server, c := listen(t), listen(t)
	i, err := Impair(c, netsim.Settings{Loss: 100}, netsim.Settings{}, 1)
	require.NoError(t, err)
	hi := []udp.Message{{Buf: []byte("hi"), Addr: server.LocalAddr()}}
	_, err = i.WriteBatch(hi)
	require.NoError(t, err)
	require.ErrorIs(t, i.Set(netsim.Settings{}, netsim.Settings{Loss: 101}), netsim.ErrSettings)
	_, err = i.WriteBatch(hi)
	require.NoError(t, err)
	up, _ := i.Counters()
	require.EqualValues(t, 2, up.Lost, "the refused settings changed nothing")
	require.NoError(t, i.Set(netsim.Settings{}, netsim.Settings{}))
	_, err = i.WriteBatch(hi)
	require.NoError(t, err)
	in := []udp.Message{{Buf: make([]byte, 100)}}
	_, err = server.ReadBatch(in)
	require.NoError(t, err)
	require.Equal(t, "hi", string(in[0].Data()))
}

// TestProxySet: new settings hold for clients that were there before and for those that come.
func TestProxySet(t *testing.T) {
	server, a, b := listen(t), listen(t), listen(t)
	p, err := New(Config{Listen: "127.0.0.1:0", To: server.LocalAddr().String(), Seed: 1})
	require.NoError(t, err)
	defer p.Close()
	arrives := func(c udp.Socket, words string) {
		_, err := c.WriteBatch([]udp.Message{{Buf: []byte(words), Addr: p.LocalAddr()}})
		require.NoError(t, err)
		in := []udp.Message{{Buf: make([]byte, 100)}}
		for n := 0; n == 0; {
			require.NoError(t, p.Step(time.Now()))
			n, err = server.TryReadBatch(in)
			require.NoError(t, err)
		}
		require.Equal(t, words, string(in[0].Data()))
	}
	lost := func(c udp.Socket) {
		before := p.Counters().Up.Lost
		_, err := c.WriteBatch([]udp.Message{{Buf: []byte("lost"), Addr: p.LocalAddr()}})
		require.NoError(t, err)
		for p.Counters().Up.Lost == before {
			require.NoError(t, p.Step(time.Now()))
		}
	}
	arrives(a, "light")
	require.ErrorIs(t, p.Set(netsim.Settings{Loss: 100}, netsim.Settings{Loss: 101}), netsim.ErrSettings)
	arrives(a, "the refused settings changed nothing")
	require.NoError(t, p.Set(netsim.Settings{Loss: 100}, netsim.Settings{}))
	lost(a)
	lost(b)
	require.NoError(t, p.Set(netsim.Settings{}, netsim.Settings{}))
	arrives(a, "light again")
	arrives(b, "light again")
}
