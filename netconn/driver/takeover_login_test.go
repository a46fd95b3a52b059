package driver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRefusedTakesNothingOver: a client whose login is refused, or never comes, leaves its former connection as it is, on a full server too and however often it
// comes; one whose login is taken has its place, and the former one hears why.
func TestRefusedTakesNothingOver(t *testing.T) {
	var w *town
	refuse := error(nil)
	var told []string
	w = newTown(t, 1, netsim.Settings{Lag: 40 * time.Millisecond, Loss: 5}, Config{Link: Netcode{Key: netcode.Key{1}, TakeOver: true, Slots: 1}, KeepAlive: 50 * time.Millisecond,
		Server: control.ServerConfig{Authorize: func(*control.Login) error { return refuse }},
		Joined: func(*Conn) { told = append(told, "joined") },
		Closed: func(c *Conn, r netconn.CloseResult) {
			if c.Joined() {
				told = append(told, "closed: "+r.Reason)
				require.ErrorIs(t, r.Err, ErrReplaced)
			}
		}})
	dial := func() *townClient {
		return w.dial(Config{Link: Netcode{Token: townToken(t, w, 99, nil)}, KeepAlive: 50 * time.Millisecond})
	}
	first := dial()
	w.until("joined", func() bool { return first.joined && len(told) == 1 })
	refuse = errors.New("not you")
	for range 3 {
		again := dial()
		w.until("refused", func() bool { return again.result != nil })
		require.ErrorIs(t, again.result.Err, ErrDenied)
		require.Equal(t, "not you", again.result.Reason)
	}
	for range 600 {
		w.step()
	}
	require.Nil(t, first.result, "it goes on")
	require.Equal(t, []string{"joined"}, told)
	require.Equal(t, 1, w.server.Len())

	refuse = nil
	second := dial()
	w.until("joined", func() bool { return second.joined && len(told) == 3 })
	require.Equal(t, []string{"joined", "closed: " + ErrReplaced.Error(), "joined"}, told)
	w.until("replaced", func() bool { return first.result != nil })
	require.ErrorIs(t, first.result.Err, ErrReplaced)
	for range 300 {
		w.step()
	}
	require.Nil(t, second.result)
	require.Equal(t, 1, w.server.Len())
	require.Equal(t, 1, w.server.server.(*netcodeServer).m.Clients())

	for range 3 { // two under way at once: the later one counts
		a, b := dial(), dial()
		n := len(told)
		w.until("one of them", func() bool { return (a.joined && a.result == nil || b.joined && b.result == nil) && len(told) >= n+2 })
		for range 300 {
			w.step()
		}
		require.Equal(t, 1, w.server.Len())
		require.Equal(t, 1, w.server.server.(*netcodeServer).m.Clients())
		require.True(t, (a.joined && a.result == nil) != (b.joined && b.result == nil))
	}
}
