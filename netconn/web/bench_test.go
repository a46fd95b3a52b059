//go:build !js

package web

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// BenchmarkDatagram is one datagram of 200 bytes from a client to the server, both ends in one process, in batches of 16 that are awaited.
func BenchmarkDatagram(b *testing.B) {
	for _, way := range []Way{UDP, WebTransport, WebSocket} {
		b.Run(way.String(), func(b *testing.B) {
			d := newDoor(b, ServerConfig{})
			s, err := udp.Listen("127.0.0.1:0", udp.Config{})
			require.NoError(b, err)
			j := udp.Join(s, d.Server)
			defer j.Close()
			var c udp.Socket
			if way == UDP {
				if c, err = udp.Listen("127.0.0.1:0", udp.Config{}); err != nil {
					b.Fatal(err)
				}
				defer c.Close()
			} else {
				client := d.dial(way)
				_, err := d.WriteBatch([]udp.Message{{Buf: []byte("answer"), Addr: hello(b, d, client)}}) // as a driver's, else 8 may wait to be read
				require.NoError(b, err)
				c = client
			}
			const batch = 16
			out, in := make([]udp.Message, batch), make([]udp.Message, batch)
			for i := range out {
				out[i] = udp.Message{Buf: make([]byte, 200), Addr: s.LocalAddr()}
				in[i].Buf = make([]byte, mailbox.MaxDatagram)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.WriteBatch(out); err != nil {
					b.Fatal(err)
				}
				if err := j.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < batch; {
					n, err := j.ReadBatch(in)
					if err != nil {
						b.Fatal("one was lost: ", err) // a wait for it would be most of the time
					}
					got += n
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/datagram")
		})
	}
}

// BenchmarkSealing is what netcode's encryption of a datagram of 200 bytes costs at both ends, which TLS encrypts again.
func BenchmarkSealing(b *testing.B) {
	var conn sealing
	now := uint64(time.Now().Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: 7, Create: now, Expire: now + 1000, Timeout: 5,
		Servers: []netip.AddrPort{sealingServer}, PrivateKey: gameKey})
	require.NoError(b, err)
	conn.server, err = netcode.NewServer(netcode.ServerConfig{PrivateKey: gameKey, Addrs: []netip.AddrPort{sealingServer}, Handler: (*sealingEnd)(&conn), UnixAtZero: now})
	require.NoError(b, err)
	conn.client, err = netcode.NewClient(netcode.ClientConfig{Handler: &conn})
	require.NoError(b, err)
	require.NoError(b, conn.client.Connect(0, token))
	for at := time.Duration(0); conn.client.State() != netcode.Connected; at += 100 * time.Millisecond {
		require.Less(b, at, time.Minute)
		conn.client.Tick(at)
		conn.server.Tick(at)
	}
	p := make([]byte, netcode.Headroom+200, netcode.Headroom+200+netcode.Tailroom)
	b.ReportAllocs()
	for b.Loop() {
		if err := conn.client.SendPayload(time.Second, p[:netcode.Headroom+200]); err != nil {
			b.Fatal(err)
		}
	}
	require.Positive(b, conn.got)
}

var sealingServer, sealingClient = netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")

// sealing is a netcode client and its server, which hand each other packets at once.
type sealing struct {
	client *netcode.Client
	server *netcode.Server
	got    int
}

func (s *sealing) StateChanged(_, _ netcode.State) {}
func (s *sealing) Payload([]byte)                  {}
func (s *sealing) Send(_ netip.AddrPort, p []byte) { s.server.Receive(time.Second, sealingClient, p) }

// sealingEnd is the server's handler.
type sealingEnd sealing

func (s *sealingEnd) Send(_ netip.AddrPort, p []byte) {
	s.client.Receive(time.Second, sealingServer, p)
}
func (s *sealingEnd) Connected(int, netcode.ClientInfo) {}
func (s *sealingEnd) Disconnected(int, netcode.Reason)  {}
func (s *sealingEnd) Payload(int, []byte)               { s.got++ }
