// Package handler wraps packets: a chain of components that put a prefix before a
// packet's content, as Unreal's PacketHandler does with its HandlerComponents. The
// stateless handshake is one (magic, session and client ids, handshake bit).
//
//	[prefix of component 0][prefix of component 1] ... [content][1][1][0..7 zeros]
//	                                                             |  terminator of the chain
//	                                                             terminator of the content
//
// A terminator is a lone 1 bit; behind the last one of a packet come zeros to a whole byte.
// The content brings its own, the chain adds exactly one however many components it
// has, so that a game packet ends in two and a handshake packet, which no chain
// wraps, in one (Unreal 4.18 to 5.8, recorded for 4.27 and 5.1). Prefixes need not be whole bytes: the
// content simply begins at the next bit, and nothing is shifted, since the prefixes
// are written first.
//
//	chain.Begin(&w)               // prefixes
//	... the content ...
//	handler.WriteTerminator(&w)   // the content's
//	chain.End(&w)                 // the chain's
//
//	err := chain.Incoming(&r, p)  // takes the chain's terminator and the prefixes off
//	r.StripTerminator()           // and the content's
//
// A packet that is empty, or whose last byte is zero, has no terminator and is an error.
//
// Package coding repairs lost packets with symbols behind later ones. It isn't a component of a chain, as it stands behind packets, and
// needs their numbers: netconn's Config.Coding has it.
//
// The package refuses to hold packets back, to change their content, or to keep time.
// Components that seal whole packets (encryption) are not handlers here but links of
// netconn/driver, since they work on bytes.
package handler
