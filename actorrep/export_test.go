package actorrep

import (
	"unsafe"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// SetFrame puts a server's World close to where its frames wrap, or past many Steps in which nothing was to be done.
func (w *World) SetFrame(frame uint32) { w.frame = frame }

// SpendIDs makes as if all ids had been given.
func (w *World) SpendIDs() {
	*(*uint32)(unsafe.Pointer(&w.ids)) = 1<<31 - 1
}

// SeedsOf is for the tests of outside.
func SeedsOf(n uint64) uint64 { return seedsOf(n) }

// Referring is how many mirrors a client keeps because they have references with notifies.
func Referring(w *World) int { return len(w.client.referring) }

// Missed is how many actors have disappeared at a client and are still to be looked for among the references.
func Missed(w *World) int { return len(w.client.missed) }

// CompareOnCoresFrom sets how many views are told on several cores.
func (w *World) CompareOnCoresFrom(views int) { w.compares.from = views }

// AnswerAgain has a client send another answer to the server's classes.
func AnswerAgain(w *World) (err error) {
	for ch := range w.client.conn.Table().All {
		if h, is := ch.Handler().(*replicationHandler); is {
			a := bitio.NewWriter(make([]byte, 100))
			writeAnswer(a, h.schema, "")
			_, err = ch.SendBunch(&bunch.Out{Data: a.Bytes(), Bits: a.Len(), Reliable: true})
		}
	}
	return err
}

// DescribeWithoutMemory has a client hear of the server's classes on a connection that holds all it may.
func DescribeWithoutMemory(w *World) (err error) {
	for ch := range w.client.conn.Table().All {
		if h, is := ch.Handler().(*replicationHandler); is {
			for n := ch.MaxHold(); n > 0; n /= 2 {
				for ch.Hold(n) == nil {
				}
			}
			h.client.schema, h.read = nil, schemaReader{}
			data, _ := w.encodeSchema()
			err = h.message(bitio.NewReader(data, len(data)*8))
		}
	}
	return err
}

// ByHand makes a connection one of addConnByHand.
func ByHand(p *Peer) {
	p.world.relevancy.RemovePeer(p)
	p.byHand = true
}

// WaitsForRoom has an actor's end wait for room on its connection, or wait no more.
func WaitsForRoom(p *Peer, waits bool) {
	p.gone = nil
	if waits {
		p.gone = []farewell{{}}
	}
}

// KeptCalls is the acked and unacked calls that a client keeps of its actors, and their bytes.
func KeptCalls(w *World) (calls, bytes int) {
	for _, b := range w.actors {
		for _, k := range b.mirror.unacked {
			calls, bytes = calls+1, bytes+len(k.call.data)
		}
	}
	return calls, bytes
}

// Bounds of the calls that a client keeps.
const MaxAcked, MaxAckedBytes = maxAcked, maxAckedBytes

// KeptByServer is the calls that a server keeps of an actor's owner.
func KeptByServer(p *Peer, a Actor) int {
	if c := p.views[a.base()].carry; c != nil {
		return len(c.kept)
	}
	return 0
}

// LengthenCall makes the i-th call that waits at a client larger, as one that another connection accepted may be.
func LengthenCall(a Actor, i, bytes int) {
	k := a.base().mirror.calls[i]
	k.data, k.bits = append(k.data, make([]byte, bytes)...), k.bits+bytes*8
}
