package main

import (
	"errors"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/interpolation"
	"github.com/bunchnet/bunchnet/actorrep/prediction"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Runner runs along a line of forty metres.
type Runner struct {
	actorrep.Base
	X   float64 `net:"q=0.01"`
	Key int8    `net:""`                  // the last one the server simulated
	At  uint32  `net:"notify=OnSnapshot"` // ms on the server's clock: changes in every Step, so that standing still is told as well

	truth *prediction.Server[float64, int8] // on the server

	mine *prediction.Client[float64, int8] // on the owner's client

	timeline *interpolation.Timeline // on a client
	places   *interpolation.Buffer[float64]
}

// model is what both ends know of running: the same input makes the same move.
var model = prediction.Model[float64, int8]{
	Simulate: func(x *float64, key int8, dt time.Duration) {
		*x = min(max(*x+5*float64(key)*dt.Seconds(), -20), 20)
	},
	Distance:   func(a, b *float64) float64 { return max(*a-*b, *b-*a) },
	WriteInput: func(w *bitio.Writer, key *int8) { w.WriteInt(uint32(*key+1), 3) },
	ReadInput:  func(r *bitio.Reader, key *int8) { *key = int8(r.ReadInt(3)) - 1 },
	WriteState: func(w *bitio.Writer, x *float64) { w.WriteFloat64(*x) },
	ReadState:  func(r *bitio.Reader, x *float64) { *x = r.ReadFloat64() },
}

// Bits is a message of package prediction as a parameter.
type Bits struct {
	Data []byte `net:"cap=200"`
	Len  uint16
}

func (b *Bits) reader() *bitio.Reader { return bitio.NewReader(b.Data, min(int(b.Len), 8*len(b.Data))) }

// Moves and Reply carry prediction's messages. What is lost the next one makes good, so neither is reliable.
var (
	Moves = actorrep.ServerRPC(func(c actorrep.Call, r *Runner, m Bits) error {
		return r.truth.Receive(c.World.Now(), m.reader())
	})
	Reply = actorrep.ClientRPC(func(c actorrep.Call, r *Runner, m Bits) error {
		if r.mine == nil {
			return nil
		}
		return r.mine.Receive(c.World.Now(), m.reader())
	})
)

func register(w *actorrep.World) error {
	return w.Register("Runner", (*Runner)(nil), actorrep.RPCs{"Moves": Moves, "Reply": Reply})
}

// predict begins to run ahead of the server.
func (r *Runner) predict(now time.Duration) (err error) {
	r.mine, err = prediction.NewClient(prediction.ClientConfig[float64, int8]{Model: model}, r.X, now)
	return err
}

// send tells the server of the moves it doesn't know.
func (r *Runner) send(now time.Duration) error {
	return carry(r, Moves, func(w *bitio.Writer) (bool, error) { return r.mine.Send(now, w) })
}

// simulate is the server's tick of one runner.
func (r *Runner) simulate(now time.Duration) error {
	r.truth.Tick(now)
	if x := *r.truth.State(); x != r.X {
		r.Key = 1
		if x < r.X {
			r.Key = -1
		}
		r.X = x
	}
	r.At = uint32(now / time.Millisecond)
	return carry(r, Reply, func(w *bitio.Writer) (bool, error) { return r.truth.Reply(now, w) })
}

// carry calls a procedure with the message that write makes, if it makes one.
func carry(r *Runner, rpc *actorrep.RPC[*Runner, Bits], write func(w *bitio.Writer) (bool, error)) error {
	var buf [200]byte
	w := bitio.NewWriter(buf[:])
	ok, err := write(w)
	if err != nil || !ok {
		return err
	}
	err = rpc.Call(r, Bits{Data: w.Bytes(), Len: uint16(w.Len())})
	if errors.Is(err, actorrep.ErrSaturated) || errors.Is(err, actorrep.ErrNotThere) {
		return nil // as if it were lost
	}
	return err
}

// OnSnapshot keeps where the runner was in a Step of the server, for who draws it.
func (r *Runner) OnSnapshot() {
	at := time.Duration(r.At) * time.Millisecond // when that was, by the server's clock
	r.timeline.Arrived(r.World().Now(), at)
	r.places.Push(at, r.X)
}

// watch readies a client's copy for OnSnapshot.
func (r *Runner) watch() (err error) {
	if r.timeline, err = interpolation.NewTimeline(interpolation.Config{}); err != nil {
		return err
	}
	r.places, err = interpolation.NewBuffer(interpolation.BufferConfig[float64]{
		Lerp: func(a, b, t float64) float64 { return a + (b-a)*t },
	})
	return err
}
