package packetnotify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/history"
)

// TestBothComeOutOfTheWait: two ends whose histories overflow at once refuse each other's acks. One gives up, and then
// all packets are taken again, however long a round trip is.
func TestBothComeOutOfTheWait(t *testing.T) {
	for _, delay := range []int{0, 1, 20, 128, 250} { // each way, in ticks
		var ends [2]*Notify
		for i := range ends {
			ends[i] = begun(Config{WaitForFlush: true, AckRecords: maxRecords})
		}
		var mail [2][]flight // to each
		now, heard, known := 0, [2]int{}, [2]int64{}
		send := func(i int) {
			w := bitio.NewWriter(make([]byte, 64))
			ends[i].WriteHeader(w)
			mail[1-i] = append(mail[1-i], flight{b: w.Bytes(), id: ends[i].Commit(), due: now + delay})
		}
		taken, came := 0, 0
		deliver := func(to int) {
			l := mail[to][0]
			mail[to] = mail[to][1:]
			var h Header
			require.NoError(t, h.Read(bitio.NewReader(l.b, len(l.b)*8)))
			came++
			if _, process := ends[to].Update(&h, new(facts)); process {
				taken++
				ends[to].AckSeq(true)
			}
		}
		for range history.Bits + 40 { // they all cross
			send(0)
			send(1)
		}
		for range history.Bits + 40 {
			deliver(0)
			deliver(1)
		}
		require.True(t, ends[0].WaitingForFlush() && ends[1].WaitingForFlush())
		play := func(ticks int) {
			for range ticks {
				now++
				for i, n := range ends {
					if n.OutAckID() != known[i] {
						known[i], heard[i] = n.OutAckID(), now
					}
					if !n.WindowFull(0) || n.WaitingForFlush() || now > heard[i]+4*delay && now%10 == 0 { // never silent for ever
						send(i)
					}
				}
				for i := range ends {
					for len(mail[i]) > 0 && mail[i][0].due <= now {
						deliver(i)
					}
				}
			}
		}
		play(4*history.Bits + 8*delay) // as long as it takes to give up
		taken, came = 0, 0
		play(4000)
		require.Greater(t, came, 2000, "delay %d", delay)
		require.GreaterOrEqual(t, taken, came*9/10, "delay %d: of %d", delay, came)
		require.False(t, ends[0].WaitingForFlush() || ends[1].WaitingForFlush())
	}
}

// TestUnsettled: what the peer must keep in its history is counted from what it knows that we know.
func TestUnsettled(t *testing.T) {
	n := begun(Config{WaitForFlush: true, AckRecords: maxRecords})
	for range 100 {
		send(n)
	}
	require.Equal(t, 100, n.Unsettled())
	h := Header{Seq: 1, AckedSeq: 40, Words: 8}
	_, process := n.Update(&h, new(facts))
	require.True(t, process)
	require.Equal(t, 60, n.Outstanding())
	require.Equal(t, 100, n.Unsettled(), "our next header doesn't ack it yet")
	n.AckSeq(false)
	require.Equal(t, 60, n.Unsettled())
	for seq := uint16(2); seq <= history.Bits; seq++ {
		come(n, seq, 40)
	}
	_, process = come(n, history.Bits+1, 70)
	require.False(t, process)
	require.Equal(t, 30, n.Outstanding())
	require.Equal(t, 60, n.Unsettled(), "it was refused, and isn't acked")
	first := send(n)
	_, process = come(n, history.Bits+2, uint16(first))
	require.True(t, process)
	require.Zero(t, n.Unsettled())
}

// TestRefusedAndTold: a packet that is refused, but told to be lost, says with that what we know.
func TestRefusedAndTold(t *testing.T) {
	n, heard := fullAfter100()
	for range 10 {
		send(n)
	}
	delta, process := come(n, 300, uint16(heard))
	require.False(t, process)
	require.Positive(t, delta)
	require.Equal(t, 10, n.Unsettled())
}
