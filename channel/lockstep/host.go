package lockstep

import (
	"math/bits"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/clock"
)

// HostHandler is told of the events that the Host puts into turns. Peers get the same in Turn.Events.
type HostHandler interface {
	// Event is called for each event e of a complete turn. It must not call the Host.
	Event(turn int64, e Event)
}

// HostStats counts since NewHost.
type HostStats struct {
	Turns          uint64 // complete
	Substituted    uint64 // inputs that turns were completed without
	InputsTooLate  uint64 // whose turn was complete already; repeats don't count
	Joins, Drops   uint64
	DelayChanges   uint64
	Desyncs        uint64
	Splits         uint64 // Split events
	Unhashed       uint64 // Unhashed events
	HashesCompared uint64
	PacketsSent, PacketsReceived,
	BytesSent, BytesReceived uint64
	SendErrors uint64 // of transports; the data is sent again
	Paced      uint64 // packets that had to wait for Rate or the transport's bandwidth
	Challenges uint64
	Denied     uint64

	RefusedMalformed, RefusedPlayer, RefusedSession, RefusedAhead, RefusedOversize uint64
}

// Host makes the turns: it collects the players' commands, decides what each turn
// holds, and relays the log of turns to all. It runs no simulation. A player on the same
// machine is a Peer too, over a transport in memory. Not safe for concurrent use.
//
// Invariant: log.next is the turn being collected; active has the players whose
// commands it needs.
type Host struct {
	cfg     HostConfig
	clock   clock.Clock
	handler HostHandler
	log     turnLog
	clients []client
	started bool

	active uint64 // players in the game, pending events included
	delay  int
	logged turnStart // as of the end of the log
	events []Event   // for the next turn
	turn   Turn      // scratch

	lastTurn   time.Duration // when the last turn was complete
	dueBy      time.Duration // the turn being collected is late after that
	firstAt    time.Duration // until when all were there lately, and none had sent commands for the turn being collected
	chargedAt  time.Duration // until when stalls are booked
	longest    time.Duration // how much is booked at most at the next Tick: in a longer time this machine stood still, and heard nobody
	still      still
	awaited    uint64 // players whose commands the last Tick waited for
	judge      judge
	settled    int64  // nothing is awaited that could change the verdict of a turn before
	differing  uint64 // players whose hashes differ, which isn't told yet
	split      bool   // told, and not agreed since
	snapshots  snapshots
	setup      []byte
	version    int64 // of setup; 0 for none
	parts      partReport
	paths      []Path
	generation int64
	record     []byte
	packet     []byte
	stats      HostStats
}

// NewHost returns a Host without players; handler may be nil.
func NewHost(cfg HostConfig, handler HostHandler) (*Host, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	h := &Host{
		cfg:        cfg,
		handler:    handler,
		generation: newGeneration(&cfg),
		log:        newTurnLog(cfg.LogBytes, cfg.LogTurns),
		clients:    make([]client, cfg.Players+cfg.Spectators),
		delay:      cfg.InitialDelay,
		logged:     turnStart{delay: cfg.InitialDelay},
		events:     make([]Event, 0, cfg.maxEvents()),
		judge:      newJudge(cfg.Players),
		paths:      make([]Path, 0, cfg.Players),
		record:     make([]byte, 0, cfg.maxRecord()),
		packet:     make([]byte, 0, cfg.MaxPacket),
	}
	h.parts.init(&h.cfg.Config)
	if cfg.Resume != nil {
		h.resume(cfg.Resume)
	}
	h.events = append(h.events, Event{Kind: DelayChanged, Value: int64(h.delay)})
	for p := range h.clients {
		h.clients[p].init(&h.cfg.Config)
		if p >= cfg.Players {
			h.clients[p].lag = int64(cfg.SpectatorDelay)
		}
	}
	return h, nil
}

// Connect sets the transport for player's packets. The caller must know that the transport leads to that player. A
// session begins with the Peer's packets. Errors: ErrConfig without a transport, ErrNoPlayer, ErrPacketSize, ErrTransport.
func (h *Host) Connect(player int, t Transport) error {
	if player < 0 || player >= len(h.clients) {
		return ErrNoPlayer
	}
	if err := h.cfg.checkTransport(t); err != nil {
		return err
	}
	if !proven(t) && h.cfg.Secret == [32]byte{} {
		return ErrTransport
	}
	c := &h.clients[player]
	c.transport, c.reliable, c.begun = t, reliable(t), false
	c.connects++
	return nil
}

// Drop takes player out of the game, and denies its session (DenyDropped). Connect lets it come back.
func (h *Host) Drop(now time.Duration, player int) error {
	if player < 0 || player >= len(h.clients) {
		return ErrNoPlayer
	}
	now = h.clock.At(now)
	c := &h.clients[player]
	h.deactivate(now, player, DropAsked)
	if c.transport != nil && c.state != absent {
		h.deny(now, player, c.session, DenyDropped)
	}
	c.end()
	c.transport = nil
	return nil
}

// Ready is a mask of the players that could join now: connected, up to date, and with the setup accepted if there is one.
func (h *Host) Ready() (mask uint64) {
	for p := range h.cfg.Players {
		if h.upToDate(&h.clients[p]) {
			mask |= 1 << p
		}
	}
	return mask
}

// Start begins the game. Players that are Ready are in it from turn 0 on; others join when they are.
func (h *Host) Start(now time.Duration) {
	if now = h.clock.At(now); !h.started {
		h.started, h.lastTurn, h.dueBy, h.chargedAt, h.firstAt = true, now, now+h.cfg.TurnInterval, now, now
	}
}

// Turn is the number of turns that are complete.
func (h *Host) Turn() int64 { return h.log.next }

// Delay is the input delay in turns.
func (h *Host) Delay() int { return h.delay }

// Active is a mask of the players in the game.
func (h *Host) Active() uint64 { return h.active }

// Waiting is a mask of the players whose commands for the next turn are missing.
func (h *Host) Waiting() (mask uint64) {
	if !h.started {
		return 0
	}
	for m := h.active; m != 0; m &= m - 1 {
		p := bits.TrailingZeros64(m)
		if h.clients[p].received <= h.log.next {
			mask |= 1 << p
		}
	}
	return mask
}

// Path is the round trip to player, as measured; zero before the first sample.
func (h *Host) Path(player int) Path {
	c := &h.clients[player]
	return Path{Player: player, RTT: c.rtt, Jitter: c.jitter}
}

// Stats returns the counts so far.
func (h *Host) Stats() HostStats { return h.stats }

// SetSnapshot sets the game's state before turn. A peer that joins late gets it when the turns that it needs have left the
// log, or are more bytes. data is kept and must not change. turn must be in the log: take a snapshot at least once
// in a quarter of the log's turns. With a SpectatorDelay up to five are kept, so that there is one old enough for
// spectators. A peer that is still being sent one from before gets that to its end, unless more than four of these are kept for peers: then those with
// the oldest begin with the newest. Error: ErrSnapshot.
func (h *Host) SetSnapshot(turn int64, data []byte) error {
	if !h.log.holds(turn) || len(data) == 0 || len(data) > h.cfg.MaxSnapshot {
		return ErrSnapshot
	}
	h.snapshots.add(snapshot{turn, data, h.before(turn)}, h.log.next, int64(h.cfg.SpectatorDelay))
	h.letGo(h.chargedAt)
	return nil
}

// Tick completes turns, deals with stalls and sends what is due.
func (h *Host) Tick(now time.Duration) {
	now = h.clock.At(now)
	h.still.tick(now, h.cfg.sendEvery())
	h.advance(now)
	for p := range h.clients {
		h.flush(now, p)
	}
}

// NextDeadline is when Tick must be called next; ok is false when nothing is due.
func (h *Host) NextDeadline() (at time.Duration, ok bool) {
	earliest := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if h.started && h.active != 0 {
		if at, due := h.stallDeadline(); due {
			earliest(at)
		} else {
			earliest(h.lastTurn) // a turn is complete
		}
	}
	for p := range h.clients {
		if t, due := h.clientDeadline(&h.clients[p]); due {
			earliest(t)
		}
	}
	return h.clock.Outside(at), ok
}
