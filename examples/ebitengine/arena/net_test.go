package arena

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// hub is a network in memory and in virtual time: a server, and clients on a link each.
type hub struct {
	t      *testing.T
	now    time.Duration
	server *socket
	lines  []*line
}

type line struct {
	addr     netip.AddrPort
	up, down *netsim.Link
}

// socket is an end of it.
type socket struct {
	hub  *hub
	addr netip.AddrPort
	line *line // of a client
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t}
	h.server = &socket{hub: h, addr: netip.MustParseAddrPort("127.0.0.1:7777")}
	return h
}

func (h *hub) client(set netsim.Settings, seed uint64) *socket {
	l := &line{addr: netip.AddrPortFrom(h.server.addr.Addr(), uint16(10000+len(h.lines)))}
	var err error
	l.up, err = netsim.NewLink(set, seed)
	require.NoError(h.t, err)
	l.down, err = netsim.NewLink(set, seed+1)
	require.NoError(h.t, err)
	h.lines = append(h.lines, l)
	return &socket{h, l.addr, l}
}

func (s *socket) WriteBatch(msgs []udp.Message) (int, error) {
	for _, m := range msgs {
		if s.line != nil {
			s.line.up.Push(s.hub.now, m.Buf)
			continue
		}
		for _, l := range s.hub.lines {
			if l.addr == m.Addr {
				l.down.Push(s.hub.now, m.Buf)
			}
		}
	}
	return len(msgs), nil
}

func (s *socket) TryReadBatch(msgs []udp.Message) (n int, err error) {
	pop := func(l *netsim.Link, from netip.AddrPort) {
		for n < len(msgs) {
			b, ok := l.Pop(s.hub.now)
			if !ok {
				return
			}
			msgs[n].N, msgs[n].Addr = copy(msgs[n].Buf, b), from
			n++
		}
	}
	if s.line != nil {
		pop(s.line.down, s.hub.server.addr)
		return n, nil
	}
	for _, l := range s.hub.lines {
		pop(l.up, l.addr)
	}
	return n, nil
}

func (s *socket) ReadBatch(msgs []udp.Message) (int, error) {
	if n, err := s.TryReadBatch(msgs); n > 0 || err != nil {
		return n, err
	}
	return 0, os.ErrDeadlineExceeded
}

func (s *socket) BatchSize() int                  { return 32 }
func (s *socket) LocalAddr() netip.AddrPort       { return s.addr }
func (s *socket) SetReadDeadline(time.Time) error { return nil }
func (s *socket) Close() error                    { return nil }

// rig is a server and its clients.
type rig struct {
	*hub
	start   time.Time
	server  *Server
	clients []*Client
	inputs  []Input
	trails  map[string][]Vec // of the server's last second
	frames  int
}

func newRig(t *testing.T, bots int, seed uint64) *rig {
	t.Logf("seed %d", seed)
	r := &rig{hub: newHub(t), start: time.Now(), trails: map[string][]Vec{}}
	var err error
	r.server, err = Listen(ServerConfig{Addr: "127.0.0.1:7777", Bots: bots, Seed: seed, Socket: r.hub.server})
	require.NoError(t, err)
	return r
}

func (r *rig) join(name string, set netsim.Settings, seed uint64) *Client {
	c, err := Dial(ClientConfig{Addr: "127.0.0.1:7777", Name: name, Socket: r.hub.client(set, seed)})
	require.NoError(r.t, err)
	r.clients = append(r.clients, c)
	r.inputs = append(r.inputs, Input{})
	return c
}

// frame is a sixtieth of a second: a frame of each client, and every other time a tick of the server.
func (r *rig) frame() {
	r.now += time.Second / 60
	now := r.start.Add(r.now)
	if r.frames++; r.frames%2 == 0 {
		require.NoError(r.t, r.server.Tick(now))
		for s := range r.server.Ships {
			trail := append(r.trails[s.Name], s.Pos)
			r.trails[s.Name] = trail[max(0, len(trail)-TickRate):]
		}
	}
	for i, c := range r.clients {
		require.NoError(r.t, c.Frame(now, r.inputs[i]))
	}
}

func (r *rig) run(seconds float64) {
	for range int(60 * seconds) {
		r.frame()
	}
}
