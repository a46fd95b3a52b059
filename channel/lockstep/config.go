package lockstep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

const (
	// MaxPlayers is the most that fit the wire's masks.
	MaxPlayers = 64
	// MaxSpectators is the most besides MaxPlayers.
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
)

// Transport takes packets for the other end, of at most Config.MaxPacket bytes; p is
// valid until the call returns. Packets may get lost, doubled and reordered, unless the
// Transport says otherwise, but never damaged or forged. An error means that p was not
// taken; it is tried again later. Send must not call the Host or Peer back. A *link.Link is a
// Transport as it is.
//
// A Transport may have more methods, as OnChannel has:
//
//	Proven() bool    its peer is who it says and gets what is sent to it; without it the Host needs a Secret
//	Reliable() bool  it delivers everything, in order, so that nothing is repeated; without it what isn't acked
//	                 is sent again, which only costs bytes
//	Ready() bool     there is bandwidth for more than a packet in each TurnInterval; without it there always is
//	MaxPacket() int  the largest packet that isn't split beneath, in bytes, or 0 while it isn't known; larger
//	                 ones aren't sent, whatever Config.MaxPacket says
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

// checkTransport is an error when a turn's commands don't fit what t carries.
func (c *Config) checkTransport(t Transport) error {
	if n := packetLimit(t, c.MaxPacket); n < c.MaxInput+headerBytes {
		return fmt.Errorf("%w: the transport's packets have %d bytes; MaxInput may be %d at most", ErrPacketSize, n, n-headerBytes)
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

// Config is what all of a game must agree on, and how its packets travel.
type Config struct {
	// Protocol numbers the game and its version; peers with another are denied.
	Protocol uint32
	// Players is the number of places, 1 to MaxPlayers. Players are numbered from 0.
	Players int
	// MaxInput bounds the bytes of a player's commands in one turn, each with one or two bytes for
	// its length; default 256, or as much as MaxPacket allows. At most MaxPacket-96.
	MaxInput int
	// InputRate bounds the bytes of a player's commands in the long run, in bytes a turn; default 16, or
	// MaxInput when that is less. What isn't used adds up to 8*MaxInput.
	InputRate int
	// MaxDelay bounds the input delay in turns, 1 to 60; default 16.
	MaxDelay int
	// TurnInterval is the time from turn to turn, the same as the game's; default 50 ms.
	TurnInterval time.Duration
	// Parts names the parts of the state whose hashes are given to Done one by one, so that after a desync a
	// Differs event says which are wrong: up to 32, for example units, economy, projectiles.
	Parts []string

	// MaxPacket is the size of the largest packet in bytes, 128 to 65507; default 1100. 255 over
	// package link. Both ends may differ.
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
		return c, fmt.Errorf("%w: Players %d", ErrConfig, c.Players)
	case c.MaxPacket < 128 || c.MaxPacket > 65507:
		return c, fmt.Errorf("%w: MaxPacket %d", ErrConfig, c.MaxPacket)
	case c.MaxInput < 2 || c.MaxInput > c.MaxPacket-headerBytes:
		return c, fmt.Errorf("%w: MaxInput %d", ErrConfig, c.MaxInput)
	case c.InputRate < 1 || c.InputRate > c.MaxInput:
		return c, fmt.Errorf("%w: InputRate %d", ErrConfig, c.InputRate)
	case c.MaxDelay < 1 || c.MaxDelay > 60:
		return c, fmt.Errorf("%w: MaxDelay %d", ErrConfig, c.MaxDelay)
	case len(c.Parts) > maxParts:
		return c, fmt.Errorf("%w: %d Parts", ErrConfig, len(c.Parts))
	case c.TurnInterval <= 0:
		return c, fmt.Errorf("%w: TurnInterval %v", ErrConfig, c.TurnInterval)
	}
	return c, nil
}

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

// StallPolicy is what the Host does about a player whose commands don't come.
type StallPolicy uint8

const (
	// Wait holds the game until the commands come or the player is dropped.
	Wait StallPolicy = iota
	// Substitute goes on without the player's commands after StallAfter; commands that come
	// too late are ignored. A player for whom the game has waited ten times StallAfter in all isn't waited for.
	Substitute
)

// HostConfig of a Host. Config.Players is needed; the rest has defaults.
type HostConfig struct {
	Config
	// InitialDelay is the input delay in turns to begin with; default 2.
	InitialDelay int
	// Delay decides about the delay later on; default NewAdaptiveDelay(). FixedDelay keeps it.
	Delay DelayPolicy
	// DelayEvery is the number of turns between its decisions; default 20.
	DelayEvery int

	// Stall is the policy; default Wait.
	Stall StallPolicy
	// Spectators is the number of places for those who only watch, up to MaxSpectators: they are numbered from
	// Players on, and nothing they do or don't do holds the game. SpectatorDelay keeps the newest turns from them; the log must hold twice as many,
	// in LogTurns and in LogBytes.
	Spectators, SpectatorDelay int
	// StallAfter is how long, over TurnInterval, Substitute waits; default 150 ms. Too short and
	// jitter eats commands.
	StallAfter time.Duration
	// DropAfter is how long a player's commands may be missing in all before it is dropped, while another's have come or nobody is heard; default
	// 10 s. It gets back StallPercent of the time in which its commands come.
	DropAfter time.Duration
	// StallPercent is the share of the time for which a player may hold the game in the long run, 1 to
	// 100; default 20. A machine that takes longer for a turn than TurnInterval and this share is dropped in the end.
	StallPercent int
	// RejoinAfter is how long a dropped player waits until it may join again; default half of DropAfter. It
	// doubles, up to 16 times that, for who is dropped again soon. A player that is back within RejoinAfter of its
	// last join waits as well. Nobody waits who was dropped while the Host heard none of the others either.
	RejoinAfter time.Duration
	// Secret makes the answers to strangers unguessable, so that nothing large is sent to an address that
	// didn't ask, and tells the Host from another one that takes the same game up: 32 random bytes, new for each Host. Without it Connect takes
	// transports only that are Proven.
	Secret [32]byte

	// LogBytes and LogTurns bound the log that late joiners replay; defaults 2 MiB and 65536,
	// allocated at once (24 bytes a turn). When full the oldest turns go, and who needs them
	// needs a snapshot.
	LogBytes, LogTurns int
	// MaxSnapshot bounds SetSnapshot; default 1 MiB.
	MaxSnapshot int
	// Window bounds the bytes in flight to a player who catches up; default 16 KiB. Larger
	// is faster on long paths, and floods thin ones.
	Window int
	// Resume takes up the game of another host, instead of beginning one.
	Resume *Resume
	// Rate bounds what is sent to one player, in bytes a second; default 256 KiB, at least 1 KiB. Bursts are of
	// 4 packets. What the transport doesn't take waits as well.
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
		return c, fmt.Errorf("%w: InitialDelay %d", ErrConfig, c.InitialDelay)
	case c.DelayEvery < 1 || c.Stall > Substitute || c.StallAfter < 0 || c.DropAfter <= 0,
		c.StallPercent < 1 || c.StallPercent > 100 || c.RejoinAfter < 0:
		return c, fmt.Errorf("%w: DelayEvery, Stall, StallAfter, DropAfter, StallPercent or RejoinAfter", ErrConfig)
	case c.LogBytes < 2*c.maxRecord() || c.LogTurns < 2*c.MaxDelay:
		return c, fmt.Errorf("%w: LogBytes must hold two turns, %d bytes, and LogTurns twice MaxDelay", ErrConfig, 2*c.maxRecord())
	case c.Resume != nil && !c.Resume.valid(&c):
		return c, fmt.Errorf("%w: Resume", ErrConfig)
	case c.Spectators < 0 || c.Spectators > MaxSpectators || c.SpectatorDelay < 0 || c.SpectatorDelay > c.LogTurns/2:
		return c, fmt.Errorf("%w: Spectators or SpectatorDelay", ErrConfig)
	case int64(c.SpectatorDelay)*int64(c.longRecord()) > int64(c.LogBytes/2):
		return c, fmt.Errorf("%w: LogBytes must hold the turns of twice SpectatorDelay, %d bytes each at InputRate", ErrConfig, c.longRecord())
	case c.MaxSnapshot < 0 || c.Window < c.MaxPacket || c.Rate < 1024:
		return c, fmt.Errorf("%w: MaxSnapshot, Window or Rate", ErrConfig)
	}
	return c, nil
}

// PeerConfig of a Peer.
type PeerConfig struct {
	Config
	// Player is which one this is; Config.Players and above are spectators.
	Player int
	// Session numbers this session of the player: it must be above those before since Host.Connect, as are the seconds of
	// the calendar. Lower ones are denied (DenyStale), so that late packets of an old session do no harm.
	Session uint32
	// Have is the number of turns executed in an earlier session whose game state was kept;
	// 0 for a new game state.
	Have int64
	// Generation is that of the host with which they were executed, Peer.Generation; needed with Have. A host that doesn't know it, or another one of a game that
	// went on with two, gives its state instead of what comes after Have, or denies the session (DenyTooOld) when it has none.
	Generation int64
	// ReceiveBuffer bounds the bytes of turns received and not executed; default 64 KiB.
	ReceiveBuffer int
	// MaxSnapshot bounds the snapshot accepted; default 1 MiB.
	MaxSnapshot int
	// Timeout ends the Peer when nothing was heard of the host for so long; default 30 s, negative: never.
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
		return c, fmt.Errorf("%w: Player %d", ErrConfig, c.Player)
	case c.Have < 0 || c.Generation < 0 || c.MaxSnapshot < 0 || c.MaxSnapshot > 1<<31-1:
		return c, fmt.Errorf("%w: Have, Generation or MaxSnapshot", ErrConfig)
	case c.Have > 0 && c.Generation == 0:
		return c, fmt.Errorf("%w: Have without Generation", ErrConfig)
	case c.ReceiveBuffer < 2*c.maxRecord():
		return c, fmt.Errorf("%w: ReceiveBuffer must hold two turns, %d bytes", ErrConfig, 2*c.maxRecord())
	}
	return c, nil
}
