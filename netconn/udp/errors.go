//go:build !wasm

package udp

import (
	"errors"
	"syscall"
)

// IsTemporary reports whether an error of a Socket concerns only one datagram or one moment,
// so that the socket stays usable. Such errors are: no buffer space, a peer whose port is
// closed, a datagram too large for the path, and an address that nothing can be sent to, which a
// stranger may forge: with port 0, or in the network of a tunnel that has nobody of this address.
func IsTemporary(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOBUFS, syscall.EAGAIN, syscall.ECONNREFUSED, syscall.EMSGSIZE, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH, syscall.EPERM, syscall.EINTR, syscall.ECONNRESET,
		syscall.EINVAL, syscall.EACCES, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EHOSTDOWN, syscall.ENETDOWN,
		syscall.ENOMEM, syscall.ENODEV, syscall.ENXIO, syscall.EDESTADDRREQ, errNoKey} {
		if errors.Is(err, e) {
			return true
		}
	}
	var e syscall.Errno
	return errors.As(err, &e) && winsock[e]
}

// winsock is the same in the numbers of Windows, which no other system has.
var winsock = map[syscall.Errno]bool{
	10004: true, // interrupted
	10013: true, // access denied
	10022: true, // invalid argument
	10035: true, // would block
	10040: true, // datagram too large, of a stranger's too
	10047: true, // address family
	10049: true, // address not available
	10050: true, // network down
	10051: true, // network unreachable
	10052: true, // network reset
	10054: true, // a peer's port is closed
	10055: true, // no buffer space
	10061: true, // refused
	10064: true, // host down
	10065: true, // host unreachable
}
