package interp

import (
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/rewind"
	"github.com/bunchnet/bunchnet/netconn"
)

// Seen says what time a client shows. Send it with a shot, as a parameter or in an input. The zero value is the present.
type Seen struct {
	// At is the server time that is shown, before an actor's reach * interval: its low 16 bits in units of 2^19 ns, 0.52
	// ms.
	At uint16
	// Reach is Interpolator.Reach in units of 1/32. It is 0 only in the zero value.
	Reach uint8
}

const (
	seenUnit  = 19 // bits of a time that aren't told
	reachUnit = 32
)

// Seen says what time this client shows in this frame.
func (in *Interpolator) Seen() Seen {
	if in.world.IsServer() || !in.shows {
		return Seen{}
	}
	return Seen{At: uint16(in.shown >> seenUnit), Reach: uint8(min(max(in.reach*reachUnit, 1), 255))}
}

// Past is an actor as a player saw it, in a View.
type Past struct {
	class  *class
	actor  actorrep.Actor
	values sample
}

// View is the world as a player saw it. Query it with rays and shapes. Its ids are the actors' GUIDs.
type View = rewind.View[*Past]

// rewound is what the current Rewind shows.
type rewound struct {
	peer  *actorrep.Peer
	base  time.Duration
	first time.Duration // earliest time shown
	reach float64
}

// allowance is how much older than the connection's round trip and jitter a claim may be: for the frames of both ends,
// and for an input that was lost and sent again with a later one.
const allowance = 100 * time.Millisecond

// early is how far a claim may be ahead of the last Step without being counted: that Step may be some time ago.
const early = 50 * time.Millisecond

// Rewind shows the actors, on a server, as the player p saw them; seen is what that client sent. Each actor is shown at
// the time at which the client drew it. A claim is limited, and then counted: it may not be older than the connection's
// round trip and jitter explain, or its longest round trip of the last 8 to 16 s, nor older than Config.MaxRewind, nor
// in the future. In a Simulate of package predict, which is given the shot in an input, the time that this input has waited
// for its tick is allowed too. Actors that the player doesn't have aren't in the view. For World.Local, and for the zero Seen, it is the present. The view is valid until the next
// Rewind.
func (in *Interpolator) Rewind(p *actorrep.Peer, seen Seen) *View {
	in.Counters.Rewinds++
	now := in.world.Now()
	in.rewound = rewound{peer: p, base: now, first: now}
	if seen.Reach > 0 && !p.IsLocal() {
		for i := 0; i < len(in.list) && !in.ticked && !in.told; i++ {
			in.forgotten(in.list[i])
		}
		in.rewound = in.believe(p, seen, now)
	}
	return in.history.Show(in.rewound.base, in.fill)
}

// span is half of how long a slow round trip explains claims. A client whose packets were held up once draws that much farther in the past
// while the late arrival is in its timeline's window, 256 packets, and then catches up by slewing: its round trip is short again long before.
const span = 8 * time.Second

// explained is how old a peer's claims may be by its connection: the longest round trip of this span and of the one before.
type explained struct {
	peer         *actorrep.Peer
	most, before time.Duration
	began        time.Duration
}

// measure notes the latest round trips of all connections, on a server.
func (in *Interpolator) measure(now time.Duration) {
	n := 0
	for p := range in.world.Peers {
		for n < len(in.explained) && in.explained[n].peer != p { // removed: both lists have the same order
			in.explained = slices.Delete(in.explained, n, n+1)
		}
		if n == len(in.explained) {
			in.explained = append(in.explained, explained{peer: p, began: now})
		}
		e := &in.explained[n]
		if now-e.began >= span {
			e.most, e.before, e.began = 0, e.most, now
		}
		if c, ok := p.Conn().(interface{ Stats() netconn.Stats }); ok {
			e.most = max(e.most, c.Stats().LastRTT)
		}
		n++
	}
	in.explained = slices.Delete(in.explained, n, len(in.explained))
}

// slowest is the longest round trip of a connection that measure has noted.
func (in *Interpolator) slowest(p *actorrep.Peer) time.Duration {
	for i := range in.explained {
		if e := &in.explained[i]; e.peer == p {
			return max(e.most, e.before)
		}
	}
	return 0
}

// believe limits a claim to what can be true.
func (in *Interpolator) believe(p *actorrep.Peer, seen Seen, now time.Duration) rewound {
	off := int16(seen.At - uint16(now>>seenUnit)) // units from now
	claimed := (now>>seenUnit + time.Duration(off)) << seenUnit
	reach := float64(seen.Reach) / reachUnit
	earliest, most := now-in.cfg.MaxRewind, float64(maxReach)
	if c, ok := p.Conn().(interface{ Stats() netconn.Stats }); ok {
		s := c.Stats()
		earliest = max(earliest, now-max(s.RTT+4*s.RTTVariance, in.slowest(p))-allowance-waited(p))
		most = reachFor(2*s.LossRate+2*firstLoss) + 1
	}
	base := min(max(claimed, earliest), now)
	if base-claimed > 1<<seenUnit || claimed-base > early || reach > most {
		in.Counters.Clamped++
	}
	return rewound{peer: p, base: base, first: now - in.cfg.MaxRewind, reach: min(reach, most)}
}

// fillView adds the actors as the player saw them.
func (in *Interpolator) fillView(add func(id rewind.ID, p *Past) error) {
	r := &in.rewound
	for _, t := range in.list {
		if !t.there(in.world) || r.peer != nil && !r.peer.IsLocal() && !r.peer.Has(t.actor) {
			continue
		}
		t.past.actor = t.actor
		if r.reach == 0 || !t.any {
			t.class.plan.load(pointer(t.actor), &t.past.values)
		} else {
			t.past.values, _ = t.buffer.At(max(r.base-t.behind(r.reach, in.cfg.MaxDelay), r.first))
		}
		if add(rewind.ID(t.base.GUID()), &t.past) != nil {
			return
		}
	}
}
