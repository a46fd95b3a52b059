package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// commands is what can be typed, or be in a script.
const commands = `N is a number, or crowd: the server that has most of the zone where players gather

kill N         kill -9 of game server N; another start takes its place after a second
stop N         the same, and nothing takes its place until "go N"
go N           starts it
pause N        has it stand still, as a virtual machine that is moved does (SIGSTOP)
wake N         has it go on
leave N        has it stop of itself: its zones go to the others first
cut N          cuts game server N off from all: other servers, players, NATS
cut N nats     from NATS only
cut N M        from game server M only
cut N to M     one way: what N sends doesn't reach M, or nats, or all; with "from", what they send doesn't reach N
nats kill N    kill -9 of NATS node N; N may be leader or follower
nats pause N   has one stand still
nats off       kills all three
nats on        starts those that don't run, and wakes those that stand still
heal           ends all of that
gather ZONE    three of four players walk about in a zone, a1 to d2, which is split then
scatter        they walk everywhere again, and it is merged
quit           ends the game, with a verdict`

var (
	errQuit    = errors.New("quit")
	errNoCrowd = errors.New("no server has a crowd: players don't gather")
)

// do does what a command says.
func (g *mesher) do(line string, now time.Time) error {
	words := strings.Fields(strings.ToLower(line))
	if len(words) == 0 {
		return nil
	}
	bad := fmt.Errorf("%q isn't a command; these are:\n%s", line, commands)
	server := func(i int) *slot {
		if i < len(words) {
			n, err := strconv.Atoi(words[i])
			if words[i] == "crowd" {
				n, err = g.most(), nil
			}
			if err == nil && n >= 1 && n <= servers {
				return g.slots[n-1]
			}
		}
		return nil
	}
	s := server(1)
	switch what := words[0]; {
	case what == "quit" || what == "q":
		return errQuit
	case what == "heal":
		g.tell("all is healed")
		for _, s := range g.slots {
			s.stopped = false
			g.cut(s, cuts{})
			if err := g.still(s, false); err != nil {
				return err
			}
		}
		return g.natsOn()
	case what == "gather" && len(words) == 2:
		return g.gather(words[1], now, bad)
	case what == "scatter":
		g.tell("the players scatter")
		g.leave(now)
	case what == "nats":
		return g.doNATS(words[1:], now, bad)
	case s == nil && len(words) > 1 && words[1] == "crowd":
		return errNoCrowd
	case s == nil:
		return bad
	case what == "kill" || what == "stop":
		s.stopped = what == "stop"
		g.kill(s, now)
	case what == "go":
		s.stopped = false
	case what == "pause" || what == "wake":
		return g.still(s, what == "pause")
	case what == "leave":
		g.tell("server %d is to stop", s.number)
		if s.now != nil {
			_ = s.now.process.tell(order{Leave: true}) // it may have ended
		}
	case what == "cut":
		return g.doCut(s, words[2:], bad)
	default:
		return bad
	}
	return nil
}

// doCut cuts a server off, as the words behind its number say.
func (g *mesher) doCut(s *slot, words []string, bad error) error {
	c, to, from, how := s.cut, true, true, "server %d and %s don't reach each other"
	if len(words) == 0 {
		words = []string{"all"}
	}
	switch words[0] {
	case "to":
		from, how, words = false, "what server %d sends doesn't reach %s", words[1:]
	case "from":
		to, how, words = false, "server %d hears nothing of %s", words[1:]
	}
	if len(words) != 1 {
		return bad
	}
	whom := words[0]
	switch n, err := strconv.Atoi(whom); {
	case whom == "all":
		c.To.All, c.From.All = c.To.All || to, c.From.All || from
		whom = "anybody"
	case whom == "nats":
		c.To.Store, c.From.Store = c.To.Store || to, c.From.Store || from
		whom = "NATS"
	case err != nil || n < 1 || n > servers || n == s.number:
		return bad
	default:
		other := g.slots[n-1]
		o := other.cut
		if to {
			c.To.Servers, o.From.Servers = append(c.To.Servers, n), append(o.From.Servers, s.number)
		}
		if from {
			c.From.Servers, o.To.Servers = append(c.From.Servers, n), append(o.To.Servers, s.number)
		}
		g.cut(other, o)
		whom = "server " + whom
	}
	g.tell("a cut: "+how, s.number, whom)
	g.cut(s, c)
	return nil
}

func (g *mesher) cut(s *slot, c cuts) {
	s.cut = c
	if s.now != nil {
		_ = s.now.process.tell(order{Cuts: &c}) // it may have ended
	}
}

// still has a server stand still, or go on.
func (g *mesher) still(s *slot, still bool) error {
	if s.now == nil || s.still == still {
		return nil
	}
	if err := standStill(s.now.process.cmd.Process, still); err != nil {
		return fmt.Errorf("server %d: %w", s.number, err)
	}
	s.still = still
	if still {
		g.tell("server %d stands still", s.number)
	} else {
		g.tell("server %d goes on", s.number)
	}
	return nil
}

func (g *mesher) doNATS(words []string, now time.Time, bad error) error {
	switch {
	case len(words) == 1 && words[0] == "off":
		g.tell("all NATS nodes are killed")
		g.natsOff(now)
	case len(words) == 1 && words[0] == "on":
		g.tell("NATS begins anew")
		return g.natsOn()
	case len(words) == 2 && (words[0] == "kill" || words[0] == "pause"):
		_, leader := g.nats.look()
		n, err := strconv.Atoi(words[1])
		i := n - 1
		switch {
		case words[1] == "leader":
			i = leader
		case words[1] == "follower":
			i = (leader + 1) % nodes
		case err != nil || n < 1 || n > nodes:
			return bad
		}
		if i < 0 {
			g.tell("NATS has no leader just now")
			return nil
		}
		role := "follower"
		if i == leader {
			role = "leader"
		}
		if words[0] == "pause" {
			g.tell("NATS node %d stands still, a %s", i+1, role)
			return g.nats.pause(i)
		}
		g.tell("NATS node %d is killed, a %s", i+1, role)
		g.nats.kill(i)
	default:
		return bad
	}
	return nil
}

// script is commands with times. A line is a command, how long after the line before it comes, and perhaps what it waits for first:
//
//	calm 2s kill 2
//	3s nats off
type script struct {
	lines []scriptLine
	ready time.Time // when what the next line waits for had come
	last  time.Time // when the line before was done
	done  bool
}

type scriptLine struct {
	calm    bool // it waits until all is well
	after   time.Duration
	command string
}

func readScript(text string) (s script, err error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var l scriptLine
		if l.calm = words[0] == "calm"; l.calm {
			words = words[1:]
		}
		if len(words) < 2 {
			return s, fmt.Errorf("line %d of the script: %q isn't [calm] DURATION COMMAND", i+1, line)
		}
		if l.after, err = time.ParseDuration(words[0]); err != nil {
			return s, fmt.Errorf("line %d of the script: %w", i+1, err)
		}
		l.command = strings.Join(words[1:], " ")
		s.lines = append(s.lines, l)
	}
	return s, nil
}

// stepScript does what the script says, when it is time.
func (g *mesher) stepScript(now time.Time) error {
	s := &g.script
	if len(s.lines) == 0 {
		s.done = true
		return nil
	}
	l := s.lines[0]
	if s.last.IsZero() {
		s.last = now
	}
	if s.ready.IsZero() {
		if l.calm {
			if why := g.whole(); why != "" {
				if now.Sub(s.last) > patience {
					return fmt.Errorf("before %q: never well: %s", l.command, why)
				}
				return nil
			}
		}
		s.ready = now
		if !l.calm {
			s.ready = s.last
		}
	}
	if now.Before(s.ready.Add(l.after)) {
		return nil
	}
	s.lines, s.ready, s.last = s.lines[1:], time.Time{}, now
	return g.do(l.command, now)
}
