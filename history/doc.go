// Package history is the record of which packets arrived: the ack bitfield that
// rides in every packet header (Unreal's TSequenceHistory, 4.19 and later).
//
//	word 0                                word 1           ... word 7
//	bit 0   1   2  ...                31  0   1  ...           31
//	  |   |   |                        |
//	  |   |   two before the newest    31 before              255 before
//	  |   one before the newest
//	  the newest packet
//
// A set bit says delivered; a clear one lost, refused or not yet seen. On the wire
// each word is 32 bits, word 0 first, and a packet carries as many words as the
// peer still has to learn (1 to 8).
//
// The subpackages do the arithmetic of sequences: seqnum compares and expands
// them, ring indexes what is remembered about them, replay refuses those that come
// again.
package history
