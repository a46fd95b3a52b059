package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair is two servers, a client, and what they have sent; the game is a player's number.
type pair struct {
	now     time.Duration
	servers [2]*Server
	client  *Client
	sent    []packetTo // between servers
	hold    bool       // nothing is delivered
	saved   int        // bytes of a state
	plays   [2]int     // times that it began
	told    []error
	got     []string // messages, of both servers together
}

type packetTo struct {
	from, to int
	b        []byte
}

type pairGame struct {
	*pair
	i int
}

func (g pairGame) Ticket(uint64) ([]byte, error) { return []byte("ticket"), nil }
func (g pairGame) Save(uint64) []byte            { return make([]byte, g.saved) }
func (g pairGame) Play(_ uint64, state []byte)   { g.plays[g.i]++ }
func (g pairGame) Moved(uint64)                  {}
func (g pairGame) Stays(_ uint64, err error)     { g.told = append(g.told, err) }
func (g pairGame) Message(_ uint64, m []byte)    { g.got = append(g.got, string(m)) }

// counted is a source of numbers that all differ.
type counted struct{ n byte }

func (r *counted) Read(b []byte) (int, error) {
	for i := range b {
		r.n++
		b[i] = r.n
	}
	return len(b), nil
}

func name(i int) string { return fmt.Sprintf("server%d", i) }

func newPair(t testing.TB) *pair {
	p := &pair{saved: 10}
	for i := range p.servers {
		var err error
		p.servers[i], err = NewServer(ServerConfig{ID: name(i), Game: pairGame{p, i}, Key: [32]byte{1}, Rand: &counted{},
			ToServer: func(id string, b []byte) { p.sent = append(p.sent, packetTo{i, 1 - i, slices.Clone(b)}) },
			ToClient: func(_ uint64, b []byte) {
				if err := p.client.Receive(name(i), slices.Clone(b)); err != nil {
					t.Error(err)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		p.servers[i].Connected(1)
		p.servers[i].Step(0)
	}
	var err error
	p.client, err = NewClient(ClientConfig{Session: 9, Server: name(0), Message: func([]byte) {}, Send: func(server string, b []byte) {
		for i, s := range p.servers {
			if name(i) == server {
				if err := s.ReceiveClient(1, slices.Clone(b)); err != nil {
					t.Error(err)
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err = p.servers[0].Enter(1); err != nil {
		t.Fatal(err)
	}
	return p
}

// step lets 20 ms pass.
func (p *pair) step(t testing.TB) {
	p.now += 20 * time.Millisecond
	if !p.hold {
		sent := p.sent
		p.sent = nil
		for _, s := range sent {
			if err := p.servers[s.to].Receive(name(s.from), s.b); err != nil {
				t.Error(err)
			}
		}
	}
	p.client.Step(p.now)
	for _, s := range p.servers {
		s.Step(p.now)
	}
}

// trip is three servers, a player's travels among them, and what the client has said on each connection.
type trip struct {
	servers [3]*Server
	now     time.Duration
}

type tripGame struct{ *trip }

func (tripGame) Ticket(uint64) ([]byte, error) { return []byte("ticket"), nil }
func (tripGame) Save(uint64) []byte            { return nil }
func (tripGame) Play(uint64, []byte)           {}
func (tripGame) Moved(uint64)                  {}
func (tripGame) Stays(uint64, error)           {}
func (tripGame) Message(uint64, []byte)        {}

// TestConnectionOfFormerTravel: a connection by which a client came here before, and that hasn't ended yet, isn't taken for its coming again, though the servers count travels each from 1. The player was given to this server then,
// and its client never heard of it.
func TestConnectionOfFormerTravel(t *testing.T) {
	for _, former := range []bool{false, true} {
		formerTravel(t, former)
	}
	p := newPair(t)
	for _, attempt := range []uint64{0, maxAttempt, math.MaxUint64} {
		require.ErrorIs(t, p.servers[1].receive(name(0), append(p.servers[0].head(expect, 1, attempt, 0), 1, 2, 3, 4, 5, 6, 7, 8)), errPacket)
	}
}

// formerTravel has a client come back to server 1 while its connection of before is there. former: the server that it comes from counts its own travels only, as a former release does.
func formerTravel(t *testing.T, former bool) {
	w := &trip{}
	for i := range w.servers {
		var err error
		w.servers[i], err = NewServer(ServerConfig{ID: name(i), Game: tripGame{w}, Key: [32]byte{1}, Rand: &counted{}, ToClient: func(uint64, []byte) {}, ToServer: func(id string, b []byte) {
			for _, s := range w.servers {
				if s.cfg.ID == id {
					require.NoError(t, s.Receive(name(i), slices.Clone(b)))
				}
			}
		}})
		require.NoError(t, err)
	}
	run := func() {
		for range 5 {
			w.now += 50 * time.Millisecond
			for _, s := range w.servers {
				s.Step(w.now)
			}
		}
	}
	comes := func(to int, attempt uint64) {
		b := binary.AppendUvarint(binary.LittleEndian.AppendUint64(nil, 9), attempt<<1)
		w.servers[to].Connected(1)
		require.NoError(t, w.servers[to].ReceiveClient(1, append(b, 1, 1, 0)))
		run()
	}
	run()
	require.NoError(t, w.servers[0].Enter(1))
	comes(0, 0)
	last := uint64(0)
	for i, to := range []int{1, 2, 1, 0} {
		from := []int{0, 1, 2, 1}[i]
		require.NoError(t, w.servers[from].Travel(1, name(to)))
		p := w.servers[from].players[1]
		require.Greater(t, p.attempt, last, "a packet that was late would be of this travel")
		if last = p.attempt; former && from == 2 {
			last, p.attempt = 1, 1
		}
		run()
		require.True(t, w.servers[from].Plays(1), "travel %d: its client hasn't come", i)
		require.False(t, w.servers[to].Plays(1), "travel %d", i)
		comes(to, w.servers[from].players[1].attempt)
		require.True(t, w.servers[to].Plays(1), "travel %d", i)
	}
}

// TestForged: a packet that was changed, cut, or given to another server or as another's is refused, whoever carries it; one that comes again does nothing.
func TestForged(t *testing.T) {
	p := newPair(t)
	var all []packetTo
	if err := p.servers[0].Travel(1, name(1)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p.step(t)
		all = append(all, p.sent...)
	}
	if !p.servers[1].Plays(1) || p.servers[0].Plays(1) || p.plays[1] != 1 || len(all) < 5 {
		t.Fatalf("it didn't move: %+v, %d packets", p.servers[0].Counters, len(all))
	}
	bad := uint64(0)
	refused := func(i int, from string, b []byte) {
		t.Helper()
		if bad++; !errors.Is(p.servers[i].Receive(from, b), ErrForged) {
			t.Fatal("a forged packet is taken")
		}
	}
	for _, s := range all {
		for range 20 {
			b := slices.Clone(s.b)
			b[rand.IntN(len(b))] ^= 1 << rand.IntN(8)
			refused(s.to, name(s.from), b)
		}
		refused(s.to, name(s.from), s.b[:rand.IntN(len(s.b))])
		refused(s.to, "server7", s.b)
		refused(s.from, name(s.to), s.b)
		refused(s.from, name(s.from), s.b)
	}
	if n := p.servers[0].Counters.Forged + p.servers[1].Counters.Forged; n != bad {
		t.Fatalf("%d are counted, of %d", n, bad)
	}
	for range 3 {
		for _, s := range all {
			_ = p.servers[s.to].Receive(name(s.from), s.b)
			p.step(t)
		}
	}
	for range 100 {
		p.step(t)
	}
	if !p.servers[1].Plays(1) || p.servers[0].Plays(1) || p.plays != [2]int{0, 1} || !p.servers[0].Idle() || !p.servers[1].Idle() {
		t.Fatalf("packets that came again have done something: %v, %+v, %+v", p.plays, p.servers[0].Counters, p.servers[1].Counters)
	}
}

// TestBounds: each bound, at it and one above: who asked is told.
func TestBounds(t *testing.T) {
	p := newPair(t)
	if err := p.client.Send(make([]byte, MaxMessage)); err != nil {
		t.Fatal(err)
	}
	if err := p.client.Send(make([]byte, MaxMessage+1)); !errors.Is(err, ErrTooLong) {
		t.Fatal(err)
	}
	for i := 1; i < MaxWaitingBytes/MaxMessage; i++ {
		if err := p.client.Send(make([]byte, MaxMessage)); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := p.client.Send([]byte{1}); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	for range 200 {
		p.step(t)
	}
	if len(p.got) != MaxWaitingBytes/MaxMessage {
		t.Fatalf("%d messages came", len(p.got))
	}
	for i := range MaxWaiting {
		if err := p.servers[0].Send(1, []byte{1}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := p.servers[0].Send(1, []byte{1}); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	for range 100 {
		p.step(t)
	}
	at := 0
	for _, size := range []int{MaxState, MaxState + 1} {
		p.saved = size
		for i := range MaxWaitingBytes / MaxMessage { // the largest packet
			if err := p.servers[at].Send(1, make([]byte, MaxMessage)); err != nil {
				t.Fatal(i, err)
			}
		}
		if err := p.servers[at].Travel(1, name(1-at)); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			p.step(t)
		}
		if size == MaxState {
			at = 1
		}
		if !p.servers[at].Plays(1) {
			t.Fatalf("a state of %d bytes: it isn't at %s: %v", size, name(at), p.told)
		}
	}
	if len(p.told) != 1 || !errors.Is(p.told[0], ErrTooLong) {
		t.Fatal(p.told)
	}
	if err := p.servers[at].Travel(1, name(at)); !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	if err := p.servers[1-at].Travel(1, name(at)); !errors.Is(err, ErrNotHere) {
		t.Fatal(err)
	}
	if err := p.servers[at].Enter(1); !errors.Is(err, ErrHere) {
		t.Fatal(err)
	}
	if _, err := NewServer(ServerConfig{ID: "a", Game: pairGame{p, 0}, ToServer: p.servers[0].cfg.ToServer, ToClient: p.servers[0].cfg.ToClient, Rand: &counted{}}); !errors.Is(err, ErrConfig) {
		t.Fatal(err, "a server without a key")
	}
}

// TestLyingClient: a client that says it is at the next server and isn't, by another session or another travel, stays; one that acks what was never sent is an error.
func TestLyingClient(t *testing.T) {
	p := newPair(t)
	p.step(t)
	if err := p.servers[0].Travel(1, name(1)); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		p.now += 20 * time.Millisecond
		for _, s := range p.sent {
			_ = p.servers[s.to].Receive(name(s.from), s.b)
		}
		p.sent = nil
		for attempt := range uint64(5) {
			if attempt == 1 {
				continue // the right one
			}
			c := Client{cfg: ClientConfig{Session: 9, Send: func(_ string, b []byte) { _ = p.servers[1].ReceiveClient(1, b) }}, next: 1, out: stream{first: 1}}
			c.send("", attempt<<1)
			c.send("", attempt<<1|1)
		}
		for _, s := range p.servers {
			s.cfg.ToClient = func(uint64, []byte) {}
			s.Step(p.now)
		}
	}
	if !p.servers[0].Plays(1) || p.servers[1].Plays(1) {
		t.Fatal("it has moved")
	}
	liar := Client{cfg: ClientConfig{Session: 9, Send: func(_ string, b []byte) {
		if p.servers[0].ReceiveClient(1, b) == nil {
			t.Error("it acks what was never sent")
		}
	}}, next: 2, out: stream{first: 1}}
	liar.send("", 1)
	if p.servers[0].Counters.Malformed != 1 {
		t.Fatal(p.servers[0].Counters)
	}
}

// TestLyingServer: a server that a client isn't sent to doesn't get it, whatever it says.
func TestLyingServer(t *testing.T) {
	p := newPair(t)
	p.step(t)
	b := append([]byte{flagPlays}, 99, 0)
	b = append(b, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0)
	if err := p.client.Receive("server7", b); err != nil || p.client.Server() != name(0) {
		t.Fatal(err, p.client.Server())
	}
	b[1] = 0 // an older epoch, of the right server
	if err := p.client.Receive(name(0), b); err != nil || p.client.Server() != name(0) {
		t.Fatal(err)
	}
	b[1], b[11] = 1, 77 // an ack of what was never sent
	if err := p.client.Receive(name(0), b); err == nil {
		t.Fatal("taken")
	}
}

// TestOldPackets: what an earlier stay of the player has left in the network begins nothing.
func TestOldPackets(t *testing.T) {
	p := newPair(t)
	for range 5 {
		p.step(t)
	}
	old := []byte{flagPlays | flagGo, 0, 5, 1, 'x', 1, 'y', 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0}
	if err := p.client.Receive(name(0), old); err != nil {
		t.Fatal(err)
	}
	if id, _, ok := p.client.Next(); ok {
		t.Fatalf("it goes to %q by an old packet", id)
	}
	old[1] = 1 // of this stay
	if err := p.client.Receive(name(0), old); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := p.client.Next(); !ok {
		t.Fatal("the packet is none")
	}
	p.hold = true
	b := p.servers[1].head(expect, 1, 3, 0)
	b = append(b, 9, 0, 0, 0, 0, 0, 0, 0)
	if err := p.servers[0].receive(name(1), b); err != nil || len(p.servers[0].arrivals) != 0 {
		t.Fatal("a player who plays here is expected", err)
	}
}

// TestLateNo: a server that was given a player can't have refused it.
func TestLateNo(t *testing.T) {
	p := newPair(t)
	p.step(t)
	if err := p.servers[0].Travel(1, name(1)); err != nil {
		t.Fatal(err)
	}
	for p.servers[0].Plays(1) {
		p.step(t)
	}
	pl := p.servers[0].players[1]
	if pl == nil {
		t.Fatal("it has moved already")
	}
	if err := p.servers[0].receive(name(1), p.servers[1].head(no, 1, pl.attempt, pl.travel.nonce)); err != nil || p.servers[0].Plays(1) {
		t.Fatal("two servers may play it", err)
	}
}

// TestNotThere: who stays because a travel has taken too long is told how far it came.
func TestNotThere(t *testing.T) {
	for want, trouble := range map[string]func(p *pair){
		`server "server1" hasn't answered`: func(p *pair) { p.hold = true },
		"hasn't sent anything":             func(p *pair) { p.servers[0].Connected(1); p.client.cfg.Send = func(string, []byte) {} },
		"hasn't said that it knows":        func(p *pair) { p.servers[0].cfg.ToClient = func(uint64, []byte) {} },
		`it knows that it shall go to "server1"`: func(p *pair) {
			send := p.client.cfg.Send
			p.client.cfg.Send = func(server string, b []byte) {
				if server == name(0) {
					send(server, b)
				}
			}
		},
	} {
		p := newPair(t)
		p.step(t)
		require.NoError(t, p.servers[0].Travel(1, name(1)))
		trouble(p)
		for range 550 {
			p.step(t)
		}
		require.Len(t, p.told, 1, want)
		require.ErrorIs(t, p.told[0], ErrNotThere)
		require.ErrorContains(t, p.told[0], want)
	}
}

// TestGoneStaysGone: what a server that is gone has sent arrives no more, however late, and nobody travels to it.
func TestGoneStaysGone(t *testing.T) {
	p := newPair(t)
	p.step(t)
	if err := p.servers[0].Travel(1, name(1)); err != nil {
		t.Fatal(err)
	}
	p.hold = true
	for range 5 {
		p.step(t)
	}
	p.servers[1].Gone(name(0))
	p.hold = false
	for range 100 {
		p.step(t)
	}
	if n := len(p.servers[1].arrivals); n != 0 || p.plays[1] != 0 {
		t.Fatalf("%d players arrive from a server that is gone, and it has played %d", n, p.plays[1])
	}
	q := newPair(t)
	q.servers[0].Gone(name(1))
	if err := q.servers[0].Travel(1, name(1)); !errors.Is(err, ErrGone) {
		t.Fatal(err)
	}
}

// FuzzPackets: whatever comes from servers with the key, clients and servers of clients, nothing breaks, and what is kept is bounded.
func FuzzPackets(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 3, 5, 5, 0, 2, 1, 1})
	f.Add([]byte{flagGo | flagPlays, 2, 1, 1, 'x', 1, 'y', 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPair(t)
		p.client.cfg.Send = func(string, []byte) {}
		for _, s := range p.servers {
			s.cfg.ToClient, s.cfg.ToServer, s.cfg.MaxArrivals = func(uint64, []byte) {}, func(string, []byte) {}, 3
		}
		if err := p.servers[0].Travel(1, name(1)); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			_ = p.servers[i%2].receive(name(1-i%2), b)
			_ = p.servers[i%2].ReceiveClient(1, b)
			_ = p.client.Receive(name(0), b)
			_ = p.client.Receive(p.client.to.id, b)
			if len(b) > 0 {
				b = append(b[1:], b[0])
			}
			p.step(t)
		}
		for _, s := range p.servers {
			if len(s.arrivals) > 3 || len(s.players) > 4 {
				t.Fatalf("%d arrivals, %d players", len(s.arrivals), len(s.players))
			}
		}
	})
}

// TestTicketOnce: a ticket goes to the server that asked for it until that one has it, and not with each packet of the travel.
func TestTicketOnce(t *testing.T) {
	p := newPair(t)
	for i := range p.servers {
		p.servers[i].cfg.Game = longTicket{pairGame{p, i}}
	}
	require.NoError(t, p.servers[0].Travel(1, name(1)))
	bytes := 0
	for range 100 { // 5 s, in which the client doesn't come
		p.now += 50 * time.Millisecond
		for _, s := range p.servers {
			s.Step(p.now)
		}
		sent := p.sent
		p.sent = nil
		for _, m := range sent {
			if m.from == 1 {
				bytes += len(m.b)
			}
			require.NoError(t, p.servers[m.to].Receive(name(m.from), m.b))
		}
	}
	require.EqualValues(t, 2048, len(p.servers[0].players[1].travel.ticket))
	require.Less(t, bytes, 100*150+4*2048)
}

// longTicket is a game whose tickets are connect tokens.
type longTicket struct{ pairGame }

func (longTicket) Ticket(uint64) ([]byte, error) { return make([]byte, 2048), nil }

// TestRestored: a player whose actor the store has given to a server plays there, also where another server, which was cut off, has been giving the player to that one since before.
func TestRestored(t *testing.T) {
	for _, c := range []struct {
		what     string
		restored bool
		ends     func(p *pair)
		plays    bool
	}{
		{"it is called off", true, func(p *pair) { p.sent, p.hold = nil, false }, true},
		{"the other is gone", true, func(p *pair) { p.servers[1].Gone(name(0)) }, true},
		{"it is called off, and the store has nothing", false, func(p *pair) { p.sent, p.hold = nil, false }, false},
		{"the other is gone, and the store has nothing", false, func(p *pair) { p.servers[1].Gone(name(0)) }, false},
	} {
		p := newPair(t)
		p.step(t)
		if err := p.servers[0].Travel(1, name(1)); err != nil {
			t.Fatal(err)
		}
		next := p.servers[1]
		for i := 0; len(next.arrivals) == 0 || next.arrivals[0].given == nil; i++ {
			if p.step(t); i == 100 {
				t.Fatal("nothing was given")
			}
		}
		p.hold = true
		for range 50 {
			p.step(t)
		}
		if len(p.told) != 1 || !p.servers[0].Plays(1) || len(next.arrivals) != 1 {
			t.Fatal(c.what, p.told, len(next.arrivals))
		}
		if err := next.Enter(1); !errors.Is(err, ErrHere) {
			t.Fatal(c.what, err)
		}
		if c.restored {
			next.Restored(1)
		}
		if next.Plays(1) {
			t.Fatal(c.what)
		}
		c.ends(p)
		for range 100 {
			p.step(t)
		}
		if next.Plays(1) != c.plays || p.plays[1] != 0 || len(next.arrivals) != 0 {
			t.Errorf("%s: plays %v, %d times as given, %d arrivals", c.what, next.Plays(1), p.plays[1], len(next.arrivals))
		}
		if next.Restored(1); !next.Plays(1) {
			t.Errorf("%s: not restored", c.what)
		}
	}
}
