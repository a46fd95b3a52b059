// Package recording says what the head of a recording's block holds that others than package replay read. The file's form is drawn there.
package recording

// Head is the bytes of a block's head. Kind is where its kind is, Flags its flags, Last the time of its last frame, in 8 bytes.
const (
	Head  = 32
	Kind  = 12
	Flags = 13
	Last  = 24
)

// Frames is the kind of a block of frames.
const Frames = 2

// The flags of a block.
const (
	Begins = 1 << iota // its first frame begins a checkpoint
	Ends               // its last frame ends one
)
