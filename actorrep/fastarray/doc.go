// Package fastarray is a replicated list of structs that sends only the elements that came, changed or went, and of
// those that changed only the fields that did (Unreal's FFastArraySerializer). Use it for what has tens to thousands of
// parts that change one by one: inventories, score boards, effects on a character. A plain slice is sent as a whole
// whenever anything in it changes, and is simpler for a few elements. A Map is a list of keys and values, found by their keys.
//
//	type Item struct {
//		Name  string
//		Count uint16  `net:"max=999"`
//		Wear  float32 `net:"q=0.01"`
//	}
//
//	type Player struct {
//		actorrep.Base
//		Bag fastarray.List[Item] `net:"owner"`
//	}
//
// All exported fields of an element are sent, in the forms their tags say; conditions and a notify belong on the list. An
// actor may have two lists; more go into components.
//
// # On the server
//
// Add, Set, Remove and Clear change the list and mark it; nothing is compared while nothing is called. Elements have ids
// that are never given twice, and keep the order in which they were added, at both ends.
//
// # On a client
//
// The values are there when they have arrived. OnAdd, OnChange and OnRemove are called within World.Step, with the
// notifies and just before the list's own: once per element for all that came since the last Step, so that an element
// which came and went meanwhile is never told of, and one that changed twice is told of once, with the value before the
// first change. What the list holds when the actor appears is there in Spawned and no reason for callbacks; nor are
// they called on a server. A client's list can't be changed by its game.
//
// # On the wire
//
//	1          all: what follows is the whole list
//	IntPacked  version
//
// when all:
//
//	IntPacked  elements, each: IntPacked id minus the last id minus 1 | the fields
//
// otherwise what is different since an earlier version:
//
//	IntPacked  version minus that version
//	IntPacked  elements that went, each: IntPacked id
//	IntPacked  elements that came or changed, each:
//	           IntPacked id minus the last id minus 1 | 1 came | a bit a field, unless it came | the fields
//
// An update says what is different since the newest version that the client is known to have, whatever is in flight: the
// loss of any one needs no repair but the next. Ids that went are kept for the last 128 to 256 removals; a client behind
// that gets the whole list.
//
// # Bounds
//
// 2048 elements, and 15,000 bytes in the form in which they are sent; Add and Set return ErrFull beyond that.
package fastarray
