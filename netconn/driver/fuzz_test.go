package driver

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/udp"
)

// FuzzDatagrams gives a server and a client of each kind of link arbitrary datagrams: from a stranger to the server, and from the server's
// address to the client, before it is connected. Nobody gets in, nothing is amplified, and the two can still join afterwards.
func FuzzDatagrams(f *testing.F) {
	for i, link := range []Link{PlainUnreal51(), PlainSalted{}, PlainUnreal53()} {
		k := keepSocket()
		d, err := Dial("127.0.0.1:7777", Config{Link: link, Socket: k})
		require.NoError(f, err)
		d.TickFlush(d.epoch.Add(time.Second))
		f.Add(uint8(i), k.sent[0].Buf, []byte{1, 2, 3})
	}
	f.Add(uint8(3), []byte{0x31, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, []byte{0})
	f.Fuzz(func(t *testing.T, which uint8, a, b []byte) {
		names := []string{"unreal", "salted", "unreal53", "netcode"}
		link := map[string]Link{"unreal": PlainUnreal51(), "salted": PlainSalted{}, "unreal53": PlainUnreal53(), "netcode": links()["netcode"]}[names[which&3]]
		checksum := which&4 != 0
		x, y := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
		out := &keep{Socket: x, forward: true}
		server, err := Listen("", Config{Link: link, Socket: out, Checksum: checksum, Channels: chat(&echo{})})
		require.NoError(t, err)
		defer server.Close()
		client, err := Dial("127.0.0.1:7777", Config{Link: link, Socket: y, Checksum: checksum, Channels: chat(&echo{})})
		require.NoError(t, err)
		defer client.Close()
		stranger := netip.MustParseAddrPort("192.0.2.1:99")
		for _, p := range [][]byte{a, b, a} {
			for _, d := range []*Driver{server, client} {
				from := stranger
				if d == client {
					from = netip.MustParseAddrPort("127.0.0.1:7777")
				}
				d.in[0].N, d.in[0].Addr = copy(d.in[0].Buf, p), from
				d.dispatch(0, 1, nil)
			}
		}
		server.flush()
		answered := 0
		for _, m := range out.sent {
			if m.Addr == stranger {
				answered += len(m.Buf)
			}
		}
		sum := 0
		if checksum {
			sum = 3 * checksumBytes
		}
		require.LessOrEqual(t, answered, 2*len(a)+len(b)+sum)
		require.Zero(t, server.Len())
		require.Nil(t, client.Server())
		now := time.Now()
		for i := 0; server.Counters.Joined == 0; i++ {
			require.Less(t, i, 2000, "%v", client.Err())
			now = now.Add(16 * time.Millisecond)
			for _, d := range []*Driver{server, client} {
				d.TickDispatch(now)
				d.TickFlush(now)
			}
		}
	})
}
