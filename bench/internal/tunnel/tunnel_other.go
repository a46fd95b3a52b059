//go:build !linux

package tunnel

import (
	"errors"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Tunnel is for Linux.
type Tunnel struct{}

// New says that there is none.
func New(netsim.Settings, uint64) (*Tunnel, error) { return nil, errors.New("a tunnel needs Linux") }

// Client does nothing.
func (*Tunnel) Client(func()) {}

// Server does nothing.
func (*Tunnel) Server(func()) {}

// Bytes is 0.
func (*Tunnel) Bytes() uint64 { return 0 }

// Close does nothing.
func (*Tunnel) Close() {}
