package netcode

import (
	"net/netip"
	"testing"
	"time"
)

// line carries packets between one server and one client at once.
type line struct {
	server *Server
	client *Client
	from   netip.AddrPort
	inbox  []byte
	joined int
}

func (l *line) Send(_ netip.AddrPort, p []byte) { l.inbox = append(l.inbox[:0], p...) }
func (l *line) Connected(int, ClientInfo)       { l.joined++ }
func (l *line) Disconnected(int, Reason)        {}
func (l *line) Payload(int, []byte)             {}

type lineClient struct{ *line }

func (l lineClient) StateChanged(State, State) {}
func (l lineClient) Payload([]byte)            {}

// BenchmarkHandshake is whole connections, both ends: request, challenge, response, keep-alive, and the
// slot freed again. Tokens are made beforehand.
func BenchmarkHandshake(b *testing.B) {
	const tokens = 4096
	l := &line{}
	var err error
	l.server, err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: 256, Handler: l, UnixAtZero: unixStart})
	if err != nil {
		b.Fatal(err)
	}
	made := make([][]byte, tokens)
	for i := range made {
		made[i] = token(b, uint64(i), func(c *TokenConfig) { c.ClientID = uint64(i) })
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		now := time.Duration(i) * 10 * time.Microsecond
		l.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 9)
		l.client = newClient(b, lineClient{l})
		if err := l.client.Connect(now%time.Second, made[i%tokens]); err != nil {
			b.Fatal(err)
		}
		l.server.Receive(now%time.Second, l.from, l.inbox)
		l.client.Receive(now%time.Second, serverAddr, l.inbox)
		l.server.Receive(now%time.Second, l.from, l.inbox)
		l.client.Receive(now%time.Second, serverAddr, l.inbox)
		if l.client.State() != Connected {
			b.Fatalf("%d: %v %+v", i, l.client.State(), l.server.Counters)
		}
		slot, _ := l.client.Slot()
		l.server.free(slot, ClientLeft)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
}
