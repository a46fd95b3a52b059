package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLaterBeforeSpare: what a game leaves for the end of its tick, such as blocks, is the game's: others share what it leaves.
func TestLaterBeforeSpare(t *testing.T) {
	cfg := Config{Link: PlainSalted{}}
	w := newTown(t, 1, netsim.Settings{}, cfg)
	c := w.dial(cfg)
	w.until("joined", func() bool { return c.joined })
	conn := c.Server()
	var order []string
	c.BeforeFlush(func() {
		conn.SendSpare(func() int { order = append(order, "spare"); return 0 })
		conn.Table().Later(func() { order = append(order, "later") })
	})
	w.until("both ran", func() bool { return len(order) == 2 })
	require.Equal(t, []string{"later", "spare"}, order)
	w.step()
	require.Len(t, order, 2, "each once")
	runs := 0
	var each func()
	each = func() {
		runs++
		conn.Table().Later(each)
	}
	each()
	w.step()
	w.step()
	require.Equal(t, 3, runs, "once a tick")
}
