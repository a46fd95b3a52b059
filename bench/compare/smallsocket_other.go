//go:build !linux

package main

import (
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// smallSocket has few buffers, for clients of which a process has thousands.
type smallSocket struct{ udp.Socket }

func (smallSocket) BatchSize() int { return smallBatch }

func newSmallSocket(netip.AddrPort) (udp.Socket, error) {
	s, err := udp.Listen("127.0.0.1:0", udp.Config{NoOffload: true, ReadBuffer: 64 << 10, WriteBuffer: 64 << 10})
	return smallSocket{s}, err
}
