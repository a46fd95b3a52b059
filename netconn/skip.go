package netconn

import (
	"errors"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// A peer that acks packets before they arrive makes a controller believe in a path that isn't there. Now and then a sequence
// is left out: no packet has it, so an honest peer can only say that it is lost. (x/net/quic does the same.)

// skip decides which sequences are left out. A peer that knew them could lie about the others, so they follow from
// Config.Secret.
type skip struct {
	state uint64 // 0: none is left out
	left  int    // packets with bunches until the next one
	acked bool   // the peer acked one
}

// The packets with bunches between two left-out sequences.
const (
	minSkip   = 512
	skipRange = 1536
)

var errOptimistic = errors.New("netconn: the peer acked a packet that was never sent")

func (s *skip) init(secret uint64) {
	s.state = secret
	s.choose()
}

// choose takes a step of splitmix64.
func (s *skip) choose() {
	if s.state == 0 {
		return
	}
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	s.left = minSkip + int((z^z>>31)%skipRange)
	if s.state == 0 {
		s.state = 1
	}
}

// skipSequence leaves a sequence out after a packet with bunches, when it is time.
func (c *Conn) skipSequence() {
	s := &c.skip
	if s.state == 0 {
		return
	}
	if s.left--; s.left > 0 || c.windowFull() {
		return
	}
	s.choose()
	id := c.notify.Skip()
	c.sentNothing(id)
	c.trace(nettrace.SequenceSkipped, id, 0, 0)
}
