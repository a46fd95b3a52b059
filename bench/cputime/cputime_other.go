//go:build !linux

package cputime

import "time"

var begin = time.Now()

// Thread is the time that has passed, where a thread's own isn't known: other programs that use the machine count too.
func Thread() time.Duration { return time.Since(begin) }
