package nettrace_test

import (
	"fmt"
	"os"
	"time"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// The last two events for a post-mortem, and all of them as lines.
func Example() {
	ring, lines := nettrace.NewRing(2), nettrace.NewJSONL(os.Stdout)
	sink := nettrace.Tee{ring, lines} // goes into driver.Config.Trace
	for i := range int64(3) {
		sink.Trace(&nettrace.Event{At: time.Duration(i) * time.Second, Conn: 1, Kind: nettrace.PacketSent, PacketID: i, A: 100})
	}
	if err := lines.Flush(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(ring.Len(), "of", ring.Total())
	// Output:
	// {"at":0.000000,"conn":1,"kind":"PacketSent","a":100}
	// {"at":1.000000,"conn":1,"kind":"PacketSent","packet":1,"a":100}
	// {"at":2.000000,"conn":1,"kind":"PacketSent","packet":2,"a":100}
	// 2 of 3
}
