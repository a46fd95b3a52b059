package rollback

import "bytes"

// inputFrames is how many frames of a player's inputs are kept: a power of two, above what can be on the way. Nobody simulates farther than
// MaxRollback beyond what all others have sent, nor sends farther than maxDelay beyond that.
const inputFrames = 256

// farthest is how far ahead of this machine's frame an input may be.
const farthest = inputFrames / 2

// inputs is what is known of a player's.
type inputs struct {
	size int
	next int64  // the first frame of which nothing is known
	ring []byte // by frame
	used []byte // what was simulated with, by frame
	zero []byte
}

func newInputs(size int) inputs {
	return inputs{size: size, ring: make([]byte, inputFrames*size), used: make([]byte, inputFrames*size), zero: make([]byte, size)}
}

func (in *inputs) at(ring []byte, frame int64) []byte {
	i := int(frame&(inputFrames-1)) * in.size
	return ring[i : i+in.size : i+in.size]
}

// add takes the input of the next frame.
func (in *inputs) add(b []byte) {
	copy(in.at(in.ring, in.next), b)
	in.next++
}

// guess is the input of a frame, or the one that is likely: the last known.
func (in *inputs) guess(frame int64) []byte {
	switch {
	case frame < in.next:
		return in.at(in.ring, frame)
	case in.next == 0:
		return in.zero
	}
	return in.at(in.ring, in.next-1)
}

// use notes with what a frame is simulated, and returns that.
func (in *inputs) use(frame int64, b []byte) []byte {
	u := in.at(in.used, frame)
	copy(u, b)
	return u
}

// usedOther reports whether a frame was simulated with something else.
func (in *inputs) usedOther(frame int64, b []byte) bool {
	return !bytes.Equal(in.at(in.used, frame), b)
}
