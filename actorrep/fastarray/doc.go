// Package fastarray is a replicated list of structs (Unreal's FFastArraySerializer). It sends only the elements that were added, changed or
// removed, and only the changed fields. Use it for tens to thousands of elements that change one by one: inventories, score
// boards, effects on a character. For a few elements a plain slice is simpler; it is sent as a whole whenever anything in it
// changes. A Map is a list of keys and values.
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
// Of an element that is a struct all exported fields and embedded structs are sent, and of structs in these all fields, encoded as their tags say. Conditions and a notify belong
// on the list. An actor may have two lists; put more into components.
//
// # On the server
//
// Add, Set, Remove and Clear change the list and mark it as changed; an unchanged list costs no comparison. An element's id is
// never reused. Elements keep the order in which they were added, at both ends.
//
// # On a client
//
// Values are set as soon as they arrive. OnAdd, OnChange and OnRemove are called within World.Step, just before the list's own notify. They are
// called once per element for everything since the last Step. So an element that was added and removed since isn't reported, and one
// that changed twice is reported once, with the value before the first change. The elements that the list has when the
// actor appears are there in Spawned and aren't reported. A server gets no callbacks. A client's game can't change the list.
//
// Elements may have references to actors (actorrep.Ref). When the actor appears to which an element refers, OnChange is called with the same
// value as old and new one, and then the list's notify.
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
// otherwise the differences from an earlier version:
//
//	IntPacked  version minus that version
//	IntPacked  elements removed, each: IntPacked id
//	IntPacked  elements added or changed, each:
//	           IntPacked id minus the last id minus 1 | 1 added | a bit for each field, unless added | the fields
//
// An update contains the differences from the newest version that the client has acked, whatever is in flight. So the next update
// makes up for a lost one. The server remembers the last 128 to 256 removals; a client with an older version gets the whole list.
//
// # Bounds
//
// 2048 elements, and 15,000 bytes as encoded for sending. Beyond that Add and Set return ErrFull.
package fastarray
