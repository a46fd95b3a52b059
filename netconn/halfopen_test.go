package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestHalfOpenIsGivenUpInSilence: what came of a temporary channel's bunch whose next part is lost is given up when two more packets have come, though nothing is in them.
func TestHalfOpenIsGivenUpInSilence(t *testing.T) {
	l := newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(_ int, c *Config) { c.KeepAlive = 100 * time.Millisecond })
	l.control()
	l.run(time.Second, nil)
	ch, err := l.conns[0].Open(testName, nil)
	require.NoError(t, err)
	packets := 0
	l.lose[0] = func([]byte) bool { packets++; return packets > 1 }
	_, err = ch.SendTemporary(&bunch.Out{Data: make([]byte, 1500)})
	require.NoError(t, err)
	l.conns[0].FlushNet()
	require.Equal(t, 2, packets)
	l.lose[0] = nil
	l.run(50*time.Millisecond, nil)
	table := l.conns[1].Table()
	require.Equal(t, 2, table.Len(), "its first part")
	l.run(300*time.Millisecond, nil)
	require.Equal(t, 1, table.Len())
	require.EqualValues(t, 1, table.Counters.HalfOpen)
	require.Nil(t, l.res[1])
}
