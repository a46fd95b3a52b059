package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// play is a network and a game on it.
type play struct {
	net      netsim.Settings // both ways
	narrow   float64         // bytes a second that the server's direction carries; 0 is all
	queue    time.Duration   // that fit before it
	ticks    [2]func() int   // after how many of the rig's ticks an end has its next; nil is each
	edit     func(i int, c *netconn.Config)
	channels int                  // of the server: one unless given
	settle   time.Duration        // from the start to what is measured
	then     func(s *stage) error // at the start of what is measured; may be nil
	length   time.Duration        // of what is measured
	game     func(s *stage) error // in each tick of the server
	messages time.Duration        // between those of a queue of the server; 0 is none
}

// stage is a play under way.
type stage struct {
	*rig
	channels []*channel.Channel // of the server
	queues   [2]*message.Attached
	kind     *message.Kind // of the server's queue
	messages int           // that came
	turns    int           // ticks of the server
	ready    int           // those in which IsNetReady was true
	got      int           // bytes of payloads that came
	each     []int         // bytes that came in each second
	queued   time.Duration // what the server's direction's queue was long, added up over the ticks
	lost     uint64        // of the server's packets, at the start of what is measured
	all      uint64
}

// counter is the client's handler.
type counter struct {
	channel.Nop
	s *stage
}

// ReceivedBunch counts a payload.
func (c counter) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	c.s.got += in.Bits / 8
}

// run plays it once.
func (p *play) run(e *env) (*stage, error) {
	s := &stage{}
	r, err := newRig(e, p.net, func(i int, c *netconn.Config) {
		c.Controller = adaptive()
		c.Channels[1].Accept = func(*channel.Channel) channel.Handler { return counter{s: s} }
		c.Channels = append(c.Channels, channel.Type{Name: queueName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return s.queues[i] }})
		reg := &message.Registry{}
		s.kind = reg.Add("note", func() message.Message { return &note{} })
		s.queues[i] = message.Attach(message.New(message.Config{Kinds: reg}))
		if p.edit != nil {
			p.edit(i, c)
		}
	})
	if err != nil {
		return nil, err
	}
	s.rig = r
	if p.narrow > 0 {
		n := p.net
		n.Bandwidth, n.QueueDelay = 8*p.narrow, p.queue
		if err := r.links[1].Set(n); err != nil {
			return nil, err
		}
	}
	if err := r.join(); err != nil {
		return nil, err
	}
	for range max(p.channels, 1) {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	if p.messages > 0 {
		if _, err := r.conns[1].Open(queueName, s.queues[1]); err != nil {
			return nil, err
		}
	}
	var next [2]int
	span := func(d time.Duration) error {
		s.got, s.messages, s.turns, s.ready, s.each, s.queued, r.offered = 0, 0, 0, 0, nil, 0, [2]int{}
		s.lost, s.all = r.conns[1].Counters.PacketsLost, r.conns[1].Counters.PacketsSent
		begun, before := r.now, 0
		for end := r.now + d; r.now < end; {
			for i, f := range p.ticks {
				if next[i]--; f != nil && next[i] <= 0 {
					next[i] = f()
					r.asleep[i] = false
				} else {
					r.asleep[i] = f != nil
				}
			}
			r.step(func() {
				s.queued += r.links[1].QueueDelay(r.now)
				if r.asleep[1] || err != nil {
					return
				}
				s.turns++
				if r.conns[1].IsNetReady() {
					s.ready++
				}
				err = errors.Join(p.game(s), s.talk(p.messages))
			})
			if err != nil {
				return err
			}
			if r.over() {
				return fmt.Errorf("ended after %v: %v %v", r.now, r.results[0], r.results[1])
			}
			if (r.now-begun)/time.Second > time.Duration(len(s.each)) {
				s.each, before = append(s.each, s.got-before), s.got
			}
		}
		return nil
	}
	if err := span(p.settle); err != nil {
		return nil, err
	}
	if p.then != nil {
		if err := p.then(s); err != nil {
			return nil, err
		}
	}
	return s, span(p.length)
}

// open opens one more channel of the server.
func (s *stage) open() error {
	ch, err := s.conns[1].Open(dataName, channel.Nop{})
	if err != nil {
		return err
	}
	s.channels = append(s.channels, ch)
	_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 8), Reliable: true})
	return err
}

// talk sends the queue's messages and takes what came.
func (s *stage) talk(apart time.Duration) error {
	if apart == 0 {
		return nil
	}
	if s.now/apart > (s.now-s.tick)/apart {
		if err := s.queues[1].Send(s.kind, &note{}); err != nil && !errors.Is(err, message.ErrFull) {
			return err
		}
	}
	for i := range s.queues {
		s.queues[i].Tick(s.now)
		for m, _ := s.queues[i].Receive(); m != nil; m, _ = s.queues[i].Receive() {
			s.messages++
		}
	}
	return nil
}
