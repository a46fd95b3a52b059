package packetnotify

import "testing"

// checkInvariants checks the formulas at the type Notify, for one that was
// initialized.
func checkInvariants(t testing.TB, n *Notify, where string) {
	t.Helper()
	inFlight := n.outSeq - n.outAckSeq - 1
	limit := int64(n.records.limit)
	if limit == 0 {
		limit = defaultRecords
	}
	held := n.records.next - n.records.first
	switch {
	case n.inAckSeq > n.inSeq:
		t.Fatalf("%s: acked %d, accepted only %d", where, n.inAckSeq, n.inSeq)
	case n.outAckSeq >= n.outSeq:
		t.Fatalf("%s: %d is known, %d is the next to be sent", where, n.outAckSeq, n.outSeq)
	case n.told > n.outAckSeq:
		t.Fatalf("%s: the peer is told of %d, known is %d", where, n.told, n.outAckSeq)
	case n.writtenAck > n.inAckSeq:
		t.Fatalf("%s: written %d, acked only %d", where, n.writtenAck, n.inAckSeq)
	case held != min(inFlight, limit):
		t.Fatalf("%s: %d records with %d in flight", where, held, inFlight)
	case held > 0 && n.records.next != n.outSeq:
		t.Fatalf("%s: records end at %d, sent up to %d", where, n.records.next, n.outSeq)
	case n.inAckSeq == n.inSeq && n.inAckSeqAck > n.inAckSeq:
		t.Fatalf("%s: the peer knows %d, acked only %d", where, n.inAckSeqAck, n.inAckSeq)
	case n.waitingFlush > n.outSeq:
		t.Fatalf("%s: waits for %d, which isn't the next", where, n.waitingFlush)
	}
}
