//go:build unix

package main

import "syscall"

// apart has a process not get the keyboard's interrupts, which are for the first one.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
