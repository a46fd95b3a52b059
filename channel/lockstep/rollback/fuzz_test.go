package rollback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// FuzzReceive: whatever another player or a spectator sends, with a right head, a session and a spectator go on, and no frame is final without its inputs.
func FuzzReceive(f *testing.F) {
	seen := sink{}
	f.Add([]byte{5, 0, 0, 0, 0, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, p []byte, from uint8) {
		r := newParty(t, 1, 3, netsim.Settings{}, nil)
		require.NoError(t, r.machines[1].Connect(0, both{&seen, r.wires[[2]int{1, 0}]}))
		require.NoError(t, r.machines[0].Connect(4, &sink{}))
		r.run(300 * time.Millisecond)
		head := append([]byte(nil), seen.p[:6]...)
		for i := 0; i < len(p); i += 40 {
			number := int(from % 5)
			head[0], head[1] = 1, byte(number)
			if number > 2 {
				head[0] = 3
			}
			m := r.machines[0]
			_ = m.Receive(r.now, number, append(head[:6:6], p[i:min(i+40, len(p))]...))
			require.LessOrEqual(t, m.Final(), m.Frame())
			r.run(50 * time.Millisecond)
		}
		var up sink
		w, err := rollback.NewWatcher(rollback.Config{Session: 1, Players: 3, InputSize: 2}, 4, 0, &sums{}, &up)
		require.NoError(t, err)
		head[0], head[1] = 2, 0
		_ = w.Receive(0, append(head[:6:6], p...))
		for w.Step() {
		}
		require.GreaterOrEqual(t, w.Frame(), int64(0))
	})
}
