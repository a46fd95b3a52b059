//go:build !linux

package main

import (
	"errors"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// tunnel is for Linux.
type tunnel struct{}

func newTunnel(netsim.Settings, uint64) (*tunnel, error) {
	return nil, errors.New("a tunnel needs Linux")
}

func (*tunnel) connect(*Peer, Options, Handler, Handler) (Conn, func(), error) { return nil, nil, nil }
func (*tunnel) wireBytes() uint64                                              { return 0 }
func (*tunnel) close()                                                         {}
