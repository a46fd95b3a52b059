package rollback

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"time"
)

// Bounds of a Config.
const (
	MaxPlayers    = 8
	MaxSpectators = 8
	MaxInputSize  = 32
	// CheckEvery is how many frames apart checksums are compared.
	CheckEvery = 16

	maxRollback = 16
	maxDelay    = 16

	defaultDropAfter = 5 * time.Second
)

// Errors. Those of Receive mean that the whole packet was refused.
var (
	// ErrConfig is wrapped by errors about a Config or an argument out of range.
	ErrConfig = errors.New("rollback: config out of range; see its fields")
	// ErrInput is Step's error for an input that hasn't InputSize bytes.
	ErrInput = errors.New("rollback: an input must have Config.InputSize bytes")
	// ErrNoPlayer is the error for a number that is no other player's, nor a spectator's, or that isn't connected.
	ErrNoPlayer = errors.New("rollback: no such other player or spectator")
	// ErrMalformed refuses a packet that can't be parsed with this Config's Players and InputSize.
	ErrMalformed = errors.New("rollback: malformed packet; drop it")
	// ErrAgreement refuses a packet of another Session, or of a Config with other Players, InputSize or FrameTime.
	ErrAgreement = errors.New("rollback: packet of another session, or Configs differ; drop it")
	// ErrAhead refuses a packet about frames more than 128 ahead of this machine's, or that acks inputs never sent.
	ErrAhead = errors.New("rollback: packet is too far ahead; drop it")
	// ErrBehind ends a Watcher that needs frames that aren't kept any more. Begin another from a newer state.
	ErrBehind = errors.New("rollback: this spectator needs frames that aren't kept any more; begin again from a newer state")
	// ErrDropped ends a Session when the others say for a second that they have dropped this player or Drop was called for it, and a Watcher that is connected to such a player.
	ErrDropped = errors.New("rollback: the others have dropped this player, or it has left")
	// ErrDesync is wrapped by SyncTest's error when simulating again gives another state.
	ErrDesync = errors.New("rollback: the game isn't deterministic, or doesn't save all of its state")
)

// Game is the game's simulation. A Session calls it only within Step.
type Game interface {
	// Save appends the whole state to dst. The same state must give the same bytes on all machines.
	Save(dst []byte) []byte
	// Load sets the state to one that Save appended.
	Load(state []byte)
	// Advance simulates a frame. inputs has InputSize bytes for each player, valid until it returns.
	Advance(frame int64, inputs [][]byte)
}

// Config configures a Session. All machines need the same Session, Players, InputSize and FrameTime.
type Config struct {
	// Session is a number for this session, new each time, so that late packets of an earlier one are refused. The lobby
	// must hand it out.
	Session uint64
	// Players is the number of players, 2 to 8. Local is the number of this machine's player, from 0.
	Players, Local int
	// InputSize is the size of an input in bytes, 1 to 32.
	InputSize int
	// Delay is how many frames later this player's input takes effect, 0 to 16. Each frame of it saves the others a frame
	// of prediction. Default 2; negative: 0. Machines may differ.
	Delay int
	// MaxRollback bounds the frames simulated without another player's input, 1 to 16. Default 8. Machines may differ.
	MaxRollback int
	// FrameTime is the time from frame to frame, 1 ms to 1 s. Default 1/60 s.
	FrameTime time.Duration
	// DropAfter is how long another player may be silent before it is dropped, two FrameTimes, 10 ms at least, to a year. Default 5 s; negative:
	// forever, and only Drop drops players. A player or spectator that is silent for longer (5 s when negative) gets one packet a second.
	DropAfter time.Duration
	// MaxPacket bounds a packet, in bytes, 128 to 1400. Default 400. Over package link packets have 255 at most.
	MaxPacket int
	// SpectatorDelay is how many frames before the final ones spectators see, 0 to 512. Default 0.
	SpectatorDelay int
	// Event gets the session's events, from within Receive, Step, Tick and Drop. May be nil.
	Event func(Event)
}

// Event is something that the game or its players should know.
type Event struct {
	Kind   EventKind
	Player int
	// Frame is, of Dropped, the first frame in which the player's input is zeros; of Desynced, the frame before which the
	// states differ; of Silent, the next frame; of Behind, the frame that the spectator needs.
	Frame int64
	// Got and Want are, of Desynced, the checksums of the other player's state and of this machine's.
	Got, Want uint64
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds.
const (
	// Started: all players were heard, and frames begin.
	Started EventKind = iota + 1
	// Silent: a player was silent for DropAfter, given to Drop, here or on another machine, or has left. It is dropped when all agree
	// on its last frame.
	Silent
	// Dropped: a player was dropped; its input is zeros from Frame on.
	Dropped
	// Desynced: another player's state differs from this machine's. Which one is wrong isn't known. Reported once for each
	// player.
	Desynced
	// Behind: a spectator needs frames that aren't kept any more. Player is its number, Players or more.
	Behind
)

// String is the kind in words.
func (k EventKind) String() string {
	names := [...]string{Started: "started", Silent: "silent", Dropped: "dropped", Desynced: "desynced", Behind: "behind"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// filled is the config with its defaults, or what is wrong with it.
func (c Config) filled() (Config, error) {
	c.MaxRollback, c.FrameTime = cmp.Or(c.MaxRollback, 8), cmp.Or(c.FrameTime, time.Second/60)
	c.DropAfter, c.MaxPacket = cmp.Or(c.DropAfter, defaultDropAfter), cmp.Or(c.MaxPacket, 400)
	if c.Delay = cmp.Or(c.Delay, 2); c.Delay < 0 {
		c.Delay = 0
	}
	switch {
	case c.Players < 2 || c.Players > MaxPlayers:
		return c, fmt.Errorf("%w: Players is %d, not 2 to %d", ErrConfig, c.Players, MaxPlayers)
	case c.Local < 0 || c.Local >= c.Players:
		return c, fmt.Errorf("%w: Local is %d of %d players", ErrConfig, c.Local, c.Players)
	case c.InputSize < 1 || c.InputSize > MaxInputSize:
		return c, fmt.Errorf("%w: InputSize is %d, not 1 to %d", ErrConfig, c.InputSize, MaxInputSize)
	case c.Delay > maxDelay:
		return c, fmt.Errorf("%w: Delay is %d, more than %d", ErrConfig, c.Delay, maxDelay)
	case c.MaxRollback < 1 || c.MaxRollback > maxRollback:
		return c, fmt.Errorf("%w: MaxRollback is %d, not 1 to %d", ErrConfig, c.MaxRollback, maxRollback)
	case c.FrameTime < time.Millisecond || c.FrameTime > time.Second:
		return c, fmt.Errorf("%w: FrameTime is %v, not 1 ms to 1 s", ErrConfig, c.FrameTime)
	case c.DropAfter > 0 && c.DropAfter < max(10*time.Millisecond, 2*c.FrameTime) || c.DropAfter > 365*24*time.Hour:
		return c, fmt.Errorf("%w: DropAfter is %v, not two FrameTimes, %v, 10ms at least, to a year", ErrConfig, c.DropAfter, 2*c.FrameTime)
	case c.MaxPacket < 128 || c.MaxPacket > 1400:
		return c, fmt.Errorf("%w: MaxPacket is %d, not 128 to 1400", ErrConfig, c.MaxPacket)
	case c.SpectatorDelay < 0 || c.SpectatorDelay > logFrames/2:
		return c, fmt.Errorf("%w: SpectatorDelay is %d, not 0 to %d", ErrConfig, c.SpectatorDelay, logFrames/2)
	}
	if need := packetHead + sectionHead + c.Players*c.InputSize; need > c.MaxPacket {
		return c, fmt.Errorf("%w: MaxPacket is %d, but one frame of all players' inputs takes %d", ErrConfig, c.MaxPacket, need)
	}
	return c, nil
}

// agreement is a hash of what all machines must have in common.
func (c *Config) agreement() uint32 {
	h := fnv.New32a()
	b := binary.LittleEndian.AppendUint64([]byte{wireVersion, byte(c.Players), byte(c.InputSize)}, c.Session)
	_, _ = h.Write(binary.LittleEndian.AppendUint64(b, uint64(c.FrameTime)))
	return h.Sum32()
}
