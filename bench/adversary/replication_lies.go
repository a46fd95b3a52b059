package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func init() {
	register(
		attack{area: "replication", name: "another class", promise: "a server that opens actors again as other classes overwrites nothing", bound: none("actors harmed"), run: anotherClass},
		attack{area: "replication", name: "second schema", promise: "a server that describes its classes twice stops nothing that came before", bound: none("updates lost"), run: secondSchema},
		attack{area: "replication", name: "calls of nothing", promise: "a client that calls what no class has loses its connection, and no more", bound: none("connections kept"), run: callsOfNothing},
		attack{area: "replication", name: "call flood", promise: "calls over their rate don't run, and who floods is ended", bound: atMost(20, "calls run"), run: callFlood},
		attack{area: "replication", name: "closed channels", promise: "a client that closes a channel of the server's loses its connection", bound: none("connections kept"), run: closedChannels},
		attack{area: "replication", name: "lying recordings", promise: "a recording with right checksums and wrong frames is an error, and overwrites nothing", bound: none("actors harmed"), run: lyingRecordings},
		attack{area: "replication", name: "idle values", promise: "what changes after any number of idle Steps arrives", bound: none("pauses with stale values"), run: idleValues},
		attack{area: "replication", name: "idle moves", promise: "and moves go on after any time without one", bound: none("pauses with refused moves"), run: idleMoves},
	)
}

// pebble and boulder are a small class and a large one, with memory behind their fields that nothing may write.
type pebble struct {
	actorrep.Base
	N     uint8 `net:""`
	Guard [40]uint64
}

type boulder struct {
	actorrep.Base
	Words [20]uint64 `net:""`
	Text  string     `net:""`
	List  []string   `net:""`
	Guard [40]uint64
}

var throw = actorrep.ServerRPC(func(c actorrep.Call, p *pebble, _ [3]uint8) error {
	c.Peer.User = 1 + c.Peer.User.(int)
	return nil
}, actorrep.Reliable, actorrep.RateLimit(2, 5))

func registerStones(w *actorrep.World) (*actorrep.World, error) {
	if err := w.Register("pebble", (*pebble)(nil), actorrep.RPCs{"Throw": throw}); err != nil {
		return nil, err
	}
	if err := w.Register("boulder", (*boulder)(nil)); err != nil {
		return nil, err
	}
	if err := w.Register("freight", (*freight)(nil)); err != nil {
		return nil, err
	}
	return w, w.Register("runner", (*runner)(nil), actorrep.RPCs{"Check": check, "Press": press})
}

// harmed is how many actors of a client's world have memory that no server may write.
func harmed(w *actorrep.World) (n int) {
	for a := range w.All {
		switch a := a.(type) {
		case *pebble:
			if a.Guard != [40]uint64{} {
				n++
			}
		case *boulder:
			if a.Guard != [40]uint64{} {
				n++
			}
		}
	}
	return n
}

// stones is a server's world and a client's over a rig; accept takes the channels of actors in the client's place, when given.
type stones struct {
	*rig
	server, client *actorrep.World
	peer           *actorrep.Peer
	failed         int // times the client was told
}

func newStones(e *env, accept func(*channel.Channel) channel.Handler) (s *stones, err error) {
	return newStonesOver(e, netsim.Settings{}, actorrep.Config{}, accept)
}

// newStonesOver is newStones over a network, with settings of the server's world.
func newStonesOver(e *env, set netsim.Settings, cfg actorrep.Config, accept func(*channel.Channel) channel.Handler) (s *stones, err error) {
	s = &stones{}
	if s.server, err = registerStones(actorrep.NewServer(cfg)); err != nil {
		return nil, err
	}
	if s.client, err = registerStones(actorrep.NewClient(actorrep.Config{Failed: func(error) { s.failed++ }})); err != nil {
		return nil, err
	}
	s.rig, err = newRig(e, set, func(i int, c *netconn.Config) {
		types := [2]*actorrep.World{s.client, s.server}[i].ChannelTypes()
		if i == 0 && accept != nil {
			types[0].Accept = accept // it answers for its classes as it should
		}
		c.NetSpeed = 1 << 20
		c.Channels = append(c.Channels[:1], types...)
	})
	if err != nil {
		return nil, err
	}
	s.peer = s.server.AddConn(s.conns[1])
	s.peer.User = 0
	return s, s.hello()
}

func (s *stones) steps(n int) {
	for range n {
		s.step(func() {
			s.client.Step(s.now)
			s.server.Step(s.now)
		})
	}
}

// opening is an opening bunch of an actor, with values that are all ones.
func opening(e *env, guid, class, frame uint32, again bool, units int) *bunch.Out {
	w := bitio.NewWriter(make([]byte, 512))
	w.WriteBool(false) // no more bunches of it follow
	w.WriteIntPacked(guid)
	w.WriteIntPacked(0)
	w.WriteIntPacked(class)
	w.WriteUint32(frame)
	w.WriteBits(0, 2)
	w.WriteBool(again)
	w.WriteBits(e.rng.Uint64()|1, units)
	for w.Free() > 100 {
		w.WriteIntPacked64(e.rng.Uint64())
	}
	return &bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}
}

func anotherClass(e *env) figure {
	bad, refused := 0, 0
	for range e.pick(20, 400) {
		s, err := newStones(e, nil)
		if err != nil {
			return broken("%v", err)
		}
		for range 10 {
			if err := s.server.Spawn(&pebble{N: 7}); err != nil {
				return broken("%v", err)
			}
		}
		s.steps(10)
		for range 20 {
			ch, err := s.conns[1].Open(bunch.Actor, channel.Nop{})
			if err != nil {
				return broken("%v", err)
			}
			guid, class := 2+2*e.rng.Uint32N(12), []uint32{0, 1, 2, 9}[e.rng.IntN(4)]
			if _, err = ch.SendBunch(opening(e, guid, class, s.server.Frame(), e.rng.IntN(4) > 0, map[uint32]int{0: 1, 1: 3, 2: 60, 9: 64}[class])); err != nil {
				return broken("%v", err)
			}
			s.steps(1)
		}
		s.steps(10)
		bad += harmed(s.client)
		refused += s.failed
		for a := range s.client.All {
			if p, is := a.(*pebble); is && p.ClassName() != "pebble" {
				bad++
			}
		}
	}
	if refused == 0 {
		return broken("nothing was refused")
	}
	e.notef("%d openings refused", refused)
	return figure{value: float64(bad)}
}

func secondSchema(e *env) figure {
	s, err := newStones(e, nil)
	if err != nil {
		return broken("%v", err)
	}
	a := &boulder{}
	if err := s.server.Spawn(a); err != nil {
		return broken("%v", err)
	}
	s.steps(10)
	lost := 0
	for i := range 50 {
		ch, err := s.conns[1].Open(actorrep.ReplicationName, channel.Nop{})
		if err != nil {
			return broken("%v", err)
		}
		w := bitio.NewWriter(make([]byte, 64))
		w.WriteBits(0, 2) // the classes: none
		w.WriteIntPacked(0)
		if _, err := ch.SendBunch(&bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}); err != nil {
			return broken("%v", err)
		}
		s.steps(5)
		a.Words[19] = uint64(i + 1)
		s.steps(5)
		if m, _ := s.client.Find(a.GUID()).(*boulder); m == nil || m.Words != a.Words {
			lost++
		}
	}
	return figure{value: float64(lost)}
}

// callers is a stones whose client is the attack's: it has the channels of the actors.
func callers(e *env) (s *stones, actors []*channel.Channel, err error) {
	s, err = newStones(e, func(ch *channel.Channel) channel.Handler {
		actors = append(actors, ch)
		return channel.Nop{}
	})
	if err != nil {
		return nil, nil, err
	}
	p := &pebble{}
	p.SetOwner(s.peer)
	if err = s.server.Spawn(p); err != nil {
		return nil, nil, err
	}
	s.steps(20)
	if len(actors) != 1 {
		err = fmt.Errorf("%d channels came", len(actors))
	}
	return s, actors, err
}

// callBunch is a call of a procedure with parameters of so many bits.
func callBunch(proc, says uint32, bits int) *bunch.Out {
	w := bitio.NewWriter(make([]byte, 64))
	w.WriteBits(1, 2) // a call
	w.WriteIntPacked(proc)
	w.WriteIntPacked(says)
	w.WriteBits(0, bits)
	return &bunch.Out{Data: w.Bytes(), Bits: w.Len(), Reliable: true}
}

func callsOfNothing(e *env) figure {
	kept := 0
	for _, c := range []struct{ proc, says uint32 }{{1, 24}, {255, 24}, {256, 24}, {1 << 31, 24}, {1<<32 - 1, 24}, {0, 1 << 31}, {0, 1<<32 - 1}, {0, 25}, {0, 23}, {0, 0}} {
		s, actors, err := callers(e)
		if err != nil {
			return broken("%v", err)
		}
		if _, err := actors[0].SendBunch(callBunch(c.proc, c.says, 24)); err != nil {
			return broken("%v", err)
		}
		s.steps(5)
		if s.results[1] == nil {
			e.notef("kept after procedure %d of %d bits", c.proc, c.says)
			kept++
		}
	}
	return figure{value: float64(kept)}
}

func callFlood(e *env) figure {
	s, actors, err := callers(e)
	if err != nil {
		return broken("%v", err)
	}
	for range 60 * 60 {
		for range 20 {
			if _, err := actors[0].SendBunch(callBunch(0, 24, 24)); err != nil {
				break
			}
		}
		s.steps(1)
		if s.over() {
			break
		}
	}
	if s.results[1] == nil {
		return broken("the connection stands")
	}
	e.notef("ended after %v with %d calls run", s.now, s.peer.User)
	return figure{value: float64(s.peer.User.(int))}
}

// closedChannels has a client close the channel of an actor, or the one by which all values come.
func closedChannels(e *env) figure {
	kept := 0
	for _, name := range []bunch.Name{bunch.Actor, actorrep.ReplicationName} {
		w, err := registerStones(actorrep.NewServer(actorrep.Config{}))
		if err != nil {
			return broken("%v", err)
		}
		l, err := newLiar(nil, func(c *netconn.Config) { c.Channels = append(c.Channels[:1], w.ChannelTypes()...) })
		if err != nil {
			return broken("%v", err)
		}
		p, a := w.AddConn(l.victim), &pebble{}
		if err := errors.Join(l.openControl(), w.Spawn(a)); err != nil {
			return broken("%v", err)
		}
		steps := func() {
			for range 10 {
				a.N++
				w.Step(l.now)
				l.pass(tick)
				if l.over() || l.tell() != nil {
					return
				}
			}
		}
		index := func(of bunch.Name) (at uint32) {
			for ch := range l.victim.Table().All {
				if ch.Name() == of {
					at = ch.Index()
				}
			}
			return at
		}
		steps()
		answer := bitio.NewWriter(make([]byte, 64))
		answer.WriteIntPacked(4)
		answer.WriteBits(1<<4-1, 4) // it has all classes
		answer.WriteIntPacked(0)
		if err := l.tell(l.reliable(index(actorrep.ReplicationName), actorrep.ReplicationName, answer.Bytes())); err != nil {
			return broken("%v", err)
		}
		if steps(); !p.Has(a) || l.over() {
			return broken("the actor never came")
		}
		end := l.reliable(index(name), name, nil)
		end.Close = true
		_ = l.tell(end)
		if steps(); !l.over() {
			e.notef("kept after %v was closed", name)
			kept++
		}
	}
	return figure{value: float64(kept)}
}

// lyingRecordings changes frames of an honest recording, and makes its checksums right again.
func lyingRecordings(e *env) figure {
	var file bytes.Buffer
	w, err := registerStones(actorrep.NewServer(actorrep.Config{}))
	if err != nil {
		return broken("%v", err)
	}
	rec, err := replay.Record(w, &file, replay.Config{Rate: -1, Checkpoints: time.Second})
	if err != nil {
		return broken("%v", err)
	}
	for i := range 90 {
		a, b := &pebble{N: uint8(i)}, &boulder{Text: "text", List: []string{"a", "b"}}
		b.Words[i%20] = 1 << 60
		if err := errors.Join(w.Spawn(a), w.Spawn(b)); err != nil {
			return broken("%v", err)
		}
		if i > 30 {
			_ = a.SetDormant(true)
		}
		w.Step(time.Duration(i) * time.Second / 30)
	}
	if err := rec.Close(); err != nil {
		return broken("%v", err)
	}
	bad, refused := 0, 0
	for range e.pick(200, 5000) {
		b := bytes.Clone(file.Bytes())
		spoilBlocks(e, b)
		r, err := replay.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			refused++
			continue
		}
		c, err := registerStones(actorrep.NewClient(actorrep.Config{}))
		if err != nil {
			return broken("%v", err)
		}
		if r.Play(c) != nil {
			refused++
			continue
		}
		for _, at := range []time.Duration{time.Second, 0, 3 * time.Second, 2 * time.Second} {
			if r.Seek(at) != nil {
				refused++
			}
			bad += harmed(c)
		}
	}
	e.notef("%d refused", refused)
	return figure{value: float64(bad)}
}

// spoilBlocks turns bits in the bodies of a recording's blocks.
func spoilBlocks(e *env, b []byte) {
	const fileHead, blockHead = 12, 32
	table := crc32.MakeTable(crc32.Castagnoli)
	for at := fileHead; at+blockHead <= len(b); {
		head := b[at : at+blockHead]
		n := int(binary.LittleEndian.Uint32(head[8:]))
		if at+blockHead+n > len(b) {
			return
		}
		body := b[at+blockHead : at+blockHead+n]
		if head[12] == 2 && n > 0 { // frames
			for range 1 + e.rng.IntN(4) {
				body[e.rng.IntN(n)] ^= 1 << e.rng.IntN(8)
			}
		}
		binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(body, table))
		binary.LittleEndian.PutUint32(head, crc32.Checksum(head[4:], table))
		at += blockHead + n
	}
}

func idleValues(e *env) figure {
	s, err := newStones(e, nil)
	if err != nil {
		return broken("%v", err)
	}
	a := &pebble{}
	if err := s.server.Spawn(a); err != nil {
		return broken("%v", err)
	}
	s.steps(20)
	stale := 0
	pauses := []int{1000, 8190, 16380, 16390, 32760, 32768, 32780, 65530, 65540, 200_000}
	if !e.quick {
		pauses = append(pauses, 72*3600*60) // 72 h of Steps
	}
	for _, n := range pauses {
		for range n { // without the network, which knows no Steps
			s.server.Step(s.now)
		}
		a.N++
		s.steps(10)
		if m, _ := s.client.Find(a.GUID()).(*pebble); m == nil || m.N != a.N || s.server.Explain(s.peer, a).Reason != actorrep.ReasonUpToDate {
			e.notef("stale after %d Steps", n)
			stale++
		}
	}
	return figure{value: float64(stale)}
}

func idleMoves(e *env) figure {
	model := prediction.Model[int64, int8]{
		Simulate:   func(s *int64, in int8, dt time.Duration) { *s += int64(in) * int64(dt) },
		Distance:   func(a, b *int64) float64 { return float64(max(*a-*b, *b-*a)) },
		WriteInput: func(w *bitio.Writer, in *int8) { w.WriteUint8(uint8(*in)) },
		ReadInput:  func(r *bitio.Reader, in *int8) { *in = int8(r.ReadUint8()) },
		WriteState: func(w *bitio.Writer, s *int64) { w.WriteUint64(uint64(*s)) },
		ReadState:  func(r *bitio.Reader, s *int64) { *s = int64(r.ReadUint64()) },
	}
	refused := 0
	pauses := []time.Duration{time.Minute, 9 * time.Minute, 18 * time.Minute, 35 * time.Minute, 36 * time.Minute, 72 * time.Minute, 72 * time.Hour, 2000 * time.Hour}
	for _, lost := range []bool{false, true} {
		for _, pause := range pauses {
			c, err := prediction.NewClient(prediction.ClientConfig[int64, int8]{Model: model}, 0, 0)
			if err != nil {
				return broken("%v", err)
			}
			s, err := prediction.NewServer(prediction.ServerConfig[int64, int8]{Model: model}, 0, 0)
			if err != nil {
				return broken("%v", err)
			}
			now := time.Duration(0)
			play := func(n int, lose bool) {
				for range n {
					now += tick
					c.Move(now, 1)
					for _, up := range []bool{true, false} {
						w := bitio.NewWriter(make([]byte, 512))
						var ok bool
						if up {
							ok, err = c.Send(now, w)
						} else {
							s.Tick(now)
							ok, err = s.Reply(now, w)
						}
						if r := bitio.NewReader(w.Bytes(), w.Len()); ok && !lose && up {
							_ = s.Receive(now, r) // counted
						} else if ok && !lose {
							_ = c.Receive(now, r)
						}
					}
				}
			}
			play(60, false)
			play(3, lost)
			now += pause
			play(120, false)
			if s.Counters.Malformed+c.Counters.Malformed > 0 || s.Timestamp() != c.Timestamp() || *s.State() != *c.State() || err != nil {
				e.notef("refused after %v", pause)
				refused++
			}
		}
	}
	return figure{value: float64(refused)}
}
