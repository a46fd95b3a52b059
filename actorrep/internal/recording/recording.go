// Package recording says what the head of a recording's block holds that others than package replay read. The file's form is drawn there.
package recording

// Flags is where a block's flags are, Last the time of its last frame, in 8 bytes.
const (
	Flags = 13
	Last  = 24
)

// The flags of a block.
const (
	Begins = 1 << iota // its first frame begins a checkpoint
	Ends               // its last frame ends one
)
