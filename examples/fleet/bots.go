package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// Count is a bot's number, which its server sends back. Hello says which server that is. Move asks the bot to go to another one.
type (
	Count struct{ N uint32 }
	Hello struct{ ID, Build string }
	Move  struct{}
)

// Serialize is Count's.
func (m *Count) Serialize(s *message.Stream) { s.Uint32(&m.N) }

// Serialize is Hello's.
func (m *Hello) Serialize(s *message.Stream) { s.String(&m.ID, 128); s.String(&m.Build, 32) }

// Serialize is Move's.
func (*Move) Serialize(*message.Stream) {}

var gameName = bunch.Name{Index: 301}

// protocol is what is said. Each goroutine has its own: a Registry keeps memory for reuse, without locks.
type protocol struct {
	kinds              message.Registry
	count, hello, move *message.Kind
}

func newProtocol() *protocol {
	p := &protocol{}
	p.count = p.kinds.Add("Count", func() message.Message { return new(Count) })
	p.hello = p.kinds.Add("Hello", func() message.Message { return new(Hello) })
	p.move = p.kinds.Add("Move", func() message.Message { return new(Move) })
	return p
}

func (p *protocol) queue() *message.Attached {
	return message.Attach(message.New(message.Config{Mode: message.Ordered, Kinds: &p.kinds}))
}

// player is a bot as its server sees it.
type player struct {
	queue        *message.Attached
	hello, moves bool // it was told
}

// echo is a server's game.
func (g *protocol) echo(players map[*driver.Conn]*player, d *driver.Driver, now time.Time, id, build string, draining bool) error {
	for _, p := range players {
		if !p.hello {
			p.hello = true
			if err := p.queue.Send(g.hello, &Hello{id, build}); err != nil {
				return err
			}
		}
		for m, kind := p.queue.Receive(); m != nil; m, kind = p.queue.Receive() {
			if c, ok := m.(*Count); ok {
				if err := p.queue.Send(g.count, &Count{c.N}); err != nil {
					return err
				}
			}
			kind.Free(m)
		}
		if draining && !p.moves {
			p.moves = true
			if err := p.queue.Send(g.move, &Move{}); err != nil {
				return err
			}
		}
		p.queue.Tick(d.Time(now))
	}
	return nil
}

// bots is all bots, in one goroutine.
type bots struct {
	w    *world
	list []*bot
}

// bot is a client that dials again when its server asks for it.
type bot struct {
	w      *world
	says   *protocol
	id     uint64
	client *session.Redialer
	ends   map[*driver.Driver]*end
	token  chan fetched // of the request under way; nil none
	ctx    context.Context
	cancel context.CancelFunc

	server, build string // that it is on
	on            *driver.Driver
	played        bool
	moves         int
	heard         time.Time
	longest       time.Duration
	dropped       bool
	why           error // why its last dial failed
	wrong         string
}

// end is a bot's side of one connection.
type end struct {
	queue     *message.Attached
	open      bool
	sent, got uint32
	next      time.Time
}

type fetched struct {
	token netcode.Token
	err   error
}

func newBots(w *world, n int) *bots {
	b := &bots{w: w}
	says := newProtocol()
	for i := range n {
		b.list = append(b.list, newBot(w, says, uint64(i+1)))
	}
	return b
}

func newBot(w *world, says *protocol, id uint64) *bot {
	b := &bot{w: w, says: says, id: id, ends: map[*driver.Driver]*end{}}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.client, _ = session.NewRedialer(session.RedialConfig{Dial: b.dial, Silence: time.Minute, Failed: func(why error) { b.why = why }}) // the settings are right
	return b
}

// dial begins a dial when there is a token.
func (b *bot) dial() (*driver.Driver, error) {
	if b.token == nil {
		b.token = make(chan fetched, 1)
		not := b.server
		go func(out chan<- fetched) {
			t, err := b.w.fetch(b.ctx, b.id, "1", not)
			out <- fetched{t, err}
		}(b.token)
	}
	select {
	case f := <-b.token:
		b.token = nil
		if f.err != nil {
			return nil, f.err
		}
		maps.DeleteFunc(b.ends, func(d *driver.Driver, _ *end) bool {
			select {
			case <-d.Done(): // a dial that the Redialer has ended before anybody answered: Closed wasn't called
				return true
			default:
				return false
			}
		})
		e := &end{queue: b.says.queue()}
		var d *driver.Driver
		d, err := driver.Dial("127.0.0.1:1", driver.Config{ // the token says where
			Link: driver.Netcode{ProtocolID: protocolID, Token: f.token},
			Channels: []channel.Type{{Name: gameName, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler {
				e.open = true
				return e.queue
			}}},
			Closed: func(*driver.Conn, netconn.CloseResult) { delete(b.ends, d) },
		})
		if err == nil {
			b.ends[d] = e
		}
		return d, err
	default:
		return nil, nil
	}
}

func (b *bots) tick(now time.Time) {
	for _, o := range b.list {
		o.tick(now)
	}
}

func (b *bot) tick(now time.Time) {
	b.client.TickDispatch(now)
	d := b.client.Driver()
	e := b.ends[d]
	if joined := e != nil && d.Server() != nil && d.Server().Joined(); b.played && !joined && !b.dropped {
		b.dropped = true
		fmt.Printf("bot %d has no connection after %d moves: %v\n", b.id, b.moves, b.why)
	}
	if e != nil && e.open {
		if b.on != d {
			if b.played {
				b.moves++
			}
			b.on, b.played = d, true
		}
		b.play(e, d, now)
	}
	b.client.TickFlush(now)
}

// play sends numbers, and takes them back in turn.
func (b *bot) play(e *end, d *driver.Driver, now time.Time) {
	if !now.Before(e.next) {
		e.next = now.Add(50 * time.Millisecond)
		if e.queue.Send(b.says.count, &Count{e.sent + 1}) == nil {
			e.sent++
		}
	}
	for m, kind := e.queue.Receive(); m != nil; m, kind = e.queue.Receive() {
		switch m := m.(type) {
		case *Hello:
			b.server, b.build = m.ID, m.Build
		case *Move:
			b.client.Redial() // make before break: the old server plays until the new one has us
		case *Count:
			if m.N != e.got+1 {
				b.wrong = fmt.Sprintf("echo %d after %d", m.N, e.got)
			}
			e.got = m.N
			if !b.heard.IsZero() {
				b.longest = max(b.longest, now.Sub(b.heard))
			}
			b.heard = now
		}
		kind.Free(m)
	}
	e.queue.Tick(d.Time(now))
}

// allPlay reports whether every bot has heard from its server.
func (b *bots) allPlay() bool {
	for _, o := range b.list {
		if e := o.ends[o.on]; e == nil || e.got == 0 {
			return false
		}
	}
	return true
}

func (b *bots) close() {
	for _, o := range b.list {
		o.cancel()
		_ = o.client.Close()
	}
}
