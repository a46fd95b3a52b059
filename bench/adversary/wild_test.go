package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn"
)

// anything does anything whenever it is called.
type anything struct {
	l      *liar
	rng    *rand.Rand
	closed *int
	gone   *bool
	wrong  *string
}

func (a *anything) note(ch *channel.Channel, what string) {
	if *a.gone && *a.wrong == "" {
		*a.wrong = fmt.Sprintf("%s after Closed on %v: %s", what, ch, debug.Stack())
	}
}

func (a *anything) act(ch *channel.Channel) {
	v, rng := a.l.victim, a.rng
	if v == nil {
		return
	}
	for range rng.IntN(3) {
		switch rng.IntN(60) {
		case 0:
			if rng.IntN(5) == 0 {
				v.Close(a.l.now, "done")
			}
		case 1:
			if rng.IntN(20) == 0 {
				v.Abort(a.l.now, "abort")
			}
		case 2:
			if rng.IntN(20) == 0 {
				v.LinkClosed(a.l.now, "link")
			}
		case 3, 4, 5:
			v.FlushNet()
		case 6, 7, 8, 9, 10:
			if c, err := v.Open(dataName, &anything{a.l, rng, new(int), new(bool), a.wrong}); err == nil {
				if rng.IntN(2) == 0 {
					_, _ = c.SendTemporary(&bunch.Out{Data: make([]byte, rng.IntN(3000))})
				} else {
					_, _ = c.SendBunch(&bunch.Out{Data: make([]byte, rng.IntN(200)), Reliable: true})
				}
			}
		case 11, 12, 13:
			_ = ch.Close(bunch.Destroyed)
		case 14:
			v.FlushWritten(a.l.now)
		case 15:
			_ = ch.Hold(rng.IntN(9000))
		default:
			n := rng.IntN(60)
			if rng.IntN(8) == 0 {
				n = rng.IntN(20000)
			}
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, n), Reliable: rng.IntN(3) != 0, NoMerge: rng.IntN(3) == 0})
		}
	}
}
func (a *anything) ReceivedBunch(ch *channel.Channel, _ *bunch.In) { a.note(ch, "bunch"); a.act(ch) }
func (a *anything) ReceivedAck(ch *channel.Channel, _ int64)       { a.note(ch, "ack"); a.act(ch) }
func (a *anything) ReceivedNak(ch *channel.Channel, _ int64)       { a.note(ch, "nak"); a.act(ch) }
func (a *anything) Closed(ch *channel.Channel, _ channel.CloseReason) {
	a.note(ch, "Closed")
	*a.gone = true
	a.act(ch)
}

// TestWildPeers: whatever a peer and the game's handlers do, nothing panics, the connection ends once, and no handler is called
// after its Closed.
func TestWildPeers(t *testing.T) {
	seeds := 300
	if os.Getenv("CI") != "" {
		seeds = 4000
	}
	why := map[string]int{}
	steps := 0
	pool := new(channel.Pool)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 9))
		ends, wrong, server := 0, "", false
		after := 0
		calm := rng.IntN(3) != 0 // the peer's packets come in order
		var l *liar
		var err error
		get := func(*channel.Channel) channel.Handler {
			return &anything{l, rng, new(int), new(bool), &wrong}
		}
		l, err = newLiar(get, func(c *netconn.Config) {
			c.MaxMemory = 256 << 10
			c.Pool = pool
			server = rng.IntN(2) == 0
			c.Server = server
			c.Secret = rng.Uint64() * uint64(rng.IntN(2))
			c.Redundancy = netconn.Redundancy{Copies: rng.IntN(3), Adaptive: rng.IntN(2) == 0}
			c.OrderCache = []int{0, 4, 256, -1}[rng.IntN(4)]
			c.ReorderWindow = []time.Duration{0, -1, 20 * time.Millisecond}[rng.IntN(3)]
			c.AckDelay = time.Duration(rng.IntN(2)) * 20 * time.Millisecond
			c.KeepAlive = time.Duration(1+rng.IntN(200)) * time.Millisecond
			c.Protocol = []netconn.Protocol{netconn.Bunchnet(), netconn.Bunchnet(), netconn.Bunchnet(), netconn.Unreal51(), netconn.Unreal53(false)}[rng.IntN(5)]
			if rng.IntN(3) == 0 {
				c.NetSpeed = 2000
			}
			old := c.Closed
			c.Closed = func(r netconn.CloseResult) { ends++; old(r) }
		})
		require.NoError(t, err)
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("seed %d: %v\n%s", seed, r, debug.Stack())
				}
			}()
			_ = l.openControl()
			for range 400 {
				if l.over() {
					after++
					if after > 50 {
						break
					}
				}
				steps++
				var lies []lie
				shut := map[uint32]bool{}
				for range rng.IntN(5) {
					ch := uint32(rng.IntN(5)) * 2
					if ch > 0 && server {
						ch--
					}
					name := dataName
					if ch == 0 {
						name = bunch.Control
					}
					b := lie{}
					if rng.IntN(3) != 0 {
						b = l.reliable(ch, name, make([]byte, rng.IntN(120)))
					} else {
						b = lie{bunch.Header{ChIndex: ch, Name: name}, make([]byte, rng.IntN(40))}
						b.Bits = len(b.data) * 8
					}
					c := l.victim.Channel(ch)
					b.Open = c == nil || shut[ch]
					b.Close = rng.IntN(8) == 0 && (ch > 0 || rng.IntN(100) == 0)
					shut[ch] = shut[ch] || b.Close
					if rng.IntN(12) == 0 {
						b.Partial, b.PartialInitial, b.PartialFinal = true, true, true
					}
					lies = append(lies, b)
				}
				acked := l.acked + rng.Int64N(max(1, l.newest-l.acked+1))
				if rng.IntN(100) == 0 {
					acked = l.newest
				}
				var h history.History
				for range history.Bits {
					h.Add(rng.IntN(3) != 0)
				}
				tricks := 30
				if calm {
					tricks = 1
				}
				switch tricks - 1 - rng.IntN(tricks) {
				case 29:
					l.seq += rng.Int64N(300)
				case 1:
					l.seq -= rng.Int64N(4)
				case 2, 3:
					l.seq++
				case 4, 5:
					l.seq -= 2
				}
				_ = l.send(acked, h, lies...)
				if rng.IntN(3) == 0 {
					l.pass(time.Duration(rng.IntN(50)) * time.Millisecond)
				}
			}
			l.victim.Abort(l.now, "over")
		}()
		require.Equal(t, 1, ends, "seed %d", seed)
		require.Empty(t, wrong, "seed %d", seed)
		require.Zero(t, l.victim.Stats().QueuedReliable, "seed %d", seed)
		e := l.result.Code.String()
		if l.result.Err != nil {
			e += l.result.Err.Error()
		}
		why[e[:min(len(e), 70)]]++
	}
	t.Log(steps, why)
}
