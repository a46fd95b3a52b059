package netconn

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// lab is two connections over links in virtual time, stepped in tick, with packets handed over every fine step.
type lab struct {
	t       testing.TB
	now     time.Duration
	tick    time.Duration
	fine    time.Duration
	next    time.Duration
	conns   [2]*Conn
	links   [2]*netsim.Link
	dark    [2]bool
	asleep  [2]bool // neither receives nor ticks
	lose    [2]func(p []byte) bool
	offered [2]int
	packets [2]int
	res     [2]*CloseResult
	got     [2]int // bytes of payload
	lat     [2][]time.Duration
	rlat    [2][]time.Duration
	accept  [2]func(ch *channel.Channel)
}

type labHandler struct {
	channel.Nop
	l *lab
	i int
}

func (h *labHandler) ReceivedBunch(ch *channel.Channel, in *bunch.In) {
	h.l.got[h.i] += in.Bits / 8
	if in.Bits < 128 {
		return
	}
	in.Data.ReadUint64() // which it is
	late := h.l.now - time.Duration(in.Data.ReadUint64()&(1<<48-1))
	if in.Reliable {
		h.l.rlat[h.i] = append(h.l.rlat[h.i], late)
	} else {
		h.l.lat[h.i] = append(h.l.lat[h.i], late)
	}
}

func newLab(t testing.TB, nets [2]netsim.Settings, seed uint64, edit func(i int, c *Config)) *lab {
	l := &lab{t: t, tick: testTick}
	for i := range l.conns {
		link, err := netsim.NewLink(nets[i], seed*2+uint64(i))
		require.NoError(t, err)
		l.links[i] = link
		cfg := Config{Server: i == 1, Closed: func(r CloseResult) { l.res[i] = &r },
			Channels: testTypes(func(ch *channel.Channel) channel.Handler {
				if l.accept[i] != nil {
					l.accept[i](ch)
				}
				return &labHandler{l: l, i: i}
			}),
			LowLevelSend: func(p []byte) {
				l.offered[i] += len(p) + 28
				l.packets[i]++
				if l.dark[i] || l.lose[i] != nil && l.lose[i](p) {
					return
				}
				l.links[i].Push(l.now, p)
			}}
		if edit != nil {
			edit(i, &cfg)
			named(&cfg)
		}
		bucketed(&cfg)
		c, err := New(cfg, 0, [2]uint16{9, 7}[i], [2]uint16{7, 9}[i])
		require.NoError(t, err)
		l.conns[i] = c
	}
	return l
}

func both(s netsim.Settings) [2]netsim.Settings { return [2]netsim.Settings{s, s} }

func (l *lab) control() *channel.Channel {
	ch, err := l.conns[0].Open(bunch.Control, &labHandler{l: l, i: 0})
	require.NoError(l.t, err)
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(l.t, err)
	return ch
}

// join is a second with control, and until the server has that channel: at 20 % loss its open may take longer, and with Unreal's protocols an end without
// one doesn't tell its peer that it closes.
func (l *lab) join() {
	l.control()
	for l.now < time.Second || l.conns[1].Channel(0) == nil {
		l.step(nil)
	}
}

func (l *lab) open(i int) *channel.Channel {
	ch, err := l.conns[i].Open(testName, &labHandler{l: l, i: i})
	require.NoError(l.t, err)
	return ch
}

// talkers opens a channel at each end. What it returns has both say out while there is room, and then so many bytes unreliably.
func (l *lab) talkers(out bunch.Out, unreliable int) func() {
	chs := [2]*channel.Channel{l.open(0), l.open(1)}
	return func() {
		for _, ch := range chs {
			if ch.Room() > 1 {
				say := out
				_, _ = ch.SendBunch(&say)
			}
			if unreliable > 0 {
				_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, unreliable)})
			}
		}
	}
}

// step moves on by fine (or tick): packets in; at each tick game, then Tick.
func (l *lab) step(game func()) {
	f := l.fine
	if f == 0 {
		f = l.tick
	}
	l.now += f
	for i, c := range l.conns {
		if l.asleep[i] {
			continue
		}
		from := l.links[1-i]
		some := false
		for p, ok := from.Pop(l.now); ok; p, ok = from.Pop(l.now) {
			_ = c.ReceivedPacket(l.now, p)
			some = true
		}
		c.PostTickDispatch(l.now)
		if some && l.fine > 0 {
			c.FlushWritten(l.now)
		}
	}
	if l.now < l.next {
		return
	}
	l.next = l.now + l.tick - f/2
	if game != nil {
		game()
	}
	for i, c := range l.conns {
		if !l.asleep[i] {
			c.Tick(l.now)
		}
	}
}

func (l *lab) run(d time.Duration, game func()) {
	for end := l.now + d; l.now < end && l.res[0] == nil && l.res[1] == nil; {
		l.step(game)
	}
}

func adapt() congestion.Controller {
	c, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
	if err != nil {
		panic(err)
	}
	return c
}

func labMsg(now time.Duration, n uint64, size int) []byte {
	b := make([]byte, max(16, size))
	binary.LittleEndian.PutUint64(b, n)
	binary.LittleEndian.PutUint64(b[8:], uint64(now))
	return b
}

func quant(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return -1
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}
