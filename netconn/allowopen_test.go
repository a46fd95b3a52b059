package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestEndInAllowOpen: nothing is opened or delivered once AllowOpen has ended the connection.
func TestEndInAllowOpen(t *testing.T) {
	var l *lab
	opened := 0
	l = newLab(t, both(netsim.Settings{Lag: 5 * time.Millisecond}), 1, func(i int, c *Config) {
		if i == 1 {
			c.AllowOpen = func(in *bunch.In) error {
				if in.Name == testName {
					l.conns[1].Abort(l.now, "not you")
				}
				return nil
			}
		}
	})
	l.accept[1] = func(*channel.Channel) { opened++ }
	l.control()
	l.run(time.Second, nil)
	require.Equal(t, 1, opened)
	before := l.got[1]
	_, err := l.open(0).SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	l.run(time.Second, nil)
	require.NotNil(t, l.res[1])
	require.Equal(t, 1, opened)
	require.Equal(t, before, l.got[1])
	require.Zero(t, l.conns[1].Table().Len())
}
