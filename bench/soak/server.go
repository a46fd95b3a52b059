package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// link is a kind of link; those without an authentication of their own have a checksum against damage.
type link struct {
	name     string
	link     driver.Link
	checksum bool
	moves    bool          // clients may change their addresses
	reorder  time.Duration // the window
	copies   int           // of reliable bunches
}

func links() []link {
	return []link{
		{name: "netcode", link: driver.Netcode{ProtocolID: 1, Key: netcode.Key{1, 2, 3}, Slots: 1024}, reorder: 60 * time.Millisecond},
		{name: "unreal", link: driver.PlainUnreal53(), checksum: true, moves: true},
		{name: "salted", link: driver.PlainSalted{ProtocolID: 1, Slots: 1024}, checksum: true, copies: 2},
	}
}

// server is one, with its actors, its game in step and its streams.
type server struct {
	link
	soak     *soak
	driver   *driver.Driver
	yard     *yard
	turns    *turns
	echoes   *echoes
	rng      *rand.Rand
	sessions []*session // in the order they came
	now      time.Time
	ends     map[netconn.CloseCode]int
}

// session is the server's end of a client.
type session struct {
	client *client
	conn   *driver.Conn
	talk   *talk
	pawn   *pawn
	peer   *actorrep.Peer
	seat   int
	number uint32              // of the session in the game in step
	down   *lockstep.OnChannel // the host keeps it after the session
	result *netconn.CloseResult
}

func newServer(s *soak, l link, seed uint64) (*server, error) {
	sv := &server{link: l, soak: s, echoes: newEchoes(), rng: rand.New(rand.NewPCG(seed, 2)), now: s.start, ends: map[netconn.CloseCode]int{}}
	problem := func(format string, args ...any) { s.problem(l.name+" server: "+format, args...) }
	sv.yard = &yard{rng: sv.rng, world: actorrep.NewServer(actorrep.Config{Failed: func(err error) {
		if !errors.Is(err, actorrep.ErrNoAnswer) { // clients vanish before they answer
			problem("actors: %v", err)
		}
	}})}
	if err := register(sv.yard.world); err != nil {
		return nil, err
	}
	var err error
	if sv.turns, err = newTurns(problem); err != nil {
		return nil, err
	}
	sv.driver, err = driver.Listen("127.0.0.1:0", driver.Config{
		Link: l.link, Checksum: l.checksum, MaxConns: 1024, Timeout: timeout, Clock: s.clock,
		ReorderWindow: l.reorder, Redundancy: netconn.Redundancy{Copies: l.copies, Adaptive: true},
		Channels: sv.types(), Server: control.ServerConfig{Map: "yard"}, Joined: sv.joined, Closed: sv.closed,
	})
	return sv, err
}

// types is all channels, on a server.
func (sv *server) types() []channel.Type {
	accept := func(f func(s *session, ch *channel.Channel) channel.Handler) func(*channel.Channel) channel.Handler {
		return func(ch *channel.Channel) channel.Handler {
			s, _ := driver.ConnOf(ch).User.(*session)
			if s == nil {
				return nil
			}
			return f(s, ch)
		}
	}
	list := append(types(), sv.echoes.listener.Type())
	list[0].Accept = accept(func(s *session, _ *channel.Channel) channel.Handler { return s.talk })
	for mode := range messageName {
		list[1+mode].Accept = accept(func(s *session, _ *channel.Channel) channel.Handler { return s.talk.messages[mode] })
	}
	list[4].Accept = accept(func(s *session, _ *channel.Channel) channel.Handler { return s.talk.blocks })
	list[5].Accept = accept(func(s *session, _ *channel.Channel) channel.Handler {
		if s.seat < 0 {
			return nil
		}
		return s.down
	})
	return append(list, sv.yard.world.ChannelTypes()...)
}

// types is the channels that clients open, without streams.
func types() []channel.Type {
	list := []channel.Type{{Name: numbersName, ClientOpen: true}}
	for _, n := range messageName {
		list = append(list, channel.Type{Name: n, ClientOpen: true})
	}
	return append(list, channel.Type{Name: blocksName, ClientOpen: true}, channel.Type{Name: turnsName, ClientOpen: true})
}

func (sv *server) joined(c *driver.Conn) {
	cl := sv.soak.byName[c.Login().URL]
	if cl == nil || cl.session != nil {
		return // it left before it was in; its login came late
	}
	s := &session{client: cl, conn: c, seat: sv.turns.seat(), down: new(lockstep.OnChannel)}
	problem := func(format string, args ...any) {
		sv.soak.problem("%s server, of %s: %s", sv.name, cl, fmt.Sprintf(format, args...))
	}
	s.talk = newTalk(2*cl.id+1, 2*cl.id, rand.New(rand.NewPCG(sv.soak.o.seed, cl.id)), problem)
	s.pawn = &pawn{Name: cl.name, Pos: sv.yard.place(), problem: problem}
	s.peer = sv.yard.world.AddConn(c)
	s.pawn.SetOwner(s.peer)
	s.pawn.SetAlwaysRelevant(true)
	if err := sv.yard.world.Spawn(s.pawn); err != nil {
		problem("spawn: %v", err)
	}
	sv.yard.pawns = append(sv.yard.pawns, s.pawn)
	if s.seat >= 0 {
		sv.turns.sessions++
		s.number = sv.turns.sessions
		s.down.Received = func(p []byte) {
			if err := sv.turns.host.Receive(sv.driver.Time(sv.now), s.seat, p); err != nil && err != lockstep.ErrSession {
				problem("turns: %v", err)
			}
		}
		if err := sv.turns.host.Connect(s.seat, s.down); err != nil {
			problem("turns: %v", err)
		}
	}
	c.User, cl.session = s, s
	sv.sessions = append(sv.sessions, s)
}

func (sv *server) closed(c *driver.Conn, r netconn.CloseResult) {
	s, _ := c.User.(*session)
	if s == nil {
		return
	}
	sv.ends[r.Code]++
	s.result = &r
	s.client.path.probes += c.Stats().Packets.SizeProbes
	if why := s.client.unexpected(r, true); why != "" {
		sv.soak.problem("%s server: the connection of %s ended: %v; %s", sv.name, s.client, r, why)
	}
	sv.yard.world.RemoveConn(s.peer)
	sv.yard.pawns = slices.DeleteFunc(sv.yard.pawns, func(p *pawn) bool { return p == s.pawn })
	if err := sv.yard.world.Destroy(s.pawn); err != nil {
		sv.soak.problem("destroy: %v", err)
	}
	s.down.Received, s.pawn.problem = nil, nil // the host and the world may keep these for a while
	sv.turns.leave(sv.driver.Time(sv.now), s.seat)
	sv.sessions = slices.DeleteFunc(sv.sessions, func(other *session) bool { return other == s })
}

// tick is a server's frame.
func (sv *server) tick(now time.Time) error {
	sv.now = now
	sv.driver.TickDispatch(now)
	at := sv.driver.Time(now)
	sv.yard.step(sv.soak.problem)
	for _, s := range sv.sessions {
		if s.client.state == playing {
			calls(sv.rng, &s.pawn.answers, func(n uint32) error { return answer.Call(s.pawn, n) }, s.talk.problem)
		}
	}
	sv.yard.world.Step(at) // before blocks, which take all that is left
	for _, s := range sv.sessions {
		quiet := s.client.state != playing
		s.talk.step(quiet, func(m *message.Attached) { m.Tick(at) })
	}
	sv.turns.step(at)
	sv.driver.TickFlush(now)
	return sv.driver.Err()
}
