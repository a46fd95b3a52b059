package mesh_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/mesh"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestPacketsStayApart: packets that are sent in one tick arrive one by one.
func TestPacketsStayApart(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	here, there := udp.Pair(netip.MustParseAddrPort("10.0.0.1:7777"), netip.MustParseAddrPort("10.0.1.1:9000"))
	var got [2][]string // at the server and the client
	var chans [2]*channel.Channel
	note := func(end int) func([]byte) error {
		return func(p []byte) error { got[end] = append(got[end], string(p)); return nil }
	}
	server, err := driver.Listen("", driver.Config{Socket: here, Clock: clock, Link: driver.PlainSalted{}, Channels: []channel.Type{mesh.ChannelType(nil)},
		Joined: func(c *driver.Conn) {
			var err error
			chans[0], err = mesh.Open(c, note(0))
			require.NoError(t, err)
		}})
	require.NoError(t, err)
	defer server.Close()
	client, err := driver.Dial(server.LocalAddr().String(), driver.Config{Socket: there, Clock: clock, Link: driver.PlainSalted{},
		Channels: []channel.Type{mesh.ChannelType(func(ch *channel.Channel) func([]byte) error {
			chans[1] = ch
			return note(1)
		})}})
	require.NoError(t, err)
	defer client.Close()
	want, sent := []string{"one", "two", "three"}, false
	for range 60 {
		now = now.Add(time.Second / 60)
		for _, d := range []*driver.Driver{server, client} {
			d.TickDispatch(now)
		}
		if chans[1] != nil && !sent {
			sent = true
			for _, ch := range chans {
				for _, p := range want {
					mesh.SendOn(ch, []byte(p))
				}
			}
		}
		for _, d := range []*driver.Driver{server, client} {
			d.TickFlush(now)
		}
	}
	require.Equal(t, [2][]string{want, want}, got)
}
