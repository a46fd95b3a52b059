package lockstep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"
)

const (
	// MaxPlayers is the most players of a game: they fit a mask of 64 bits.
	MaxPlayers = 64
	// MaxSpectators is the most spectators, besides the players.
	MaxSpectators = 128
	// MaxSetup bounds Host.SetSetup, in bytes.
	MaxSetup = 64 << 10
	maxParts = 32
	// wireVersion is in each Hello.
	wireVersion = 3
	// hashWindow is how many turns of hashes are kept, by a Peer until they are acked and by
	// the Host until they are judged.
	hashWindow = 256
	// maxTick is what the time between two Ticks counts at most, so that a machine that slept
	// doesn't blame the others.
	maxTick = time.Second
	// headerBytes bound what a packet holds besides one turn's input and one hash.
	headerBytes = 96
	// maxBytes and maxLogTurns bound what is allocated as a setting says. What is reckoned with rates up to maxBytes fits 64 bits.
	maxBytes    = 1 << 30
	maxLogTurns = 1 << 24
)

// Transport sends packets of at most Config.MaxPacket bytes to the other end; p is valid until Send returns. It may lose,
// double and reorder packets, but must not deliver damaged or forged ones. An error means that p was not
// taken; the data is sent again later. Send must not call the Host or Peer. A *link.Link is a Transport.
//
// A Transport may have more methods, as OnChannel has:
//
//	Proven() bool    its peer has proved who it is, and its address; without it the Host needs a Secret
//	Reliable() bool  it delivers everything, in order, so nothing is repeated; without it what isn't acked
//	                 is repeated, which costs bytes only
//	Ready() bool     there is bandwidth for more than a packet in each TurnInterval; without it there always is
//	MaxPacket() int  the largest packet in bytes that isn't fragmented below, or 0 while unknown; larger
//	                 ones aren't sent, even when Config.MaxPacket allows them
type Transport interface {
	Send(now time.Duration, p []byte) error
}

// packetLimit is the largest packet for t, up to limit.
func packetLimit(t Transport, limit int) int {
	if m, ok := t.(interface{ MaxPacket() int }); ok {
		if n := m.MaxPacket(); n > 0 {
			return min(n, limit)
		}
	}
	return limit
}

// checkTransport is an error when there is none, and when a turn's commands don't fit what t carries.
func (c *Config) checkTransport(t Transport) error {
	if t == nil {
		return fmt.Errorf("%w: the Transport is nil", ErrConfig)
	}
	if n := packetLimit(t, c.MaxPacket); n < c.MaxInput+headerBytes {
		return fmt.Errorf("%w: its packets have %d bytes, so MaxInput may be %d at most", ErrPacketSize, n, n-headerBytes)
	}
	return nil
}

func proven(t Transport) bool {
	p, ok := t.(interface{ Proven() bool })
	return ok && p.Proven()
}

func reliable(t Transport) bool {
	r, ok := t.(interface{ Reliable() bool })
	return ok && r.Reliable()
}

// bandwidth lets one packet out in each TurnInterval, which the game lives on, and more while the transport is ready.
type bandwidth struct{ next time.Duration }

func (b *bandwidth) allows(now time.Duration, t Transport, interval time.Duration) bool {
	if now >= b.next {
		b.next = now + interval
		return true
	}
	r, ok := t.(interface{ Ready() bool })
	return !ok || r.Ready()
}

// Config is what the Host and all Peers of a game must have in common, except for MaxPacket.
type Config struct {
	// Protocol is a number for the game and its version; default 0. Peers with another are denied (DenyVersion).
	Protocol uint32
	// Players is the number of places, 1 to MaxPlayers. Players are numbered from 0.
	Players int
	// MaxInput bounds a player's commands in one turn, in bytes, with one or two bytes for the length of each; 2 to
	// MaxPacket-96. Default 256, or MaxPacket-96 when that is less.
	MaxInput int
	// InputRate bounds a player's commands in the long run, in bytes a turn; 1 to MaxInput. Default 16, or
	// MaxInput when that is less. Unused bytes add up, to 8*MaxInput at most.
	InputRate int
	// MaxDelay bounds the input delay in turns, 1 to 60; default 16.
	MaxDelay int
	// TurnInterval is the time from turn to turn at which the game executes them, 1 ms to 1 min; default 50 ms.
	TurnInterval time.Duration
	// Parts names the parts of the state, up to 32, for example units, economy, projectiles. Done gets a hash of each,
	// so that after a desync a Differs event says which are wrong. Default none: Done gets one hash.
	Parts []string

	// MaxPacket is the size of the largest packet in bytes, 128 to 65507; default 1100. Set 255 over
	// package link, which takes no larger ones. The ends may differ.
	MaxPacket int
}

func (c Config) filled() (Config, error) {
	c.MaxPacket = cmp.Or(c.MaxPacket, 1100)
	c.MaxInput = cmp.Or(c.MaxInput, min(256, c.MaxPacket-headerBytes))
	c.InputRate = cmp.Or(c.InputRate, min(16, c.MaxInput))
	c.MaxDelay = cmp.Or(c.MaxDelay, 16)
	c.TurnInterval = cmp.Or(c.TurnInterval, 50*time.Millisecond)
	switch {
	case c.Players < 1 || c.Players > MaxPlayers:
		return c, fmt.Errorf("%w: Players is %d, not 1 to %d", ErrConfig, c.Players, MaxPlayers)
	case c.MaxPacket < 128 || c.MaxPacket > 65507:
		return c, fmt.Errorf("%w: MaxPacket is %d, not 128 to 65507", ErrConfig, c.MaxPacket)
	case c.MaxInput < 2 || c.MaxInput > c.MaxPacket-headerBytes:
		return c, fmt.Errorf("%w: MaxInput is %d, not 2 to %d", ErrConfig, c.MaxInput, c.MaxPacket-headerBytes)
	case c.InputRate < 1 || c.InputRate > c.MaxInput:
		return c, fmt.Errorf("%w: InputRate is %d, not 1 to %d", ErrConfig, c.InputRate, c.MaxInput)
	case c.MaxDelay < 1 || c.MaxDelay > 60:
		return c, fmt.Errorf("%w: MaxDelay is %d, not 1 to 60", ErrConfig, c.MaxDelay)
	case len(c.Parts) > maxParts:
		return c, fmt.Errorf("%w: %d Parts, more than %d", ErrConfig, len(c.Parts), maxParts)
	case c.TurnInterval < time.Millisecond || c.TurnInterval > time.Minute:
		return c, fmt.Errorf("%w: TurnInterval is %v, not 1ms to 1m", ErrConfig, c.TurnInterval)
	}
	return c, nil
}

// sendEvery is how often each end sends a packet at least. With longer turns an end would look gone, and what is lost would wait for a turn.
func (c *Config) sendEvery() time.Duration { return min(c.TurnInterval, time.Second) }

// agreement is a number that differs when what must be agreed on differs.
func (c *Config) agreement() uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, wireVersion, c.Protocol, c.Players, c.MaxInput, c.InputRate, c.MaxDelay, c.TurnInterval, strings.Join(c.Parts, "\n"))
	return h.Sum32()
}

// maxRecord bounds the bytes of a turn's record: each player's input, and its events.
func (c *Config) maxRecord() int {
	return 64 + c.Players*(c.MaxInput+4) + c.maxEvents()*maxEventBytes
}

// longRecord is the bytes of a turn's record in the long run, when all players send as much as they may.
func (c *Config) longRecord() int { return 8 + c.Players*(c.InputRate+2) }

// maxEvents bounds the events of a turn: one of each kind and player, and two that are nobody's.
func (c *Config) maxEvents() int { return playerEvents*c.Players + 2 }

// inputSlots is the least power of two with room for the turns sealed and not executed.
func (c *Config) inputSlots() int {
	n := 4
	for n < c.MaxDelay+2 {
		n *= 2
	}
	return n
}

// StallPolicy is what the Host does when a player's commands are missing.
type StallPolicy uint8

const (
	// Wait stops the game until the commands come or the player is dropped.
	Wait StallPolicy = iota
	// Substitute continues without the player's commands after StallAfter, and ignores those that come too late. When
	// the game has waited ten times StallAfter for a player in all, it stops waiting for that player; it waits again as
	// the player's commands come in time. While players are heard and none's commands have come, it waits for the first of them: nobody is held, and where the
	// paths of all are longer than MaxDelay hides the game goes at their pace.
	Substitute
)

// HostConfig configures a Host. Config.Players is needed, and Secret unless transports are Proven; the rest has defaults.
type HostConfig struct {
	Config
	// InitialDelay is the input delay at turn 0, in turns, 1 to MaxDelay; default 2, or MaxDelay when that is less.
	InitialDelay int
	// Delay decides about the delay from then on; default NewAdaptiveDelay(). A FixedDelay keeps it constant.
	Delay DelayPolicy
	// DelayEvery is the number of turns between its decisions, 1 to 1048576; default 20.
	DelayEvery int

	// Stall is the policy; default Wait.
	Stall StallPolicy
	// Spectators is the number of places for spectators, 0 to MaxSpectators; default 0. They are numbered from Players
	// on, and the game never waits for them. SpectatorDelay is how many of the newest turns they don't get yet; default
	// 0. LogTurns, and LogBytes at InputRate, must hold twice as many turns.
	Spectators, SpectatorDelay int
	// StallAfter is how long Substitute waits for commands, in addition to TurnInterval, or after the first player's where those come later, up to 1 h; default
	// 150 ms. When it is shorter than the jitter, commands get lost.
	StallAfter time.Duration
	// DropAfter is how long a player's commands may be missing, in all, before it is dropped, four turns, or 4 s where those are
	// longer, to a year; default 10 s. Time counts while another player's commands have come, or while nobody was heard for a
	// second. Of a time in which the host stood still four turns count, and half of DropAfter at most. While a player's commands
	// come, it gets back StallPercent of the time.
	DropAfter time.Duration
	// StallPercent is the share of the time for which a player may stop the game in the long run, in percent, 1 to
	// 100; default 20. A machine whose turns take longer than TurnInterval by more than this is dropped in the end.
	StallPercent int
	// RejoinAfter is how long a player that was dropped for its missing commands waits until it may join again, up to a year;
	// default half of DropAfter. The wait doubles, up to 16*RejoinAfter, each time it is dropped again soon. A player that begins
	// a new session within RejoinAfter of joining waits as well. When the Host heard no player for a second before the
	// drop, there is no wait. A player whose commands came, but too late, joins again once its round trip is as short as the
	// delay hides, or as that of the nearest who plays where the delay doesn't hide that either: by Wait with StallPercent more, by Substitute with half
	// of that more, and StallAfter at most.
	RejoinAfter time.Duration
	// Secret is 32 random bytes, new for each Host. It makes Challenges unguessable, so nothing large is sent to an
	// address that didn't ask. It also tells this Host from others that take over the same game. Without it Connect
	// takes Proven transports only, and returns ErrTransport for others.
	Secret [32]byte

	// LogBytes and LogTurns bound the log that late joiners replay; defaults 2 MiB and 65536 turns, from two turns' bytes and 2*MaxDelay turns up to
	// 1 GiB and 16777216 turns. NewHost allocates them whole, with 24 bytes a turn besides. When the log is full, the oldest turns are dropped: a
	// peer that needs them needs a snapshot (SetSnapshot).
	LogBytes, LogTurns int
	// MaxSnapshot bounds SetSnapshot's data, in bytes, up to 2 GiB; default 1 MiB.
	MaxSnapshot int
	// Window bounds the bytes in flight to a player that catches up; default 16 KiB, MaxPacket to 1 GiB. A larger one
	// is faster on long paths, but overloads narrow ones.
	Window int
	// Resume continues the game of another host. Default nil: a new game.
	Resume *Resume
	// Rate bounds what is sent to one player, in bytes a second; default 256 KiB, 1 KiB to 1 GiB. A burst has 4
	// packets of MaxPacket at most. The rest waits.
	Rate int
}

func (c HostConfig) filled() (HostConfig, error) {
	var err error
	if c.Config, err = c.Config.filled(); err != nil {
		return c, err
	}
	c.InitialDelay = cmp.Or(c.InitialDelay, min(2, c.MaxDelay))
	c.DelayEvery = cmp.Or(c.DelayEvery, 20)
	c.StallAfter = cmp.Or(c.StallAfter, 150*time.Millisecond)
	c.DropAfter = cmp.Or(c.DropAfter, 10*time.Second)
	c.StallPercent = cmp.Or(c.StallPercent, 20)
	c.RejoinAfter = cmp.Or(c.RejoinAfter, c.DropAfter/2)
	c.LogBytes = cmp.Or(c.LogBytes, 2<<20)
	c.LogTurns = cmp.Or(c.LogTurns, 1<<16)
	c.MaxSnapshot = cmp.Or(c.MaxSnapshot, 1<<20)
	c.Window = cmp.Or(c.Window, 16<<10)
	c.Rate = cmp.Or(c.Rate, 256<<10)
	if c.Delay == nil {
		c.Delay = NewAdaptiveDelay()
	}
	switch {
	case c.InitialDelay < 1 || c.InitialDelay > c.MaxDelay:
		return c, fmt.Errorf("%w: InitialDelay is %d, not 1 to MaxDelay, %d", ErrConfig, c.InitialDelay, c.MaxDelay)
	case c.DelayEvery < 1 || c.DelayEvery > 1<<20:
		return c, fmt.Errorf("%w: DelayEvery is %d, not 1 to %d", ErrConfig, c.DelayEvery, 1<<20)
	case c.Stall > Substitute:
		return c, fmt.Errorf("%w: Stall is %d, not Wait or Substitute", ErrConfig, c.Stall)
	case c.StallAfter < 0 || c.StallAfter > time.Hour:
		return c, fmt.Errorf("%w: StallAfter is %v, not 0 to 1h", ErrConfig, c.StallAfter)
	case c.DropAfter < stillTurns*c.sendEvery() || c.DropAfter > 365*24*time.Hour:
		return c, fmt.Errorf("%w: DropAfter is %v, not %v, four turns or 4 s, to a year", ErrConfig, c.DropAfter, stillTurns*c.sendEvery())
	case c.StallPercent < 1 || c.StallPercent > 100:
		return c, fmt.Errorf("%w: StallPercent is %d, not 1 to 100", ErrConfig, c.StallPercent)
	case c.RejoinAfter < 0 || c.RejoinAfter > 365*24*time.Hour:
		return c, fmt.Errorf("%w: RejoinAfter is %v, not 0 to a year", ErrConfig, c.RejoinAfter)
	case c.LogBytes < 2*c.maxRecord() || c.LogBytes > maxBytes:
		return c, fmt.Errorf("%w: LogBytes is %d, not from two turns, %d bytes, to %d", ErrConfig, c.LogBytes, 2*c.maxRecord(), maxBytes)
	case c.LogTurns < 2*c.MaxDelay || c.LogTurns > maxLogTurns:
		return c, fmt.Errorf("%w: LogTurns is %d, not from twice MaxDelay, %d, to %d", ErrConfig, c.LogTurns, 2*c.MaxDelay, maxLogTurns)
	case c.Resume != nil && !c.Resume.valid(&c):
		return c, fmt.Errorf("%w: Resume isn't of a game with this Config", ErrConfig)
	case c.Spectators < 0 || c.Spectators > MaxSpectators:
		return c, fmt.Errorf("%w: Spectators is %d, not 0 to %d", ErrConfig, c.Spectators, MaxSpectators)
	case c.SpectatorDelay < 0 || c.SpectatorDelay > c.LogTurns/2:
		return c, fmt.Errorf("%w: SpectatorDelay is %d, not 0 to half of LogTurns, %d", ErrConfig, c.SpectatorDelay, c.LogTurns/2)
	case int64(c.SpectatorDelay)*int64(c.longRecord()) > int64(c.LogBytes/2):
		return c, fmt.Errorf("%w: LogBytes must hold the turns of twice SpectatorDelay, %d bytes each at InputRate", ErrConfig, c.longRecord())
	case c.MaxSnapshot < 0 || c.MaxSnapshot > math.MaxInt32:
		return c, fmt.Errorf("%w: MaxSnapshot is %d, not 0 to %d", ErrConfig, c.MaxSnapshot, math.MaxInt32)
	case c.Window < c.MaxPacket || c.Window > maxBytes:
		return c, fmt.Errorf("%w: Window is %d, not from MaxPacket, %d, to %d", ErrConfig, c.Window, c.MaxPacket, maxBytes)
	case c.Rate < 1024 || c.Rate > maxBytes:
		return c, fmt.Errorf("%w: Rate is %d, not from 1024 to %d", ErrConfig, c.Rate, maxBytes)
	}
	return c, nil
}

// PeerConfig configures a Peer.
type PeerConfig struct {
	Config
	// Player is this peer's number, from 0; from Config.Players on it is a spectator's.
	Player int
	// Session is the number of this session. It must be higher than those of the player's sessions before, since
	// Host.Connect: use Unix seconds, for example. Lower ones are denied (DenyStale), so that late packets of an old
	// session do no harm.
	Session uint32
	// Have is the number of turns that the game's state has executed, when it is kept from an earlier session;
	// 0 for a new state.
	Have int64
	// Generation is the Peer.Generation of that session; needed with Have. When the host doesn't know it, or these turns
	// may differ from its own, the host sends its snapshot instead of the turns from Have on. If it has none, it
	// denies the session (DenyTooOld).
	Generation int64
	// ReceiveBuffer bounds the turns received and not executed, in bytes, up to 1 GiB. Default 64 KiB, or the size of two turns, the
	// least, when that is more.
	ReceiveBuffer int
	// MaxSnapshot bounds the snapshot that the host may send, in bytes; default 1 MiB. A larger one is denied, or ends the
	// Peer with ErrSnapshotSize.
	MaxSnapshot int
	// Timeout is how long the host may be silent before the Peer ends with ErrTimeout, four turns, or 4 s where those are longer, 10 ms at least, to a year;
	// default 30 s, negative: forever. The host says something once a turn, or a second, and to who acks nothing once in four turns, or half a second: a shorter one ended the Peer when a packet or two were lost.
	Timeout time.Duration
}

func (c PeerConfig) filled() (PeerConfig, error) {
	var err error
	if c.Config, err = c.Config.filled(); err != nil {
		return c, err
	}
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.ReceiveBuffer = cmp.Or(c.ReceiveBuffer, max(64<<10, 2*c.maxRecord()))
	c.MaxSnapshot = cmp.Or(c.MaxSnapshot, 1<<20)
	switch {
	case c.Player < 0 || c.Player >= c.Players+MaxSpectators:
		return c, fmt.Errorf("%w: Player is %d, not 0 to %d", ErrConfig, c.Player, c.Players+MaxSpectators-1)
	case c.Have < 0 || c.Generation < 0:
		return c, fmt.Errorf("%w: Have is %d and Generation %d; neither may be negative", ErrConfig, c.Have, c.Generation)
	case c.MaxSnapshot < 0 || c.MaxSnapshot > math.MaxInt32:
		return c, fmt.Errorf("%w: MaxSnapshot is %d, not 0 to %d", ErrConfig, c.MaxSnapshot, math.MaxInt32)
	case c.Timeout > 0 && c.Timeout < max(10*time.Millisecond, stillTurns*c.sendEvery()) || c.Timeout > 365*24*time.Hour:
		return c, fmt.Errorf("%w: Timeout is %v, not %v, four turns or 4 s, to a year: the host says something once in %v", ErrConfig, c.Timeout,
			max(10*time.Millisecond, stillTurns*c.sendEvery()), c.sendEvery())
	case c.Have > 0 && c.Generation == 0:
		return c, fmt.Errorf("%w: Have without Generation", ErrConfig)
	case c.ReceiveBuffer < 2*c.maxRecord() || c.ReceiveBuffer > maxBytes:
		return c, fmt.Errorf("%w: ReceiveBuffer is %d, not from two turns, %d bytes, to %d", ErrConfig, c.ReceiveBuffer, 2*c.maxRecord(), maxBytes)
	}
	return c, nil
}
