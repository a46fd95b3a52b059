//go:build !js

package udp

import (
	"errors"
	"syscall"
)

// IsTemporary reports whether an error of a Socket concerns one datagram or one moment
// only: no buffer space, a peer whose port is closed, a datagram too large for the path.
// The socket goes on.
func IsTemporary(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOBUFS, syscall.EAGAIN, syscall.ECONNREFUSED, syscall.EMSGSIZE, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH, syscall.EPERM, syscall.EINTR, syscall.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
