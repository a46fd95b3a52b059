package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// TestFewAcks: a peer that acks one packet now and then is no reason to have more packets in flight than there are sequences, nor
// to remember more and more of them.
func TestFewAcks(t *testing.T) {
	var res *CloseResult
	c, err := New(Config{Server: true, KeepAlive: 20 * time.Millisecond, Timeout: time.Minute, LowLevelSend: func([]byte) {},
		Closed: func(r CloseResult) { res = &r }}, 0, 9, 7)
	require.NoError(t, err)
	now := time.Duration(0)
	tell := func(seq, acked int64) {
		var w bitio.Writer
		w.Reset(make([]byte, 64))
		h := packetnotify.Header{Seq: uint16(seq & 16383), AckedSeq: uint16(acked & 16383), Words: 1}
		h.Write(&w)
		w.WriteBool(false)
		handler.WriteTerminator(&w)
		_ = c.ReceivedPacket(now, w.Bytes())
	}
	for i := int64(0); res == nil && i < 600; i++ {
		tell(9+i, 7+i)
		for range 500 {
			now += 10 * time.Millisecond
			c.Tick(now)
		}
		require.Less(t, c.notify.Outstanding(), 8191, "after %v", now)
	}
	require.NotNil(t, res)
	require.ErrorIs(t, res.Err, errFewAcks)
	require.Equal(t, PeerBroke, res.Code)
}
