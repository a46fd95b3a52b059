package netconn

import (
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/handler/coding"
)

// coded is packets of the client's, each but the first with a symbol over those before it that aren't acked.
func (h *hand) coded(n int) (sent [][]byte) {
	for len(sent) < n {
		sent = append(sent, h.packet(0, true))
	}
	return sent
}

// covers is how many packets the symbol of a packet covers.
func covers(t *testing.T, p []byte) int {
	t.Helper()
	_, trailer, ok := coding.Split(p)
	require.True(t, ok)
	return bits.OnesCount16(uint16(trailer.Covers))
}

// plain takes the symbols off a packet.
func plain(t *testing.T, p []byte) []byte {
	t.Helper()
	if !coding.Marked(p) {
		return p
	}
	packet, _, ok := coding.Split(p)
	require.True(t, ok)
	return packet
}

// begun has the server know symbols, so that it waits for what may be repaired.
func (h *hand) begun() {
	for range 3 {
		for _, p := range h.coded(3) {
			h.give(0, p)
		}
		h.exchange()
		h.exchange()
	}
	require.NotNil(h.t, h.conns[1].coder.dec)
	require.Positive(h.t, h.conns[1].coder.holds(h.now))
	h.tick(0)
	h.deliver(0)
}

// TestRepairedBehindTheLast: a late packet with which a later one is repaired has that processed at once, and not with the next packet or tick.
func TestRepairedBehindTheLast(t *testing.T) {
	h := codingHand(t)
	h.begun()
	sent := h.coded(5)
	require.GreaterOrEqual(t, covers(t, sent[3]), 3)
	server := h.conns[1]
	in, before := server.notify.InID(), server.Counters.Repaired
	h.give(0, sent[3])
	h.give(0, sent[0])
	require.Equal(t, in+1, server.notify.InID())
	h.give(0, plain(t, sent[1])) // so the symbol in sent[3] misses sent[2] alone
	require.Equal(t, before+1, server.Counters.Repaired)
	require.Equal(t, in+4, server.notify.InID())
	require.Zero(t, server.order.held)
}

// TestLateContentRepairs: a packet that comes when it was given up already says what another one was, whose reliable bunches are taken.
func TestLateContentRepairs(t *testing.T) {
	h := codingHand(t)
	h.begun()
	server := h.conns[1]
	sent := h.coded(3)
	require.GreaterOrEqual(t, covers(t, sent[2]), 2)
	h.give(0, sent[2])
	late, in := server.Counters.RepairedLate, server.notify.InID()
	h.now += longestHold + time.Millisecond
	server.PostTickDispatch(h.now)
	require.Equal(t, in+3, server.notify.InID(), "both are given up")
	released := server.Table().Counters.ReceivedReliable
	h.give(0, plain(t, sent[1]))
	require.Equal(t, late+1, server.Counters.RepairedLate)
	require.Equal(t, released+1, server.Table().Counters.ReceivedReliable, "that of the first")
}

// TestHopelessHoldsNothingUp: packets that wait for one that no symbol covers go on as soon as that is known.
func TestHopelessHoldsNothingUp(t *testing.T) {
	h := codingHand(t)
	h.begun()
	server := h.conns[1]
	sent := h.coded(windowAlone + 4)
	last := len(sent) - 1
	require.Less(t, covers(t, sent[last]), last)
	in := server.notify.InID()
	for _, p := range sent[1:last] {
		h.give(0, plain(t, p))
	}
	require.Equal(t, in, server.notify.InID(), "the first may be repaired yet")
	h.give(0, sent[last])
	require.Equal(t, in+int64(len(sent)), server.notify.InID())
	require.Zero(t, server.order.held)
}

// TestTailOfNothing: symbols that are owed over packets which are all acked by now cost one packet at most.
func TestTailOfNothing(t *testing.T) {
	h := codingHand(t)
	h.begun()
	client := h.conns[0]
	for _, p := range h.coded(2) {
		h.give(0, plain(t, p))
	}
	h.exchange()
	h.exchange()
	client.coder.enc.Forget(client.notify.OutID())
	client.coder.credit, client.coder.uncovered = 2, 2 // as when the ack came as the symbols were due
	before := client.Counters.PacketsSent
	for range 4 { // sooner than keep-alives
		h.now += tailRepair + time.Millisecond
		client.Tick(h.now)
	}
	require.Equal(t, before+1, client.Counters.PacketsSent)
	require.Zero(t, client.coder.uncovered)
}
