package rollback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// duo is two machines over something else than plain datagrams.
type duo struct {
	sessions [2]*rollback.Session
	games    [2]sums
	events   [2][]rollback.Event
	errs     int
}

func newDuo(t *testing.T) *duo {
	d := &duo{}
	for p := range d.sessions {
		var err error
		d.sessions[p], err = rollback.New(rollback.Config{Players: 2, Local: p, InputSize: 2, Event: func(e rollback.Event) { d.events[p] = append(d.events[p], e) }}, &d.games[p])
		require.NoError(t, err)
	}
	return d
}

// play has both simulate; pump moves packets.
func (d *duo) play(t *testing.T, frames int, pump func(now time.Duration)) {
	rng := rand.New(rand.NewPCG(1, 2))
	for f := range frames {
		now := time.Duration(f+1) * frameTime
		pump(now)
		for _, s := range d.sessions {
			_, err := s.Step([]byte{byte(rng.Uint32N(3)), 0})
			require.NoError(t, err)
			s.Tick(now)
		}
	}
	for p, s := range d.sessions {
		require.Greater(t, s.Frame(), int64(frames)*8/10, "%+v", s.Stats())
		require.Equal(t, []rollback.Event{{Kind: rollback.Started}}, d.events[p])
	}
	require.Zero(t, d.errs)
}

// end is a link's handler.
type end struct {
	d   *duo
	p   int
	out *netsim.Link
	now time.Duration
}

// Datagram is link's.
func (e *end) Datagram(p []byte) { e.out.Push(e.now, p) }

// Message is link's.
func (e *end) Message(p []byte) {
	if e.d.sessions[e.p].Receive(e.now, 1-e.p, p) != nil {
		e.d.errs++
	}
}

// TestOverLink: a *link.Link is a Transport as it is, with its packets of 255 bytes.
func TestOverLink(t *testing.T) {
	d := newDuo(t)
	var ends [2]*end
	var links [2]*link.Link
	for p := range ends {
		out, err := netsim.NewLink(netsim.Settings{Loss: 2, Lag: 20 * time.Millisecond}, uint64(p))
		require.NoError(t, err)
		ends[p] = &end{d: d, p: p, out: out}
		links[p], err = link.New(link.Config{}, ends[p])
		require.NoError(t, err)
		require.NoError(t, d.sessions[p].Connect(1-p, links[p]))
	}
	d.play(t, 600, func(now time.Duration) {
		for p, l := range links {
			ends[p].now = now
			for b, ok := ends[1-p].out.Pop(now); ok; b, ok = ends[1-p].out.Pop(now) {
				_ = l.Receive(now, b)
			}
			l.Tick(now)
		}
	})
}

// TestOverConnection: a *lockstep.OnChannel is one, too: unreliable bunches of a connection, beside whatever else it carries.
func TestOverConnection(t *testing.T) {
	d := newDuo(t)
	name := bunch.Name{Index: 300}
	var conns [2]*netconn.Conn
	var paths [2]*netsim.Link
	var on [2]*lockstep.OnChannel
	now := time.Duration(0)
	for p := range conns {
		var err error
		paths[p], err = netsim.NewLink(netsim.Settings{Loss: 5, Lag: 25 * time.Millisecond}, uint64(p))
		require.NoError(t, err)
		on[p] = &lockstep.OnChannel{Received: func(b []byte) {
			if d.sessions[p].Receive(now, 1-p, b) != nil {
				d.errs++
			}
		}}
		conns[p], err = netconn.New(netconn.Config{Server: p == 1, LowLevelSend: func(b []byte) { paths[p].Push(now, b) },
			Channels: []channel.Type{{Name: name, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return on[p] }}}}, 0, 1, 1)
		require.NoError(t, err)
		require.NoError(t, d.sessions[p].Connect(1-p, on[p]))
	}
	_, err := conns[0].Open(name, on[0])
	require.NoError(t, err)
	d.play(t, 600, func(at time.Duration) {
		now = at
		for p, c := range conns {
			c.Tick(now) // what the last frame wrote
			for b, ok := paths[1-p].Pop(now); ok; b, ok = paths[1-p].Pop(now) {
				_ = c.ReceivedPacket(now, b)
			}
			c.PostTickDispatch(now)
		}
	})
}
