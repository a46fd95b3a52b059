package proxy

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestLargeDatagrams: what passes arrives whole, whatever its size.
func TestLargeDatagrams(t *testing.T) {
	server, c := listen(t), listen(t)
	p, err := New(Config{Listen: "127.0.0.1:0", To: server.LocalAddr().String()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	in := []udp.Message{{Buf: make([]byte, 1<<16)}}
	for _, size := range []int{1, 1500, 2048, 2049, 9000, 65507} {
		want := bytes.Repeat([]byte{byte(size), 7}, size)[:size]
		_, err = c.WriteBatch([]udp.Message{{Buf: want, Addr: p.LocalAddr()}})
		require.NoError(t, err)
		_, err = server.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, want, in[0].Data(), size)
		_, err = server.WriteBatch([]udp.Message{{Buf: want, Addr: in[0].Addr}})
		require.NoError(t, err)
		_, err = c.ReadBatch(in)
		require.NoError(t, err)
		require.Equal(t, want, in[0].Data(), size)
	}
	cancel()
	require.NoError(t, <-done)
}

// TestImpairLargeDatagrams is the same for a client's socket.
func TestImpairLargeDatagrams(t *testing.T) {
	server, c := listen(t), listen(t)
	i, err := Impair(c, netsim.Settings{}, netsim.Settings{}, 1)
	require.NoError(t, err)
	require.NoError(t, i.SetReadDeadline(time.Now().Add(10*time.Second)))
	in := []udp.Message{{Buf: make([]byte, 1<<16)}}
	for _, size := range []int{2049, 65507} {
		_, err = i.WriteBatch([]udp.Message{{Buf: make([]byte, size), Addr: server.LocalAddr()}})
		require.NoError(t, err)
		_, err = server.ReadBatch(in)
		require.NoError(t, err)
		require.Len(t, in[0].Data(), size)
		_, err = server.WriteBatch([]udp.Message{{Buf: make([]byte, size), Addr: in[0].Addr}})
		require.NoError(t, err)
		_, err = i.ReadBatch(in)
		require.NoError(t, err)
		require.Len(t, in[0].Data(), size)
	}
}
