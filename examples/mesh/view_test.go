package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestPicture: the map fits terminals of all sizes, shows each zone, or each quarter of one that is split, with its server and every actor, and is plain without colours.
func TestPicture(t *testing.T) {
	v := snapshot{Seconds: 100}
	for i, name := range plan().Servers {
		if i != 1 {
			v.Parts = append(v.Parts, part{name, 2 * (i % columns), 2 * (i / columns), 2, i % 5})
		}
	}
	for q, where := range []string{"nw", "ne", "sw", "se"} {
		v.Parts = append(v.Parts, part{"b1 " + where, 2 + q%2, q / 2, 1, 1 + q})
	}
	for i := range 4 {
		v.Servers = append(v.Servers, serverView{Number: i + 1, ID: fmt.Sprint("server", i), State: "plays without the store, partly cut off"})
	}
	for i := range 60 {
		v.Dots = append(v.Dots, dotView{X: float64(i*10 - 50), Y: float64(i*5 - 30), Player: i % 2, Server: 1 + i%4, Moved: i == 7}) // some are beyond the plane
		v.Events = append(v.Events, strings.Repeat("what happened ", 20)+"\nand more")
	}
	for _, size := range [][2]int{{50, 20}, {80, 24}, {100, 30}, {200, 60}} {
		for _, colors := range []bool{false, true} {
			lines := v.picture(size[0], size[1], colors)
			text := strings.Join(lines, "\n")
			if strings.Contains(text, "\x1b") != colors {
				t.Fatalf("%v: colours %v:\n%s", size, colors, text)
			}
			if colors {
				continue
			}
			if len(lines) > size[1] {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l) > size[0] {
					t.Errorf("%v: %q has %d characters", size, l, utf8.RuneCountInString(l))
				}
			}
			titles := []string{"a1", "nw:1", "ne:2", "sw:3", "se:4"}
			if size[0] == 200 {
				titles = []string{"a1 server 0", "b1 nw server 1", "b1 se server 4"}
			}
			for _, want := range append(titles, "@", ".", "*", "server 4", "NATS") {
				if !strings.Contains(text, want) {
					t.Errorf("%v: no %q:\n%s", size, want, text)
				}
			}
			wide := strings.IndexByte(lines[0][1:], '+') + 1 // of a whole zone
			if strings.Count(lines[0], "+") != columns+2 || lines[0][wide+wide/2] != '+' || lines[1][wide/2] == '|' || lines[1][wide+wide/2] != '|' {
				t.Errorf("%v: b1 alone has quarters:\n%s", size, text)
			}
		}
	}
	if l := v.line(); strings.Contains(l, "\x1b") || !strings.Contains(l, "zones 00122233 00342233 44001122 44001122, b1 is split, ") {
		t.Error(l)
	}
}

// TestScript: a script is read as it is written, and what isn't one is refused.
func TestScript(t *testing.T) {
	s, err := readScript("# first\ncalm 2s kill 2\n\n 500ms nats  kill leader # why\n")
	if err != nil || len(s.lines) != 2 || s.lines[0] != (scriptLine{true, 2 * time.Second, "kill 2"}) || s.lines[1] != (scriptLine{false, 500 * time.Millisecond, "nats kill leader"}) {
		t.Fatal(s, err)
	}
	for _, bad := range []string{"kill 2", "2s", "calm kill 2", "calm"} {
		if _, err := readScript(bad); err == nil {
			t.Errorf("%q is a script", bad)
		}
	}
	if s, err := readScript(fmt.Sprintf(checkScript, time.Minute)); err != nil || s.lines[len(s.lines)-1].command != "quit" {
		t.Fatal(err)
	}
	g := &mesher{}
	for i := range g.slots {
		g.slots[i] = &slot{number: i + 1}
	}
	for _, bad := range []string{"kil 2", "kill", "kill 0", "kill 5", "cut 2 2", "cut 2 x", "cut 2 to", "cut 2 from 2", "cut 2 to 3 4", "cut 2 3 to", "nats", "nats eat 1", "gather", "gather e1", "gather a3", "kill crowd", "cut crowd"} {
		if g.do(bad, time.Now()) == nil {
			t.Errorf("%q is a command", bad)
		}
	}
}

// TestLocal: the page answers its own machine only, under its own names.
func TestLocal(t *testing.T) {
	for _, c := range []struct {
		from, host string
		want       bool
	}{
		{"127.0.0.1:5", "127.0.0.1:80", true}, {"127.0.0.1:5", "localhost", true}, {"[::1]:5", "[::1]:80", true},
		{"127.0.0.1:5", "evil.example", false}, {"10.0.0.1:5", "127.0.0.1:80", false}, {"127.0.0.1:5", "10.0.0.1:80", false},
	} {
		r := httptest.NewRequest("GET", "/state", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if local(r) != c.want {
			t.Errorf("%+v", c)
		}
	}
}
