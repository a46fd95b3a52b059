package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// A blackout in which small reliable bunches rode with large unreliable ones. All that is reliable arrives after it, packed closer;
// then the game has only little to say. Nothing waits, so the path isn't too narrow.
func TestBlackoutIsNoNarrowPath(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	talk := func(voice int) func() {
		return func() {
			_, err := ch.SendBunch(&bunch.Out{Data: []byte{1}, Reliable: true})
			require.NoError(t, err)
			if voice > 0 {
				_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, voice)})
			}
		}
	}
	l.run(time.Second, talk(800))
	l.dark[0] = true
	l.run(1500*time.Millisecond, talk(800))
	l.dark[0] = false
	l.run(30*time.Second, talk(0))
	require.Zero(t, l.conns[0].Table().Waiting())
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// The same where the peer closes the channel during the blackout, so that what was lost isn't sent again.
func TestClosedChannelIsNoNarrowPath(t *testing.T) {
	var theirs *channel.Channel
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.accept[0] = func(ch *channel.Channel) { theirs = ch }
	l.control()
	l.run(time.Second, nil)
	ch := l.open(1)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("pawn"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	require.NotNil(t, theirs)
	l.dark[0] = true
	l.run(2*time.Second, func() { _, _ = theirs.SendBunch(&bunch.Out{Data: make([]byte, 60), Reliable: true}) })
	require.NoError(t, ch.Close(bunch.Destroyed))
	l.run(500*time.Millisecond, func() { _, _ = theirs.SendBunch(&bunch.Out{Data: make([]byte, 60), Reliable: true}) })
	l.dark[0] = false
	l.run(30*time.Second, nil)
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// Both ends close at once; one has more to deliver than the other. Neither lingers, and all arrives.
func TestBothCloseAtOnce(t *testing.T) {
	for _, lag := range []time.Duration{0, 50, 200} {
		l := newLab(t, both(netsim.Settings{Lag: lag * time.Millisecond}), 1, nil)
		l.control()
		l.run(time.Second, nil)
		ch := l.open(1)
		for range 60 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			require.NoError(t, err)
		}
		start := l.now
		l.conns[0].Close(l.now, "done")
		l.conns[1].Close(l.now, "done")
		for l.now-start < 10*time.Second && (l.res[0] == nil || l.res[1] == nil) {
			l.step(nil)
		}
		t.Logf("%+v %+v lag %v: %v, %v and %v", l.res[0].Undelivered, l.res[1].Undelivered, lag, l.now-start, l.res[0], l.res[1])
		if l.res[1].Unacked > 0 {
			t.Errorf("lag %v: %d bunches of an end that closed at the same time were cut off although both ends and the path were well", lag, l.res[1].Unacked)
		}
		if l.now-start > 1900*time.Millisecond {
			t.Errorf("lag %v: lingers %v", lag, l.now-start)
		}
	}
}

// Driven by NextDeadline alone, as doc.go says, a connection sleeps between what it has to do.
func TestNextDeadlineDoesNotSpin(t *testing.T) {
	for name, speed := range map[string]int{"slow": 2000, "fast": 1_000_000} {
		l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, func(_ int, c *Config) { c.NetSpeed = speed })
		l.control()
		l.run(time.Second, nil)
		ch := l.open(0)
		for range 40 {
			_, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
			require.NoError(t, err)
		}
		l.dark[1] = true // no acks
		wakes, end := 0, l.now+20*time.Second
		for l.now < end {
			at, ok := l.conns[0].NextDeadline()
			require.True(t, ok)
			l.now = max(l.now+time.Microsecond, at)
			l.conns[0].Tick(l.now)
			wakes++
			if wakes > 100_000 {
				break
			}
		}
		t.Logf("%s: %d wakes in 20 s, %d packets", name, wakes, l.packets[0])
		require.Less(t, wakes, 5000, name)
	}
}

// A path of no delay at all, as in one process: the loss of the last packet is noticed before the keep-alive.
func TestTailProbeWithoutDelay(t *testing.T) {
	l := newLab(t, both(netsim.Settings{}), 1, func(_ int, c *Config) { c.KeepAlive = 5 * time.Second })
	l.fine = time.Millisecond
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	_, err := ch.SendBunch(&bunch.Out{Data: []byte("a"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	got := l.got[1]
	l.dark[0] = true
	_, err = ch.SendBunch(&bunch.Out{Data: []byte("b"), Reliable: true})
	require.NoError(t, err)
	l.run(2*l.tick, nil)
	l.dark[0] = false
	start := l.now
	for l.got[1] == got && l.now-start < 10*time.Second {
		l.step(nil)
	}
	t.Logf("%v, smoothed %v", l.now-start, l.conns[0].rtt.smoothed)
	require.Less(t, l.now-start, time.Second)
}

// After a darkness of any length both ends come back within a KeepAlive and a few round trips.
func TestBackAfterLongDarkness(t *testing.T) {
	darks := []time.Duration{59 * time.Minute, 61 * time.Minute, 6 * time.Hour, 48 * time.Hour}
	if testing.Short() {
		darks = darks[1:3]
	}
	for _, p := range []Protocol{Bunchnet(), Unreal51(), Unreal53(true)} {
		p.FirstFree = false
		for _, dark := range darks {
			for way := range 3 {
				l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(_ int, c *Config) { c.Protocol, c.Timeout, c.KeepAlive = p, -1, time.Second })
				l.control()
				l.run(time.Second, nil)
				talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true}, 0)
				l.run(5*time.Second, talk)
				l.dark = [2]bool{way != 1, way != 2}
				l.run(20*time.Second, talk)
				l.tick = 500 * time.Millisecond
				l.run(dark, talk)
				l.tick = testTick
				l.dark = [2]bool{}
				unacked := max(l.conns[0].Table().Unacked(), l.conns[1].Table().Unacked())
				resent := time.Duration(unacked) * 40 * time.Second / defaultNetSpeed // what the peer has goes again, and then what is new
				start, got := l.now, l.got
				for l.now-start < 2*time.Hour && (l.got[0] == got[0] || l.got[1] == got[1]) && l.res[0] == nil && l.res[1] == nil {
					l.step(talk)
				}
				t.Logf("%s dark %v way %d: back after %v; %v %v, in flight %d and %d", p.Name, dark, way, (l.now - start).Round(time.Millisecond), l.res[0], l.res[1], l.conns[0].inFlight(), l.conns[1].inFlight())
				if l.now-start > 2*time.Second+resent || l.res[0] != nil || l.res[1] != nil {
					t.Errorf("%s dark %v way %d: back after %v %v %v", p.Name, dark, way, l.now-start, l.res[0], l.res[1])
				}
			}
		}
	}
}

// A time far ahead that was told once, by mistake, costs no more than that mistake.
func TestClockJumpsOnce(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	l.conns[0].PostTickDispatch(l.now + 50*time.Second)
	l.run(100*time.Second, func() {
		if ch.Room() > 1 {
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 20), Reliable: true})
		}
	})
	t.Logf("%v %v", l.res[0], l.res[1])
	require.Nil(t, l.res[0])
	require.Nil(t, l.res[1])
}
