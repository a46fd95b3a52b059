package lockstep

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

// A replay file is a magic number and then chunks. It may end anywhere: the whole chunks are used.
//
//	file:     "BNLS" | version 8 | chunks
//	chunk:    type 8 | size 32 | payload | CRC-32C 32 of type, size and payload
//	header:   protocol 32 | players v | max input v | input rate v | max delay v | turn interval ns v |
//	          part count v, each: size v | name | setup
//	turns:    first v | each: size v | record as in the stream | hash 64
//	snapshot: turn v | delay 8 | active v | data
//	index:    turns' end v | count v | each snapshot: turn v | offset v
//	trailer:  index offset 64 | "SLNB", after an index, which is the last chunk
const (
	replayMagic   = "BNLS"
	replayTrailer = "SLNB"
	replayVersion = 1

	chunkHeader   = 1
	chunkTurns    = 2
	chunkSnapshot = 3
	chunkIndex    = 4

	chunkHead    = 5
	chunkTail    = 4
	trailerBytes = 12
	// turnsChunk is when a chunk of turns is written.
	turnsChunk = 16 << 10
)

var (
	// ErrReplay is wrapped by errors about a replay file's content.
	ErrReplay = errors.New("lockstep: replay file")
	// ErrReplayOrder is the Recorder's error for a turn, or a snapshot, that isn't the next one.
	ErrReplayOrder = errors.New("lockstep: replays need every turn, in order; begin one in the middle with a snapshot")
	// ErrReplayTurn is SeekTurn's error for a turn outside of the replay.
	ErrReplayTurn = errors.New("lockstep: turn isn't in the replay")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// replaySnapshot is where a snapshot is in the file.
type replaySnapshot struct{ turn, offset int64 }

func appendHeader(dst []byte, c *Config, setup []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, c.Protocol)
	for _, v := range []int64{int64(c.Players), int64(c.MaxInput), int64(c.InputRate), int64(c.MaxDelay), int64(c.TurnInterval), int64(len(c.Parts))} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	for _, name := range c.Parts {
		dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
	}
	return append(dst, setup...)
}

func readHeader(p []byte) (c Config, setup []byte, ok bool) {
	r := wire.Reader{P: p}
	c.Protocol = r.Uint32()
	c.Players, c.MaxInput, c.InputRate, c.MaxDelay = r.Small(), r.Small(), r.Small(), r.Small()
	c.TurnInterval = time.Duration(r.Count())
	parts := r.Small()
	if parts > maxParts {
		return c, nil, false
	}
	for range parts {
		c.Parts = append(c.Parts, string(r.Bytes(len(r.P))))
	}
	if r.Bad || c.Players == 0 || c.MaxInput == 0 || c.InputRate == 0 || c.MaxDelay == 0 || c.TurnInterval == 0 || len(r.P) > MaxSetup {
		return c, nil, false // zeros would become defaults
	}
	c.MaxPacket = min(max(c.MaxInput+headerBytes, 1100), 65507)
	c, err := c.filled()
	return c, r.P, err == nil
}
