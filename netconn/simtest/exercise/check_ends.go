package exercise

import (
	"github.com/bunchnet/bunchnet/netconn"
)

// checkResult checks how an end ended by itself: among honest ends nobody breaks a rule.
func (e *end) checkResult() {
	switch r := e.result; {
	case r.Code == netconn.PeerBroke || r.Code == netconn.WeBroke:
		e.g.w.Failf("ends", "%v: %v", e, r)
	case r.Code == netconn.ClosedByUs && e.said == "" && e.joined:
		e.g.w.Failf("ends", "%v says it closed, but nobody asked: %v", e, r)
	case r.Code == netconn.TimedOut && r.Silence < e.g.opt.timeout:
		e.g.w.Failf("ends", "%v timed out after %v of silence", e, r.Silence)
	case r.Code == netconn.Running:
		e.g.w.Failf("ends", "%v ended, but runs", e)
	}
}

// compareEnds checks the two ends of each connection against each other, when all have ended.
func (g *Game) compareEnds() {
	for _, e := range g.ends {
		if e.peer == nil || g.w.Failure() != nil {
			continue
		}
		e.compareFates()
		if e.result == nil || e.peer.result == nil {
			continue // one crashed
		}
		if a, b := e.result, e.peer.result; a.Code == netconn.ClosedByPeer && b.Code == netconn.ClosedByPeer && !e.linkSays() && !e.peer.linkSays() {
			g.w.Failf("ends", "%v and %v both say that the other closed: %v, %v", e, e.peer, a, b)
		}
		if a := e.result; a.Code == netconn.ClosedByPeer && !e.linkSays() && !e.peer.aborted && a.Reason != e.peer.said {
			g.w.Failf("ends", "%v heard %q, but %v said %q", e, a.Reason, e.peer, e.peer.said)
		}
	}
}

// linkSays reports whether the link below said that the peer is gone, in words of its own.
func (e *end) linkSays() bool {
	switch e.result.Reason {
	case "", "the client goes", "the server goes", "the client drops it":
		return false
	}
	return e.peer == nil || e.result.Reason != e.peer.said
}

// compareFates checks what the end believes to have arrived against what its peer got.
func (e *end) compareFates() {
	s := e.conn.Stats().Packets
	refused := int(e.peer.conn.Counters.Refused)
	if s.WindowFull > 0 || e.g.opt.protocol.PacketWindow > 256 {
		refused = -1
	}
	e.fates.Compare(e.peer.fates, refused)
}
