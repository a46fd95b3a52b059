package lockstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const days = 72 * time.Hour

// exchangeAfter hands all packets over and lets the peers execute what has come.
func (tb *table) exchangeAfter(dt time.Duration, cmd []byte) {
	tb.now += dt - 10*ms
	tb.exchange()
	for _, p := range tb.peers {
		for turn, ok := p.Next(); ok; turn, ok = p.Next() {
			if p.InGame() && len(cmd) > 0 && turn.N%8 == 0 {
				require.NoError(tb.t, p.Submit(cmd))
			}
			sum := uint64(turn.N)
			for player, c := range turn.Commands() {
				sum = sum*31 + uint64(player) + uint64(len(c))
			}
			require.NoError(tb.t, p.Done(sum))
		}
	}
}

// TestDaysInTheLobby: who has been joined for three days before the start, at ticks of a second, plays at once.
func TestDaysInTheLobby(t *testing.T) {
	tb := newTable(t, config(3))
	for end := tb.now + days; tb.now < end; {
		tb.exchangeAfter(time.Second, nil)
	}
	require.Equal(t, tb.host.cfg.mask(), tb.host.Ready())
	require.Zero(t, tb.host.Turn())
	tb.host.Start(tb.now)
	for range 200 {
		tb.exchangeAfter(50*ms, []byte("move"))
	}
	require.GreaterOrEqual(t, tb.peers[0].Turn(), int64(180))
	require.EqualValues(t, 7, tb.host.Active())
}

// TestDaysOfPlay: three days at ticks of a second, through several wraps of the stamps, with and without commands; nobody is
// dropped, the delay stays, and no state differs.
func TestDaysOfPlay(t *testing.T) {
	for name, cmd := range map[string][]byte{"idle": nil, "commands": []byte("move")} {
		cfg := config(2)
		cfg.TurnInterval = 2 * time.Second // commands of the next turns come in time, at ticks of 1 s
		tb := startedTable(t, cfg)
		begin := tb.now
		for tb.now < begin+days {
			tb.exchangeAfter(time.Second, cmd)
		}
		require.GreaterOrEqual(t, tb.host.Turn(), int64(days/cfg.TurnInterval), name)
		require.EqualValues(t, 3, tb.host.Active(), name)
		require.Zero(t, tb.host.Stats().Desyncs, name)
		for _, p := range tb.peers {
			require.Equal(t, Running, p.State(), name)
			require.LessOrEqual(t, p.delay, 4, name)
			require.Equal(t, len(cmd) > 0, p.Stats().Commands > 0, name)
			require.LessOrEqual(t, tb.host.Turn()-p.Turn(), int64(8), name)
		}
	}
}
