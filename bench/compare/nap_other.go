//go:build !linux

package main

import "time"

// nap sleeps as shortly as the system can.
func nap() { time.Sleep(time.Microsecond) }
