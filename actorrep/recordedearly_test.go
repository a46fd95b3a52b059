package actorrep_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/replay"
)

// TestCallsOfNewActorAreRecorded: a recording loses no multicast, also not an unreliable one right after Spawn.
func TestCallsOfNewActorAreRecorded(t *testing.T) {
	var heard []int
	call := func() *actorrep.RPC[*tent, int] {
		return actorrep.MulticastRPC(func(c actorrep.Call, _ *tent, n int) error {
			if !c.World.IsServer() {
				heard = append(heard, n)
			}
			return nil
		})
	}
	shake, server, client := call(), actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
	for _, w := range []*actorrep.World{server, client} {
		require.NoError(t, w.Register("tent", (*tent)(nil), actorrep.RPCs{"Shake": shake}))
	}
	var file bytes.Buffer
	rec, err := replay.Record(server, &file, replay.Config{Rate: -1})
	require.NoError(t, err)
	for n := range 30 {
		server.Step(time.Duration(n) * time.Second / 30)
		if n%10 == 5 {
			a := &tent{Size: 1}
			require.NoError(t, server.Spawn(a))
			require.NoError(t, shake.Call(a, n))
			require.NoError(t, shake.Call(a, n+1))
		}
	}
	require.NoError(t, rec.Close())
	r, err := replay.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.NoError(t, r.Play(client))
	for n := 0; !r.Done() && n < 100; n++ {
		require.NoError(t, r.Step(time.Duration(n)*time.Second/30))
	}
	require.Equal(t, []int{5, 6, 15, 16, 25, 26}, heard)
}
