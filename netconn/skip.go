package netconn

import (
	"errors"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// A peer that acks packets before they arrive could make a rate controller send too fast. So a sequence is skipped now and then: no
// packet has it, and an honest peer can only report it as lost. (x/net/quic does the same.)

// skip chooses the sequences to skip. A peer that could predict them could still lie about the others, so they follow
// from Config.Secret.
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

// choose chooses the next one by a step of splitmix64.
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

// skipSequence skips a sequence after a packet with bunches, when it is time.
func (c *Conn) skipSequence() {
	s := &c.skip
	if s.state == 0 {
		return
	}
	if s.left--; s.left > 0 || c.split || c.packetsFull(0) {
		return
	}
	s.choose()
	id := c.notify.Skip()
	c.sentNothing(id)
	c.trace(nettrace.SequenceSkipped, id, 0, 0)
}
