//go:build !wasm

package udp

import "net"

// Plain returns a socket as Listen opens it on systems other than Linux.
func Plain(conn *net.UDPConn) Socket { return &plain{conn: conn} }
