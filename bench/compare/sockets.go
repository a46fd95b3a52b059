package main

// socketBuffer is what every peer asks of the system for each of its sockets, both ways: ours asks for as much by itself.
const socketBuffer = 4 << 20

// buffer is the size of a peer's sockets' buffers: small where a process has thousands of them.
func (o Options) buffer() int {
	if o.Many {
		return 256 << 10
	}
	return socketBuffer
}
