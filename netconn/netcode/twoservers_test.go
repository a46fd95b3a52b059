package netcode

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// town is two servers of one token and clients, without a network: packets arrive at once, but those to a server that is dark.
type town struct {
	t       *testing.T
	now     time.Duration
	servers [2]*Server
	clients map[netip.AddrPort]*Client
	up      [2][][]byte // what the client at clientAddr sent to each server
	gone    []Reason
	queue   []func()
}

var townAddrs = [2]netip.AddrPort{serverAddr, netip.MustParseAddrPort("10.0.0.9:40000")}

type townServer struct {
	*town
	i int
}

func (s townServer) Send(to netip.AddrPort, p []byte) {
	p = bytes.Clone(p)
	s.queue = append(s.queue, func() {
		if c := s.clients[to]; c != nil {
			c.Receive(s.now, townAddrs[s.i], p)
		}
	})
}
func (s townServer) Connected(int, ClientInfo)         {}
func (s townServer) Payload(int, []byte)               {}
func (s townServer) Disconnected(_ int, reason Reason) { s.gone = append(s.gone, reason) }

type townClient struct {
	*town
	at netip.AddrPort
}

func (c townClient) Send(to netip.AddrPort, p []byte) {
	p = bytes.Clone(p)
	for i, a := range townAddrs {
		if a == to {
			if c.at == clientAddr {
				c.up[i] = append(c.up[i], bytes.Clone(p))
			}
			c.queue = append(c.queue, func() { c.servers[i].Receive(c.now, c.at, p) })
		}
	}
}
func (c townClient) StateChanged(State, State) {}
func (c townClient) Payload([]byte)            {}

func newTown(t *testing.T, slots int, admit func(server int, c ClientInfo) Admission) *town {
	w := &town{t: t, clients: map[netip.AddrPort]*Client{}}
	for i := range w.servers {
		s, err := NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: townAddrs[i : i+1], Slots: slots, Handler: townServer{w, i}, UnixAtZero: unixStart,
			FirstSequence: uint64(i) << 40, Admit: func(c ClientInfo) Admission { return admit(i, c) }})
		require.NoError(t, err)
		w.servers[i] = s
	}
	return w
}

func (w *town) dial(at netip.AddrPort, id uint64, servers ...netip.AddrPort) *Client {
	c := newClient(w.t, townClient{w, at})
	w.clients[at] = c
	require.NoError(w.t, c.Connect(w.now, token(w.t, id, func(c *TokenConfig) { c.ClientID, c.Servers = id, servers })))
	return c
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
		for _, c := range w.clients {
			c.Tick(w.now)
		}
	}
}

// TestGoodbyeToAnotherServer: a client that the first server of its token denies says goodbye there, with the keys that the second has too. Whoever repeats that at the second server
// from the client's address doesn't end its connection.
func TestGoodbyeToAnotherServer(t *testing.T) {
	w := newTown(t, 4, func(server int, _ ClientInfo) Admission {
		if server == 0 {
			return Refuse
		}
		return Admit
	})
	c := w.dial(clientAddr, 1, townAddrs[0], townAddrs[1])
	w.run(time.Second)
	require.Equal(t, Connected, c.State())
	require.Equal(t, 1, w.servers[1].Clients())
	for _, p := range w.up[0] {
		w.servers[1].Receive(w.now, clientAddr, bytes.Clone(p))
	}
	require.Equal(t, 1, w.servers[1].Clients(), "ended: %v", w.gone)
	w.run(10 * time.Second)
	require.Equal(t, Connected, c.State())
}
