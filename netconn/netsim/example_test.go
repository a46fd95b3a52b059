package netsim_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// One direction of a network that loses a half and takes 50 ms.
func Example() {
	link, err := netsim.NewLink(netsim.Settings{Loss: 50, Lag: 50 * time.Millisecond}, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 1000 {
		link.Push(0, []byte("a datagram"))
	}
	_, early := link.Pop(49 * time.Millisecond)
	arrived := 0
	for _, ok := link.Pop(50 * time.Millisecond); ok; _, ok = link.Pop(50 * time.Millisecond) {
		arrived++
	}
	fmt.Println(early, arrived > 450 && arrived < 550)
	// Output: false true
}
