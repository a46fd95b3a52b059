package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

const (
	answerFor = 5 * time.Second // an operation without an answer for so long is unknown
	presentIn = 4 * time.Second // who hasn't its walker so long after it has dialed asks for another token
	askAgain  = 200 * time.Millisecond
)

// bot is a player.
type bot struct {
	g      *mesher
	player uint32
	pass   string // of its login
	rng    *rand.Rand
	mesh   *mesh.Client
	ends   map[string]*end
	ticket []byte // with which it has dialed last, when it travelled
	askAt  time.Time
	goAt   time.Time
	lostAt time.Time // its server was killed
	logins int

	trade, read *operation // under way
	tradeAt     time.Time  // the next
	readAt      time.Time
	number      uint64 // of its last operation
	readNumber  uint64
	since       int // lines of its own account that it has read
	lastRead    bool
}

// end is a connection with a server.
type end struct {
	driver *driver.Driver
	world  *actorrep.World
	ch     *channel.Channel
	joined bool
	closed bool
}

func newBot(g *mesher, player uint32) *bot {
	b := &bot{g: g, player: player, rng: rand.New(rand.NewPCG(uint64(player), g.seed)), ends: map[string]*end{}}
	b.pass = g.login(player)
	b.logins++
	return b
}

// present reports whether the bot is connected with the server that plays it, and sees its walker.
func (b *bot) present() bool {
	if b.mesh == nil || b.mesh.Lost() {
		return false
	}
	e := b.ends[b.mesh.Server()]
	return e != nil && e.joined && !e.closed && e.world.Find(playerActor(b.player)) != nil && b.g.alive(b.mesh.Server())
}

// connects reports whether the bot has a server, and dials one if not.
func (b *bot) connects(now time.Time) bool {
	if b.mesh != nil && !b.mesh.Lost() {
		if b.present() {
			b.askAt = now.Add(presentIn)
			if !b.lostAt.IsZero() {
				b.g.returned = append(b.g.returned, now.Sub(b.lostAt))
				b.lostAt = time.Time{}
			}
		}
		if now.Before(b.askAt) {
			return true
		}
	}
	if b.mesh != nil { // nobody plays it any more: its messages are lost
		b.closeAll()
		b.give(now, &b.trade)
		b.give(now, &b.read)
		b.mesh, b.askAt = nil, time.Time{}
	}
	if now.Before(b.askAt) {
		return false
	}
	b.askAt = now.Add(askAgain)
	id, token, there := b.g.token(b.pass)
	if !there {
		return false
	}
	var err error
	b.mesh, err = mesh.NewClient(mesh.ClientConfig{Session: b.rng.Uint64() | 1, Server: id, Message: func(m []byte) { b.answered(m) }, Send: func(to string, packet []byte) {
		if e := b.ends[to]; e != nil {
			mesh.SendOn(e.ch, packet)
		}
	}})
	b.g.fail(err)
	b.askAt = now.Add(presentIn)
	b.dial(id, token)
	return true
}

func (b *bot) closeAll() {
	for id, e := range b.ends {
		_ = e.driver.Close()
		delete(b.ends, id)
	}
}

func (b *bot) dial(id string, token []byte) {
	e := &end{world: actorrep.NewClient(actorrep.Config{Failed: func(error) {}})} // of a connection whose server was killed
	b.g.fail(register(e.world))
	types := append(e.world.ChannelTypes(), mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
		e.ch = ch
		return func(packet []byte) error { return b.mesh.Receive(id, packet) }
	}))
	var err error
	e.driver, err = driver.Dial("127.0.0.1:1", driver.Config{Timeout: quietFor, Channels: types, Link: driver.Netcode{Token: append([]byte(nil), token...)}, // the token says where
		Joined: func(*driver.Conn) { e.joined = true }, Closed: func(*driver.Conn, netconn.CloseResult) { e.closed = true }})
	if err != nil {
		b.g.fail(err)
		return
	}
	b.ends[id] = e
}

func (b *bot) tick(now time.Time) {
	b.late(now, &b.trade)
	b.late(now, &b.read)
	if !b.connects(now) {
		return
	}
	if next, ticket, goes := b.mesh.Next(); goes && b.ends[next] == nil && !bytes.Equal(ticket, b.ticket) { // a ticket is for one connection
		b.ticket = bytes.Clone(ticket)
		b.dial(next, ticket)
	}
	for _, e := range b.ends {
		e.driver.TickDispatch(now)
		e.world.Step(e.driver.Time(now))
		b.look(e)
	}
	if b.present() {
		b.want(now)
	}
	b.mesh.Step(now.Sub(b.g.began))
	next, _, goes := b.mesh.Next()
	for id, e := range b.ends {
		e.driver.TickFlush(now)
		if e.closed {
			b.mesh.Closed(id)
		}
		if e.closed || id != b.mesh.Server() && !(goes && id == next) {
			_ = e.driver.Close()
			delete(b.ends, id)
		}
	}
}

// look notes by whom what the bot sees was changed.
func (b *bot) look(e *end) {
	for a := range e.world.All {
		if w, is := a.(*Walker); is && w.Who != 0 {
			b.g.truth.seen(uint32(w.GUID()), w.Who)
		}
	}
}

// want walks, trades and reads.
func (b *bot) want(now time.Time) {
	if now.After(b.goAt) {
		b.goAt = now.Add(2*time.Second + time.Duration(b.rng.Int64N(int64(4*time.Second))))
		x, y := b.g.place(b.rng)
		if c := b.g.crowd; c != nil && b.player%4 > 0 {
			x, y = c.place(b.rng)
		}
		m := binary.AppendVarint(binary.AppendVarint([]byte{'w'}, int64(x)), int64(y))
		_ = b.mesh.Send(m) // when too much waits, it goes there later
	}
	players := uint32(len(b.g.bots))
	if b.trade == nil && now.After(b.tradeAt) && !b.g.calm && players > 1 {
		seller := 1 + b.rng.Uint32N(players-1)
		if seller >= b.player {
			seller++
		}
		b.number++
		o := &operation{Bot: b.player, Trade: uint64(b.player)<<32 | b.number, Buyer: b.player, Seller: seller, Price: 1 + b.rng.IntN(20), Invoked: now.Sub(b.g.began)}
		m := binary.AppendUvarint(binary.AppendUvarint([]byte{'b'}, o.Trade), uint64(seller))
		if b.mesh.Send(binary.AppendVarint(m, int64(o.Price))) == nil {
			b.trade = o
		}
	}
	if b.read == nil && now.After(b.readAt) && !(b.g.calm && b.lastRead) {
		account := b.player
		if other := b.other(); !b.g.calm && other > 0 && b.rng.IntN(3) == 0 {
			account = other
		}
		since := b.since
		if account != b.player {
			since = b.g.known[account]
		}
		b.number++
		o := &operation{Bot: b.player, Account: account, Invoked: now.Sub(b.g.began), Last: b.g.settled}
		m := binary.AppendUvarint(binary.AppendUvarint([]byte{'r'}, b.number), uint64(account))
		if b.mesh.Send(binary.AppendVarint(m, int64(since))) == nil {
			b.read, b.readNumber = o, b.number
		}
	}
}

// other is another player that the bot sees; 0: there is none.
func (b *bot) other() (player uint32) {
	n := 0
	for a := range b.ends[b.mesh.Server()].world.All {
		if w, is := a.(*Walker); is && w.Player != 0 && w.Player != b.player {
			if n++; b.rng.IntN(n) == 0 {
				player = w.Player
			}
		}
	}
	return player
}

// answered takes an answer. One that comes when its operation is unknown already says nothing more.
func (b *bot) answered(m []byte) {
	in := words{b: m}
	op := in.unsigned()
	if in.bad || len(in.b) == 0 {
		b.g.fail(errShort)
		return
	}
	r, rest := failed, in.b[1:]
	if in.b[0] == 1 {
		r = ok
	}
	now := time.Now()
	switch {
	case b.trade != nil && b.trade.Trade == op:
		switch {
		case r == ok && len(rest) == 1:
			b.trade.Outcome = kind(rest[0])
		case r == failed:
			b.trade.Why = string(rest)
		}
		b.end(now, &b.trade, r)
		b.tradeAt = now.Add(100*time.Millisecond + time.Duration(b.rng.Int64N(int64(200*time.Millisecond))))
	case b.read != nil && op == b.readNumber:
		if r == ok {
			p, err := readPage(rest)
			b.g.fail(err)
			b.read.Page = p
			b.learn(b.read)
		} else {
			b.read.Why = string(rest)
		}
		b.end(now, &b.read, r)
		b.readAt = now.Add(100*time.Millisecond + time.Duration(b.rng.Int64N(int64(200*time.Millisecond))))
	}
}

// learn notes how far an account was read.
func (b *bot) learn(o *operation) {
	next := o.Page.First + len(o.Page.Lines)
	b.g.known[o.Account] = max(b.g.known[o.Account], next)
	if o.Account != b.player {
		return
	}
	b.since = max(b.since, next)
	if o.Last = o.Last && next == o.Page.N; o.Last {
		b.lastRead = true
	}
}

// late gives up an operation that wasn't answered.
func (b *bot) late(now time.Time, o **operation) {
	if *o != nil && now.Sub(b.g.began)-(*o).Invoked > answerFor {
		b.give(now, o)
	}
}

func (b *bot) give(now time.Time, o **operation) {
	if *o != nil {
		(*o).Why = "no answer"
		b.end(now, o, unknown)
	}
}

// end ends an operation, which goes into the history.
func (b *bot) end(now time.Time, o **operation, r result) {
	(*o).Result, (*o).Ended = r, now.Sub(b.g.began)
	b.g.history.add(**o)
	*o = nil
}

func (b *bot) String() string {
	at := "nowhere"
	if b.mesh != nil {
		at = b.mesh.Server()
	}
	return fmt.Sprintf("player %d at %s", b.player, at)
}
