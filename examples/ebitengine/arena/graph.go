package arena

import "time"

// Sample is the network's figures at a moment.
type Sample struct {
	RTT         time.Duration
	Loss        float64 // of packets either way, 0 to 1
	In, Out     float64 // bytes a second
	Corrections int     // of the own ship since the sample before
}

const (
	graphEvery   = 50 * time.Millisecond
	graphSamples = 160
)

// Graph is the last eight seconds of them.
type Graph struct {
	samples     [graphSamples]Sample
	n           int
	next        time.Duration
	corrections uint64
}

func (g *Graph) sample(c *Client) {
	conn := c.Driver.Server()
	if conn == nil || c.Own() == nil || c.now < g.next {
		return // before there is a ship, the round trip is that of joining, with what a server does then
	}
	g.next = c.now + graphEvery
	st := conn.Stats()
	s := Sample{RTT: st.LastRTT, Loss: max(st.Rates.InLoss, st.Rates.OutLoss), In: st.Rates.InBytes, Out: st.Rates.OutBytes}
	n := c.ships.Counters().Client.Corrections
	s.Corrections = int(n - min(n, g.corrections))
	g.corrections = n
	g.samples[g.n%graphSamples] = s
	g.n++
}

// All calls yield for each sample, oldest first.
func (g *Graph) All(yield func(i int, s Sample) bool) {
	first := max(0, g.n-graphSamples)
	for i := first; i < g.n; i++ {
		if !yield(i-first, g.samples[i%graphSamples]) {
			return
		}
	}
}

// Last is the newest sample.
func (g *Graph) Last() Sample {
	if g.n == 0 {
		return Sample{}
	}
	return g.samples[(g.n-1)%graphSamples]
}

// Corrections is how often the own ship was corrected so far.
func (g *Graph) Corrections() uint64 { return g.corrections }
