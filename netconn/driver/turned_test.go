package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
)

// TestTurnedAwayAreBounded: clients that the game turns away, in Accepted or by their login, and that never leave, are within MaxConns
// as long as they are there: nobody has a server hold connections without a bound.
func TestTurnedAwayAreBounded(t *testing.T) {
	for _, where := range []string{"Accepted", "login"} {
		clock := time.Unix(1_700_000_000, 0)
		sc := Config{Link: PlainUnreal51(), MaxConns: 4, Clock: func() time.Time { return clock }}
		if where == "Accepted" {
			sc.Accepted = func(c *Conn) { c.CloseWithReason("banned") }
		} else {
			sc.Server.Authorize = func(*control.Login) error { return ErrBanned }
		}
		srv, err := Listen("127.0.0.1:0", sc)
		require.NoError(t, err)
		most := 0
		for range 80 {
			cl, err := Dial(srv.LocalAddr().String(), Config{Link: PlainUnreal51(), Clock: sc.Clock})
			require.NoError(t, err)
			for range 12 { // it stops in the middle, and says nothing more
				if where == "Accepted" && cl.Server() != nil {
					break
				}
				clock = clock.Add(time.Millisecond)
				cl.TickDispatch(clock)
				cl.TickFlush(clock)
				srv.TickDispatch(clock)
				srv.TickFlush(clock)
				if c := cl.Server(); c != nil && c.client.PeerReason() != "" {
					break
				}
			}
			most = max(most, len(srv.conns))
			t.Cleanup(func() { _ = cl.socket.Close() })
		}
		require.LessOrEqual(t, most, sc.MaxConns+maxRefused, where)
		require.NotZero(t, srv.Counters.NoRoom, where)
		require.NoError(t, srv.Close())
	}
}
