package main

import "syscall"

// nap sleeps for a fifth of a millisecond; time.Sleep rounds up to one.
func nap() { _ = syscall.Nanosleep(&syscall.Timespec{Nsec: 200_000}, nil) }
