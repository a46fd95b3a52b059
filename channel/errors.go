package channel

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch"
)

// Errors returned to the caller. Nothing was queued or sent, except perhaps for ErrNotSent of a bunch with several parts; see SendBunch.
var (
	// ErrReliableFull: too many reliable bunches of the channel aren't acked, or those of all channels take more than
	// half of MaxMemory. Send again after some were acked, or send less.
	ErrReliableFull = errors.New("channel: reliable buffer full; wait for acks before sending more")
	// ErrClosed: the channel is closing or gone, or the connection is.
	ErrClosed = errors.New("channel: closed")
	// ErrNotOpener: only the end that opened a channel may close it.
	ErrNotOpener = errors.New("channel: the peer opened this channel, so it must close it; ask it to")
	// ErrUnknownType: the name isn't among the channel types of the Config.
	ErrUnknownType = errors.New("channel: unknown channel type; it must be among the channel types of the Config at both ends")
	// ErrMayNotOpen: this end may not open channels of the type.
	ErrMayNotOpen = errors.New("channel: this end may not open that type of channel; set ClientOpen or ServerOpen of the type at both ends")
	// ErrNoIndex: all channel indices are taken.
	ErrNoIndex = errors.New("channel: no free channel index; close channels first")
	// ErrIndexInUse: the type's fixed index is taken.
	ErrIndexInUse = errors.New("channel: the channel's fixed index is in use")
	// ErrNotSent: an unreliable bunch can't be sent now, and such bunches don't wait. Either the packet window has no room for all of it. Or the bunch needs
	// splitting while parts of a split reliable payload of the channel still wait. Or the channel's open isn't acked, and no copy of it can be
	// sent along.
	ErrNotSent = errors.New("channel: unreliable bunch not sent; the packet window is full, the rest of a split bunch waits, or the channel's open isn't acked and can't be sent along")
	// ErrControlQueueFull: too much is queued on the control channel.
	ErrControlQueueFull = errors.New("channel: control queue full; the peer acks nothing")
	// ErrFirstReliable: the first bunch of a channel opens it, and so must be reliable, or sent by SendTemporary.
	ErrFirstReliable = errors.New("channel: the first bunch of a channel must be reliable, or sent by SendTemporary")
	// ErrMemory: the peer makes this end hold more than Config.MaxMemory. Channel.Hold returns it; a handler may end the
	// connection with it.
	ErrMemory = errors.New("channel: more than MaxMemory bytes held for the peer")
	// ErrTooLarge: the payload is over bunch.MaxPayload. Or it is reliable and takes more bunches than ReliableBuffer,
	// or more than half of MaxMemory.
	ErrTooLarge = bunch.ErrTooLarge
)

// Errors of a peer that breaks the protocol. Each ends the connection.
var (
	ErrBadIndex          = errors.New("channel: channel index out of range")
	ErrWrongType         = errors.New("channel: channel name differs from the channel's")
	ErrExportsFromClient = errors.New("channel: a client sent package map exports")
	ErrNoControl         = errors.New("channel: bunch before the control channel was opened")
	ErrControlClose      = errors.New("channel: control channel closed before it was opened")
	ErrAlreadyOpen       = errors.New("channel: open for a channel that we opened; with Unreal's protocols only one end may open channels")
	ErrReliableNotOpen   = errors.New("channel: reliable bunch on a channel that isn't open")
	ErrSequenceAhead     = errors.New("channel: ChSequence too far ahead of the last one released")
	ErrOverflow          = errors.New("channel: reliable buffer overflow")
)

var errCloseReason = errors.New("channel: a close reason must be below 15")

var errControlTemporary = errors.New("channel: the control channel can't be temporary")

// Why ErrReliableFull, where it isn't the channel's own buffer. A sender meets these again and again, so they are made once.
var (
	errIndexFull  = fmt.Errorf("%w: an earlier channel of its index left too many unacked", ErrReliableFull)
	errMemoryFull = fmt.Errorf("%w: what waits for acks takes all that MaxMemory has for it", ErrReliableFull)
)
