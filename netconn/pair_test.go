package netconn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
)

// pair is two connections with a bad network between them, in virtual time.
type pair struct {
	t    testing.TB
	rng  *rand.Rand
	now  time.Duration
	ends [2]*end
	net  network
}

type network struct {
	loss, dup, reorder, corrupt float64 // 0 to 1
	delay, jitter               time.Duration
}

type end struct {
	conn    *Conn
	flying  []flight
	result  *CloseResult
	sentLen int
}

type flight struct {
	at   time.Duration
	data []byte
}

const testTick = time.Second / 60

func newPair(t testing.TB, seed uint64, net network, edit func(i int, c *Config)) *pair {
	p := &pair{t: t, rng: rand.New(rand.NewPCG(seed, 1)), net: net}
	seqs := [2]uint16{uint16(p.rng.Uint32N(1 << 14)), uint16(p.rng.Uint32N(1 << 14))}
	for i := range p.ends {
		e := &end{}
		cfg := Config{Server: i == 1, LowLevelSend: func(b []byte) { p.send(e, b) }, Closed: func(r CloseResult) { e.result = &r }}
		if edit != nil {
			edit(i, &cfg)
			named(&cfg)
		}
		bucketed(&cfg)
		conn, err := New(cfg, 0, seqs[1-i], seqs[i])
		require.NoError(t, err)
		e.conn = conn
		p.ends[i] = e
	}
	return p
}

func (p *pair) send(e *end, b []byte) {
	e.sentLen += len(b)
	if p.rng.Float64() < p.net.loss {
		return
	}
	n := 1
	if p.rng.Float64() < p.net.dup {
		n = 2
	}
	for range n {
		d := p.net.delay + time.Duration(p.rng.Float64()*float64(p.net.jitter))
		if p.rng.Float64() < p.net.reorder {
			d += 3 * testTick
		}
		data := append([]byte(nil), b...)
		if p.rng.Float64() < p.net.corrupt {
			data[p.rng.IntN(len(data))] ^= 1 << p.rng.IntN(8)
		}
		e.flying = append(e.flying, flight{p.now + d, data})
	}
}

// step is one tick of both ends.
func (p *pair) step() {
	p.now += testTick
	for i, e := range p.ends {
		from := p.ends[1-i]
		rest := from.flying[:0]
		for _, f := range from.flying {
			if f.at <= p.now {
				_ = e.conn.ReceivedPacket(p.now, f.data)
			} else {
				rest = append(rest, f)
			}
		}
		from.flying = rest
		e.conn.PostTickDispatch(p.now)
	}
	for _, e := range p.ends {
		e.conn.Tick(p.now)
	}
}

// collector is a handler that keeps what it gets.
type collector struct {
	got    [][]byte
	acks   []int64
	naks   []int64
	closed []channel.CloseReason
}

func (c *collector) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	c.got = append(c.got, b)
}
func (c *collector) ReceivedAck(_ *channel.Channel, id int64) { c.acks = append(c.acks, id) }
func (c *collector) ReceivedNak(_ *channel.Channel, id int64) { c.naks = append(c.naks, id) }
func (c *collector) Closed(_ *channel.Channel, reason channel.CloseReason) {
	c.closed = append(c.closed, reason)
}

var testName = bunch.Name{Index: 300}

// testTypes is a control channel and one that both may open, collected by get.
func testTypes(get func(*channel.Channel) channel.Handler) []channel.Type {
	return []channel.Type{
		{Name: bunch.Control, ClientOpen: true, Static: true, Accept: get},
		{Name: testName, ClientOpen: true, ServerOpen: true, Accept: get},
	}
}

// message is a payload that says which one it is and can't be mistaken.
func message(i, size int) []byte {
	b := make([]byte, max(4, size))
	for j := range b {
		b[j] = byte(i>>(8*(j&3))) ^ byte(j>>2)
	}
	return b
}

func TestReliableUnderLoss(t *testing.T) {
	nets := map[string]network{
		"clean":   {delay: 20 * time.Millisecond},
		"10%":     {loss: 0.1, dup: 0.02, reorder: 0.05, delay: 20 * time.Millisecond, jitter: 10 * time.Millisecond},
		"30%":     {loss: 0.3, dup: 0.05, reorder: 0.1, delay: 20 * time.Millisecond, jitter: 30 * time.Millisecond},
		"60%":     {loss: 0.6, dup: 0.1, reorder: 0.2, delay: 5 * time.Millisecond, jitter: 40 * time.Millisecond},
		"reorder": {reorder: 0.5, delay: 20 * time.Millisecond, jitter: 60 * time.Millisecond},
	}
	for name, net := range nets {
		for _, copies := range []int{0, 3} {
			t.Run(name, func(t *testing.T) { reliableRun(t, 7, net, Redundancy{Copies: copies}, 600) })
		}
	}
}

func reliableRun(t *testing.T, seed uint64, net network, red Redundancy, messages int) {
	t.Logf("seed %d", seed)
	var server, client collector
	p := newPair(t, seed, net, func(i int, c *Config) {
		c.Redundancy = red
		c.Channels = testTypes(func(*channel.Channel) channel.Handler { return &server })
	})
	ctl, err := p.ends[0].conn.Open(bunch.Control, &client)
	require.NoError(t, err)
	_, err = ctl.SendBunch(&bunch.Out{Data: []byte("hello"), Reliable: true})
	require.NoError(t, err)
	ch, err := p.ends[0].conn.Open(testName, &client)
	require.NoError(t, err)
	want := [][]byte{[]byte("hello")}
	for i := 0; len(server.got) < messages+1; i++ {
		require.Less(t, i, 60*600, "stuck with %d of %d, %v", len(server.got), messages, p.ends[0].conn.Stats())
		for n := len(want) - 1; n < messages && n < i*2 && ch.Room() > 80; n++ {
			m := message(n, p.rng.IntN(300))
			if n%50 == 17 {
				m = message(n, 40_000)
			}
			_, err := ch.SendBunch(&bunch.Out{Data: m, Reliable: true, NoMerge: true})
			require.NoError(t, err)
			want = append(want, m)
		}
		p.step()
		require.Nil(t, p.ends[0].result)
		require.Nil(t, p.ends[1].result)
	}
	require.Equal(t, len(want), len(server.got))
	for i := range want {
		require.Equal(t, want[i], server.got[i], "message %d", i)
	}
}
