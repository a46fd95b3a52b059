package congestion_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// TestLateAtTheStart: a process that is kept from running for 100 to 300 ms while a connection starts finds what came meanwhile in a heap. That
// is no queue of the path.
func TestLateAtTheStart(t *testing.T) {
	const bits, length = 100e6, 4 * time.Second
	const ms = time.Millisecond
	for _, rtt := range []time.Duration{1, 20, 50} {
		for _, at := range []time.Duration{40, 150, 250, 400, 500} {
			for _, stall := range []time.Duration{100, 200, 300} {
				for _, both := range []bool{false, true} {
					f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, Immediate: true, Jitter: ms, Asleep: []paths.Span{{From: at * ms, To: (at + stall) * ms}}}
					if both {
						f.PeerAsleep = f.Asleep
					}
					link := paths.Link{Rate: paths.Constant(bits), Buffer: 100 * ms, Delay: rtt * ms / 2}
					paths.New(1, &link, &f).Run(length)
					from := (at + stall + 1500) * ms
					require.Greater(t, f.Delivered(from, length), 0.8*bits, "round trip %v, late by %v at %v, both %v", rtt*ms, stall*ms, at*ms, both)
				}
			}
		}
	}
}

// TestLatePeerAtTheStart: acks that a peer's process held for 100 to 300 ms while a connection starts are no queue either.
func TestLatePeerAtTheStart(t *testing.T) {
	const bits = 100e6
	const ms = time.Millisecond
	runs, slow := 0, 0
	for _, rtt := range []time.Duration{1, 20, 50} {
		for _, at := range []time.Duration{40, 100, 150, 250, 400, 500} {
			for _, stall := range []time.Duration{100, 200, 300} {
				for seed := uint64(1); seed <= 4; seed++ {
					for _, every := range []time.Duration{0, time.Second / 60} {
						f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, AckEvery: every, Immediate: every == 0, Jitter: ms, PeerAsleep: []paths.Span{{From: at * ms, To: (at + stall) * ms}}}
						link := paths.Link{Rate: paths.Constant(bits), Buffer: 100 * ms, Delay: rtt * ms / 2}
						from := (at + stall + 1500) * ms
						paths.New(seed, &link, &f).Run(from + 2500*ms)
						what := fmt.Sprintf("round trip %v, peer late by %v at %v, acks every %v, seed %d", rtt*ms, stall*ms, at*ms, every, seed)
						require.Greater(t, f.Delivered(from+1500*ms, from+2500*ms), 0.8*bits, what)
						if runs++; f.Delivered(from, from+time.Second) < 0.8*bits {
							slow++
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d don't use 80 %% of the link after 1.5 s", slow, runs)
	require.LessOrEqual(t, slow, runs/25)
}

// TestLateTicks: a process that comes 100 to 300 ms late about once a second loses that time, a sixth of all, and little more.
func TestLateTicks(t *testing.T) {
	const ms = time.Millisecond
	for _, rtt := range []time.Duration{1, 20, 100} {
		for seed := uint64(1); seed <= 3; seed++ {
			rng := rand.New(rand.NewPCG(seed, 77))
			var late []paths.Span
			for at := time.Duration(0); at < 40*time.Second; {
				at += time.Duration(rng.ExpFloat64() * float64(time.Second))
				to := at + 100*ms + time.Duration(rng.Int64N(int64(200*ms)))
				late = append(late, paths.Span{From: at, To: to})
				at = to
			}
			f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, Immediate: true, Jitter: ms, Asleep: late}
			link := paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * ms, Delay: rtt * ms / 2}
			paths.New(seed, &link, &f).Run(40 * time.Second)
			share := f.Delivered(5*time.Second, 40*time.Second) / 10e6
			t.Logf("round trip %v, seed %d: %.2f of the link, median queue %v", rtt*ms, seed, share, link.Queue(.5, 5*time.Second, 40*time.Second))
			require.Greater(t, share, 0.72, "round trip %v, seed %d", rtt*ms, seed)
		}
	}
}

// TestUnevenTicks: a process whose ticks are never even isn't blind: it uses a link, and follows one that falls to a tenth.
func TestUnevenTicks(t *testing.T) {
	const ms, falls, end = time.Millisecond, 15 * time.Second, 40 * time.Second
	for seed := uint64(1); seed <= 3; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		var late []paths.Span
		for at := time.Duration(0); at < end; {
			at += time.Duration(1+rng.IntN(60)) * ms
			to := at + time.Duration(40+rng.IntN(100))*ms
			late = append(late, paths.Span{From: at, To: to})
			at = to
		}
		f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, AckEvery: time.Second / 60, Jitter: ms, Asleep: late}
		link := paths.Link{Buffer: 2 * time.Second, Delay: 20 * ms, Rate: func(now time.Duration) float64 {
			if now < falls {
				return 10e6
			}
			return 1e6
		}}
		paths.New(seed, &link, &f).Run(end)
		before, after := f.Delivered(5*time.Second, falls)/10e6, f.Delivered(falls+5*time.Second, end)/1e6
		queue := link.Queue(.5, falls+5*time.Second, end)
		t.Logf("seed %d: %.2f of the link, %.2f and a queue of %v after it fell", seed, before, after, queue)
		require.Greater(t, before, 0.4, "seed %d", seed)
		require.Greater(t, after, 0.6, "seed %d", seed)
		require.Less(t, queue, 150*ms, "seed %d", seed)
	}
}

// TestSeldomAcks: a peer that acks every half second or two, as in a browser's tab that isn't seen, isn't taken for silent.
func TestSeldomAcks(t *testing.T) {
	for _, every := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, AckEvery: every, Jitter: time.Millisecond}
		link := paths.Link{Rate: paths.Constant(10e6), Buffer: 500 * time.Millisecond, Delay: 20 * time.Millisecond}
		paths.New(1, &link, &f).Run(time.Minute)
		require.Greater(t, f.Delivered(20*time.Second, time.Minute), 8e6, "acks every %v", every)
		require.Less(t, link.Queue(.5, 20*time.Second, time.Minute), 30*time.Millisecond, "acks every %v", every)
	}
}

// TestStarved: processes that get a CPU less than half of the time, for moments of 200 ms on average and never for 50 to 500 ms in between, find a
// rate all the same, from the connection's start on.
func TestStarved(t *testing.T) {
	const ms, length = time.Millisecond, 10 * time.Second
	for _, who := range []struct {
		name                string
		ours, theirs, apart bool
		late                int // runs that may have less than a 25th of the link
	}{{"this process", true, false, false, 0}, {"the peer's", false, true, false, 1}, {"both at once", true, true, false, 0}, {"both, each on its own", true, true, true, 6}} {
		runs, slow, least := 0, 0, 1.0
		for _, bits := range []float64{10e6, 100e6} {
			for _, rtt := range []time.Duration{1, 20, 50} {
				for _, immediate := range []bool{true, false} {
					for seed := uint64(1); seed <= 12; seed++ {
						rng := rand.New(rand.NewPCG(seed, 99))
						starved := func() (late []paths.Span) {
							for at := time.Duration(0); at < length; {
								at += time.Duration(rng.ExpFloat64() * float64(200*ms))
								to := at + 50*ms + time.Duration(rng.Int64N(int64(450*ms)))
								late = append(late, paths.Span{From: at, To: to})
								at = to
							}
							return late
						}
						f := paths.Flow{Controller: controller(t)(), Tick: time.Second / 60, Immediate: immediate, Jitter: ms}
						if !immediate {
							f.AckEvery = time.Second / 60
						}
						spans := starved()
						if who.ours {
							f.Asleep = spans
						}
						if who.apart {
							spans = starved()
						}
						if who.theirs {
							f.PeerAsleep = spans
						}
						link := paths.Link{Rate: paths.Constant(bits), Buffer: 100 * ms, Delay: rtt * ms / 2}
						paths.New(seed, &link, &f).Run(length)
						share := f.Delivered(2*time.Second, length) / bits
						runs++
						if least = min(least, share); share < 0.04 {
							slow++
							t.Logf("%s, %g Mbit/s, round trip %v, immediate %v, seed %d: %.3f of the link", who.name, bits/1e6, rtt*ms, immediate, seed, share)
						}
					}
				}
			}
		}
		t.Logf("%s: %d of %d runs have less than a 25th of the link, the least %.3f", who.name, slow, runs, least)
		require.LessOrEqual(t, slow, who.late, who.name)
	}
}
