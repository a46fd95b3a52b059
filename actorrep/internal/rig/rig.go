// Package rig is a server's world and its clients' over bad networks in virtual time, for tests.
package rig

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
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

	// Speed is the bytes a second to clients that join from now on. Default 1 MiB.
	Speed int
	// Controller paces what goes to the next client instead. Default none.
	Controller congestion.Controller
	// ReliableBuffer is the reliable bunches in flight of a channel of clients that join from now on. Default the protocol's.
	ReliableBuffer int
	// Memory is the MaxMemory of clients that join from now on, ServerMemory that of the server's ends of their connections. Default theirs.
	Memory, ServerMemory int
	// Packet is the MaxPacket of clients that join from now on. Default the protocol's.
	Packet int
	// Forgetful clients that join from now on have connections without the world's channel types.
	Forgetful bool
	// Careless has the server's ends of connections of clients that join from now on made without them.
	Careless bool
	// Sent is told of every packet to a client. Default nobody.
	Sent func(p []byte)
	// Ahead is the server's game's clock before its connections'.
	Ahead time.Duration
	// Heard is called in each Step when all packets have been received and the server's Step is next. Default nobody.
	Heard func()

	set netsim.Settings
}

// Line is a client and its connection.
type Line struct {
	World    *actorrep.World
	Peer     *actorrep.Peer
	Failed   []error       // of JoinOther
	Ahead    time.Duration // of the client's game's clock before its connection's
	S, C     *netconn.Conn
	Up, Down *netsim.Link
}

// New returns a server whose classes register names. What fails there fails the test, unless cfg says otherwise; connections needn't have a viewpoint.
func New(t testing.TB, seed uint64, set netsim.Settings, cfg actorrep.Config, register func(w *actorrep.World) error) *Rig {
	t.Logf("seed %d", seed)
	if cfg.Failed == nil {
		cfg.Failed = func(err error) {
			if !errors.Is(err, actorrep.ErrNoViewpoint) {
				t.Error(err)
			}
		}
	}
	r := &Rig{T: t, Rand: rand.New(rand.NewPCG(seed, 8)), Server: actorrep.NewServer(cfg), Speed: 1 << 20, set: set}
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
	return r.join(register, func(err error) {
		var refused *actorrep.RefusedError
		if !errors.Is(err, actorrep.ErrUnacked) && !errors.As(err, &refused) { // as actors come and go, calls to them do
			r.T.Error(err)
		}
	})
}

// JoinOther adds a client that may have trouble with what the server sends; it is in Failed.
func (r *Rig) JoinOther(register func(w *actorrep.World) error) (l *Line) {
	l = r.join(register, func(err error) { l.Failed = append(l.Failed, err) })
	return l
}

func (r *Rig) join(register func(w *actorrep.World) error, failed func(error)) *Line {
	l := &Line{World: actorrep.NewClient(actorrep.Config{Failed: failed})}
	r.check(register(l.World))
	r.connect(l)
	return l
}

// JoinAgain ends a client's connection and gives its world another one.
func (r *Rig) JoinAgain(l *Line) {
	l.C.Close(r.Now, "")
	for now := r.Now; !l.C.Closed(); now += time.Second {
		l.C.Tick(now)
	}
	r.Server.RemoveConn(l.Peer)
	r.Lines = slices.DeleteFunc(r.Lines, func(o *Line) bool { return o == l })
	r.connect(l)
}

// connect gives a client a connection.
func (r *Rig) connect(l *Line) {
	var err error
	l.Up, err = netsim.NewLink(r.set, r.Rand.Uint64())
	r.check(err)
	l.Down, err = netsim.NewLink(r.set, r.Rand.Uint64())
	r.check(err)
	in, out := uint16(r.Rand.UintN(16384)), uint16(r.Rand.UintN(16384))
	proto := netconn.Bunchnet()
	if r.ReliableBuffer > 0 {
		proto.ReliableBuffer = r.ReliableBuffer
	}
	if r.Packet > 0 {
		proto.Bunch.MaxPacket = r.Packet
	}
	types := r.Server.ChannelTypes()
	if r.Careless {
		types = nil
	}
	l.S, err = netconn.New(netconn.Config{Protocol: proto, Server: true, NetSpeed: r.Speed, Controller: r.Controller, Channels: types, MaxMemory: r.ServerMemory,
		LowLevelSend: func(p []byte) {
			if r.Sent != nil {
				r.Sent(p)
			}
			l.Down.Push(r.Now, p)
		}}, r.Now, in, out)
	r.check(err)
	if types = nil; !r.Forgetful {
		types = l.World.ChannelTypes()
	}
	l.C, err = netconn.New(netconn.Config{Protocol: proto, Channels: types, MaxMemory: r.Memory,
		LowLevelSend: func(p []byte) { l.Up.Push(r.Now, p) }}, r.Now, out, in)
	r.check(err)
	l.Peer = r.Server.AddConn(l.S)
	r.Lines = append(r.Lines, l)
}

// Step lets a tick pass.
func (r *Rig) Step() {
	r.Now += Tick
	for _, l := range r.Lines {
		for p, ok := l.Up.Pop(r.Now); ok; p, ok = l.Up.Pop(r.Now) {
			_ = l.S.ReceivedPacket(r.Now, p)
		}
		for p, ok := l.Down.Pop(r.Now); ok; p, ok = l.Down.Pop(r.Now) {
			_ = l.C.ReceivedPacket(r.Now, p)
		}
		l.S.PostTickDispatch(r.Now)
		l.C.PostTickDispatch(r.Now)
		l.World.Step(r.Now + l.Ahead)
	}
	if r.Heard != nil {
		r.Heard()
	}
	r.Server.Step(r.Now + r.Ahead)
	for _, l := range r.Lines {
		l.S.Tick(r.Now)
		l.C.Tick(r.Now)
		if l.S.Closed() || l.C.Closed() {
			r.T.Fatalf("a connection closed: %v, %v", l.S.Result(), l.C.Result())
		}
	}
}

// Await steps until f, a minute at most; step is the test's own.
func (r *Rig) Await(what string, step func(), f func() bool) {
	r.T.Helper()
	for range 30 * 60 {
		if f() {
			return
		}
		step()
	}
	r.T.Fatal("never: ", what)
}

// Until steps until same says no more what differs, a minute at most.
func (r *Rig) Until(same func(l *Line) string) {
	r.T.Helper()
	r.UntilBy(r.Step, same)
}

// UntilBy is Until with the test's own step.
func (r *Rig) UntilBy(step func(), same func(l *Line) string) {
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
		step()
	}
	r.T.Fatalf("no agreement in a minute: %s", diff)
}

// Lose lets what the server has sent be lost: for measuring it alone.
func (r *Rig) Lose() {
	for _, l := range r.Lines {
		l.S.Tick(r.Now)
		for _, ok := l.Down.Pop(r.Now); ok; _, ok = l.Down.Pop(r.Now) {
		}
	}
}
