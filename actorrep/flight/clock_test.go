package flight_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestOtherClock: a game that gives its world another time than the driver's is told so in the film, once, at both ends; one that gives it the driver's isn't,
// however its ticks come.
func TestOtherClock(t *testing.T) {
	for _, off := range []time.Duration{0, 2 * time.Second, -2 * time.Second, 10 * time.Hour} {
		start := time.Unix(1_700_000_000, 0)
		now := start
		clock := func() time.Time { return now }
		a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		world, mirror := actorrep.NewServer(actorrep.Config{}), actorrep.NewClient(actorrep.Config{})
		for _, w := range []*actorrep.World{world, mirror} {
			require.NoError(t, w.Register("Cart", (*Cart)(nil)))
		}
		srv, err := driver.Listen("", driver.Config{Socket: a, Clock: clock, Channels: world.ChannelTypes(), Joined: func(c *driver.Conn) { world.AddConn(c) }})
		require.NoError(t, err)
		cli, err := driver.Dial("127.0.0.1:7777", driver.Config{Socket: b, Clock: clock, Channels: mirror.ChannelTypes()})
		require.NoError(t, err)
		recs := map[string]*flight.Recorder{}
		recs["server"], err = flight.New(world, srv, flight.Config{})
		require.NoError(t, err)
		recs["client"], err = flight.New(mirror, cli, flight.Config{})
		require.NoError(t, err)
		for n := range 1000 {
			switch {
			case n%300 == 299:
				now = now.Add(30 * time.Second) // a hitch
			case n%300 == 199:
				now = now.Add(-time.Hour)
			default:
				now = now.Add(10 * time.Millisecond)
			}
			srv.TickDispatch(now)
			world.Step(srv.Time(now) + off)
			srv.TickFlush(now)
			cli.TickDispatch(now)
			mirror.Step(cli.Time(now) + off)
			recs["client"].Look(cli.Time(now) + off)
			cli.TickFlush(now)
		}
		for end, rec := range recs {
			d, _ := read(t, rec.Take(), flight.View{})
			told := 0
			for _, n := range d.Notes {
				if strings.Contains(n.Text, "give it the driver's Time") {
					told++
				}
			}
			if off == 0 {
				require.Zero(t, told, end)
			} else {
				require.Equal(t, 1, told, "%s, %v", end, off)
			}
			require.NoError(t, rec.Close())
		}
		require.NoError(t, cli.Close())
		require.NoError(t, srv.Close())
	}
}
