package message_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestNothingIsResentWithoutLoss: how long the path is, up to round trips of 500 ms, and how much it varies costs no second copies; beyond that
// those of the first round trip.
func TestNothingIsResentWithoutLoss(t *testing.T) {
	for _, c := range []struct {
		lag, variance time.Duration
		resent        int // at most, of 1250
	}{
		{20 * time.Millisecond, 0, 0}, {60 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 0, 0}, {150 * time.Millisecond, 0, 0},
		{250 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 40 * time.Millisecond, 30},
		{700 * time.Millisecond, 0, 270}, // those of the first round trip
	} {
		x := newTransfer(t, netsim.Settings{Lag: c.lag, LagVariance: c.variance}, 3, bucket)
		const n = 1250
		sent, got := uint32(0), uint32(0)
		for got < n {
			require.Less(t, x.now, time.Minute, "%+v: %d", c, got)
			if sent < n && x.qa.Send(x.ka.number, &number{N: sent}) == nil {
				sent++
			}
			x.step(16 * time.Millisecond)
			for m, k := x.qb.Receive(); m != nil; m, k = x.qb.Receive() {
				require.Equal(t, got, m.(*number).N)
				got++
				k.Free(m)
			}
		}
		require.LessOrEqual(t, int(x.qa.Counters.Resent), c.resent, "%+v", c)
	}
}

// TestResendWithoutNews: a queue that isn't told of losses sends again after a round trip and a half, and after two
// seconds whatever the peer's acks were like.
func TestResendWithoutNews(t *testing.T) {
	for _, c := range []struct{ rtt, atLeast, atMost time.Duration }{
		{5 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		{300 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond},
		{30 * time.Second, 2 * time.Second, 2 * time.Second},
	} {
		k := newKinds()
		q := message.New(message.Config{Kinds: &k.reg})
		now, id := time.Duration(0), int64(0)
		write := func() bool {
			id++
			wrote := q.Write(now, bitio.NewWriter(make([]byte, 1000))) > 0
			q.Sent(id)
			return wrote
		}
		for range 100 {
			require.NoError(t, q.Send(k.number, &number{}))
			require.True(t, write())
			now += c.rtt
			q.Acked(id)
			write()
		}
		require.NoError(t, q.Send(k.number, &number{}))
		require.True(t, write())
		left := now
		for !write() {
			now += 5 * time.Millisecond
		}
		require.GreaterOrEqual(t, now-left, c.atLeast, "%v", c.rtt)
		require.LessOrEqual(t, now-left, c.atMost, "%v", c.rtt)
	}
}

// TestToldLossesDontWaitForResend: a message that is known to be lost, several times in a row, too, is sent again within two seconds, however long Resend is.
func TestToldLossesDontWaitForResend(t *testing.T) {
	k := newKinds()
	q := message.New(message.Config{Kinds: &k.reg, Resend: time.Hour})
	require.NoError(t, q.Send(k.number, &number{}))
	now, sent := time.Duration(0), int64(0)
	for ; sent < 10; now += 100 * time.Millisecond {
		require.Less(t, now, 20*time.Second, "sent %d times", sent)
		if q.Write(now, bitio.NewWriter(make([]byte, 1000))) > 0 {
			sent++
			q.Sent(sent)
			q.Lost(sent)
		}
	}
}

// TestLossIsNoRefusal: where most packets get lost, or all of them for five seconds, a queue sends as much as ever of what waits.
func TestLossIsNoRefusal(t *testing.T) {
	const tick, seeds = 16 * time.Millisecond, 4
	for _, c := range []struct {
		loss  float64
		dark  time.Duration
		ticks int64         // of a round trip
		pace  time.Duration // between packets; 0: three a tick
		by    time.Duration
	}{{0.8, 0, 2, 0, 16 * time.Second}, {0, 5 * time.Second, 20, 0, 7 * time.Second}, {0.8, 0, 2, 6 * tick, 14 * time.Second}} {
		waiting, n := 0, min(800, int(c.by/tick))
		for seed := range uint64(seeds) {
			k, rng := newKinds(), rand.New(rand.NewPCG(seed+1, 1))
			q := message.New(message.Config{Kinds: &k.reg})
			var fates [][]int64 // ids of the packets of each tick; negative where it gets lost
			id, due := int64(0), time.Duration(0)
			for now := time.Duration(0); now < c.by; now += tick {
				if at := len(fates) - int(c.ticks); at >= 0 {
					for _, f := range fates[at] {
						if f > 0 {
							q.Acked(f)
						} else {
							q.Lost(-f)
						}
					}
				}
				if int(now/tick) < n {
					require.NoError(t, q.Send(k.number, &number{}))
				}
				var sent []int64
				for len(sent) < 3 && now >= due && q.Write(now, bitio.NewWriter(make([]byte, 1000))) > 0 {
					id++
					q.Sent(id)
					due = now + c.pace
					if now < c.dark || rng.Float64() < c.loss {
						sent = append(sent, -id)
					} else {
						sent = append(sent, id)
					}
				}
				fates = append(fates, sent)
			}
			waiting += q.Pending()
		}
		require.Less(t, waiting, seeds*60, "%+v: of %d each", c, n)
	}
}
