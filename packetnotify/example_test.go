package packetnotify_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// A handler of a game would send again what was lost.
type handler struct{}

func (handler) PacketAcked(id int64) { fmt.Println("acked", id) }
func (handler) PacketLost(id int64)  { fmt.Println("lost", id) }

func Example() {
	var a, b packetnotify.Notify
	a.Init(packetnotify.Config{}, 500, 1000)
	b.Init(packetnotify.Config{}, 1000, 500)

	send := func(n *packetnotify.Notify) []byte {
		w := bitio.NewWriter(make([]byte, 64))
		n.WriteHeader(w)
		// bunches go here
		fmt.Println("sent", n.Commit())
		return w.Bytes()
	}
	receive := func(n *packetnotify.Notify, packet []byte) {
		var h packetnotify.Header
		err := h.Read(bitio.NewReader(packet, len(packet)*8))
		if err != nil {
			return // a stranger's
		}
		if _, process := n.Update(&h, handler{}); process {
			// bunches are read here
			n.AckSeq(true)
		}
	}
	receive(&b, send(&a))
	send(&a) // this one is lost
	receive(&b, send(&a))
	receive(&a, send(&b))
	// Output:
	// sent 1000
	// sent 1001
	// sent 1002
	// sent 500
	// acked 1000
	// lost 1001
	// acked 1002
}
