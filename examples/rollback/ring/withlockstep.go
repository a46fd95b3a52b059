package ring

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep"
)

// waiting is a machine of the game in lockstep.
type waiting struct {
	*watch
	peer     *lockstep.Peer
	ring     ring
	keys     [2]byte // as the last turns left them
	up, down path
	next     time.Duration
	began    time.Duration // the game
	said     byte
}

// judge is the host's ear for desyncs.
type judge struct{ err error }

// Event is lockstep's.
func (j *judge) Event(turn int64, e lockstep.Event) {
	if e.Kind == lockstep.Desynced || e.Kind == lockstep.Split || e.Kind == lockstep.Dropped {
		j.err = fmt.Errorf("turn %d: %+v", turn, e)
	}
}

// Lockstep plays a game in lockstep, the host beside player 0.
func Lockstep(o Options, rtt time.Duration) (Figures, error) {
	var f Figures
	cfg := lockstep.Config{Protocol: 1, Players: 2, TurnInterval: FrameTime, MaxDelay: 30}
	host := lockstep.HostConfig{Config: cfg, Delay: &lockstep.AdaptiveDelay{Margin: 3, Patience: 4, Lead: -1}} // friends: the farther one sets the delay
	host.Secret[0] = byte(o.Seed)
	var ear judge
	h, err := lockstep.NewHost(host, &ear)
	if err != nil {
		return f, err
	}
	var machines [2]*waiting
	for p := range machines {
		m := &waiting{watch: newWatch(o.Seed, p), ring: newRing()}
		way, loss := rtt, o
		if p == 0 {
			way, loss.Loss = 10*time.Millisecond, 0 // the same machine
		}
		if m.up, err = newPath(loss, way, o.Seed*10+uint64(2*p)); err != nil {
			return f, err
		}
		if m.down, err = newPath(loss, way, o.Seed*10+uint64(2*p+1)); err != nil {
			return f, err
		}
		if m.peer, err = lockstep.NewPeer(lockstep.PeerConfig{Config: cfg, Player: p, Session: 1}, m.up); err != nil {
			return f, err
		}
		if err := h.Connect(p, m.down); err != nil {
			return f, err
		}
		machines[p] = m
	}
	for now := tick; now < time.Duration(o.Seconds)*time.Second; now += tick {
		for p, m := range machines {
			for b, ok := m.up.link.Pop(now); ok; b, ok = m.up.link.Pop(now) {
				if err := h.Receive(now, p, b); err != nil {
					return f, err
				}
			}
			for b, ok := m.down.link.Pop(now); ok; b, ok = m.down.link.Pop(now) {
				if err := m.peer.Receive(now, b); err != nil {
					return f, err
				}
			}
			if err := m.play(now, p); err != nil {
				return f, err
			}
			m.peer.Tick(now)
		}
		if bits.OnesCount64(h.Ready()) == 2 {
			h.Start(now)
		}
		h.Tick(now)
	}
	for _, m := range machines {
		m.frames = int((time.Duration(o.Seconds)*time.Second - m.began) / FrameTime)
		m.late = max(0, m.frames-int(m.ring.frame))
		f.add(m.watch, float64(o.Seconds))
	}
	if h.Turn() < int64(o.Seconds)*60/2 {
		return f, fmt.Errorf("only %d turns", h.Turn())
	}
	return f, ear.err
}

// play executes the turn that is due, and those that it is behind.
func (m *waiting) play(now time.Duration, p int) error {
	due := m.peer.Behind()
	if now >= m.next {
		due++
		m.next = max(m.next, now-FrameTime) + FrameTime
	}
	for range due {
		t, ok := m.peer.Next()
		if !ok {
			m.next = now // as soon as it comes
			if m.ring.frame == 0 {
				m.began = now
			}
			return nil
		}
		for q, cmd := range t.Commands() {
			m.keys[q] = cmd[0]
		}
		m.ring.step(m.keys)
		m.saw(now, m.keys[p])
		if key := m.press(now, &m.ring, p); key != m.said && m.peer.InGame() && m.peer.Submit([]byte{key}) == nil {
			m.said = key
		}
		if err := m.peer.Done(m.ring.hash()); err != nil {
			return err
		}
	}
	return nil
}
