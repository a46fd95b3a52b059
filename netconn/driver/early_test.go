package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// TestNothingBeforeJoined: what the server opens before the client's login is done waits until the client has joined: its game
// accepts no channel before Joined has made ready for them.
func TestNothingBeforeJoined(t *testing.T) {
	for _, link := range []Link{Netcode{}, PlainSalted{}, PlainUnreal51()} {
		ready, accepted := false, 0
		world := bunch.Name{Index: 305}
		clock := time.Unix(1_700_000_000, 0)
		sc := Config{Link: link, Clock: func() time.Time { return clock }, Channels: []channel.Type{{Name: world, ServerOpen: true}}, Accepted: func(c *Conn) {
			ch, err := c.Open(world, nil)
			require.NoError(t, err)
			_, err = ch.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
			require.NoError(t, err)
		}}
		cc := Config{Link: link, Clock: sc.Clock, Joined: func(*Conn) { ready = true }, Channels: []channel.Type{{Name: world, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler {
			require.True(t, ready, "%T", link)
			return counting{count: func() { accepted++ }}
		}}}}
		srv, err := Listen("127.0.0.1:0", sc)
		require.NoError(t, err)
		cl, err := Dial(srv.LocalAddr().String(), cc)
		require.NoError(t, err)
		for range 5000 {
			clock = clock.Add(time.Millisecond)
			srv.TickDispatch(clock)
			cl.TickDispatch(clock)
			srv.TickFlush(clock)
			cl.TickFlush(clock)
		}
		require.Equal(t, 1, accepted, "%T", link)
		require.NoError(t, cl.Close())
		require.NoError(t, srv.Close())
	}
}
