package netconn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// An ideal of coding, to which the real one is compared: a packet a tick each way, symbols over the last packets whatever has become of them, of which any as many as are missing
// tell; what is missing when a later packet comes is asked for in all packets back, and sent again in the next one. Nothing takes any time but the path and the
// wait for a tick, and nothing has a size.

const (
	idealLag  = 3       // ticks of 60 Hz one way
	idealSpan = 40      // ticks that are looked at
	idealMod  = 1000003 // a prime: coefficients are modulo that
)

type idealWay struct {
	lost    []bool
	came    []int   // the tick in which a message was there
	again   [][]int // messages that a tick's packet has beside its own
	asked   map[int]int
	symbols [][]int // what those cover that came
	rng     *rand.Rand
}

func newIdealWay(ticks int, seed uint64, lose func(now time.Duration) bool) *idealWay {
	w := &idealWay{lost: make([]bool, ticks), came: make([]int, ticks), again: make([][]int, ticks), asked: map[int]int{}, rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range ticks {
		w.lost[i], w.came[i] = lose(time.Duration(i)*testTick), 2*ticks
	}
	return w
}

// ask has the sender hear, at a tick, which messages the receiver missed when it sent what arrives now.
func (w *idealWay) ask(now int) {
	at := now - idealLag
	newest := at - idealLag
	for newest >= 0 && w.lost[newest] {
		newest--
	}
	for m := max(0, newest-5*idealSpan); m < newest; m++ {
		if last, ok := w.asked[m]; w.came[m] > at && (!ok || now-last > 2*idealLag) {
			w.again[now] = append(w.again[now], m)
			w.asked[m] = now
		}
	}
}

// send sends a tick's packet, with symbols over as many before it.
func (w *idealWay) send(now, repairs, window int) {
	if w.lost[now] {
		return
	}
	at := now + idealLag
	for _, m := range append(w.again[now], now) {
		w.came[m] = min(w.came[m], at)
	}
	for range repairs {
		var covered []int
		for m := max(0, now-window); m < now; m++ {
			covered = append(covered, m)
		}
		w.symbols = append(w.symbols, covered)
	}
	w.solve(at)
}

// solve finds what symbols tell of what is missing, by Gauss's elimination.
func (w *idealWay) solve(at int) {
	missing := func(m int) bool { return w.came[m] > at }
	w.symbols = slices.DeleteFunc(w.symbols, func(s []int) bool {
		return !slices.ContainsFunc(s, missing) || s[len(s)-1] < at-idealLag-idealSpan
	})
	column := map[int]int{}
	var messages []int
	for _, s := range w.symbols {
		for _, m := range s {
			if _, ok := column[m]; !ok && missing(m) {
				column[m] = len(messages)
				messages = append(messages, m)
			}
		}
	}
	rows := make([][]int64, len(w.symbols))
	for i, s := range w.symbols {
		rows[i] = make([]int64, len(messages))
		for _, m := range s {
			if missing(m) {
				rows[i][column[m]] = 1 + w.rng.Int64N(idealMod-1)
			}
		}
	}
	rank := 0
	for c := range messages {
		p := slices.IndexFunc(rows[rank:], func(r []int64) bool { return r[c] != 0 })
		if p < 0 {
			continue
		}
		rows[rank], rows[rank+p] = rows[rank+p], rows[rank]
		for i := range rows {
			if i == rank || rows[i][c] == 0 {
				continue
			}
			a, b := rows[rank][c], rows[i][c]
			for k := range rows[i] {
				rows[i][k] = (rows[i][k]*a + (idealMod-b)*rows[rank][k]) % idealMod
			}
		}
		rank++
	}
	for _, r := range rows {
		n, one := 0, 0
		for k, v := range r {
			if v != 0 {
				n, one = n+1, k
			}
		}
		if n == 1 {
			w.came[messages[one]] = at
		}
	}
}

// idealEchoes is how long echoes take, in order each way.
func idealEchoes(n, repairs, window int, seed uint64, lose [2]func(now time.Duration) bool) (rtt []time.Duration) {
	ticks := n + 8*idealSpan
	ways := [2]*idealWay{newIdealWay(ticks, seed, lose[0]), newIdealWay(ticks, seed, lose[1])}
	for now := range ticks - idealLag {
		for i, w := range ways {
			if now >= 2*idealLag && !ways[1-i].lost[now-idealLag] {
				w.ask(now)
			}
			w.send(now, repairs, window)
		}
	}
	there, back := 0, 0
	for m := range n {
		there = max(there, ways[0].came[m])
		back = max(back, ways[1].came[there])
		rtt = append(rtt, time.Duration(back-m)*testTick)
	}
	return rtt
}

// TestCodingBesideTheIdeal: of echoes at 60/s 1.25 % at most take longer than the ideal's p99 with the same losses, and hardly more
// than there take longer than 225 ms.
func TestCodingBesideTheIdeal(t *testing.T) {
	even := func(loss float64) func(seed uint64) func(time.Duration) bool {
		return func(seed uint64) func(time.Duration) bool {
			rng := rand.New(rand.NewPCG(seed, 3))
			return func(time.Duration) bool { return rng.Float64() < loss }
		}
	}
	for _, c := range []struct {
		name            string
		lose            func(seed uint64) func(time.Duration) bool
		repairs, window int
	}{
		{"5 %", even(0.05), 1, windowAlone},
		{"10 %", even(0.1), 1, windowAlone},
		{"20 %", even(0.2), 2, windowAlone},
		{"bursts", goodAndBad, 1, windowBursts},
		{"bursts", goodAndBad, 2, windowBursts},
	} {
		t.Run(fmt.Sprintf("%s, %d repairs", c.name, c.repairs), func(t *testing.T) {
			const seeds, n = 6, 50 * 60
			var ideal []time.Duration
			for seed := range uint64(seeds) {
				ideal = append(ideal, idealEchoes(n, c.repairs, c.window, seed, [2]func(time.Duration) bool{c.lose(seed * 2), c.lose(seed*2 + 1)})...)
			}
			rtt, _ := echoRuns(t, seeds, n, 60, 60, func(seed uint64) *echoRun {
				e := newEchoOver(t, netsim.Settings{Lag: echoLag}, seed*2+1, func(cfg *Config) { cfg.Coding.Repairs = float64(c.repairs) })
				e.lose = [2]func(time.Duration) bool{c.lose(seed * 2), c.lose(seed*2 + 1)}
				return e
			})
			slices.Sort(ideal)
			slices.Sort(rtt)
			p99 := quant(ideal, 0.99)
			t.Logf("p99 %v, ideal %v; later than 225 ms %.2f %%, ideal %.2f %%", quant(rtt, 0.99), p99, 100*lateShare(rtt, 225*time.Millisecond), 100*lateShare(ideal, 225*time.Millisecond))
			require.LessOrEqual(t, lateShare(rtt, p99+2*time.Millisecond), 0.0125)
			require.LessOrEqual(t, lateShare(rtt, 225*time.Millisecond), 1.1*lateShare(ideal, 225*time.Millisecond)+0.0015)
		})
	}
}
