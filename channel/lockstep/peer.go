package lockstep

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/clock"
	"github.com/bunchnet/bunchnet/history/ring"
)

// State of a Peer.
type State uint8

const (
	// Connecting: no answer from the host yet.
	Connecting State = iota
	// Loading: a snapshot is arriving, or waits for TakeSnapshot.
	Loading
	// Running: Next returns turns as they arrive.
	Running
	// Ended: the session is over; Peer.Err says why.
	Ended
)

// PeerStats counts since NewPeer.
type PeerStats struct {
	Turns           uint64 // executed
	Commands        uint64 // submitted
	InputsLost      uint64 // turns that the host completed without this player's commands
	DroppedGap      uint64 // stream packets with bytes missing before them, and no room to keep them until then
	DroppedRepeated uint64 // stream packets with nothing new
	HashesDropped   uint64 // not sent: more than 256 weren't acked
	PacketsSent, PacketsReceived,
	BytesSent, BytesReceived uint64
	SendErrors uint64
	Paced      uint64 // packets that had to wait for the transport's bandwidth

	RefusedMalformed, RefusedPlayer, RefusedSession, RefusedAhead uint64
}

// sealedInput is the commands of a turn, which can't change any more.
type sealedInput struct{ size int }

// Peer is one player's end: commands go in, turns come out. Not safe for concurrent use.
//
// Invariant: acked <= sealed; inputs holds [max(acked, next), sealed).
type Peer struct {
	cfg       PeerConfig
	transport Transport
	reliable  bool // so that is
	state     State
	err       error
	reason    DenyReason

	welcome  welcome
	setup    []byte
	accepted int64 // version of the setup
	snapshot []byte
	loaded   int // bytes of the snapshot that have come
	recv     receiver
	early    [earlyPieces]earlyPiece // what came before its turn
	next     int64                   // turn to be executed
	turn     Turn
	under    bool // the turn is under way, between Next and Done
	lagging  bool // the host didn't wait for us in the last turn
	delay    int
	active   uint64
	waiting  uint64

	proof  uint64 // of the challenge
	clock  clock.Clock
	silent time.Duration // for which nothing was heard of the host
	still  still
	budget inputBudget

	life    int64 // of ours in the game; 0 when we aren't
	pending []byte
	inputs  *ring.Ring[sealedInput]
	data    []byte // of input t at t%slots
	sealed  int64  // next turn to seal
	acked   int64  // the host has all inputs before
	inSent  int64  // where the next packet of them goes on; 0 with those that aren't acked
	inNew   int64  // all before were sent

	hashes    [hashWindow]uint64 // of turn t at t%hashWindow
	hashNext  int64              // the host has all hashes before, or won't get them
	hashSent  int64
	hashAgain int64    // when all had been sent that weren't acked, and began again
	sums      []uint64 // of turn t and part i at (t%hashWindow)*len(Parts)+i
	doubted   int64    // the turn whose parts the host doesn't have yet; -1 for none

	nextSend  time.Duration
	bandwidth bandwidth
	kept      played // the game's state while untaken
	untaken   bool   // the host hasn't answered, or its snapshot wasn't taken
	news      bool   // something to send at once
	unsaid    int    // bytes of the stream received since the last packet
	stamp     uint16
	stampAt   time.Duration
	stamped   bool
	lastHeard time.Duration
	packet    []byte
	stats     PeerStats
}

// played is what a game's state is: the turns that it has executed, the generation of the host they are of, and the delay and the players after them. Delay and active are 0 while the
// state is an earlier session's.
type played struct {
	turn, generation int64
	delay            int
	active           uint64
}

// NewPeer returns a Peer. Its first Tick asks the host for a session.
func NewPeer(cfg PeerConfig, t Transport) (*Peer, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if err := cfg.checkTransport(t); err != nil {
		return nil, err
	}
	slots := cfg.inputSlots()
	return &Peer{
		cfg:       cfg,
		transport: t,
		reliable:  reliable(t),
		recv:      receiver{buf: make([]byte, 0, cfg.ReceiveBuffer), limit: cfg.maxRecord()},
		pending:   make([]byte, 0, cfg.MaxInput),
		inputs:    ring.New[sealedInput](slots),
		data:      make([]byte, slots*cfg.MaxInput),
		packet:    make([]byte, 0, cfg.MaxPacket),
		sums:      make([]uint64, hashWindow*len(cfg.Parts)),
		untaken:   true,
		kept:      played{turn: cfg.Have, generation: cfg.Generation},
		doubted:   -1,
		nextSend:  longAgo,
		bandwidth: bandwidth{next: longAgo},
	}, nil
}

// State is the session's state.
func (p *Peer) State() State { return p.state }

// Err is why the session Ended, or nil. It wraps ErrDenied (with the Reason in words), ErrStream, ErrSnapshotSize,
// ErrTimeout or ErrPacketSize. A new session needs a new Peer.
func (p *Peer) Err() error { return p.err }

// Reason is why the host denied the session; 0 when it didn't.
func (p *Peer) Reason() DenyReason { return p.reason }

// Turn is the number of turns that the game's state has executed, counted from the game's first: PeerConfig.Have until the host has answered, and until
// TakeSnapshot has returned a snapshot the number before it. Give it to the PeerConfig of the next session, as Have.
func (p *Peer) Turn() int64 { return p.game().turn }

// game is what the game's state is.
func (p *Peer) game() played {
	if p.untaken {
		return p.kept
	}
	return played{p.next, p.welcome.generation, p.delay, p.active}
}

// Delay is the input delay in turns.
func (p *Peer) Delay() int { return p.delay }

// Active is a mask of the players in the game as of the last turn.
func (p *Peer) Active() uint64 { return p.active }

// InGame reports whether this player is in the game, so that Submit takes commands.
func (p *Peer) InGame() bool { return p.life != 0 }

// Waiting is a mask of the players whose commands the host was waiting for, as of its last packet.
func (p *Peer) Waiting() uint64 { return p.waiting }

// Behind is the number of turns to execute at once, without waiting for TurnInterval, to catch up with the others. As many
// received turns as the input delay don't count: they are the reserve against jitter. All received turns count before this player is in the game, so that
// its first commands come in time, and when the host continues without its commands.
func (p *Peer) Behind() int {
	if p.lagging || p.life == 0 && p.cfg.Player < p.cfg.Players {
		return p.recv.ready
	}
	return max(0, p.recv.ready-p.delay)
}

// LastHeard is when the host's last packet came; 0 before the first.
func (p *Peer) LastHeard() time.Duration {
	if p.lastHeard == 0 {
		return 0
	}
	return p.clock.Outside(p.lastHeard)
}

// Stats returns the counts so far.
func (p *Peer) Stats() PeerStats { return p.stats }

// Submit adds a command. The next Done seals it, and all execute it Delay turns later; when the session ends, or this player is Dropped, before the host has it, nobody
// does, and nobody is told: compare with this player's in Turn.Commands. cmd is copied. Errors: ErrInactive,
// ErrEmptyCommand, ErrInputFull.
func (p *Peer) Submit(cmd []byte) error {
	switch {
	case p.life == 0:
		return ErrInactive
	case len(cmd) == 0:
		return ErrEmptyCommand
	case len(p.pending)+(bits.Len(uint(len(cmd)))+6)/7+len(cmd) > min(p.cfg.MaxInput, p.budget.left):
		return ErrInputFull
	}
	p.pending = append(binary.AppendUvarint(p.pending, uint64(len(cmd))), cmd...)
	p.stats.Commands++
	return nil
}

// TakeSnapshot returns the host's snapshot, the game's state before turn, once it has arrived whole. Load it in place of
// the present state. ok is false when there is none, or it was taken. Until it is taken Next returns no turn.
func (p *Peer) TakeSnapshot() (turn int64, data []byte, ok bool) {
	if p.state != Loading || p.loaded < p.welcome.snapshot {
		return 0, nil, false
	}
	data = p.snapshot
	p.snapshot, p.state, p.untaken = nil, Running, false
	return p.welcome.start, data, true
}

// Next returns the turn to execute; ok is false when it hasn't arrived. It returns the same turn until Done; the turn is
// valid until then.
func (p *Peer) Next() (t *Turn, ok bool) {
	if p.state != Running || !p.under && p.recv.ready == 0 {
		return nil, false
	}
	if !p.under {
		if !p.turn.parse(p.recv.record(), &p.cfg.Config) {
			p.fail(ErrStream)
			return nil, false
		}
		p.under = true
		p.begin()
	}
	return &p.turn, true
}

func (p *Peer) fail(err error) { p.state, p.err, p.life = Ended, err, 0 }

// begin takes in the turn's events.
func (p *Peer) begin() {
	t := &p.turn
	t.N = p.next
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Kind {
		case DelayChanged:
			p.delay = int(e.Value)
		case Joined:
			p.active |= 1 << e.Player
		case Dropped:
			p.active &^= 1 << e.Player
		case Desynced, Split:
			if len(p.cfg.Parts) > 0 && e.Value >= p.welcome.start && e.Value >= p.next-hashWindow {
				p.doubted = e.Value
			}
		}
	}
	t.Delay = p.delay
	for i := range t.Events {
		if t.Events[i].Player == p.cfg.Player {
			p.own(&t.Events[i])
		}
	}
	p.lagging = p.life != 0 && t.Substituted>>p.cfg.Player&1 != 0
	if p.lagging {
		p.stats.InputsLost++
	}
}

// own takes in an event about ourselves; those of earlier sessions, replayed, don't count.
func (p *Peer) own(e *Event) {
	switch {
	case e.Kind == Dropped:
		p.life = 0
	case e.Kind == Joined && e.Value >= p.welcome.life:
		p.life = e.Value
		p.sealed = p.next + int64(p.delay)
		p.acked, p.inSent, p.inNew = p.sealed, p.sealed, p.sealed
		p.pending = p.pending[:0]
		p.inputs.Reset()
		p.budget.begin(&p.cfg.Config)
	}
}

// Done says that Next's turn was executed, and seals the commands submitted since the last Done. sums is the hash of the
// game's state after the turn, or with Config.Parts the hash of each part. Errors: ErrNoTurn, ErrParts.
func (p *Peer) Done(sums ...uint64) error {
	hash, err := p.cfg.Hash(sums...)
	switch {
	case !p.under:
		return ErrNoTurn
	case err != nil:
		return err
	}
	copy(p.partsOf(p.next), sums)
	p.under = false
	p.recv.drop()
	p.hashes[p.next%hashWindow] = hash
	p.next++
	if p.next-p.hashNext > hashWindow {
		p.stats.HashesDropped += uint64(p.next - p.hashNext - hashWindow)
		p.hashNext = p.next - hashWindow
	}
	p.stats.Turns++
	p.news = true
	if p.life != 0 {
		p.seal()
	}
	return nil
}

// seal closes all turns up to Delay after the one executed. After a smaller delay that
// is none: the commands wait. After a larger one it is several: the commands are in the first.
func (p *Peer) seal() {
	for ; p.sealed <= p.next-1+int64(p.delay); p.sealed++ {
		in := p.inputs.Insert(p.sealed)
		in.size = copy(p.slot(p.sealed), p.pending)
		p.budget.spend(&p.cfg.Config, in.size)
		p.pending = p.pending[:0]
	}
	p.acked = max(p.acked, p.next) // turns that are executed need no input
}

func (p *Peer) partsOf(turn int64) []uint64 {
	n := len(p.cfg.Parts)
	return p.sums[int(turn%hashWindow)*n:][:n]
}

func (p *Peer) slot(turn int64) []byte {
	i := int(turn) & (p.inputs.Size() - 1)
	return p.data[i*p.cfg.MaxInput:][:p.cfg.MaxInput]
}
