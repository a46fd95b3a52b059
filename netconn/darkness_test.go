package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestBackAfterLongDarkness: after a darkness of any length both ends come back within two KeepAlives and a few round trips.
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

// An honest peer whose packets are all refused for a while.
func TestHonestRefusals(t *testing.T) {
	darks := []time.Duration{11, 20, 59, 300, 700}
	if testing.Short() {
		darks = darks[1:3]
	}
	for _, p := range []Protocol{Bunchnet(), Unreal51(), Unreal53(true)} {
		p.FirstFree = false
		p.Notify.WaitForFlush, p.PacketWindow = true, 256
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

// TestDarkAgainIsNoRefusal: a fast path goes dark again as soon as it has told that all of a wide window was lost. Nothing was refused.
func TestDarkAgainIsNoRefusal(t *testing.T) {
	for _, light := range []time.Duration{310, 350, 450} {
		l := newLab(t, both(netsim.Settings{Lag: 150 * time.Millisecond}), 1, func(_ int, c *Config) { c.Timeout, c.KeepAlive, c.NetSpeed = -1, 10*time.Millisecond, 1_000_000 })
		l.tick = time.Millisecond
		l.control()
		l.run(time.Second, nil)
		talk := l.talkers(bunch.Out{Data: make([]byte, 20), Reliable: true, NoMerge: true}, 15)
		l.run(3*time.Second, talk)
		for i := range 4 {
			l.dark = [2]bool{true, i%2 == 0}
			l.run(15*time.Second, talk)
			l.dark = [2]bool{}
			l.run(light*time.Millisecond, talk)
		}
		got := l.got
		l.run(4*time.Second, talk)
		require.Nil(t, l.res[0], "%v ms", light)
		require.Nil(t, l.res[1], "%v ms", light)
		require.Greater(t, l.got[0], got[0])
		require.Greater(t, l.got[1], got[1])
	}
}
