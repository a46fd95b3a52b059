package netcode

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// town is two servers of one token, the first of which admits nobody, and a client, without a network: packets arrive at once.
type town struct {
	now     time.Duration
	servers [2]*Server
	client  *Client
	toFirst [][]byte // what the client sent to the first
	gone    []Reason
	queue   []func()
}

var townAddrs = [2]netip.AddrPort{serverAddr, netip.MustParseAddrPort("10.0.0.9:40000")}

type townServer struct {
	*town
	addr netip.AddrPort
}

func (s townServer) Send(_ netip.AddrPort, p []byte) {
	p = bytes.Clone(p)
	s.queue = append(s.queue, func() { s.client.Receive(s.now, s.addr, p) })
}
func (s townServer) Connected(int, ClientInfo)         {}
func (s townServer) Payload(int, []byte)               {}
func (s townServer) Disconnected(_ int, reason Reason) { s.gone = append(s.gone, reason) }

type townClient struct{ *town }

func (c townClient) Send(to netip.AddrPort, p []byte) {
	p = bytes.Clone(p)
	i := slices.Index(townAddrs[:], to)
	if i == 0 {
		c.toFirst = append(c.toFirst, p)
	}
	c.queue = append(c.queue, func() { c.servers[i].Receive(c.now, clientAddr, bytes.Clone(p)) })
}
func (c townClient) StateChanged(State, State) {}
func (c townClient) Payload([]byte)            {}

func newTown(t *testing.T) *town {
	w := &town{}
	for i, addr := range townAddrs {
		var err error
		w.servers[i], err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{addr}, Slots: 4, Handler: townServer{w, addr}, UnixAtZero: unixStart,
			FirstSequence: uint64(i) << 40, Admit: func(ClientInfo) Admission {
				if i == 0 {
					return Refuse
				}
				return Admit
			}})
		require.NoError(t, err)
	}
	w.client = newClient(t, townClient{w})
	require.NoError(t, w.client.Connect(w.now, token(t, 1, func(c *TokenConfig) { c.ClientID, c.Servers = 1, townAddrs[:] })))
	return w
}

func (w *town) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 10 * time.Millisecond {
		for len(w.queue) > 0 {
			f := w.queue[0]
			w.queue = w.queue[1:]
			f()
		}
		for _, s := range w.servers {
			s.Tick(w.now)
		}
		w.client.Tick(w.now)
	}
}

// TestGoodbyeToAnotherServer: a client that the first server of its token denies says goodbye there, with the keys that the second has too. Whoever repeats that at the second server
// from the client's address doesn't end its connection.
func TestGoodbyeToAnotherServer(t *testing.T) {
	w := newTown(t)
	w.run(time.Second)
	require.Equal(t, Connected, w.client.State())
	require.Equal(t, 1, w.servers[1].Clients())
	for _, p := range w.toFirst {
		w.servers[1].Receive(w.now, clientAddr, bytes.Clone(p))
	}
	require.Equal(t, 1, w.servers[1].Clients(), "ended: %v", w.gone)
	w.run(10 * time.Second)
	require.Equal(t, Connected, w.client.State())
}
