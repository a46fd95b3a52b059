package stream

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestRefusedAtOnce: a stream beyond the bounds is refused in the tick in which it came, so that nothing waits for the next one however
// many come and go until then; and while other channels have filled the memory, as soon as there is some.
func TestRefusedAtOnce(t *testing.T) {
	for _, full := range []bool{false, true} {
		other := bunch.Name{Index: 311}
		l := Listen(name, Config{MaxStreams: 1})
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		now := time.Unix(1_700_000_000, 0)
		busy := channel.Type{Name: other, ServerOpen: true, Accept: func(*channel.Channel) channel.Handler { return channel.Nop{} }}
		base := driver.Config{Clock: func() time.Time { return now }, NetSpeed: 1_000_000, MaxMemory: 256 << 10}
		sc, cc := base, base
		sc.Socket, sc.Channels = a, []channel.Type{l.Type(), busy}
		cc.Socket, cc.Channels = b, []channel.Type{Type(name), busy}
		server, err := driver.Listen("", sc)
		require.NoError(t, err)
		client, err := driver.Dial("127.0.0.1:7777", cc)
		require.NoError(t, err)
		tick := func() {
			now = now.Add(10 * time.Millisecond)
			client.TickDispatch(now)
			client.TickFlush(now)
			server.TickDispatch(now)
			server.TickFlush(now)
		}
		for c := client.Server(); c == nil || !c.Joined(); c = client.Server() {
			tick()
		}
		for range 10 {
			tick()
		}
		if full {
			for c := range server.Conns {
				ch, err := c.Open(other, nil)
				for err == nil {
					_, err = ch.SendBunch(&bunch.Out{Data: make([]byte, 900), Reliable: true})
				}
				require.ErrorIs(t, err, channel.ErrReliableFull)
			}
		}
		var streams [2]*Conn
		for i := range streams {
			streams[i], err = Open(client.Server(), name, Config{})
			require.NoError(t, err)
		}
		refused := func() bool { // what its next Read finds
			c := streams[1]
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.peerFin && c.peerStopped
		}
		tick()
		require.EqualValues(t, 1, l.Refused())
		now = now.Add(10 * time.Millisecond)
		client.TickDispatch(now)
		if !full {
			require.True(t, refused())
		}
		for range 1000 {
			if refused() {
				break
			}
			tick()
		}
		require.True(t, refused())
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.NoError(t, l.Close())
	}
}
