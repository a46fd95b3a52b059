package paths_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/simtest/paths"
)

// A controller on a link of 10 Mbit/s with a round trip time of 50 ms, for 20 s of virtual time.
func ExampleNew() {
	controller, err := congestion.NewAdaptive(congestion.AdaptiveConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	link := &paths.Link{Rate: paths.Constant(10e6), Buffer: 200 * time.Millisecond, Delay: 25 * time.Millisecond}
	flow := &paths.Flow{Controller: controller, Tick: time.Second / 60, AckEvery: time.Second / 60}
	w := paths.New(1, link, flow)
	w.Run(20 * time.Second)
	fmt.Println("uses 90 %:", flow.Delivered(10*time.Second, 20*time.Second) > 9e6)
	// Output: uses 90 %: true
}
