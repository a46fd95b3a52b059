// Package terminal plays the tanks in a terminal: a picture of characters, and the keyboard.
package terminal

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
)

const (
	columns = 80
	rows    = 24
	lines   = 3 // of what happened
)

// Keys is the keyboard of a terminal, which tells of keys that go down and repeat, and not of keys that go up.
type Keys struct {
	pressed chan byte
	at      map[byte]time.Time
}

const held = 250 * time.Millisecond // a key counts that long: until it repeats

// OpenKeys reads single keys, and returns what puts the terminal back; nil when there is no terminal that can.
func OpenKeys() (*Keys, func()) {
	saved, err := stty("-g")
	if err != nil {
		return nil, func() {}
	}
	if _, err := stty("-icanon", "-echo"); err != nil {
		return nil, func() {}
	}
	k := &Keys{pressed: make(chan byte, 64), at: map[byte]time.Time{}}
	go func() {
		for one := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(one); n == 0 || err != nil {
				return
			}
			k.pressed <- one[0] | 0x20 // in lower case; the space bar stays itself
		}
	}()
	return k, func() { _, _ = stty(strings.TrimSpace(saved)) }
}

func stty(args ...string) (string, error) {
	c := exec.Command("stty", args...)
	c.Stdin = os.Stdin
	out, err := c.Output()
	return string(out), err
}

// Down returns the keys that are held, and whether the player wants to go.
func (k *Keys) Down(now time.Time) (in game.Input, quit bool) {
	for {
		select {
		case b := <-k.pressed:
			k.at[b] = now
			continue
		default:
		}
		break
	}
	is := func(b byte) int8 {
		if now.Sub(k.at[b]) < held {
			return 1
		}
		return 0
	}
	return game.Input{Drive: is('w') - is('s'), Turn: is('d') - is('a'), Fire: is(' ') == 1}, is('q') == 1
}

// Screen draws a client's game as text, to Out.
type Screen struct {
	Out   io.Writer
	next  time.Time
	drawn bool
	heard []string
}

// Told keeps the last things that happened.
func (s *Screen) Told(what string) {
	s.heard = append(s.heard, what)
	s.heard = s.heard[max(0, len(s.heard)-lines):]
}

// Draw draws, at most every 50 ms.
func (s *Screen) Draw(now time.Time, c *game.Client) {
	if now.Before(s.next) {
		return
	}
	s.next = now.Add(50 * time.Millisecond)
	var cells [rows][columns]string
	for t := range c.Scene {
		x, y := int(t.Pos.X/game.Size*columns), int(t.Pos.Y/game.Size*rows)
		if x >= 0 && y >= 0 && x < columns && y < rows {
			cells[y][x] = sign(t)
		}
	}
	var b strings.Builder
	if s.drawn {
		fmt.Fprintf(&b, "\x1b[%dA", rows+lines+3)
	}
	b.WriteString("┌" + strings.Repeat("─", columns) + "┐\n")
	for _, line := range cells {
		b.WriteString("│")
		for _, cell := range line {
			if cell == "" {
				cell = " "
			}
			b.WriteString(cell)
		}
		b.WriteString("│\n")
	}
	b.WriteString("└" + strings.Repeat("─", columns) + "┘\n")
	board, ammo := c.Board()
	fmt.Fprintf(&b, "\x1b[Kround trip %d ms, %d shells;", c.RTT().Milliseconds(), ammo)
	for _, row := range board {
		fmt.Fprintf(&b, "  %s %d", row.Name, row.Score)
	}
	for i := range lines {
		b.WriteString("\n\x1b[K")
		if i < len(s.heard) {
			b.WriteString(s.heard[i])
		}
	}
	b.WriteString("\n")
	s.drawn = true
	fmt.Fprint(s.Out, b.String())
}

var arrows = []string{"→", "↘", "↓", "↙", "←", "↖", "↑", "↗"}

// sign is a thing's one character.
func sign(t game.Thing) string {
	switch t.Kind {
	case game.Own, game.Other:
		arrow := arrows[int(math.Round(t.Heading/45)+8)%8]
		if t.Kind == game.Own {
			return "\x1b[32;1m" + arrow + "\x1b[m"
		}
		return "\x1b[36m" + arrow + "\x1b[m"
	case game.Enemy:
		return "\x1b[31mx\x1b[m"
	case game.Box:
		return "\x1b[33m▫\x1b[m"
	}
	return "·"
}
