package mesh_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// cut cuts the path between two hosts, both ways, and joins it after a while.
func (c *city) cut(a, b *simtest.Host, d time.Duration) {
	c.w.Cut(a, b)
	c.w.Cut(b, a)
	c.w.At(c.w.Now()+d, func() {
		c.w.Join(a, b)
		c.w.Join(b, a)
	})
}

// settled runs until one server plays the player and its client shows that one's world.
func (c *city) settled(t *testing.T, what string) *server {
	for range 60 * 40 {
		if s := c.plays(); s != nil && s.h.Name() == c.client.drawn && s.m.Idle() {
			return s
		}
		c.run(frame)
	}
	t.Fatalf("%s: it isn't over: %+v, %+v, the client at %s draws %s", what, c.servers[0].m.Counters, c.servers[1].m.Counters, c.client.m.Server(), c.client.drawn)
	return nil
}

// TestNextDead: when the next server is dead, or the client can't reach it, the player plays on where it is, and its world moves on.
func TestNextDead(t *testing.T) {
	for _, what := range []string{"dead", "out of the client's reach", "out of the server's reach"} {
		c := newCity(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
		c.begin()
		old, next := c.servers[0], c.servers[1]
		switch what {
		case "dead":
			next.h.Crash(time.Hour)
		case "out of the client's reach":
			c.cut(c.client.h, next.h, time.Hour)
		default:
			c.cut(old.h, next.h, time.Hour)
		}
		c.client.worst = 0
		require.NoError(t, old.m.Travel(me, next.h.Name()))
		c.run(15 * time.Second)
		require.True(t, old.m.Plays(me), what)
		require.EqualValues(t, 1, old.m.Counters.Stayed, what)
		require.Equal(t, old.h.Name(), c.client.drawn)
		require.LessOrEqual(t, c.client.worst, 50*time.Millisecond, what)
		require.Zero(t, c.gaps(), what)
		require.Zero(t, c.client.gone)
	}
}

// TestTrouble: at each moment of a travel the path between the servers, or those of the client, go dark for a while. Then the player plays at one server, and its client shows it.
func TestTrouble(t *testing.T) {
	step := 900 * time.Millisecond
	if *long > 0 {
		step = 10 * time.Millisecond
	}
	n, moved := 0, 0
	for at := 20 * time.Millisecond; at < 2600*time.Millisecond; at += step {
		for i, what := range []string{"between the servers", "to the old", "to the next", "of the client"} {
			c := newCity(t, uint64(i+1), netsim.Settings{Lag: 50 * time.Millisecond, Loss: 2})
			c.begin()
			old, next, me0 := c.servers[0], c.servers[1], c.client.h
			require.NoError(t, old.m.Travel(me, next.h.Name()))
			c.run(at)
			const dark = 3 * time.Second
			switch what {
			case "between the servers":
				c.cut(old.h, next.h, dark)
			case "to the old":
				c.cut(me0, old.h, dark)
			case "to the next":
				c.cut(me0, next.h, dark)
			default:
				c.cut(me0, old.h, dark)
				c.cut(me0, next.h, dark)
			}
			c.run(dark)
			s := c.settled(t, fmt.Sprint(what, " at ", at))
			if n++; s == next {
				moved++
			}
			c.run(3 * time.Second) // after the dark the client's clock finds the time again
			was := len(c.taken)
			c.run(2 * time.Second)
			require.True(t, s == c.plays())
			require.Greater(t, len(c.taken), was+90, "%s at %v: the player plays on", what, at)
		}
	}
	t.Logf("%d times, %d of them at the next server", n, moved)
}

// TestDies: the next server, or the old one, crashes at some moment of a travel. When the other one plays the player, the player plays on there; else it is lost, and its client knows.
func TestDies(t *testing.T) {
	step := 650 * time.Millisecond
	if *long > 0 {
		step = 7 * time.Millisecond
	}
	plays, lost := 0, 0
	for at := 20 * time.Millisecond; at < 2600*time.Millisecond; at += step {
		for i := range 2 {
			c := newCity(t, 1, netsim.Settings{Lag: 50 * time.Millisecond})
			c.begin()
			require.NoError(t, c.servers[0].m.Travel(me, "server2"))
			c.run(at)
			dies, other := c.servers[i], c.servers[1-i]
			dies.h.Crash(time.Hour)
			c.run(time.Second)
			other.m.Gone(dies.h.Name())
			c.run(15 * time.Second)
			require.True(t, other.m.Idle())
			if other.m.Plays(me) {
				plays++
				was := len(c.taken)
				c.run(2 * time.Second)
				require.Greater(t, len(c.taken), was+90, "%s dies at %v: the player plays on", dies.h.Name(), at)
				require.Equal(t, other.h.Name(), c.client.drawn)
				continue
			}
			lost++
			require.True(t, c.client.m.Lost(), "%s dies at %v", dies.h.Name(), at)
		}
	}
	t.Logf("played on %d times, lost with the server %d", plays, lost)
}

// TestDance: a player that goes on as soon as it has come loses nothing.
func TestDance(t *testing.T) {
	c := newCity(t, 3, netsim.Settings{Lag: 50 * time.Millisecond})
	c.begin()
	for i := range 12 {
		from, to := c.servers[i%2], c.servers[1-i%2]
		require.NoError(t, from.m.Travel(me, to.h.Name()))
		for began := c.w.Now(); !to.m.Plays(me); {
			require.Less(t, c.w.Now()-began, 10*time.Second)
			c.plays()
			c.run(frame)
		}
	}
	c.run(time.Second)
	require.Zero(t, c.gaps())
	require.Zero(t, c.client.gone)
}
