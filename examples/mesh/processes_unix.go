//go:build unix

package main

import (
	"os"
	"syscall"
)

// apart has a process not get the keyboard's interrupts, which are for the first one.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// standStill has a process stand still, as a virtual machine that is moved does, or go on.
func standStill(p *os.Process, still bool) error {
	if still {
		return p.Signal(syscall.SIGSTOP)
	}
	return p.Signal(syscall.SIGCONT)
}
