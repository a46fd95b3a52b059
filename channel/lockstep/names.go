package lockstep

import "fmt"

// name is what a number stands for, or the type's name with it.
func name(names []string, typ string, v uint8) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, v)
}

var denyNames = []string{
	DenyVersion:  "its Config, Protocol or version differs from the host's",
	DenyTooOld:   "the host lacks the turns that it needs, as when they have left the log or it is the host of another game, and has no snapshot",
	DenyAhead:    "it has executed more turns than the host has",
	DenyDropped:  "Host.Drop was called",
	DenyStale:    "the session is over, or the player has begun a later one; give the next a higher number",
	DenyUnknown:  "the host doesn't know the session; begin another",
	DenySnapshot: "the snapshot is over PeerConfig.MaxSnapshot",
	DenyOldHost:  "a later host has taken over the game",
}

// String is the reason in words.
func (r DenyReason) String() string { return name(denyNames, "DenyReason", uint8(r)) }

var dropNames = []string{DropStalled: "stalled", DropRestarted: "restarted", DropAsked: "asked", DropMended: "mended", DropResumed: "resumed"}

// String is the reason in a word.
func (r DropReason) String() string { return name(dropNames, "DropReason", uint8(r)) }

var eventNames = []string{
	Joined: "joined", Dropped: "dropped", DelayChanged: "delay changed", Desynced: "desynced", Split: "split", Unhashed: "unhashed", Differs: "differs",
}

// String is the kind in words.
func (k EventKind) String() string { return name(eventNames, "EventKind", uint8(k)) }

var stateNames = []string{Connecting: "connecting", Loading: "loading", Running: "running", Ended: "ended"}

// String is the state in a word.
func (s State) String() string { return name(stateNames, "State", uint8(s)) }
