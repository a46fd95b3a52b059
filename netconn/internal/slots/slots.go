// Package slots is what a machine with slots and the driver say to each other about slots whose connections have ended.
package slots

// Keeper is a handler of a machine that keeps the slot of a connection for a while when that has ended.
type Keeper interface {
	// Release disconnects a slot if its connection has ended, or all such slots with Any. A client that connects needs it.
	Release(slot int)
}

// Any is all slots.
const Any = -1
