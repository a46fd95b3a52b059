package rewind_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/rewind"
)

func Example() {
	history, err := rewind.New(rewind.Config[rewind.Vec]{
		Lerp: func(a, b rewind.Vec, t float64) rewind.Vec {
			for i := range a {
				a[i] += (b[i] - a[i]) * t
			}
			return a
		},
		Hitboxes: func(_ rewind.ID, at *rewind.Vec, dst []rewind.Capsule) []rewind.Capsule {
			return append(dst, rewind.Capsule{A: *at, B: rewind.Vec{at[0], at[1], at[2] + 1.4}, Radius: 0.4})
		},
	})
	if err != nil {
		panic(err)
	}
	runner := rewind.ID(7)
	for tick := range 31 { // a second, running at 6 m/s along x
		now := time.Duration(tick) * time.Second / 30
		if err := history.Begin(now); err != nil {
			panic(err)
		}
		if err := history.Add(runner, rewind.Vec{6 * now.Seconds(), 0, 0}); err != nil {
			panic(err)
		}
	}
	now, seen := time.Second, 800*time.Millisecond // what the shooter saw
	from, to := rewind.Vec{4.8, -30, 1}, rewind.Vec{4.8, 30, 1}
	hit, ok := history.At(now, seen).Ray(from, to, rewind.NoID)
	fmt.Printf("rewound: %v, entity %d, %.1f m away\n", ok, hit.ID, hit.T*60)
	_, ok = history.At(now, now).Ray(from, to, rewind.NoID)
	fmt.Printf("not rewound: %v\n", ok)
	// Output:
	// rewound: true, entity 7, 29.6 m away
	// not rewound: false
}
