package udp

// Listen returns ErrUnsupported: a browser has no UDP sockets, and neither has WASI.
func Listen(string, Config) (Socket, error) { return nil, ErrUnsupported }

// IsTemporary returns false: without sockets there are no such errors.
func IsTemporary(error) bool { return false }
