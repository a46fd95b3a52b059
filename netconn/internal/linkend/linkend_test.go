package linkend

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/udptest"
)

// TestTell: the connection of the address ends, and no other: as a time-out if its session is lost, otherwise as one whose peer has left.
func TestTell(t *testing.T) {
	clock := time.Unix(1_700_000_000, 0)
	to := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:7777"))
	cfg := driver.Config{Clock: func() time.Time { return clock }, Link: driver.PlainSalted{}, Socket: to}
	ended := map[netip.AddrPort]netconn.CloseResult{}
	cfg.Closed = func(c *driver.Conn, r netconn.CloseResult) { ended[c.RemoteAddr()] = r }
	server, err := driver.Listen("", cfg)
	require.NoError(t, err)
	cfg.Closed = nil
	clients, wires := map[netip.AddrPort]*driver.Driver{}, map[netip.AddrPort]*udptest.Wire{}
	left, lost, stays := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.1:2"), netip.MustParseAddrPort("192.0.2.2:1")
	for _, addr := range []netip.AddrPort{left, lost, stays} {
		s := udptest.NewWire(netip.MustParseAddrPort("127.0.0.1:1234"))
		cfg.Socket = s
		wires[addr] = s
		clients[addr], err = driver.Dial(to.LocalAddr().String(), cfg)
		require.NoError(t, err)
	}
	run := func() {
		for range 60 {
			clock = clock.Add(16 * time.Millisecond)
			for addr, c := range clients {
				c.TickDispatch(clock)
				c.TickFlush(clock)
				for _, m := range wires[addr].Out {
					to.In = append(to.In, udp.Message{Buf: m.Buf, Addr: addr})
				}
				wires[addr].Out = nil
			}
			server.TickDispatch(clock)
			server.TickFlush(clock)
			for _, m := range to.Out {
				wires[m.Addr].In = append(wires[m.Addr].In, udp.Message{Buf: m.Buf, Addr: to.LocalAddr()})
			}
			to.Out = nil
		}
	}
	run()
	require.EqualValues(t, 3, server.Counters.Joined)
	why := errors.New("its session is over")
	Tell(server, netip.MustParseAddrPort("192.0.2.3:1"), why, false)
	Tell(server, left, why, false)
	Tell(server, lost, why, true)
	delete(clients, left)
	delete(clients, lost)
	run()
	require.Len(t, ended, 2)
	require.Equal(t, netconn.ClosedByPeer, ended[left].Code)
	require.Equal(t, why.Error(), ended[left].Reason)
	require.Equal(t, netconn.TimedOut, ended[lost].Code)
	require.ErrorIs(t, ended[lost].Err, why)
	require.True(t, clients[stays].Server().Joined() && !clients[stays].Server().Closed())
}
