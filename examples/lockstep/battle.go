package main

import (
	"encoding/binary"
	"math/rand/v2"
)

const (
	players   = 4
	units     = 200
	groups    = 5   // of each player's units
	cell      = 256 // fixed point: 1/256 of a cell
	mapWidth  = 64 * cell
	mapHeight = 24 * cell
	speed     = 40 // a turn
	reach     = 3 * cell
	fullLife  = 100
)

// unit is all integers: the same on every machine.
type unit struct {
	x, y, toX, toY int32
	life           int32
	reload         int32 // turns
}

// battle is the state all machines must agree on. Unit i belongs to player i%players.
type battle struct {
	units [units]unit
	turn  int64 // turns executed
}

func newBattle() *battle {
	b := &battle{}
	corners := [players][2]int32{{8, 4}, {56, 20}, {56, 4}, {8, 20}}
	for i := range b.units {
		c, n := corners[i%players], int32(i/players)
		u := &b.units[i]
		u.x, u.y = c[0]*cell+(n%10-5)*cell/2, c[1]*cell+(n/10-2)*cell/2
		u.toX, u.toY, u.life = u.x, u.y, fullLife
	}
	return b
}

// command sends a group of units somewhere: group 8 | x 16 | y 16.
func command(group int, x, y int32) []byte {
	p := binary.LittleEndian.AppendUint16([]byte{byte(group)}, uint16(x))
	return binary.LittleEndian.AppendUint16(p, uint16(y))
}

// apply executes a command; one that makes no sense is ignored, by all alike.
func (b *battle) apply(player int, cmd []byte) {
	if len(cmd) != 5 || cmd[0] >= groups {
		return
	}
	x, y := int32(binary.LittleEndian.Uint16(cmd[1:])), int32(binary.LittleEndian.Uint16(cmd[3:]))
	for i := player; i < units; i += players {
		if i/players%groups == int(cmd[0]) {
			b.units[i].toX, b.units[i].toY = min(x, mapWidth-1), min(y, mapHeight-1)
		}
	}
}

// step is one turn: all move, then all fire.
func (b *battle) step() {
	for i := range b.units {
		b.units[i].move()
	}
	for i := range b.units {
		b.fire(i)
	}
	b.turn++
}

func (u *unit) move() {
	dx, dy := int64(u.toX-u.x), int64(u.toY-u.y)
	d := root(dx*dx + dy*dy)
	if u.life <= 0 || d == 0 {
		return
	}
	if d <= speed {
		u.x, u.y = u.toX, u.toY
		return
	}
	u.x += int32(dx * speed / d)
	u.y += int32(dy * speed / d)
}

// fire hits the nearest enemy in reach; of equally near ones the first.
func (b *battle) fire(i int) {
	u := &b.units[i]
	if u.life <= 0 {
		return
	}
	if u.reload > 0 {
		u.reload--
		return
	}
	best, at := int64(reach*reach), -1
	for k := range b.units {
		e := &b.units[k]
		if k%players == i%players || e.life <= 0 {
			continue
		}
		dx, dy := int64(e.x-u.x), int64(e.y-u.y)
		if d := dx*dx + dy*dy; d < best {
			best, at = d, k
		}
	}
	if at >= 0 {
		b.units[at].life -= 12
		u.reload = 8
	}
}

// root is the integer square root.
func root(n int64) int64 {
	r := int64(0)
	for bit := int64(1) << 24; bit > 0; bit >>= 1 {
		if (r+bit)*(r+bit) <= n {
			r += bit
		}
	}
	return r
}

// hash is FNV-1a of the whole state.
func (b *battle) hash() uint64 {
	h := uint64(14695981039346656037)
	mix := func(v int32) {
		h = (h ^ uint64(uint32(v))) * 1099511628211
	}
	for i := range b.units {
		u := &b.units[i]
		mix(u.x)
		mix(u.y)
		mix(u.toX)
		mix(u.toY)
		mix(u.life)
		mix(u.reload)
	}
	return h
}

func (b *battle) alive() (n [players]int) {
	for i := range b.units {
		if b.units[i].life > 0 {
			n[i%players]++
		}
	}
	return n
}

// decide is what a player does now and then: a group goes somewhere, mostly to the middle. It
// may use chance, since only its command reaches the others.
func decide(rng *rand.Rand) []byte {
	if rng.IntN(12) > 0 {
		return nil
	}
	x, y := rng.Int32N(mapWidth), rng.Int32N(mapHeight)
	if rng.IntN(3) > 0 {
		x, y = mapWidth/4+x/2, mapHeight/4+y/2
	}
	return command(rng.IntN(groups), x, y)
}
