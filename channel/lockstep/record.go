package lockstep

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// EventKind says what an Event is about.
type EventKind uint8

const (
	// Joined: the player is in the game from this turn on. Its first commands are for the turn Delay turns later.
	Joined EventKind = 1
	// Dropped: the player is out from this turn on. Value is a DropReason.
	Dropped EventKind = 2
	// DelayChanged: the input delay is Value turns from this turn on.
	DelayChanged EventKind = 3
	// Desynced: the hash of the player's state after turn Value is Got. Want is the hash of more than half of the players
	// in the game, or the one given to Host.Judge.
	Desynced EventKind = 4
	// Split: after turn Value the players' hashes differ, and none is that of more than half of them, as always with
	// two players. So nobody can be named. Got is the hash of the players in the mask Who, Want that of another player.
	Split EventKind = 5
	// Unhashed: the player's hash of turn Value didn't come within 2*MaxDelay+16 turns, although its commands did. It is
	// reported once in a session.
	Unhashed EventKind = 6
	// Differs follows a Desynced or Split of turn Value: the parts in the mask Who of the player's state differ from
	// those of the players with the right hash, or after a Split from the lowest player's. Bit i is Config.Parts[i].
	Differs EventKind = 7
)

// DropReason is why a player is out.
type DropReason uint8

const (
	// DropStalled: its commands were missing for DropAfter in all, or it fell so far behind that its turns left the log.
	DropStalled DropReason = 1
	// DropRestarted: it began a new session.
	DropRestarted DropReason = 2
	// DropAsked: Host.Drop was called.
	DropAsked DropReason = 3
	// DropMended: Host.Mend was called; it gets the snapshot and will join again.
	DropMended DropReason = 4
	// DropResumed: another host, or a restarted one, has taken over the game, and the player hasn't joined there yet.
	DropResumed DropReason = 5
)

// Event is something that the Host decided or found. It is part of a turn, so all peers see it in the same turn.
type Event struct {
	Kind      EventKind
	Player    int
	Value     int64 // see the kinds; of Joined a number, higher each time that the player joins
	Got, Want uint64
	Who       uint64 // a mask of players, or of parts for Differs
}

const (
	maxEventBytes = 38
	// playerEvents is how many of a turn's events may be about one player.
	playerEvents = 5
)

func (e *Event) append(dst []byte) []byte {
	dst = append(dst, byte(e.Kind), byte(e.Player))
	dst = binary.AppendUvarint(dst, uint64(e.Value))
	if e.Kind == Desynced || e.Kind == Split {
		dst = binary.LittleEndian.AppendUint64(dst, e.Got)
		dst = binary.LittleEndian.AppendUint64(dst, e.Want)
	}
	if e.Kind == Split || e.Kind == Differs {
		dst = binary.AppendUvarint(dst, e.Who)
	}
	return dst
}

func readEvent(r *wire.Reader, c *Config) (e Event) {
	e.Kind, e.Player = EventKind(r.Uint8()), int(r.Uint8())
	e.Value = r.Count()
	if e.Kind == Desynced || e.Kind == Split {
		e.Got, e.Want = r.Uint64(), r.Uint64()
	}
	if e.Kind == Split || e.Kind == Differs {
		e.Who = r.Uvarint()
	}
	badDelay := e.Kind == DelayChanged && (e.Value < 1 || e.Value > int64(c.MaxDelay))
	badWho := e.Kind == Split && e.Who&^c.mask() != 0 || e.Kind == Differs && e.Who>>len(c.Parts) != 0
	if e.Kind < Joined || e.Kind > Differs || e.Player >= c.Players || badDelay || badWho {
		r.Bad = true
	}
	return e
}

const (
	hasEvents      = 1 << 0
	hasInputs      = 1 << 1
	hasSubstitutes = 1 << 2
)

// Turn is what all peers execute in the same way: first the events, then the players' commands in the order of
// the players.
type Turn struct {
	// N is the turn's number, from 0.
	N int64
	// Delay is the input delay in turns, after this turn's events.
	Delay int
	// Events, in order. Valid until Done.
	Events []Event
	// Substituted is a mask of the players whose commands are missing because the host didn't wait for them.
	Substituted uint64

	present uint64
	inputs  [MaxPlayers][]byte
}

// Commands yields each player's number with one of its commands: in the order of the players, and for one player in the
// order of Submit. The bytes are valid until Done.
func (t *Turn) Commands() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for m := t.present; m != 0; m &= m - 1 {
			p := bits.TrailingZeros64(m)
			for in := t.inputs[p]; len(in) > 0; {
				var cmd []byte
				cmd, in = splitCommand(in)
				if !yield(p, cmd) {
					return
				}
			}
		}
	}
}

// splitCommand takes the first command off an input that was checked.
func splitCommand(in []byte) (cmd, rest []byte) {
	size, n := binary.Uvarint(in)
	end := n + int(size)
	return in[n:end:end], in[end:]
}

// checkInput reports whether in is a sequence of commands, none of them empty.
func checkInput(in []byte) bool {
	for len(in) > 0 {
		size, n := binary.Uvarint(in)
		if n <= 0 || size == 0 || size > uint64(len(in)-n) {
			return false
		}
		in = in[n+int(size):]
	}
	return true
}

// append appends the turn's record without its length.
func (t *Turn) append(dst []byte) []byte {
	flags := byte(0)
	if len(t.Events) > 0 {
		flags |= hasEvents
	}
	if t.present != 0 {
		flags |= hasInputs
	}
	if t.Substituted != 0 {
		flags |= hasSubstitutes
	}
	dst = append(dst, flags)
	if len(t.Events) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(t.Events)))
		for i := range t.Events {
			dst = t.Events[i].append(dst)
		}
	}
	if t.Substituted != 0 {
		dst = binary.AppendUvarint(dst, t.Substituted)
	}
	if t.present != 0 {
		dst = binary.AppendUvarint(dst, t.present)
		for m := t.present; m != 0; m &= m - 1 {
			in := t.inputs[bits.TrailingZeros64(m)]
			dst = binary.AppendUvarint(dst, uint64(len(in)))
			dst = append(dst, in...)
		}
	}
	return dst
}

// parse reads a record; what it holds aliases p. It reports whether p is a whole, sound record.
func (t *Turn) parse(p []byte, c *Config) bool {
	r := wire.Reader{P: p}
	t.Events, t.Substituted, t.present = t.Events[:0], 0, 0
	flags := r.Uint8()
	if flags&hasEvents != 0 {
		n := r.Uvarint()
		if n > uint64(c.maxEvents()) {
			return false
		}
		for ; n > 0 && !r.Bad; n-- {
			t.Events = append(t.Events, readEvent(&r, c))
		}
	}
	if flags&hasSubstitutes != 0 {
		t.Substituted = r.Uvarint()
	}
	if flags&hasInputs != 0 {
		t.present = r.Uvarint()
	}
	if (t.present|t.Substituted)&^c.mask() != 0 {
		return false
	}
	for m := t.present; m != 0 && !r.Bad; m &= m - 1 {
		in := r.Bytes(c.MaxInput)
		t.inputs[bits.TrailingZeros64(m)] = in
		r.Bad = r.Bad || len(in) == 0 || !checkInput(in)
	}
	return !r.Bad && len(r.P) == 0 && flags&^(hasEvents|hasInputs|hasSubstitutes) == 0
}

// mask has a bit for each player.
func (c *Config) mask() uint64 { return ^uint64(0) >> (MaxPlayers - c.Players) }
