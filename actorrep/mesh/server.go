package mesh

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Errors.
var (
	// ErrConfig: a setting is missing or out of range.
	ErrConfig = errors.New("mesh: config")
	// ErrNotHere: the player doesn't play here.
	ErrNotHere = errors.New("mesh: the player doesn't play here")
	// ErrTravels: the player is on its way already.
	ErrTravels = errors.New("mesh: the player is on its way already")
	// ErrRefused: the next server doesn't take the player.
	ErrRefused = errors.New("mesh: the next server refuses")
	// ErrNotThere: the client didn't reach the next server in time, or that one didn't answer. The error that wraps it says how far it came.
	ErrNotThere = errors.New("mesh: the client isn't at the next server")
	// ErrNoAnswer: the next server didn't answer when it was given the player.
	ErrNoAnswer = errors.New("mesh: the next server doesn't answer")
	// ErrGone: the next server is gone.
	ErrGone = errors.New("mesh: the next server is gone")
	// ErrTooLong: a state, a ticket or a message is too long.
	ErrTooLong = errors.New("mesh: too long")
	// ErrForged: no server of the mesh has sent this packet to this one.
	ErrForged = errors.New("mesh: no server of the mesh has sent this packet here")
	// ErrHere: the player plays here already, or is being given to this server.
	ErrHere = errors.New("mesh: the player plays here, or comes")
	// ErrFull: too many messages wait for their acknowledgement.
	ErrFull = errors.New("mesh: too many messages wait")
)

// Game is what a Server asks of its game. It is called within Server.Receive, ReceiveClient, Step, Gone and Connected.
type Game interface {
	// Ticket returns what a client needs to connect here, such as addresses and a connect token: a player is to come. An error refuses it.
	Ticket(player uint64) ([]byte, error)
	// Save returns the state that goes with the player. From now on the game doesn't simulate the player, and changes nothing of it, until Stays.
	Save(player uint64) []byte
	// Play has the player play here from now on, with the state of Save at another server.
	Play(player uint64, state []byte)
	// Moved: the player plays elsewhere; its state is no longer this server's.
	Moved(player uint64)
	// Stays: a travel is called off. The player plays on here, as it was.
	Stays(player uint64, err error)
	// Message is a message of the player's client. Each comes once, in order, at the server that plays the player.
	Message(player uint64, m []byte)
}

// ServerConfig configures a Server.
type ServerConfig struct {
	// ID names this start of the server in the mesh: fleet.Info.ID. 1 to 128 bytes.
	ID   string
	Game Game
	// ToServer and ToClient send a packet, which is valid during the call. It may be lost, late or doubled, and be received before the call returns.
	ToServer func(id string, packet []byte)
	ToClient func(player uint64, packet []byte)
	// Key seals what servers send each other. All servers of the mesh have it, and nobody else. It isn't zero.
	Key [32]byte
	// Rand is the source of nonces: crypto/rand.Reader.
	Rand io.Reader
	// Resend is the time after which a server says again what wasn't answered. Default 50 ms.
	Resend time.Duration
	// TravelFor is how long a client may take to be at the next server. Default 10 s.
	TravelFor time.Duration
	// FreezeFor is how long a player may stand still while the next server is given it. Default 250 ms.
	FreezeFor time.Duration
	// MaxArrivals bounds the players who are expected. Further ones are refused. Default 1024.
	MaxArrivals int
}

// ServerCounters counts what a Server did.
type ServerCounters struct {
	Moved, Arrived, Stayed uint64 // players who moved to another server, came from one, or stayed although they were to move
	// Lost counts players who had been given to a server that is gone, or were being given by one.
	Lost      uint64
	Malformed uint64 // packets of clients and servers that no honest one sends
	Forged    uint64 // packets that no server of the mesh has sent to this one
}

// Server is a game server's part of the mesh: it knows which players play here, and hands them over. It belongs to the goroutine that ticks the game.
type Server struct {
	Counters ServerCounters

	cfg      ServerConfig
	seal     *seal
	now      time.Duration
	players  map[uint64]*player
	conns    map[uint64]*conn
	leaving  []*leaving
	arrivals []*arrival
	gone     map[string]bool
	stepped  bool
	closed   bool // nobody new comes here
	attempts uint64
	order    []uint64 // scratch
	msgs     [][]byte // scratch
	buf      []byte
}

// player plays here.
type player struct {
	id      uint64
	epoch   uint64
	session uint64 // of the client that the streams are with; 0: none yet
	out     stream
	next    uint64 // number of the client's next message
	attempt uint64 // of the last travel, also of that by which it came: each travel of a player's has a higher one, whichever server it leaves
	shown   uint64 // of the last one that the client was told of
	travel  *travel
}

// travel is a player's way to another server, as the one that it leaves sees it.
type travel struct {
	to       string
	began    time.Duration
	nonce    uint64 // of the arrival at the next server; 0: it hasn't answered
	ticket   []byte
	frozen   bool
	frozenAt time.Duration
	state    []byte
	sayAt    time.Duration
	goAt     time.Duration // when the client gets the ticket again
}

// leaving is a player who plays at another server, which may not know yet.
type leaving struct {
	player, attempt, nonce uint64
	to                     string
	sayAt                  time.Duration
}

// arrival is a player's way here.
type arrival struct {
	player, attempt, nonce uint64
	from                   string
	session                uint64  // of the client that shall come
	ticket                 []byte  // nil: who sends the player has it
	given                  *player // as it will play here
	restored               bool    // the player plays here if this is called off
	state                  []byte
	began, sayAt           time.Duration
	toldAt                 time.Duration // when the client's word was passed on last
}

// conn is the connection of a player's client.
type conn struct {
	session uint64 // 0: nothing has come yet
	attempt uint64 // of the travel by which it comes
	knows   uint64 // the travel from here that it knows of
	first   uint64
	early   [][]byte // messages of its newest packet, while the player doesn't play here
	sayAt   time.Duration
}

// NewServer returns a server without players, or an error that wraps ErrConfig.
func NewServer(cfg ServerConfig) (*Server, error) {
	cfg.Resend = cmp.Or(cfg.Resend, 50*time.Millisecond)
	cfg.TravelFor = cmp.Or(cfg.TravelFor, 10*time.Second)
	cfg.FreezeFor = cmp.Or(cfg.FreezeFor, 250*time.Millisecond)
	cfg.MaxArrivals = cmp.Or(cfg.MaxArrivals, 1024)
	switch {
	case cfg.ID == "" || len(cfg.ID) > maxID:
		return nil, fmt.Errorf("%w: ID %q must have 1 to %d bytes", ErrConfig, cfg.ID, maxID)
	case cfg.Game == nil || cfg.ToServer == nil || cfg.ToClient == nil || cfg.Rand == nil:
		return nil, fmt.Errorf("%w: Game, ToServer, ToClient and Rand are needed", ErrConfig)
	case cfg.Resend < 0 || cfg.TravelFor < 0 || cfg.FreezeFor < 0 || cfg.MaxArrivals < 0:
		return nil, fmt.Errorf("%w: Resend %v, TravelFor %v, FreezeFor %v, MaxArrivals %d", ErrConfig, cfg.Resend, cfg.TravelFor, cfg.FreezeFor, cfg.MaxArrivals)
	}
	seal, err := newSeal(cfg.Key, cfg.ID, cfg.Rand, 0)
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, seal: seal, players: map[uint64]*player{}, conns: map[uint64]*conn{}, gone: map[string]bool{}}, nil
}

// Enter has a player play here that plays nowhere: who logs in. The game makes sure of that. ErrHere: it plays here, or is being given to this server.
func (s *Server) Enter(id uint64) error {
	if s.players[id] != nil || slices.ContainsFunc(s.arrivals, func(a *arrival) bool { return a.player == id && a.given != nil }) {
		return ErrHere
	}
	s.players[id] = &player{id: id, epoch: 1, next: 1, out: stream{first: 1}}
	return nil
}

// Restored has a player play here whose actor the store has given to this server (ZoneGame.Take), unless it does already. A server that was cut off may
// have been giving the player to this one since before that; then the player plays here when that server calls it off or is gone.
func (s *Server) Restored(id uint64) {
	if s.Enter(id) == nil {
		return
	}
	for _, a := range s.arrivals {
		a.restored = a.restored || a.player == id && a.given != nil
	}
}

// calledOff: the player of an arrival that is no more isn't given to this server.
func (s *Server) calledOff(a *arrival) {
	if a.restored {
		s.Restored(a.player)
	}
}

// Leave ends a player who plays here. Its travel is called off.
func (s *Server) Leave(id uint64) {
	p := s.players[id]
	delete(s.players, id)
	if p != nil && p.travel != nil {
		s.toServer(p.travel.to, s.head(cancel, id, p.attempt, p.travel.nonce))
	}
}

// Plays reports whether a player plays here. While it is being given to the next server it plays nowhere.
func (s *Server) Plays(id uint64) bool {
	p := s.players[id]
	return p != nil && !(p.travel != nil && p.travel.frozen)
}

// Epoch is how many servers have played the player, this one included; 0 if it isn't this server's.
func (s *Server) Epoch(id uint64) uint64 {
	if p := s.players[id]; p != nil {
		return p.epoch
	}
	return 0
}

// Idle reports whether no player is on its way from here or to here: then the server may stop, if nobody plays here.
func (s *Server) Idle() bool {
	for _, p := range s.players {
		if p.travel != nil {
			return false
		}
	}
	return len(s.leaving) == 0 && len(s.arrivals) == 0
}

// Travel begins a player's way to another server. It ends with Game.Moved or Game.Stays. Until then the player plays here, but for the moment in which it is given. ErrConfig: to is no
// other server's ID, or Step was never called, without which nobody gets anywhere.
func (s *Server) Travel(id uint64, to string) error {
	p := s.players[id]
	switch {
	case p == nil:
		return ErrNotHere
	case p.travel != nil:
		return ErrTravels
	case to == s.cfg.ID || to == "" || len(to) > maxID:
		return fmt.Errorf("%w: to %q", ErrConfig, to)
	case !s.stepped:
		return fmt.Errorf("%w: Server.Step was never called", ErrConfig)
	case s.gone[to]:
		return ErrGone
	}
	s.attempts++
	p.attempt = max(s.attempts, p.attempt+1)
	p.travel = &travel{to: to, began: s.now, sayAt: s.now}
	return nil
}

// Send sends a message to a player's client. It arrives once, in order, also if the player moves on meanwhile. ErrFull: MaxWaiting of them, or
// MaxWaitingBytes, wait.
func (s *Server) Send(id uint64, m []byte) error {
	p := s.players[id]
	if p == nil || !s.Plays(id) {
		return ErrNotHere
	}
	if err := p.out.push(m); err != nil {
		return err
	}
	s.soon(id)
	return nil
}

// soon has a client told with the next Step.
func (s *Server) soon(id uint64) {
	if c := s.conns[id]; c != nil {
		c.sayAt = s.now
	}
}

// Connected: a player's client has connected. What was under way to a client that has crashed since is lost; to one that has only connected again it isn't.
func (s *Server) Connected(id uint64) { s.conns[id] = &conn{sayAt: s.now} }

// Disconnected: the connection has ended. The player plays on until Leave.
func (s *Server) Disconnected(id uint64) {
	delete(s.conns, id)
	s.arrivalsSay(id)
}

// Gone: a server has certainly stopped, such as one whose process ended, or whose lease did. Players who were going there stay. Those who had been given to
// it, or were being given by it, are lost. What arrives of it later is dropped, and nobody travels there any more.
func (s *Server) Gone(id string) {
	s.gone[id] = true
	for _, k := range s.sorted() {
		if p := s.players[k]; p != nil && p.travel != nil && p.travel.to == id {
			s.stay(p, ErrGone)
		}
	}
	s.leaving = slices.DeleteFunc(s.leaving, func(l *leaving) bool {
		if l.to == id {
			s.Counters.Lost++
		}
		return l.to == id
	})
	var off []*arrival
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a *arrival) bool {
		if a.from != id {
			return false
		}
		if off = append(off, a); a.given != nil && !a.restored {
			s.Counters.Lost++
		}
		s.soon(a.player)
		return true
	})
	for _, a := range off {
		s.calledOff(a)
	}
}

// close has nobody come here any more who wasn't given to this server yet.
func (s *Server) close() {
	s.closed = true
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a *arrival) bool {
		if a.given == nil {
			s.soon(a.player)
		}
		return a.given == nil
	})
}

// soonAgain is Resend while a player stands still.
func (s *Server) soonAgain() time.Duration { return s.cfg.Resend / 4 }

// stay calls a travel off.
func (s *Server) stay(p *player, err error) {
	t := p.travel
	p.travel = nil
	s.Counters.Stayed++
	s.toServer(t.to, s.head(cancel, p.id, p.attempt, t.nonce))
	s.soon(p.id)
	s.cfg.Game.Stays(p.id, err)
}

// sorted is the players' ids in order, so that the same inputs give the same packets.
func (s *Server) sorted() []uint64 {
	s.order = s.order[:0]
	for id := range s.players {
		s.order = append(s.order, id)
	}
	slices.Sort(s.order)
	return s.order
}

// head begins a packet to a server.
func (s *Server) head(k kind, id, attempt, nonce uint64) []byte {
	b := append(s.buf[:0], byte(k))
	b = binary.AppendUvarint(b, id)
	b = binary.AppendUvarint(b, attempt)
	return binary.LittleEndian.AppendUint64(b, nonce)
}

func (s *Server) toServer(id string, b []byte) {
	s.buf = b
	if sealed := s.seal.close(id, b); sealed != nil {
		s.cfg.ToServer(id, sealed)
	}
}

// Step says what is due. now is any clock that never goes back. Call it once a tick, after the game's step.
func (s *Server) Step(now time.Duration) {
	s.now, s.stepped = max(s.now, now), true
	for _, id := range s.sorted() {
		if p := s.players[id]; p != nil && p.travel != nil {
			s.stepTravel(p)
		}
	}
	// The other server may answer within what is sent, and end one of these: by their places none is looked at that is no more.
	for i := 0; i < len(s.leaving); i++ {
		if l := s.leaving[i]; s.now >= l.sayAt {
			l.sayAt = s.now + s.soonAgain()
			s.toServer(l.to, s.head(done, l.player, l.attempt, l.nonce))
		}
	}
	// A packet that was late may have one expected whose server is gone, and never calls it off.
	s.arrivals = slices.DeleteFunc(s.arrivals, func(a *arrival) bool { return a.given == nil && s.now-a.began > 3*s.cfg.TravelFor })
	for i := 0; i < len(s.arrivals); i++ {
		if a := s.arrivals[i]; s.now >= a.sayAt {
			s.sayCome(a)
		}
	}
	s.order = s.order[:0]
	for id := range s.conns {
		s.order = append(s.order, id)
	}
	slices.Sort(s.order)
	for _, id := range s.order {
		if c := s.conns[id]; s.now >= c.sayAt && c.session != 0 {
			s.sayClient(id, c)
		}
	}
}

func (s *Server) stepTravel(p *player) {
	t := p.travel
	switch {
	case t.frozen && s.now-t.frozenAt > s.cfg.FreezeFor:
		s.stay(p, ErrNoAnswer)
	case !t.frozen && s.now-t.began > s.cfg.TravelFor:
		s.stay(p, s.notThere(p))
	case s.now < t.sayAt:
	case t.frozen:
		s.sayGive(p)
	default:
		t.sayAt = s.now + s.cfg.Resend
		s.toServer(t.to, binary.LittleEndian.AppendUint64(s.head(expect, p.id, p.attempt, t.nonce), p.session))
	}
}

// notThere says how far a travel has come that took too long.
func (s *Server) notThere(p *player) error {
	c := s.conns[p.id]
	switch {
	case p.travel.nonce == 0:
		return fmt.Errorf("%w: server %q hasn't answered", ErrNotThere, p.travel.to)
	case c == nil || c.session == 0:
		return fmt.Errorf("%w: the client hasn't sent anything here", ErrNotThere)
	case c.knows != p.attempt:
		return fmt.Errorf("%w: the client hasn't said that it knows where to go", ErrNotThere)
	}
	return fmt.Errorf("%w: it knows that it shall go to %q", ErrNotThere, p.travel.to)
}

func (s *Server) sayGive(p *player) {
	t := p.travel
	t.sayAt = s.now + s.cfg.Resend
	if p.out.bytes+len(t.state) <= packBytes {
		t.sayAt = s.now + s.soonAgain()
	}
	b := s.head(give, p.id, p.attempt, t.nonce)
	b = binary.AppendUvarint(b, p.epoch+1)
	b = binary.LittleEndian.AppendUint64(b, p.session)
	b = binary.AppendUvarint(b, p.next)
	b = p.out.append(b, MaxWaitingBytes*2)
	s.toServer(t.to, appendBytes(b, t.state))
}

func (s *Server) sayCome(a *arrival) {
	a.sayAt = s.now + s.cfg.Resend
	var flags byte
	if c := s.conns[a.player]; c != nil && c.session == a.session && c.attempt == a.attempt {
		flags |= flagHere
	}
	if a.given != nil {
		flags |= flagGot
		a.sayAt = s.now + s.soonAgain()
	}
	b := append(s.head(come, a.player, a.attempt, a.nonce), flags)
	s.toServer(a.from, appendBytes(b, a.ticket))
}

// arrivalsSay has the servers that a player comes from told at once, but only once between two Steps, however often its client changes what it says.
func (s *Server) arrivalsSay(id uint64) {
	for i := 0; i < len(s.arrivals); i++ {
		switch a := s.arrivals[i]; {
		case a.player != id:
		case a.toldAt == s.now:
			a.sayAt = s.now
		default:
			a.toldAt = s.now
			s.sayCome(a)
		}
	}
}

func (s *Server) sayClient(id uint64, c *conn) {
	p := s.players[id]
	var flags byte
	c.sayAt = s.now + 5*s.cfg.Resend
	if slices.ContainsFunc(s.arrivals, func(a *arrival) bool { return a.player == id }) {
		flags |= flagArriving
	}
	if p == nil {
		s.buf = append(s.buf[:0], flags, 0, 0)
		s.cfg.ToClient(id, s.buf)
		return
	}
	flags |= flagPlays
	goes := p.travel != nil && p.travel.ticket != nil
	switch {
	case !goes:
	case c.knows == p.attempt || s.now < p.travel.goAt: // a ticket is large: the actors need the bandwidth
		goes = false
		flags |= flagGoes
	default:
		flags |= flagGo
		p.travel.goAt = s.now + 5*s.cfg.Resend
	}
	if p.travel != nil || len(p.out.waiting) > 0 {
		c.sayAt = s.now + s.cfg.Resend
	}
	b := append(s.buf[:0], flags)
	b = binary.AppendUvarint(b, p.epoch)
	b = binary.AppendUvarint(b, p.shown)
	if goes {
		b = appendBytes(b, []byte(p.travel.to))
		b = appendBytes(b, p.travel.ticket)
	}
	b = binary.LittleEndian.AppendUint64(b, p.session)
	b = binary.AppendUvarint(b, p.next)
	s.buf = p.out.append(b, packBytes)
	s.cfg.ToClient(id, s.buf)
}

// ReceiveClient takes a packet of a player's client. An error, which no honest client causes, means that the connection should be closed.
func (s *Server) ReceiveClient(id uint64, packet []byte) error {
	c := s.conns[id]
	if c == nil {
		return nil
	}
	r := reader{b: packet}
	session, way, next := r.fixed(), r.number(), r.number()
	first, msgs := r.messages(s.msgs[:0], ofPlayer)
	s.msgs = msgs[:0]
	if !r.end() || session == 0 || first == 0 || len(packet) > maxClient {
		s.Counters.Malformed++
		return errPacket
	}
	if c.session != 0 && c.session != session {
		return nil
	}
	attempt := way >> 1
	if way&1 != 0 {
		c.knows, attempt = attempt, 0
	}
	if c.session == 0 || attempt != 0 && c.attempt != attempt {
		c.session, c.attempt = session, attempt
		c.sayAt = s.now
		s.arrivalsSay(id)
	}
	p := s.players[id]
	if p == nil {
		if first >= c.first { // not an older packet, which has less
			c.first, c.early = first, c.early[:0]
			for _, m := range msgs {
				c.early = append(c.early, slices.Clone(m))
			}
		}
		return nil
	}
	s.follow(p, session)
	if !s.Plays(id) {
		return nil
	}
	if !p.out.ack(next) {
		s.Counters.Malformed++
		return errPacket
	}
	s.take(p, first, msgs)
	return nil
}

// follow begins the streams anew with a client that isn't the one before.
func (s *Server) follow(p *player, session uint64) {
	if p.session != session {
		if p.session != 0 {
			p.next, p.out = 1, stream{first: 1}
		}
		p.session = session
	}
}

// take takes the messages that are next.
func (s *Server) take(p *player, first uint64, msgs [][]byte) {
	for i, m := range msgs {
		if first+uint64(i) != p.next {
			continue
		}
		if s.players[p.id] != p || !s.Plays(p.id) { // the game has ended it, or given it away
			return
		}
		p.next++
		s.soon(p.id)
		s.cfg.Game.Message(p.id, m)
	}
}

// Receive takes a packet that server from has sent. ErrForged: it has not, or not to this server, or the packet was changed; Counters.Forged counts these.
func (s *Server) Receive(from string, packet []byte) error {
	opened, ok := s.seal.open(from, packet)
	if !ok {
		s.Counters.Forged++
		return ErrForged
	}
	if s.gone[from] {
		return nil
	}
	return s.receive(from, opened)
}

// receive takes an opened packet.
func (s *Server) receive(from string, packet []byte) error {
	r := reader{b: packet}
	k, id, attempt, nonce := kind(r.byte()), r.number(), r.number(), r.fixed()
	var flags byte
	var rest []byte
	var given *player
	var session uint64
	switch k {
	case expect:
		session = r.fixed()
	case come:
		flags, rest = r.byte(), r.bytes(MaxTicket)
	case give:
		given = &player{id: id, epoch: r.number(), session: r.fixed(), next: r.number(), attempt: attempt}
		var msgs [][]byte
		given.out.first, msgs = r.messages(nil, ofPlayer)
		for _, m := range msgs {
			r.bad = r.bad || given.out.push(m) != nil
		}
		rest = r.bytes(MaxState)
	case no, done, have, cancel:
	default:
		r.bad = true
	}
	if !r.end() || attempt == 0 || attempt >= maxAttempt {
		s.Counters.Malformed++
		return errPacket
	}
	switch k {
	case expect:
		s.expected(from, id, attempt, nonce, session)
	case give, done, cancel:
		s.fromOld(k, from, id, attempt, nonce, given, rest)
	case have:
		s.leaving = slices.DeleteFunc(s.leaving, func(l *leaving) bool {
			return l.player == id && l.attempt == attempt && l.nonce == nonce && l.to == from
		})
	default:
		s.fromNext(k, from, id, attempt, nonce, flags, rest)
	}
	return nil
}

// expected: a server asks whether a player may come.
func (s *Server) expected(from string, id, attempt, known, session uint64) {
	for _, a := range s.arrivals {
		if a.player == id && a.attempt == attempt && a.from == from {
			a.session = session
			if known == a.nonce { // it has the ticket
				a.ticket = nil
			}
			s.sayCome(a)
			return
		}
	}
	var random [8]byte
	_, err := io.ReadFull(s.cfg.Rand, random[:])
	var ticket []byte
	full := s.closed || len(s.arrivals) >= s.cfg.MaxArrivals || s.players[id] != nil
	if err == nil && !full {
		ticket, err = s.cfg.Game.Ticket(id)
	}
	nonce := binary.LittleEndian.Uint64(random[:]) | 1
	if err != nil || full || len(ticket) > MaxTicket {
		s.toServer(from, s.head(no, id, attempt, nonce))
		return
	}
	a := &arrival{player: id, attempt: attempt, nonce: nonce, from: from, session: session, ticket: append([]byte{}, ticket...), began: s.now}
	s.arrivals = append(s.arrivals, a)
	if c := s.conns[id]; c != nil && c.attempt == attempt { // by a travel before, which a server of a former release has numbered alike: the client hasn't heard of this one
		c.attempt = 0
	}
	s.sayCome(a)
}

// fromNext is what the next server says of a travel from here.
func (s *Server) fromNext(k kind, from string, id, attempt, nonce uint64, flags byte, ticket []byte) {
	for _, l := range s.leaving {
		if l.player == id && l.attempt == attempt && l.to == from && l.nonce == nonce {
			l.sayAt = s.now // it hasn't heard that it has it
			return
		}
	}
	p := s.players[id]
	if p == nil || p.travel == nil || p.attempt != attempt || p.travel.to != from {
		if k == come { // a travel that is no more
			s.toServer(from, s.head(cancel, id, attempt, nonce))
		}
		return
	}
	t := p.travel
	switch {
	case k == no:
		if !t.frozen {
			s.stay(p, ErrRefused)
		}
		return
	case t.nonce != 0 && t.nonce != nonce: // an arrival that came of an old packet
		s.toServer(from, s.head(cancel, id, attempt, nonce))
		return
	}
	if t.nonce == 0 {
		t.nonce, t.ticket, p.shown = nonce, append([]byte{}, ticket...), attempt
		s.soon(id)
	}
	switch {
	case t.frozen && flags&flagGot != 0:
		s.move(p)
	case !t.frozen && flags&flagHere != 0:
		state := s.cfg.Game.Save(id)
		if len(state) > MaxState {
			s.stay(p, fmt.Errorf("%w: a state of %d bytes", ErrTooLong, len(state)))
			return
		}
		t.frozen, t.frozenAt, t.state = true, s.now, append([]byte(nil), state...)
		s.sayGive(p)
	}
}

// move is the moment in which a player is no longer this server's.
func (s *Server) move(p *player) {
	delete(s.players, p.id)
	l := &leaving{player: p.id, attempt: p.attempt, nonce: p.travel.nonce, to: p.travel.to, sayAt: s.now + s.soonAgain()}
	s.leaving = append(s.leaving, l)
	s.Counters.Moved++
	s.cfg.Game.Moved(p.id)
	s.toServer(l.to, s.head(done, l.player, l.attempt, l.nonce)) // it may play there at once
}

// fromOld is what the server that a player comes from says.
func (s *Server) fromOld(k kind, from string, id, attempt, nonce uint64, given *player, state []byte) {
	i := slices.IndexFunc(s.arrivals, func(a *arrival) bool {
		return a.player == id && a.attempt == attempt && a.from == from && a.nonce == nonce
	})
	if i < 0 {
		if k == done { // heard before
			s.toServer(from, s.head(have, id, attempt, nonce))
		}
		return
	}
	a := s.arrivals[i]
	switch k {
	case give:
		if a.given == nil {
			a.given, a.state = given, append([]byte(nil), state...)
		}
		s.sayCome(a)
	case cancel:
		s.arrivals = slices.Delete(s.arrivals, i, i+1)
		s.soon(id)
		s.calledOff(a)
	case done:
		if a.given != nil { // else it can't be: only what is given is done
			s.arrivals = slices.Delete(s.arrivals, i, i+1)
			s.play(a)
		}
		s.toServer(from, s.head(have, id, attempt, nonce))
	}
}

// play is the moment in which a player is this server's.
func (s *Server) play(a *arrival) {
	p := a.given
	s.players[p.id] = p
	s.Counters.Arrived++
	s.cfg.Game.Play(p.id, a.state)
	switch c := s.conns[p.id]; {
	case c == nil || c.session == 0:
	case c.session != p.session && p.session != 0: // of a client that has begun anew since
		delete(s.conns, p.id)
	default:
		c.sayAt = s.now
		p.session = c.session
		s.take(p, c.first, c.early)
		c.first, c.early = 0, nil
	}
}
