package netconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// reader is the opener's end of a channel: it counts what comes, also after it has closed the channel.
type reader struct {
	channel.Nop
	t    *testing.T
	came int
}

func (r *reader) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	require.EqualValues(r.t, r.came, in.Data.ReadBits(32), "each once, in its order")
	r.came++
}

func (r *reader) ReceivedLate(ch *channel.Channel, in *bunch.In) { r.ReceivedBunch(ch, in) }

// writer is the other end: it notes what it sent, and what Closed says was cut off.
type writer struct {
	channel.Nop
	ch        *channel.Channel
	sent, cut int
	closed    bool
}

func (w *writer) Opened(ch *channel.Channel) error { w.ch = ch; return nil }

func (w *writer) Closed(ch *channel.Channel, _ channel.CloseReason) {
	w.closed, w.cut = true, ch.NumOutRec()
}

// TestCutOffIsCounted: of what an end sent on a channel that its peer closes, all that Closed doesn't count has come, at 0 and 10 % loss with jitter, with channels closed at any time, and with the connection
// closed by either end.
func TestCutOffIsCounted(t *testing.T) {
	for _, loss := range []float64{0, 10} {
		closed, cut := 0, 0
		for seed := range uint64(60) {
			rng := rand.New(rand.NewPCG(seed, uint64(loss)))
			var writers []*writer
			readers := map[uint32][]*reader{}
			l := newLab(t, both(netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: loss}), seed, func(i int, c *Config) {
				if i == 0 {
					c.Channels = testTypes(func(*channel.Channel) channel.Handler {
						writers = append(writers, &writer{})
						return writers[len(writers)-1]
					})
				}
			})
			l.control()
			l.run(time.Second, nil)
			var open []*channel.Channel
			of := map[*writer]*reader{}
			game := func() {
				for len(open) < 5 {
					r := &reader{t: t}
					ch, err := l.conns[1].Open(testName, r)
					require.NoError(t, err)
					_, err = ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
					require.NoError(t, err)
					readers[ch.Index()] = append(readers[ch.Index()], r)
					open = append(open, ch)
				}
				for _, w := range writers {
					if of[w] == nil { // channels of an index are opened in turn
						rs := readers[w.ch.Index()]
						of[w], readers[w.ch.Index()] = rs[0], rs[1:]
					}
					for range rng.IntN(4) {
						if w.ch.Room() > 0 && !w.closed {
							if _, err := w.ch.SendBunch(&bunch.Out{Data: []byte{byte(w.sent), byte(w.sent >> 8), 0, 0}, Reliable: true, NoMerge: true}); err == nil {
								w.sent++
							}
						}
					}
				}
				if rng.IntN(20) == 0 {
					i := rng.IntN(len(open))
					require.NoError(t, open[i].Close(bunch.Destroyed))
					open = append(open[:i], open[i+1:]...)
				}
			}
			l.run(4*time.Second, game)
			l.conns[rng.IntN(2)].Close(l.now, "bye")
			for l.res[0] == nil || l.res[1] == nil {
				l.step(nil)
			}
			for _, w := range writers {
				require.True(t, w.closed)
				if r := of[w]; r != nil {
					require.GreaterOrEqual(t, r.came, w.sent-w.cut, "seed %d", seed)
					closed, cut = closed+1, cut+w.cut
				}
			}
		}
		t.Logf("loss %v: %d channels closed, %d bunches cut off", loss, closed, cut)
		require.Positive(t, cut)
	}
}
