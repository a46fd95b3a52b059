package main

import (
	"bytes"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// datagramSockets is the buffers of the process's UDP sockets, receiving and sending, by what no other socket is called. A descriptor's number comes again.
func datagramSockets(t *testing.T) map[string][2]int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][2]int{}
	for _, f := range files {
		fd, _ := strconv.Atoi(f.Name())
		if kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil || kind != syscall.SOCK_DGRAM {
			continue
		}
		name, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err != nil {
			continue // a peer closes its sockets when it likes
		}
		in, _ := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		out, _ := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		found[name] = [2]int{in, out}
	}
	return found
}

// TestEqualBuffers: every peer's sockets have the buffers that ours have, as far as the system allows; quic-go takes more where it can.
func TestEqualBuffers(t *testing.T) {
	opened := func(f func() (close func())) (list [][2]int) {
		before := datagramSockets(t)
		end := f()
		for name, b := range datagramSockets(t) {
			if _, was := before[name]; !was {
				list = append(list, b)
			}
		}
		end()
		return list
	}
	want := opened(func() func() {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.SetReadBuffer(socketBuffer), c.SetWriteBuffer(socketBuffer)
		return func() { _ = c.Close() }
	})[0]
	all, err := choose(&bytes.Buffer{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.TCP {
			continue // the system sizes its buffers
		}
		got := opened(func() func() {
			s, err := p.Listen(Options{}, func(Conn, []byte) {})
			if err != nil {
				t.Fatal(p.Name, err)
			}
			c, err := p.Dial(s.Addr(), Options{}, func(Conn, []byte) {})
			if err != nil {
				t.Fatal(p.Name, err)
			}
			return func() { _, _ = c.Close(), s.Close() }
		})
		if len(got) < 2 {
			t.Errorf("%s has %d sockets", p.Name, len(got))
		}
		for _, b := range got {
			if b[0] < want[0] || b[1] < want[1] || b != want && p.Name != "quic" && p.Name != "quic-dgram" {
				t.Errorf("%s: a socket has buffers of %d and %d bytes, not %d and %d", p.Name, b[0], b[1], want[0], want[1])
			}
		}
	}
}
