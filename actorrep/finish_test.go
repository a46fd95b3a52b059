package actorrep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestCallsArriveAtTheEnd: reliable calls that wait when an end closes the connection in order arrive, behind the values that were set before
// them. Later ones are refused, and those of actors that the client doesn't have are told.
func TestCallsArriveAtTheEnd(t *testing.T) {
	for _, buffer := range []int{0, 16} {
		for _, loss := range []float64{0, 20} {
			type heard struct {
				rings uint32
				n     uint32
			}
			var tolled, told []heard
			var rang []uint32
			var failed []error
			type args struct {
				N    uint32
				Text string
			}
			toll := actorrep.ClientRPC(func(_ actorrep.Call, b *bell, p args) error {
				tolled = append(tolled, heard{b.Rings, p.N})
				return nil
			}, actorrep.Reliable)
			shout := actorrep.MulticastRPC(func(c actorrep.Call, b *bell, p args) error {
				if !c.World.IsServer() {
					told = append(told, heard{b.Rings, p.N})
				}
				return nil
			}, actorrep.Reliable)
			ring := actorrep.ServerRPC(func(_ actorrep.Call, _ *bell, p args) error { rang = append(rang, p.N); return nil }, actorrep.Reliable, actorrep.OnOverflow(actorrep.DropOldest))
			register := func(w *actorrep.World) error {
				return w.Register("bell", (*bell)(nil), actorrep.RPCs{"Ring": ring, "Toll": toll, "Shout": shout})
			}
			for _, server := range []bool{true, false} {
				if !server && buffer > 0 && loss > 0 {
					continue // so few bunches at a time aren't through within LingerTimeout
				}
				w := rig.New(t, 9, netsim.Settings{LagMin: 40 * time.Millisecond, LagMax: 60 * time.Millisecond, Loss: loss}, actorrep.Config{Failed: func(err error) { failed = append(failed, err) }}, register)
				w.ReliableBuffer = buffer
				l := w.JoinOther(register)
				b, late := &bell{}, &bell{}
				b.SetOwner(l.Peer)
				require.NoError(t, w.Server.Spawn(b))
				m := (*bell)(nil)
				w.Await("bell", w.Step, func() bool { m, _ = l.World.Find(b.GUID()).(*bell); return m != nil })
				for range 60 {
					w.Step()
				}
				tolled, told, rang, failed = nil, nil, nil, nil
				text := strings.Repeat("x", 1000)
				if !server {
					n := uint32(0)
					for ; n < 30 && ring.Call(m, args{n, text}) == nil; n++ {
					}
					require.EqualValues(t, 30, n)
					l.C.Close(w.Now, "")
					require.ErrorIs(t, ring.Call(m, args{99, ""}), channel.ErrClosed)
					exchange(w, l, 400)
					require.Equal(t, netconn.ClosedByUs, l.C.Result().Code)
					require.Zero(t, l.C.Result().Unacked)
					require.Len(t, rang, int(n))
					require.IsIncreasing(t, rang)
					require.Empty(t, l.Failed)
					continue
				}
				require.NoError(t, w.Server.Spawn(late))
				late.SetOwner(l.Peer)
				require.NoError(t, toll.Call(late, args{1, ""}))
				n := uint32(0)
				for ; n < 30; n++ {
					b.Rings++
					if toll.Call(b, args{n, text}) != nil || shout.Call(b, args{n, text}) != nil {
						break
					}
				}
				l.S.Close(w.Now, "")
				require.ErrorIs(t, toll.Call(b, args{99, ""}), channel.ErrClosed)
				require.ErrorIs(t, shout.Call(b, args{99, ""}), channel.ErrClosed)
				require.Len(t, failed, 1)
				require.ErrorIs(t, failed[0], channel.ErrClosed)
				exchange(w, l, 400)
				require.Equal(t, netconn.ClosedByUs, l.S.Result().Code)
				require.Zero(t, l.S.Result().Unacked, "%+v", l.S.Result())
				l.World.Step(w.Now)
				require.Len(t, told, int(n), "reliable buffer %d, loss %v", buffer, loss)
				require.GreaterOrEqual(t, len(tolled), int(n))
				for i, h := range tolled {
					require.EqualValues(t, i, h.n)
					require.Equal(t, b.Rings, h.rings)
				}
				require.Len(t, failed, 1)
			}
		}
	}
}
