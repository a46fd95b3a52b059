// Package ring is the game of examples/rollback, where two players push each other about a ring, and both ways to play it over a bad network in virtual time.
package ring

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// FrameTime is the game's step.
const FrameTime = time.Second / 60

// Keys of an input.
const (
	left = 1 << iota
	right
	up
	down
	dash
)

// A pixel is 256 units, so that all is integers and alike on every machine.
const (
	pixel    = 256
	ringSize = 400 * pixel
	body     = 24 * pixel
)

// fighter is a player's.
type fighter struct {
	x, y, vx, vy int32
	rest         uint8 // frames until it can dash again
	falls        uint16
}

// ring is the game's state.
type ring struct {
	fighters [2]fighter
	frame    int64
}

func newRing() ring {
	var r ring
	r.place(0)
	r.place(1)
	return r
}

// place puts a fighter where it begins.
func (r *ring) place(p int) {
	f := &r.fighters[p]
	*f = fighter{x: ringSize/4 + int32(p)*ringSize/2, y: ringSize / 2, falls: f.falls}
}

// step is a frame.
func (r *ring) step(keys [2]byte) {
	for p := range r.fighters {
		r.fighters[p].move(keys[p])
	}
	a, b := &r.fighters[0], &r.fighters[1]
	if dx, dy := b.x-a.x, b.y-a.y; abs(dx) < body && abs(dy) < body { // they bounce along the longer way
		if abs(dx) >= abs(dy) {
			a.vx, b.vx = b.vx, a.vx
			push := (body - abs(dx) + 1) / 2 * sign(dx)
			a.x, b.x = a.x-push, b.x+push
		} else {
			a.vy, b.vy = b.vy, a.vy
			push := (body - abs(dy) + 1) / 2 * sign(dy)
			a.y, b.y = a.y-push, b.y+push
		}
	}
	for p := range r.fighters {
		if f := &r.fighters[p]; f.x < 0 || f.y < 0 || f.x > ringSize || f.y > ringSize {
			f.falls++
			r.place(p)
		}
	}
	r.frame++
}

func (f *fighter) move(keys byte) {
	const push = pixel / 4
	ax, ay := int32(0), int32(0)
	if keys&left != 0 {
		ax -= push
	}
	if keys&right != 0 {
		ax += push
	}
	if keys&up != 0 {
		ay -= push
	}
	if keys&down != 0 {
		ay += push
	}
	if f.rest > 0 {
		f.rest--
	} else if keys&dash != 0 {
		ax, ay, f.rest = ax*12, ay*12, 40
	}
	f.vx, f.vy = (f.vx+ax)*15/16, (f.vy+ay)*15/16
	f.x, f.y = f.x+f.vx, f.y+f.vy
}

func abs(v int32) int32 {
	if v < 0 {
		return -v
	}
	return v
}

func sign(v int32) int32 {
	if v < 0 {
		return -1
	}
	return 1
}

// append is the state's bytes.
func (r *ring) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.frame))
	for _, f := range r.fighters {
		for _, v := range []int32{f.x, f.y, f.vx, f.vy} {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		}
		dst = append(dst, f.rest, byte(f.falls), byte(f.falls>>8))
	}
	return dst
}

// read takes the state from its bytes.
func (r *ring) read(b []byte) {
	r.frame, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	for i := range r.fighters {
		f := &r.fighters[i]
		for j, v := range []*int32{&f.x, &f.y, &f.vx, &f.vy} {
			*v = int32(binary.LittleEndian.Uint32(b[4*j:]))
		}
		f.rest, f.falls, b = b[16], uint16(b[17])|uint16(b[18])<<8, b[19:]
	}
}

func (r *ring) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(r.append(nil))
	return h.Sum64()
}

// hands is who plays: keys are held for a fifth of a second or so, mostly towards the other.
type hands struct {
	rng  *rand.Rand
	keys byte
}

func (h *hands) press(r *ring, p int) byte {
	if h.rng.IntN(12) > 0 {
		return h.keys
	}
	me, other := &r.fighters[p], &r.fighters[1-p]
	h.keys = 0
	if h.rng.IntN(4) == 0 {
		h.keys = byte(h.rng.Uint32N(16))
		return h.keys
	}
	if other.x < me.x {
		h.keys |= left
	} else {
		h.keys |= right
	}
	if other.y < me.y {
		h.keys |= up
	} else {
		h.keys |= down
	}
	if h.rng.IntN(3) == 0 {
		h.keys |= dash
	}
	return h.keys
}
