package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// A path that loses all large packets for a while, as after a change of route, then takes them again.
func TestWideAgain(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 25 * time.Millisecond}), 1, nil)
	l.control()
	l.run(time.Second, nil)
	ch := l.open(0)
	narrow := false
	l.lose[0] = func(p []byte) bool { return narrow && len(p) > 500 }
	talk := func() {
		if ch.Room() > 1 {
			_, _ = ch.SendBunch(&bunch.Out{Data: make([]byte, 700), Reliable: true, NoMerge: true})
		}
	}
	l.run(time.Second, talk)
	narrow = true
	l.run(8*time.Second, talk)
	narrow = false
	l.run(30*time.Second, talk)
	require.Nil(t, l.res[0], "%v", l.res[0])
}

// TestWideAgainAfterManyLosses: a path that loses large packets until a thousand with reliable bunches are lost in a row, and carries them then, isn't
// taken for a peer that refuses everything.
func TestWideAgainAfterManyLosses(t *testing.T) {
	now := 20 * time.Second
	big := sentPacket{bytes: 1000, reliable: true}
	c := &Conn{now: now, path: new(path)}
	for range 2 * refusalPackets {
		c.refusals.lost(now, &big)
		c.path.lost(now-refusalTime/2, &big)
	}
	for range narrowAcked {
		c.path.acked(100)
	}
	c.refusals.all.packets = 0 // small ones arrive
	require.True(t, c.path.probing(now))
	c.refusals.reliable.lasted = refusalTime
	require.True(t, c.refusals.reliable.tooLong(), "probing puts the verdict off")
	h := newHand(t, nil)
	end := h.conns[0]
	h.now += 20 * time.Second
	end.path, end.refusals = c.path, c.refusals
	end.path.since = h.now - narrowTime/2
	p := h.packet(0, false)
	end.newest().probe, end.newest().bytes = true, 1000 // a packet of that size
	h.give(0, p)
	h.conns[1].Tick(h.now)
	h.deliver(1)
	require.False(t, end.path.probing(h.now))
	for range emptyAfter - 1 {
		end.refusals.lost(h.now, &big)
		end.checkRefusals()
		require.False(t, end.Closed(), "%v", end.Result())
	}
	end.refusals.lost(h.now, &big)
	end.checkRefusals()
	require.ErrorIs(t, end.Result().Err, errRefuses)
}

// An honest peer whose packets are all refused for a while.
func TestHonestRefusals(t *testing.T) {
	darks := []time.Duration{11, 20, 59, 300, 700}
	if testing.Short() {
		darks = darks[1:3]
	}
	for _, p := range []Protocol{Bunchnet(), Unreal51(), Unreal53(true)} {
		p.FirstFree = false
		p.Notify.WaitForFlush = true
		for _, dark := range darks {
			for way := range 3 {
				for _, ka := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second} {
					l := newLab(t, both(netsim.Settings{Lag: 40 * time.Millisecond}), 1, func(_ int, c *Config) { c.Protocol, c.KeepAlive, c.Timeout = p, ka, dark*time.Second+8*time.Second })
					l.control()
					l.run(time.Second, nil)
					talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 200)
					l.run(5*time.Second, talk)
					l.dark = [2]bool{way != 1, way != 2}
					l.run(dark*time.Second, talk)
					l.dark = [2]bool{}
					start, got := l.now, l.got
					for l.now-start < 100*time.Second && (l.got[0] <= got[0]+2000 || l.got[1] <= got[1]+2000) && l.res[0] == nil && l.res[1] == nil {
						l.step(talk)
					}
					if l.now-start > 6*time.Second+2*ka || l.res[0] != nil || l.res[1] != nil {
						t.Errorf("%s dark %v way %d ka %v: back after %v; %v %v", p.Name, dark*time.Second, way, ka, l.now-start, l.res[0], l.res[1])
					}
				}
			}
		}
	}
}

// The same while a channel opens, closes, and the connection drains.
func TestDarkWhileClosing(t *testing.T) {
	bad := 0
	for seed := range uint64(300) {
		l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond, Loss: float64(seed % 3 * 10), LagVariance: 10 * time.Millisecond}), seed, func(_ int, c *Config) {
			c.LingerTimeout = 20 * time.Second
			c.Protocol = []Protocol{Bunchnet(), Unreal51(), Unreal53(true)}[seed%3]
			c.Protocol.FirstFree = false
			c.Redundancy.Copies = int(seed % 2 * 2)
		})
		l.join()
		var chs []*channel.Channel
		for range 5 {
			chs = append(chs, l.open(1))
		}
		sent := 0
		l.run(time.Duration(seed%7)*100*time.Millisecond, func() {
			for _, ch := range chs {
				if ch.Room() > 2 {
					if _, err := ch.SendBunch(&bunch.Out{Data: make([]byte, 100), Reliable: true}); err == nil {
						sent += 100
					}
				}
			}
		})
		for _, ch := range chs[:seed%6] {
			_ = ch.Close(bunch.Destroyed)
		}
		way := seed % 4
		l.dark = [2]bool{way != 1, way != 2}
		l.conns[1].Close(l.now, "bye")
		start := l.now
		l.run(time.Duration(1+seed%10)*time.Second, nil)
		l.dark = [2]bool{}
		for l.now-start < 70*time.Second && (l.res[0] == nil || l.res[1] == nil) {
			l.step(nil)
		}
		if l.res[0] == nil || l.res[1] == nil || l.res[1].Unacked > 0 || l.got[0] != sent || l.now-start > 19*time.Second {
			if bad++; bad < 8 {
				t.Errorf("seed %d way %d: %v after %v: %v; %v; %d of %d bytes", seed, way, time.Duration(1+seed%10)*time.Second, l.now-start, l.res[0], l.res[1], l.got[0], sent)
			}
		}
	}
	t.Log(bad, "of 300")
}

// Three connections... the news of a timeout: an end that hears everything doesn't time out, whatever it says itself.
func TestHearsAllTheTime(t *testing.T) {
	for _, p := range []Protocol{Bunchnet(), Unreal51(), Unreal53(true)} {
		p.FirstFree = false
		l := newLab(t, both(netsim.Settings{Lag: 30 * time.Millisecond}), 1, func(i int, c *Config) {
			c.Protocol = p
			c.Timeout = 60 * time.Second
			if i == 1 {
				c.Timeout = -1
			}
		})
		l.control()
		l.run(time.Second, nil)
		talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true}, 0)
		l.run(5*time.Second, talk)
		l.dark[0] = true
		l.run(300*time.Second, talk)
		t.Logf("%s: after 300 s one way dark: %v, last received %v ago, counters %+v", p.Name, l.res[0], l.now-l.conns[0].flow.lastReceive, l.conns[0].Counters)
		if l.res[0] != nil {
			t.Errorf("%s: %v", p.Name, l.res[0])
		}
	}
}
