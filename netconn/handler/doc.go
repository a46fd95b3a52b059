// Package handler wraps packets. A chain of components writes prefixes before a
// packet's content, as Unreal's PacketHandler does with its HandlerComponents. The
// stateless handshake is such a component: it writes magic, session and client ids, and a handshake bit.
//
//	[prefix of component 0][prefix of component 1] ... [content][1][1][0..7 zeros]
//	                                                             |  terminator of the chain
//	                                                             terminator of the content
//
// A terminator is a single 1 bit. After the last one of a packet come zeros up to a whole byte.
// The content has its own terminator. The chain adds one more, however many components it has.
// So a game packet has two, and a handshake packet, which no chain wraps, has one (Unreal 4.18
// to 5.8, recorded for 4.27 and 5.1). A prefix may have any number of bits: the content begins
// at the next bit. Prefixes are written first, so nothing is shifted.
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
// Package coding repairs lost packets with symbols that later packets carry. It isn't a component of a chain, because it writes behind a packet's
// content and needs packet numbers. Set netconn's Config.Coding to use it.
//
// A component can't delay packets, change their content or use a clock. Encryption seals
// whole packets of bytes. So it isn't a component but a link of netconn/driver.
package handler
