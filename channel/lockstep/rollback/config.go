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
	// CheckEvery is in every how many frames checksums are compared.
	CheckEvery = 16

	maxRollback = 16
	maxDelay    = 16

	defaultDropAfter = 5 * time.Second
)

// Errors. Those of Receive mean that the packet was dropped whole.
var (
	// ErrConfig is wrapped by what is wrong with a Config.
	ErrConfig = errors.New("rollback: config out of range; see its fields")
	// ErrInput is Step's error for an input of another size than InputSize.
	ErrInput = errors.New("rollback: an input has InputSize bytes")
	// ErrNoPlayer is the error for a player, or spectator, that isn't there, or is this machine's own.
	ErrNoPlayer = errors.New("rollback: no such other player")
	// ErrMalformed refuses a packet that can't be parsed, or not with these players and inputs.
	ErrMalformed = errors.New("rollback: malformed packet; drop it")
	// ErrAgreement refuses a packet of another session, or of a game with other settings.
	ErrAgreement = errors.New("rollback: packet of another session, or Configs differ; drop it")
	// ErrAhead refuses a packet about frames that can't be yet.
	ErrAhead = errors.New("rollback: packet is too far ahead; drop it")
	// ErrBehind ends a Watcher that needs frames which aren't kept any more: begin another from a newer state.
	ErrBehind = errors.New("rollback: this spectator needs frames that aren't kept any more")
	// ErrDropped ends a Session whose player the others have dropped.
	ErrDropped = errors.New("rollback: the others have dropped this player")
	// ErrDesync is SyncTest's error.
	ErrDesync = errors.New("rollback: the game isn't deterministic, or doesn't save all of its state")
)

// Game is what is simulated. A Session calls it within Step only.
type Game interface {
	// Save appends the whole state to dst. The same state must give the same bytes on all machines.
	Save(dst []byte) []byte
	// Load takes up a state that Save gave.
	Load(state []byte)
	// Advance simulates a frame: inputs has one of InputSize bytes for each player, valid until it returns.
	Advance(frame int64, inputs [][]byte)
}

// Config is the settings of a Session. All machines must have the same Session, Players, InputSize and FrameTime.
type Config struct {
	// Session tells sessions apart: late packets of one before are refused. The lobby hands it out.
	Session uint64
	// Players is how many there are, 2 to 8, Local this machine's, from 0 on.
	Players, Local int
	// InputSize is the bytes of an input, 1 to 32.
	InputSize int
	// Delay is after how many frames the own input is felt, 0 to 16: each frame of it spares the others a frame of repeated inputs. Default 2; negative
	// 0. Machines may differ.
	Delay int
	// MaxRollback is how many frames are simulated without the others' inputs at most, 1 to 16. Default 8. Machines may differ.
	MaxRollback int
	// FrameTime is the time from frame to frame. Default 1/60 s.
	FrameTime time.Duration
	// DropAfter is how long another player may be silent. Default 5 s; negative for ever: then Drop is the game's. Who isn't heard for so long (5 s
	// when negative), a spectator too, gets one packet a second.
	DropAfter time.Duration
	// MaxPacket is the bytes of a packet at most, 128 to 1400. Default 400; 255 over package link.
	MaxPacket int
	// SpectatorDelay is how many frames spectators are kept behind what is final.
	SpectatorDelay int
	// Event is told what happens, from within Receive, Step, Tick and Drop. May be nil.
	Event func(Event)
}

// Event is something that the game, or its players, should know.
type Event struct {
	Kind   EventKind
	Player int
	// Frame is the one from which a dropped player's input is zeros, or before which the states differ.
	Frame int64
	// Got is the checksum of the other player's state, Want of this machine's.
	Got, Want uint64
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds.
const (
	// Started: everybody is there, and frames begin.
	Started EventKind = iota + 1
	// Silent: nothing was heard of a player for DropAfter, or another says so; the others are agreeing on its last frame.
	Silent
	// Dropped: a player is out.
	Dropped
	// Desynced: the state of another player is another. Told once of each player; which of the two is wrong isn't known.
	Desynced
	// Behind: a spectator, by its number from Players on, needs frames that aren't kept any more.
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
	case c.MaxPacket < 128 || c.MaxPacket > 1400:
		return c, fmt.Errorf("%w: MaxPacket is %d, not 128 to 1400", ErrConfig, c.MaxPacket)
	case c.SpectatorDelay < 0 || c.SpectatorDelay > logFrames/2:
		return c, fmt.Errorf("%w: SpectatorDelay is %d, not 0 to %d", ErrConfig, c.SpectatorDelay, logFrames/2)
	}
	if need := packetHead + sectionHead + c.Players*c.InputSize; need > c.MaxPacket {
		return c, fmt.Errorf("%w: MaxPacket is %d; inputs of all players take %d", ErrConfig, c.MaxPacket, need)
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
