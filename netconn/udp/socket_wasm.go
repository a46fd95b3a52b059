package udp

// Listen returns ErrUnsupported: there are no UDP sockets in a browser, nor in WASI.
func Listen(string, Config) (Socket, error) { return nil, ErrUnsupported }

// IsTemporary reports whether an error concerns one datagram only.
func IsTemporary(error) bool { return false }
