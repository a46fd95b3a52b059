package ratelimit

import (
	"sync/atomic"
	"time"
)

// Lines lets one line of a log through in each second, whatever strangers do. Safe for concurrent use.
type Lines struct {
	last   atomic.Int64 // when the line before was written, as time.Time.UnixNano
	others atomic.Uint64
}

// Next reports whether a line may be written now, and how many weren't since the line before. A clock that was set back silences nothing.
func (l *Lines) Next(now time.Time) (others uint64, ok bool) {
	last, at := l.last.Load(), now.UnixNano()
	if since := at - last; since >= 0 && since < int64(time.Second) || !l.last.CompareAndSwap(last, at) {
		l.others.Add(1)
		return 0, false
	}
	return l.others.Swap(0), true
}
