package netclock

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// ErrMessage is wrapped by errors about a peer's message.
var ErrMessage = errors.New("netclock: malformed message")

const (
	maxTime = time.Duration(1 << 62)
	maxHeld = 10 * time.Second
)

// Answer is the whole server. It reads a request that arrived at arrived, and writes the reply, sent at now, both in the
// server's time. It keeps no state, so strangers' requests cost no memory.
func Answer(now, arrived time.Duration, r *bitio.Reader, w *bitio.Writer) error {
	number := r.ReadUint16()
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	held := now - arrived
	if arrived < 0 || arrived > maxTime || held < 0 || held > maxHeld {
		return fmt.Errorf("netclock: arrived at %v and answered at %v: give both in the server's time, from 0 on and at most %v apart", arrived, now, maxHeld)
	}
	mark := w.Mark()
	w.WriteUint16(number)
	w.WriteIntPacked64(uint64(arrived / time.Microsecond))
	w.WriteIntPacked(uint32(held / time.Microsecond))
	if err := w.Err(); err != nil {
		w.Rollback(mark)
		return fmt.Errorf("netclock: a reply takes up to 136 bits: %w", err)
	}
	return nil
}

func readReply(r *bitio.Reader) (number uint16, server, held time.Duration, err error) {
	number = r.ReadUint16()
	at := r.ReadIntPacked64()
	h := r.ReadIntPacked()
	if err := r.Err(); err != nil {
		return 0, 0, 0, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if at > uint64(maxTime/time.Microsecond) || h > uint32(maxHeld/time.Microsecond) {
		return 0, 0, 0, fmt.Errorf("%w: server time %d µs, held for %d µs", ErrMessage, at, h)
	}
	return number, time.Duration(at) * time.Microsecond, time.Duration(h) * time.Microsecond, nil
}
