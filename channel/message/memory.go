package message

import "unsafe"

// memory counts what a peer makes this end hold: a channel, within the MaxMemory of its connection.
type memory interface {
	Hold(n int) error
	Release(n int)
	MaxHold() int
	HoldSent(n int) error
	ReleaseSent(n int)
}

// What an end of a channel and what it holds cost, as the allocator rounds it, besides the bytes on the wire.
const (
	attachedCost = int(unsafe.Sizeof(Attached{})+unsafe.Sizeof(Queue{})+leastPackets*unsafe.Sizeof(flying{})+leastItems*8) * 9 / 8
	blocksCost   = int(unsafe.Sizeof(Blocks{})+leastPackets*unsafe.Sizeof(flying{})+leastItems*unsafe.Sizeof(fragmentSent{})) * 9 / 8
	incomingSize = int(unsafe.Sizeof(incoming{}))
	messageCost  = 96
	farCost      = int(unsafe.Sizeof(page{}))*9/8 + 96 // of each of Queue.farRoom, besides
)

// cost is what a message that waits for Receive counts.
func (in *incoming) cost() int {
	if in.spare == reserved {
		return 0
	}
	return messageCost + (int(in.bits)+7)/8 + int(in.spare)
}

// reserve is the room that a queue has whatever else takes memory: for one message, in an Ordered queue the next, on which all others wait.
func (q *Queue) reserve() int {
	return q.leastRing()*incomingSize + messageCost + (q.cfg.MaxBits+7)/8
}

func (q *Queue) leastRing() int { return min(leastRing, q.cfg.Window) }

// hold counts n bytes, unless there is no room for them.
func (q *Queue) hold(n int) bool { return q.memory == nil || q.memory.Hold(n) == nil }

// spare is the bytes that messages which wait leave free, so that the peer can open more channels meanwhile, and the connection can keep bunches behind a lost one. Blocks
// leave half as much again.
func spare(m memory) int { return min(32<<10, m.MaxHold()/8) }

// holdWaiting counts n bytes for what waits, if there is room for as much as ahead besides.
func (q *Queue) holdWaiting(n, ahead int) bool {
	if q.memory == nil {
		return true
	}
	ahead += spare(q.memory)
	if !q.hold(n + ahead) {
		return false
	}
	q.memory.Release(ahead)
	return true
}

// others is how many bytes the messages of a queue may take for each that they leave free: a queue from which the game receives nothing leaves a quarter of what there is
// to others, a second one a quarter of that, and so on.
const others = 3

// holdMessage counts n bytes for a message that waits, if there is room for as much as ahead besides, and for what the queue leaves to others.
func (q *Queue) holdMessage(n, ahead int) bool {
	if q.memory == nil {
		return true
	}
	if !q.holdWaiting(n, ahead+(q.waitBytes+n)/others) {
		return false
	}
	q.waitBytes += n
	return true
}

// letGo ends that.
func (q *Queue) letGo(n int) {
	if q.memory != nil {
		q.memory.Release(n)
		q.waitBytes -= n
	}
}
