//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// apart leaves a process as it is.
func apart() *syscall.SysProcAttr { return nil }

func standStill(*os.Process, bool) error {
	return errors.New("a process can't be stopped and go on here")
}
