package prediction_test

import (
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A train on a line: its input is the throttle, its state where it is, in metres.
func Example() {
	model := prediction.Model[float64, int]{
		Simulate:   func(x *float64, throttle int, dt time.Duration) { *x += float64(throttle) * dt.Seconds() },
		Distance:   func(a, b *float64) float64 { return max(*a-*b, *b-*a) },
		WriteInput: func(w *bitio.Writer, throttle *int) { w.WriteInt(uint32(*throttle), 10) },
		ReadInput:  func(r *bitio.Reader, throttle *int) { *throttle = int(r.ReadInt(10)) },
		WriteState: func(w *bitio.Writer, x *float64) { w.WriteFloat64(*x) },
		ReadState:  func(r *bitio.Reader, x *float64) { *x = r.ReadFloat64() },
	}
	client, err := prediction.NewClient(prediction.ClientConfig[float64, int]{Model: model}, 0, 0)
	if err != nil {
		panic(err)
	}
	server, err := prediction.NewServer(prediction.ServerConfig[float64, int]{Model: model}, 0, 0)
	if err != nil {
		panic(err)
	}

	now := 100 * time.Millisecond
	client.Move(now, 5) // felt at once
	fmt.Println("client", *client.State(), "server", *server.State())

	var buf [64]byte
	w := bitio.NewWriter(buf[:])
	if _, err = client.Send(now, w); err == nil {
		err = server.Receive(now, bitio.NewReader(w.Bytes(), w.Len()))
	}
	fmt.Println("client", *client.State(), "server", *server.State(), err)

	*server.State() = 8 // a hill: the server knows better
	server.Correct()
	client.Move(now+100*time.Millisecond, 5) // meanwhile
	server.Tick(now)
	w.Reset(buf[:])
	if _, err = server.Reply(now, w); err == nil {
		err = client.Receive(now, bitio.NewReader(w.Bytes(), w.Len()))
	}
	fmt.Println("client", *client.State(), "server", *server.State(), err)
	// Output:
	// client 0.5 server 0
	// client 0.5 server 0.5 <nil>
	// client 8.5 server 8 <nil>
}

// What jumped is drawn where it was, and moves to where it is.
func ExampleSmoother() {
	s, err := prediction.NewSmoother(prediction.SmootherConfig{Time: 100 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Jump(0, [3]float64{5}, [3]float64{6})
	for _, at := range []time.Duration{0, 100 * time.Millisecond, time.Second} {
		fmt.Printf("%.2f\n", 6+s.Offset(at)[0])
	}
	// Output:
	// 5.00
	// 5.63
	// 6.00
}
