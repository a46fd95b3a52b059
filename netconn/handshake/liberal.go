package handshake

import "github.com/bunchnet/bunchnet/netconn/handler"

// What a known peer of version 3 does differently as a server, and how it is told apart:
//
//   - It asks for a restart in the form of version 0: magic, handshake 1, restart 1, terminator.
//     No packet of a later version is that short.
//   - It repeats an Ack in the form of version 0: 227 bits, timestamp -1. In any other packet
//     of that size 67 bits would have to be like that by chance.
//   - Its restart request in a later form would have the type of a Challenge, but no cookie.

// originalBits is the size of a version 0 packet with a cookie, from the handshake bit to the terminator.
const originalBits = 2 + cookieBits

// readOriginalReply reads a reply in the form of version 0 that came in a later version.
func (p *Protocol) readOriginalReply(b []byte) (pk Packet, ok bool) {
	if !p.OriginalReplies || p.Version == Original {
		return pk, false
	}
	n, err := handler.StripTerminator(b)
	if n -= p.MagicBits; err != nil || n != 2 && n != originalBits {
		return pk, false
	}
	original := Protocol{Magic: p.Magic, MagicBits: p.MagicBits}
	pk, err = original.Read(b, true)
	if err != nil {
		return pk, false
	}
	pk.original = true
	return pk, n == 2 || pk.Timestamp == -1 // of the first size only a restart request can be read
}

// mendType sees a restart request in a Challenge without a cookie.
func (p *Protocol) mendType(pk *Packet, bits int, fromServer bool) {
	if p.OriginalReplies && fromServer && pk.Type == Challenge && pk.Restart && bits < cookieBits {
		pk.Type = RestartHandshake
	}
}
