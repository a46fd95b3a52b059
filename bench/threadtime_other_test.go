//go:build !linux

package bench

import "time"

var begun = time.Now()

// threadTime is the time that has passed, where a thread's own isn't known.
func threadTime() time.Duration { return time.Since(begun) }
