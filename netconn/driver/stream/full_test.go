package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestFullBuffer: a stream with the protocol of an Unreal, which ends a connection whose channel has more bunches than its buffer has room for,
// waits for acks instead: with its data, whatever the size of packets, and with its credit.
func TestFullBuffer(t *testing.T) {
	for _, c := range []struct {
		what      string
		maxPacket int
		first     int // bytes of the bunch that is lost again and again, alone
		lost      netsim.Settings
	}{
		{"large packets", 0, 450, netsim.Settings{Loss: 100, LossMinSize: 440, LossMaxSize: 800}},
		{"small packets", 400, 270, netsim.Settings{Loss: 100, LossMinSize: 280, LossMaxSize: 345}},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := Listen(name, Config{})
			now := time.Unix(1_700_000_000, 0)
			cfg := driver.Config{Link: driver.PlainUnreal51(), Protocol: netconn.Unreal51(), NetSpeed: 4_000_000, Clock: func() time.Time { return now }}
			cfg.Protocol.Bunch.MaxPacket = c.maxPacket
			sc, cc := cfg, cfg
			sc.Channels, cc.Channels = []channel.Type{Type(name)}, []channel.Type{l.Type()}
			var to *driver.Conn
			sc.Joined = func(c *driver.Conn) { to = c }
			server, client, path := linked(t, sc, cc, netsim.Settings{}, netsim.Settings{})
			tick := ticking(&now, server, client)
			ticks := func(n int) {
				for range n {
					tick()
				}
			}
			s, err := Open(to, name, Config{Window: InitialCredit, Buffer: 1 << 20})
			require.NoError(t, err)
			ticks(100)
			a, err := l.Accept()
			require.NoError(t, err)
			_, err = a.Write(make([]byte, InitialCredit))
			require.NoError(t, err)
			ticks(100)
			const then = 300_000
			_, err = s.Write(make([]byte, c.first))
			require.NoError(t, err)
			require.NoError(t, path.Set(netsim.Settings{}, c.lost))
			tick()
			_, err = s.Write(make([]byte, then))
			require.NoError(t, err)
			ticks(100)
			n, err := s.Read(make([]byte, InitialCredit)) // the peer is to be allowed more
			require.NoError(t, err)
			require.Equal(t, InitialCredit, n)
			ticks(100)
			require.False(t, to.Closed(), "%v", to.Result())
			require.NoError(t, path.Set(netsim.Settings{}, netsim.Settings{}))
			for got, buf := 0, make([]byte, 1<<20); got < c.first+then; {
				ticks(100)
				require.False(t, to.Closed(), "%v", to.Result())
				require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Minute)))
				n, err := a.Read(buf)
				require.NoError(t, err)
				got += n
			}
			require.NoError(t, server.Close())
			require.NoError(t, client.Close())
			require.NoError(t, l.Close())
		})
	}
}
