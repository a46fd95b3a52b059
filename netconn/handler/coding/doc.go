// Package coding repairs lost packets without asking for them again: sliding-window random linear coding over GF(2^8), of the kind that RFC
// 8681 describes for streams. The sender adds repair symbols to its packets. Each is a combination of the last few packets. The receiver
// computes lost packets as soon as it has as many symbols as there are lost packets in what these cover.
//
//	enc.Add(id, content, false)                          // of each packet sent
//	c, size := enc.Covers(carrier, window)
//	p = enc.AppendSymbol(p, carrier, k, c, size)         // rides in packet number carrier
//
//	dec.Add(id, content)                                 // of each packet received
//	dec.Symbol(carrier, k, c, symbol)
//	for id, content, ok := dec.Next(before); ok; ...     // what was lost, in the order of ids
//
// It has no clock, no randomness of its own and, once its buffers have grown to the packets, no allocation. How many symbols are
// sent, and when, is netconn's business.
//
// # Content
//
// A packet's content is what stands behind the packet header: the acks in there are older than those of the packet that brings
// the symbol. It ends with the end mark, so that its last byte isn't zero; that is why a symbol needs no length of what it covers.
// Shorter contents count as continued with zeros to the length of the symbol.
//
// # A symbol
//
// Symbol k, 0 to 2, in the packet with the sequence s (14 bits) covers packets among the n before that, 1 to 16. It is the sum of
// coefficient times content, as long as the longest content. The newest of the n has the coefficient 1, and those before it,
// the newest of them first, have
//
//	x = (4*s + k + 1) * 0x9e3779b1        modulo 2^32
//	for each packet:
//		x ^= x << 13; x ^= x >> 17; x ^= x << 5
//		coefficient = 1 + 255*(x >> 16) >> 16
//
// also where one isn't covered. None is zero, and products are those of polynomials modulo x^8+x^4+x^3+x^2+1.
//
// # The end of a packet
//
// No packet ends with a zero byte, as its end mark is in the last one. A datagram that does has a trailer, read from its end:
//
//	bytes     field
//	...       the packet, as without coding
//	size * k  symbols
//	2         when not all of the n are covered: those that are, the low byte and the newest packet's bit first
//	1 or 2    when k > 0, size: below 128 one byte when all are covered; otherwise its high bits, with 128 when not all
//	          are covered, and a byte of its low 7 and 128
//	f         packets repaired: bit i is packet AckedSeq-i of this packet's header, the low byte first; the last byte isn't 0
//	1         n-1 4 | k 2 << 4 | f 2 << 6
//	1         0
//
// k and f are 3 at most, and not both 0. A datagram without a packet says that its sender understands this:
//
//	1         version, 3
//	1         1: the peer's was received; 0: an answer is asked for
//	1         0
//	1         0
//
// # Bounds
//
//	packets that a decoder keeps      32, the newest: what is older isn't repaired
//	symbols that it keeps             16; one more replaces the one with the oldest packet
//	memory of an encoder              16 contents
//	memory of a decoder               32 contents and 17 symbols of the largest size, when all were seen; 59 kB with packets of 1200 bytes
//	work                              64 bytes combined for each byte of packets and symbols that came, and 256 KiB saved up; what would take more isn't
//	                                  repaired. Packets and symbols of one size take 49 at most
//
// Products are those of klauspost/reedsolomon, which has SIMD for amd64, arm64 and ppc64. A false symbol can't be told from a true one, other than by a content that is empty, or a sum
// that should be zero and isn't (Counters.Inconsistent); it only spoils packets of the peer that sent it, and who takes what was
// repaired treats it as a packet of the peer's.
package coding
