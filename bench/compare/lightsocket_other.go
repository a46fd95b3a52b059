//go:build !linux

package main

import (
	"errors"
	"net/netip"
)

const lightBatchSize = 1

// lightSocket is Linux's.
type lightSocket struct{ to netip.AddrPort }

func newLightSocket(netip.AddrPort) (*lightSocket, error) {
	return nil, errors.New("light clients need Linux")
}

func (*lightSocket) addr(int) netip.AddrPort             { return netip.AddrPort{} }
func (*lightSocket) write(int, []byte) error             { return nil }
func (*lightSocket) flush() error                        { return nil }
func (*lightSocket) read(func(int, []byte)) (int, error) { return 0, nil }
func (*lightSocket) close()                              {}
