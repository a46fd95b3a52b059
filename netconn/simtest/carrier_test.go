package simtest_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/simtest"
	"github.com/bunchnet/bunchnet/netconn/simtest/exercise"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// TestCarriers plays everything over each carrier, and over all at once with UDP in one world of one driver.
func TestCarriers(t *testing.T) {
	seeds := 12
	switch {
	case testing.Short():
		seeds = 5
	case os.Getenv("CI") != "":
		seeds = 25
	}
	ways := []string{"mixed"}
	for _, c := range simtest.Carriers {
		ways = append(ways, c.String())
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for seed := 1; seed <= seeds; seed++ {
				s := exercise.Draw(uint64(seed))
				s.Set("way", way)
				r := exercise.Play(s)
				if !r.OK() {
					t.Errorf("%v\ngo run ./bench/swarm -first %d -seeds 1 -way %s shrinks it\n%v", &r, seed, way, s)
				}
				if seed == 1 {
					again := exercise.Play(s)
					require.Equal(t, r.Hash, again.Hash)
					require.Equal(t, r.Counters, again.Counters)
				}
			}
		})
	}
}

// carriage is a client that sends numbered datagrams 60 times a second, and a server that echoes them.
type carriage struct {
	*simtest.Simulation
	server, client *simtest.Host
	socket         udp.Socket // the client's
	size           int
	quiet          bool
	sent           uint64
	got            []uint64 // numbers that came back, in order
	took           []time.Duration
	from           map[netip.AddrPort]bool // of what the server got
	err            error                   // of the client
}

type ticking func()

func (f ticking) Tick(time.Time) error { f(); return nil }

func newCarriage(t *testing.T, seed uint64, c simtest.Carrier, net netsim.Settings) *carriage {
	x := &carriage{size: 200, from: map[netip.AddrPort]bool{}}
	in := make([]udp.Message, 8)
	for i := range in {
		in[i].Buf = make([]byte, 1500)
	}
	x.Simulation = simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
		if h.IsServer() {
			s, err := h.ListenBy(c, 7777)
			return ticking(func() {
				for n, _ := s.TryReadBatch(in); n > 0; n, _ = s.TryReadBatch(in) {
					for _, m := range in[:n] {
						x.from[m.Addr] = true
						require.True(t, s.Has(m.Addr))
						_, err := s.WriteBatch([]udp.Message{{Buf: m.Data(), Addr: m.Addr}})
						require.NoError(t, err)
					}
				}
			}), err
		}
		x.socket = h.OpenBy(c, netip.AddrPortFrom(x.server.Addr(), 7777))
		any := netip.MustParseAddrPort("192.0.2.1:9")
		return ticking(func() {
			if p := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, x.sent), uint64(x.Now())); !x.quiet {
				_, err := x.socket.WriteBatch([]udp.Message{{Buf: append(p, make([]byte, x.size-len(p))...), Addr: any}})
				require.NoError(t, err)
				x.sent++
			}
			n, err := x.socket.TryReadBatch(in)
			for ; n > 0; n, err = x.socket.TryReadBatch(in) {
				for _, m := range in[:n] {
					require.Equal(t, any, m.Addr)
					require.Len(t, m.Data(), x.size)
					x.got = append(x.got, binary.LittleEndian.Uint64(m.Data()))
					x.took = append(x.took, x.Now()-time.Duration(binary.LittleEndian.Uint64(m.Data()[8:])))
				}
			}
			x.err = err
		}), nil
	})
	x.server, x.client = x.AddHost("server", true), x.AddHost("client", false)
	require.NoError(t, x.client.SetNet(net, net))
	return x
}

// end lets everything arrive, and returns how many datagrams didn't, and how many came after a later one.
func (x *carriage) end(t *testing.T) (lost, late int) {
	x.quiet = true
	x.RunUntil(x.Now() + 20*time.Second)
	require.Nil(t, x.Failure())
	seen := map[uint64]bool{}
	for i, n := range x.got {
		require.False(t, seen[n], "twice")
		seen[n] = true
		if i > 0 && n < x.got[i-1] {
			late++
		}
	}
	return int(x.sent) - len(seen), late
}

// TestWebSocketModel: all arrive in order, whatever the network loses, repeats, reorders, corrupts and however little it takes at once; what was lost holds back
// what is behind it. Where there is no room the oldest are dropped.
func TestWebSocketModel(t *testing.T) {
	for seed, net := range []netsim.Settings{
		{Lag: 50 * time.Millisecond}, {Lag: 50 * time.Millisecond, Loss: 5}, {Lag: 30 * time.Millisecond, Loss: 5, Dup: 10, Order: 10, Corrupt: 2},
		{Lag: 30 * time.Millisecond, MTU: 500}, {Lag: 20 * time.Millisecond, BurstLoss: 2, BurstLength: 3},
	} {
		x := newCarriage(t, uint64(seed), simtest.WebSocket, net)
		x.RunUntil(20 * time.Second)
		lost, late := x.end(t)
		require.Zero(t, lost, "%+v", net)
		require.Zero(t, late, "%+v", net)
		slow := 0
		for _, took := range x.took {
			if took > 2*net.Lag+100*time.Millisecond {
				slow++
			}
		}
		if net == (netsim.Settings{Lag: net.Lag}) {
			require.Less(t, slow, 10, "only while it begins")
		} else {
			require.Greater(t, slow, len(x.took)/20, "one that is lost holds back others: %+v", net)
		}
	}

	x := newCarriage(t, 1, simtest.WebSocket, netsim.Settings{Lag: 20 * time.Millisecond, Bandwidth: 50_000})
	x.size = 1000 // ten times too much
	x.RunUntil(60 * time.Second)
	lost, late := x.end(t)
	require.Greater(t, lost, 1000)
	require.Zero(t, late)
}

// TestWebSocketModelEnds: a client that has another address, or whose server has crashed, is told that its session has ended.
func TestWebSocketModelEnds(t *testing.T) {
	for name, end := range map[string]func(x *carriage){
		"rebind": func(x *carriage) { x.client.Rebind() },
		"crash":  func(x *carriage) { x.server.Crash(100 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			x := newCarriage(t, 1, simtest.WebSocket, netsim.Settings{Lag: 20 * time.Millisecond})
			x.RunUntil(2 * time.Second)
			require.NoError(t, x.err)
			end(x)
			x.RunUntil(6 * time.Second)
			require.ErrorContains(t, x.err, "ended")
		})
	}
}

// TestWebTransportModel: datagrams get lost and come late as on the network, larger ones than the path carries always do; the address for the server stays.
func TestWebTransportModel(t *testing.T) {
	for size, arrive := range map[int]bool{1215: true, 1216: false} {
		x := newCarriage(t, 1, simtest.WebTransport, netsim.Settings{Lag: 30 * time.Millisecond, Loss: 5, Order: 5})
		x.size = size
		x.RunUntil(10 * time.Second)
		x.client.Rebind()
		x.RunUntil(20 * time.Second)
		lost, late := x.end(t)
		if !arrive {
			require.Equal(t, int(x.sent), lost)
			require.Equal(t, x.sent, x.Counters.TooBig)
			continue
		}
		require.Less(t, lost, int(x.sent)/5)
		require.Greater(t, lost, int(x.sent)/20)
		require.NotZero(t, late)
		require.Len(t, x.from, 1)
	}
}

// TestICEModel: the path is dark now and then, longer by the relay, and overtaken by what goes directly again; the address for the server stays.
func TestICEModel(t *testing.T) {
	x := newCarriage(t, 1, simtest.ICE, netsim.Settings{Lag: 30 * time.Millisecond})
	x.RunUntil(30 * time.Second)
	x.client.Rebind()
	x.RunUntil(60 * time.Second)
	lost, late := x.end(t)
	require.Greater(t, lost, 60*5, "2.5 s several times")
	require.Less(t, lost, int(x.sent)/2)
	require.NotZero(t, late)
	require.Len(t, x.from, 1)
	long := 0
	for _, took := range x.took {
		if took > 110*time.Millisecond {
			long++
		}
	}
	require.Greater(t, long, len(x.took)/10)
	require.Less(t, long, len(x.took)*9/10)
	require.Greater(t, int(x.Counters.Rebinds), 1, "it has restarted")
}

// TestICERestartModel: a client that goes to another network is silent for longer than a path takes to fail, and goes on by the same address for the server.
func TestICERestartModel(t *testing.T) {
	restarts := uint64(0)
	for seed := range uint64(8) {
		x := newCarriage(t, seed, simtest.ICE, netsim.Settings{Lag: 30 * time.Millisecond})
		x.RunUntil(2 * time.Minute)
		last, gap, gaps := x.got[0], 0, uint64(0)
		for _, n := range x.got[1:] {
			if n > last {
				gap = int(n - last)
				last = n
			}
			if gap > 60*3 { // longer than the failure of a path
				require.Less(t, gap, 60*7, "seed %d: dark for longer than a restart takes", seed)
				gaps++
			}
			gap = 0
		}
		require.Equal(t, x.Counters.Rebinds, gaps, "seed %d: each restart is a gap, and ends", seed)
		require.Len(t, x.from, 1)
		restarts += x.Counters.Rebinds
		_, _ = x.end(t)
	}
	require.Greater(t, restarts, uint64(10))
}
