//go:build !linux && !wasm

package udp

import (
	"net"
	"syscall"
)

const errNoKey = syscall.EDESTADDRREQ // only Linux has one of its own

// Listen opens a socket at an address like ":7777", "127.0.0.1:0" (any free port) or "[::1]:7777".
func Listen(addr string, cfg Config) (Socket, error) {
	if cfg.ReusePort {
		return nil, ErrReusePort
	}
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(cfg.ReadBuffer) // the system's default serves too
	_ = conn.SetWriteBuffer(cfg.WriteBuffer)
	return &plain{conn: conn}, nil
}
