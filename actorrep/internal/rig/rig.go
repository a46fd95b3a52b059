// Package rig is a server's world and its clients' over bad networks in virtual time, for tests.
package rig

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Tick is a step of the rig.
const Tick = time.Second / 30

// Rig is a server and its clients.
type Rig struct {
	T      testing.TB
	Rand   *rand.Rand
	Now    time.Duration
	Server *actorrep.World
	Lines  []*Line

	set netsim.Settings
}

// Line is a client and its connection.
type Line struct {
	World    *actorrep.World
	Peer     *actorrep.Peer
	Failed   []error // of JoinOther
	s, c     *netconn.Conn
	up, down *netsim.Link
}

// New returns a server whose classes register names.
func New(t testing.TB, seed uint64, set netsim.Settings, register func(w *actorrep.World) error) *Rig {
	t.Logf("seed %d", seed)
	r := &Rig{T: t, Rand: rand.New(rand.NewPCG(seed, 8)), set: set}
	r.Server = actorrep.NewServer(actorrep.Config{Failed: func(err error) { t.Error(err) }})
	r.check(register(r.Server))
	return r
}

func (r *Rig) check(err error) {
	if err != nil {
		r.T.Helper()
		r.T.Fatal(err)
	}
}

// Join adds a client.
func (r *Rig) Join(register func(w *actorrep.World) error) *Line {
	return r.join(register, func(err error) { r.T.Error(err) })
}

// JoinOther adds a client that may have trouble with what the server sends; it is in Failed.
func (r *Rig) JoinOther(register func(w *actorrep.World) error) (l *Line) {
	l = r.join(register, func(err error) { l.Failed = append(l.Failed, err) })
	return l
}

func (r *Rig) join(register func(w *actorrep.World) error, failed func(error)) *Line {
	l := &Line{World: actorrep.NewClient(actorrep.Config{Failed: failed})}
	r.check(register(l.World))
	var err error
	l.up, err = netsim.NewLink(r.set, r.Rand.Uint64())
	r.check(err)
	l.down, err = netsim.NewLink(r.set, r.Rand.Uint64())
	r.check(err)
	in, out := uint16(r.Rand.UintN(16384)), uint16(r.Rand.UintN(16384))
	l.s, err = netconn.New(netconn.Config{Server: true, NetSpeed: 1 << 20, Channels: r.Server.ChannelTypes(),
		LowLevelSend: func(p []byte) { l.down.Push(r.Now, p) }}, r.Now, in, out)
	r.check(err)
	l.c, err = netconn.New(netconn.Config{Channels: l.World.ChannelTypes(),
		LowLevelSend: func(p []byte) { l.up.Push(r.Now, p) }}, r.Now, out, in)
	r.check(err)
	l.Peer = r.Server.AddConn(l.s)
	r.Lines = append(r.Lines, l)
	return l
}

// Step lets a tick pass.
func (r *Rig) Step() {
	r.Now += Tick
	for _, l := range r.Lines {
		for p, ok := l.up.Pop(r.Now); ok; p, ok = l.up.Pop(r.Now) {
			_ = l.s.ReceivedPacket(r.Now, p)
		}
		for p, ok := l.down.Pop(r.Now); ok; p, ok = l.down.Pop(r.Now) {
			_ = l.c.ReceivedPacket(r.Now, p)
		}
		l.s.PostTickDispatch(r.Now)
		l.c.PostTickDispatch(r.Now)
		l.World.Step(r.Now)
	}
	r.Server.Step(r.Now)
	for _, l := range r.Lines {
		l.s.Tick(r.Now)
		l.c.Tick(r.Now)
		if l.s.Closed() || l.c.Closed() {
			r.T.Fatalf("a connection closed: %v, %v", l.s.Result(), l.c.Result())
		}
	}
}

// Until steps until same says no more what differs, a minute at most.
func (r *Rig) Until(same func(l *Line) string) {
	r.T.Helper()
	diff := ""
	for range 30 * 60 {
		diff = ""
		for _, l := range r.Lines {
			if diff = same(l); diff != "" {
				break
			}
		}
		if diff == "" {
			return
		}
		r.Step()
	}
	r.T.Fatalf("no agreement in a minute: %s", diff)
}

// Lose lets what the server has sent be lost: for measuring it alone.
func (r *Rig) Lose() {
	for _, l := range r.Lines {
		l.s.Tick(r.Now)
		for _, ok := l.down.Pop(r.Now); ok; _, ok = l.down.Pop(r.Now) {
		}
	}
}
