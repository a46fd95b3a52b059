package ice

import "bytes"

// What netcode 1.02 sends (netconn/WIRE.md): requests begin with 0 and the version, sealed packets with their type and the bytes of their sequence.
const (
	netcodeVersion = "NETCODE 1.02\x00"
	netcodeTypes   = 7
	netcodeMAC     = 16
)

// sealed reports whether a datagram has the form of netcode's. A relay is a stranger's machine, so nothing else goes there.
func sealed(p []byte) bool {
	if len(p) == 0 {
		return false
	}
	if p[0] == 0 {
		return bytes.HasPrefix(p[1:], []byte(netcodeVersion))
	}
	kind, n := int(p[0]&15), int(p[0]>>4)
	return kind >= 1 && kind < netcodeTypes && n >= 1 && n <= 8 && len(p) >= 1+n+netcodeMAC
}
