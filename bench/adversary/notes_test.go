package main

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
)

// TestNotesOfBlocksWithinMaxMemory: a peer that sends blocks of a byte on as many channels as it may open, and acks no note of them, makes an end hold no more
// than MaxMemory.
func TestNotesOfBlocksWithinMaxMemory(t *testing.T) {
	l, err := newLiar(func(ch *channel.Channel) channel.Handler {
		if ch.Index() == 0 {
			return channel.Nop{}
		}
		return message.NewBlocks(message.BlocksConfig{Received: func(int64, []byte) {}})
	}, func(c *netconn.Config) { c.MaxMemory, c.Timeout = 256<<10, -1 })
	require.NoError(t, err)
	require.NoError(t, l.openControl())
	l.pass(tick)
	base := heap()
	n := uint32(0)
	for l.victim.Table().Len() == int(n)+1 {
		n++
		require.NoError(t, l.mute(l.open(n, dataName, nil)))
		l.pass(tick)
	}
	n--
	require.Greater(t, n, uint32(8))
	most := 0
	for id := 0; id < 1024; id++ {
		var lies []lie
		for ch := uint32(1); ch <= n; ch++ {
			b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint16(nil, uint16(id)), 1)
			b = append(b, make([]byte, 9)...) // a checksum, the first fragment, and a byte
			lies = append(lies, lie{bunch.Header{ChIndex: ch, Name: dataName, Bits: len(b) * 8}, b})
		}
		require.NoError(t, l.mute(lies...))
		l.pass(tick)
		if id%64 == 63 {
			most = max(most, heap()-base)
		}
	}
	require.False(t, l.over())
	require.LessOrEqual(t, most, 256<<10, "%d channels", n)
	runtime.KeepAlive(l)
}
