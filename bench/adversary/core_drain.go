package main

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	for _, loss := range []float64{0, 10, 30} {
		register(attack{area: "core", name: fmt.Sprintf("drain, %.0f %% loss", loss), promise: "Close loses no reliable bunch that the result doesn't list, whoever closes and whenever", bound: none("lost in silence"),
			run: func(e *env) figure { return drains(e, loss, true) }})
	}
	register(
		attack{area: "core", name: "drain, who closes", promise: "and who closes loses nothing at all at 10 % loss while the linger time suffices", bound: none("closes with losses"),
			run: closerLosesNothing},
		attack{area: "core", name: "drain, no channel 0", promise: "Close delivers what was sent, and tells the peer, without a control channel too", bound: none("lost"),
			run: func(e *env) figure { return drains(e, 10, false) }},
	)
}

// letters is the messages of one direction: numbers on several channels, and which of them arrived.
type letters struct {
	channel.Nop
	accepted int // by SendBunch
	arrived  map[uint64]bool
	twice    int
}

// ReceivedBunch notes the number in a bunch.
func (l *letters) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	n := in.Data.ReadUint64()
	if l.arrived[n] {
		l.twice++
	}
	l.arrived[n] = true
}

// letterBytes is so many that two are never merged into a bunch: results count bunches.
const letterBytes = 500

// mostWaiting is the letters of a channel that wait at a close: what goes through in the linger time.
const mostWaiting = 55

// closing is one run: both ends send on all channels, the control channel's queue included, and one closes, or both.
type closing struct {
	r       *rig
	mail    [2]letters // by who sends
	chans   [2][]*channel.Channel
	closers [2]bool
	queued  [2]bool // more was sent on channel 0 than fits
}

func newClosing(e *env, net netsim.Settings, linger time.Duration, control bool) (*closing, error) {
	c := &closing{}
	for i := range c.mail {
		c.mail[i].arrived = map[uint64]bool{}
	}
	r, err := newRig(e, net, func(i int, cfg *netconn.Config) {
		get := func(*channel.Channel) channel.Handler { return &c.mail[1-i] }
		cfg.Channels[0].Accept, cfg.Channels[1].Accept = get, get
		cfg.NetSpeed, cfg.LingerTimeout = 400_000, linger
		cfg.Protocol = netconn.Bunchnet()
		cfg.Protocol.ReliableBuffer = 256 // so that what is queued on channel 0 goes through in the linger time
		if !control {
			cfg.Channels = cfg.Channels[1:]
		}
	})
	if err != nil {
		return nil, err
	}
	c.r = r
	if control {
		ctl, err := r.conns[0].Open(bunch.Control, &c.mail[1])
		if err == nil {
			err = c.send(0, ctl)
		}
		if err != nil {
			return nil, err
		}
		c.chans[0] = append(c.chans[0], ctl)
	}
	for range 30 {
		r.step(nil)
	}
	for i := range c.chans {
		for range 5 {
			ch, err := r.conns[i].Open(dataName, &c.mail[1-i])
			if err != nil {
				return nil, err
			}
			c.chans[i] = append(c.chans[i], ch)
		}
	}
	if ch := r.conns[1].Channel(0); ch != nil && control {
		c.chans[1] = append(c.chans[1], ch)
	}
	return c, nil
}

// send sends one more letter and counts it when it was taken.
func (c *closing) send(i int, ch *channel.Channel) error {
	m := &c.mail[i]
	_, err := ch.SendBunch(&bunch.Out{Data: numbered(uint64(m.accepted), letterBytes), Reliable: true, NoMerge: true})
	if err == nil {
		m.accepted++
	}
	return err
}

// burst sends a few letters on a channel; on the control channel once more than fit, so that they are queued.
func (c *closing) burst(e *env, i int) {
	if len(c.chans[i]) == 0 {
		return
	}
	ch := c.chans[i][e.rng.IntN(len(c.chans[i]))]
	n := min(e.rng.IntN(12), mostWaiting-ch.NumOutRec())
	if ch.Index() == 0 && !c.queued[i] && e.rng.IntN(10) == 0 {
		n, c.queued[i] = ch.Room()+150, true
	}
	for range n {
		if c.send(i, ch) != nil {
			break // told that there is no room, or that it closes
		}
	}
}

// play runs until both ends are done, and for a while after that.
func (c *closing) play(e *env) {
	begun := time.Duration(1+e.rng.IntN(1500)) * time.Millisecond
	start := c.r.now
	for limit := start + begun + 3*time.Minute; c.r.now < limit && (c.r.results[0] == nil || c.r.results[1] == nil); {
		c.r.step(func() {
			for i := range c.chans {
				if c.r.conns[i].Closed() || c.r.conns[i].Closing() {
					continue
				}
				for range 3 {
					c.burst(e, i)
				}
				if c.closers[i] && c.r.now-start >= begun {
					c.r.conns[i].Close(c.r.now, "done")
				}
			}
		})
	}
}

// lost is how many letters of an end never arrived, and how many of those its result doesn't list.
func (c *closing) lost(i int) (lost, silent int) {
	lost = c.mail[i].accepted - len(c.mail[i].arrived)
	if res := c.r.results[i]; res != nil {
		return lost, max(0, lost-res.Unacked)
	}
	return lost, lost
}

// drains plays many closings and counts the letters that were lost in silence.
func drains(e *env, loss float64, control bool) figure {
	silent, all, runs, stuck, twice := 0, 0, 0, 0, 0
	for seed := range e.pick(20, 1000) {
		c, err := newClosing(e, netsim.Settings{Loss: loss, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond}, 2*time.Second, control)
		if err != nil {
			return broken("%v", err)
		}
		c.closers[e.rng.IntN(2)] = true
		if e.rng.IntN(4) == 0 {
			c.closers = [2]bool{true, true}
		}
		c.play(e)
		if c.r.results[0] == nil || c.r.results[1] == nil {
			stuck++
			continue
		}
		for i := range c.mail {
			lost, s := c.lost(i)
			all += lost
			silent += s
			twice += c.mail[i].twice
			if s > 0 {
				if runs++; runs <= 3 {
					e.notef("run %d: end %d lost %d of %d, closers %v; %v", seed, i, lost, c.mail[i].accepted, c.closers, c.r.results[i])
				}
			}
			if !control && c.r.results[i].Code != netconn.ClosedByPeer && c.r.results[i].Code != netconn.ClosedByUs {
				return broken("end %d: %v", i, c.r.results[i])
			}
		}
	}
	e.notef("%d lost at all, %d ends with losses in silence", all, runs)
	if stuck > 0 || twice > 0 {
		return broken("%d runs didn't end, %d letters came twice; %d lost in silence", stuck, twice, silent)
	}
	return figure{value: float64(silent)}
}

// closerLosesNothing has one end close, and a linger time that is enough for all that it has under way.
func closerLosesNothing(e *env) figure {
	losses := 0
	for seed := range e.pick(15, 1000) {
		c, err := newClosing(e, netsim.Settings{Loss: 10, LagMin: 20 * time.Millisecond, LagMax: 60 * time.Millisecond}, 20*time.Second, true)
		if err != nil {
			return broken("%v", err)
		}
		closer := e.rng.IntN(2)
		c.closers[closer] = true
		c.play(e)
		if lost, _ := c.lost(closer); lost > 0 || c.r.results[closer] == nil || c.r.results[closer].Unacked > 0 {
			if losses++; losses <= 3 {
				e.notef("run %d: end %d lost %d of %d; %v; the other %v", seed, closer, lost, c.mail[closer].accepted, c.r.results[closer], c.r.results[1-closer])
			}
		}
	}
	return figure{value: float64(losses)}
}
