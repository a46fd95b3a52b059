package lockstep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"
)

const (
	// MaxPlayers is the most that fit the wire's masks.
	MaxPlayers = 64
	// wireVersion is in each Hello.
	wireVersion = 1
	// hashWindow is how many turns of hashes are kept, by a Peer until they are acked and by
	// the Host until they are judged.
	hashWindow = 256
	// headerBytes bound what a packet holds besides one turn's input and one hash.
	headerBytes = 96
)

// Transport takes packets for the other end, of at most Config.MaxPacket bytes; p is
// valid until the call returns. Packets may get lost, doubled and reordered, unless
// Config.Reliable says otherwise, but never damaged or forged. An error means that p was not
// taken; it is tried again later. Send must not call the Host or Peer back. A *link.Link is a
// Transport as it is.
type Transport interface {
	Send(now time.Duration, p []byte) error
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
	// MaxDelay bounds the input delay in turns, 1 to 60; default 16.
	MaxDelay int
	// TurnInterval is the time from turn to turn, the same as the game's; default 50 ms.
	TurnInterval time.Duration

	// MaxPacket is the size of the largest packet in bytes, 128 to 65507; default 1100. 255 over
	// package link. Both ends may differ.
	MaxPacket int
	// Reliable says that the transport delivers everything, in order, so that nothing needs to be
	// repeated. Both ends may differ.
	Reliable bool
}

func (c Config) filled() (Config, error) {
	c.MaxPacket = cmp.Or(c.MaxPacket, 1100)
	c.MaxInput = cmp.Or(c.MaxInput, min(256, c.MaxPacket-headerBytes))
	c.MaxDelay = cmp.Or(c.MaxDelay, 16)
	c.TurnInterval = cmp.Or(c.TurnInterval, 50*time.Millisecond)
	switch {
	case c.Players < 1 || c.Players > MaxPlayers:
		return c, fmt.Errorf("%w: Players %d", ErrConfig, c.Players)
	case c.MaxPacket < 128 || c.MaxPacket > 65507:
		return c, fmt.Errorf("%w: MaxPacket %d", ErrConfig, c.MaxPacket)
	case c.MaxInput < 2 || c.MaxInput > c.MaxPacket-headerBytes:
		return c, fmt.Errorf("%w: MaxInput %d", ErrConfig, c.MaxInput)
	case c.MaxDelay < 1 || c.MaxDelay > 60:
		return c, fmt.Errorf("%w: MaxDelay %d", ErrConfig, c.MaxDelay)
	case c.TurnInterval <= 0:
		return c, fmt.Errorf("%w: TurnInterval %v", ErrConfig, c.TurnInterval)
	}
	return c, nil
}

// agreement is a number that differs when what must be agreed on differs.
func (c *Config) agreement() uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, wireVersion, c.Protocol, c.Players, c.MaxInput, c.MaxDelay, c.TurnInterval)
	return h.Sum32()
}

// maxRecord bounds the bytes of a turn's record: each player's input, and three events.
func (c *Config) maxRecord() int { return 64 + c.Players*(c.MaxInput+4+3*maxEventBytes) }

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
	// Wait holds the game, and drops the player after DropAfter.
	Wait StallPolicy = iota
	// Substitute goes on without the player's commands after StallAfter; the commands that come
	// too late are ignored. The player is dropped after DropAfter.
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
	// StallAfter is how long, over TurnInterval, Substitute waits; default 150 ms. Too short and
	// jitter eats commands.
	StallAfter time.Duration
	// DropAfter is how long a player may stall the game or, by Substitute, be without commands;
	// default 10 s.
	DropAfter time.Duration

	// LogBytes and LogTurns bound the log that late joiners replay; defaults 1 MiB and 65536,
	// allocated at once (24 bytes a turn). When full the oldest turns go, and who needs them
	// needs a snapshot.
	LogBytes, LogTurns int
	// MaxSnapshot bounds SetSnapshot; default 1 MiB.
	MaxSnapshot int
	// Window bounds the bytes in flight to a player who catches up; default 16 KiB. Larger
	// is faster on long paths, and floods thin ones.
	Window int
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
	c.LogBytes = cmp.Or(c.LogBytes, 1<<20)
	c.LogTurns = cmp.Or(c.LogTurns, 1<<16)
	c.MaxSnapshot = cmp.Or(c.MaxSnapshot, 1<<20)
	c.Window = cmp.Or(c.Window, 16<<10)
	if c.Delay == nil {
		c.Delay = NewAdaptiveDelay()
	}
	switch {
	case c.InitialDelay < 1 || c.InitialDelay > c.MaxDelay:
		return c, fmt.Errorf("%w: InitialDelay %d", ErrConfig, c.InitialDelay)
	case c.DelayEvery < 1 || c.Stall > Substitute || c.StallAfter < 0 || c.DropAfter <= 0:
		return c, fmt.Errorf("%w: DelayEvery, Stall, StallAfter or DropAfter", ErrConfig)
	case c.LogBytes < 2*c.maxRecord() || c.LogTurns < 2*c.MaxDelay:
		return c, fmt.Errorf("%w: LogBytes must hold two turns, %d bytes, and LogTurns twice MaxDelay", ErrConfig, 2*c.maxRecord())
	case c.MaxSnapshot < 0 || c.Window < c.MaxPacket:
		return c, fmt.Errorf("%w: MaxSnapshot or Window", ErrConfig)
	}
	return c, nil
}

// PeerConfig of a Peer.
type PeerConfig struct {
	Config
	// Player is which one this is.
	Player int
	// Session numbers this session of the player: it must be above those before, as are the seconds of
	// the calendar. Lower ones are denied (DenyStale), so that late packets of an old session do no harm.
	Session uint32
	// Have is the number of turns executed in an earlier session whose game state was kept;
	// 0 for a new game state.
	Have int64
	// ReceiveBuffer bounds the bytes of turns received and not executed; default 64 KiB.
	ReceiveBuffer int
	// MaxSnapshot bounds the snapshot accepted; default 1 MiB.
	MaxSnapshot int
}

func (c PeerConfig) filled() (PeerConfig, error) {
	var err error
	if c.Config, err = c.Config.filled(); err != nil {
		return c, err
	}
	c.ReceiveBuffer = cmp.Or(c.ReceiveBuffer, max(64<<10, 2*c.maxRecord()))
	c.MaxSnapshot = cmp.Or(c.MaxSnapshot, 1<<20)
	switch {
	case c.Player < 0 || c.Player >= c.Players:
		return c, fmt.Errorf("%w: Player %d", ErrConfig, c.Player)
	case c.Have < 0 || c.MaxSnapshot < 0:
		return c, fmt.Errorf("%w: Have or MaxSnapshot", ErrConfig)
	case c.ReceiveBuffer < 2*c.maxRecord():
		return c, fmt.Errorf("%w: ReceiveBuffer must hold two turns, %d bytes", ErrConfig, 2*c.maxRecord())
	}
	return c, nil
}
