package message_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestFragmentsOfNoBlock: a fragment of an empty block, one right behind a block's last, and one of another size are refused.
func TestFragmentsOfNoBlock(t *testing.T) {
	for _, c := range []struct {
		total, frag uint32
		n           int
		refused     uint64
	}{{0, 0, 0, 1}, {2 * 896, 2, 0, 1}, {10, 0, 9, 1}, {10, 0, 11, 1}, {10, 0, 10, 0}} {
		b := message.NewBlocks(message.BlocksConfig{})
		hear(b, 0, c.total, c.frag, c.n)
		require.Equal(t, c.refused, b.Counters.Refused, "%+v", c)
	}
}

// TestDamagedBlock: a block whose bytes aren't those of its checksum isn't received, and the game is told.
func TestDamagedBlock(t *testing.T) {
	var broken []error
	b := message.NewBlocks(message.BlocksConfig{
		Received: func(int64, []byte) { t.Error("received") },
		Broken:   func(id int64, err error) { require.Zero(t, id); broken = append(broken, err) },
	})
	hear(b, 0, 10, 0, 10)
	require.Len(t, broken, 1)
	require.ErrorIs(t, broken[0], message.ErrChecksum)
	require.Zero(t, b.Held())
}

// TestBlocksOfWholeWords: blocks of as many fragments as there are bits in one word or two arrive, and what was sent again is counted.
func TestBlocksOfWholeWords(t *testing.T) {
	const fragment = 896
	x := newTransfer(t, netsim.Settings{Lag: 10 * time.Millisecond, Loss: 10}, 1, bucket)
	for i, n := range []int{64, 128} {
		id, err := x.out.Send(data(uint64(i), n*fragment))
		require.NoError(t, err)
		for end := x.now + 20*time.Second; x.received[id] == nil && x.now < end; {
			x.step(5 * time.Millisecond)
		}
		require.Equal(t, data(uint64(i), n*fragment), x.received[id])
	}
	for range 100 {
		x.step(5 * time.Millisecond)
	}
	c := x.out.Counters
	require.Positive(t, c.Resent)
	require.Equal(t, uint64(64+128), c.Fragments-c.Resent)
}

// TestOpenBlocksCount: a peer's channel of blocks counts what it costs as long as it is open, though no block has come.
func TestOpenBlocksCount(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	for range 5 {
		x.step(time.Millisecond)
	}
	before := x.conns[1].Table().Held()
	require.NoError(t, x.blocks.Close(0))
	for range 5 {
		x.step(time.Millisecond)
	}
	require.Greater(t, before-x.conns[1].Table().Held(), 2000)
}

// TestTickOfALateSender: who sends the first message when the connection is old isn't told that Tick is forgotten before messages have waited for 10 s.
func TestTickOfALateSender(t *testing.T) {
	x := newTransfer(t, netsim.Settings{}, 1, bucket)
	for x.now < 20*time.Second {
		x.exchange()
	}
	for end := x.now + 9*time.Second; x.now < end; x.exchange() {
		require.NoError(t, x.qa.Send(x.ka.number, &number{}))
	}
}
