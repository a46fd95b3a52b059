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

// The picture fits a terminal of 80 by 24: a field that is about square, beside it what is said.
const (
	columns = 44
	rows    = 21
	side    = 80 - columns - 4 // characters of a line beside the field
	lines   = 8                // of what happened
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

// Screen draws a client's game as text, to Out; in colors unless the environment has NO_COLOR.
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
	beside := s.beside(c)
	var b strings.Builder
	if s.drawn {
		fmt.Fprintf(&b, "\x1b[%dA", rows+2)
	}
	b.WriteString("┌" + strings.Repeat("─", columns) + "┐\x1b[K\n")
	for y, line := range cells {
		b.WriteString("│")
		for _, cell := range line {
			if cell == "" {
				cell = " "
			}
			b.WriteString(cell)
		}
		b.WriteString("│")
		if y < len(beside) {
			b.WriteString("  " + beside[y])
		}
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("└" + strings.Repeat("─", columns) + "┘\x1b[K\n")
	s.drawn = true
	fmt.Fprint(s.Out, b.String())
}

// beside is the lines beside the field: the network, the score board, and the last things that happened.
func (s *Screen) beside(c *game.Client) []string {
	board, ammo := c.Board()
	all := []string{fmt.Sprintf("round trip %d ms", c.RTT().Milliseconds()), fmt.Sprintf("%d shells", ammo), ""}
	for _, row := range board {
		if len(all) < rows-lines-1 { // the others aren't shown
			all = append(all, fmt.Sprintf("%4d  %s", row.Score, row.Name))
		}
	}
	all = append(append(all, ""), s.heard...)
	for i, line := range all {
		if text := []rune(line); len(text) > side {
			all[i] = string(text[:side])
		}
	}
	return all
}

// What a tank is drawn as, by its heading: one's own, and others.
var (
	own    = []string{"⇒", "⇘", "⇓", "⇙", "⇐", "⇖", "⇑", "⇗"}
	others = []string{"→", "↘", "↓", "↙", "←", "↖", "↑", "↗"}
)

// sign is a thing's one character.
func sign(t game.Thing) string {
	switch t.Kind {
	case game.Own:
		return in("32;1", own[eighth(t.Heading)])
	case game.Other:
		return in("36", others[eighth(t.Heading)])
	case game.Enemy:
		return in("31", "x")
	case game.Box:
		return in("33", "▫")
	}
	return "·"
}

func eighth(heading float64) int { return (int(math.Round(heading/45))%8 + 8) % 8 }

// in is a character in a color, where colors are wanted.
func in(color, text string) string {
	if os.Getenv("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[m"
}
