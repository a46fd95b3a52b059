//go:build !unix

package main

import "syscall"

// apart leaves a process as it is.
func apart() *syscall.SysProcAttr { return nil }
