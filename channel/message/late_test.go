package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMessagesBehindAClose: each message that an end sends while the other end closes the channel can be received there, or is counted by Ended.
func TestMessagesBehindAClose(t *testing.T) {
	for seed := range uint64(20) {
		set := netsim.Settings{Loss: float64(seed % 3 * 15), LagMin: 10 * time.Millisecond, LagMax: 60 * time.Millisecond}
		x := newTransfer(t, set, seed, bucket)
		ended := -1
		x.qb.Ended = func(unacked int) { ended = unacked }
		sent, got := uint32(0), uint32(0)
		step := func() {
			x.step(16 * time.Millisecond)
			x.qb.Tick(x.now)
			for m, k := x.qa.Receive(); m != nil; m, k = x.qa.Receive() {
				require.Equal(t, got, m.(*number).N, "seed %d", seed)
				got++
				k.Free(m)
			}
			for range 5 {
				if x.qb.Send(x.kb.number, &number{N: sent}) == nil {
					sent++
				}
			}
		}
		for x.now < time.Second {
			step()
		}
		require.NoError(t, x.messages.Close(bunch.Destroyed))
		for ended < 0 {
			require.Less(t, x.now, time.Minute, "seed %d", seed)
			step()
		}
		for range 10 {
			step()
		}
		require.Positive(t, got)
		require.GreaterOrEqual(t, uint32(ended), sent-got, "seed %d: of %d messages %d came", seed, sent, got)
	}
}

// TestMessagesBehindAMissingOneAreNotReceived: when the channel is closed Ended counts them too, though they have arrived.
func TestMessagesBehindAMissingOneAreNotReceived(t *testing.T) {
	k := newKinds()
	q := message.New(message.Config{Kinds: &k.reg})
	for id := range int64(10) {
		require.NoError(t, q.Send(k.number, &number{}))
		require.Equal(t, 1, q.Write(0, bitio.NewWriter(make([]byte, 100))))
		q.Sent(id)
	}
	for _, id := range []int64{0, 1, 3, 4, 9} {
		q.Acked(id)
	}
	require.Equal(t, 8, q.Forget())
}

// TestNotesOfManyBlocks: however many blocks arrive in a tick, the notes of them wait for room in the channel's buffer; with
// CloseOnOverflow the connection would end.
func TestNotesOfManyBlocks(t *testing.T) {
	const n = 512
	sent := 0
	out := message.BlocksConfig{MaxBlocks: n, Sent: func(int64) { sent++ }, Failed: func(id int64, err error) { t.Error(id, err) }}
	x := newTransferIn(t, netsim.Settings{}, 1, netconn.Unreal51(), bucket, out, message.BlocksConfig{MaxBlocks: n})
	for x.now < time.Second {
		x.step(16 * time.Millisecond)
	}
	for range n {
		_, err := x.out.Send(make([]byte, 10))
		require.NoError(t, err)
	}
	for sent < n {
		require.Less(t, x.now, time.Minute, "%d", sent)
		x.step(16 * time.Millisecond)
	}
}
