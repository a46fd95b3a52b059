package netclock_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
)

// A time that follows a target without ever going back.
func ExampleFollower() {
	f, err := netclock.NewFollower(netclock.FollowerConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Advance(0, time.Second)
	f.Advance(100*time.Millisecond, 1100*time.Millisecond)
	fmt.Println(f.Value())
	f.Advance(200*time.Millisecond, 1050*time.Millisecond) // the target went back: slower, that is all
	fmt.Println(f.Value())
	// Output:
	// 1.1s
	// 1.195s
}
