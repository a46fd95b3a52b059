//go:build !linux

package main

import "time"

var begin = time.Now()

// threadTime is the time that has passed, where a thread's own isn't known: other programs that use the machine count too.
func threadTime() time.Duration { return time.Since(begin) }
