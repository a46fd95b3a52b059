package lockstep

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// box is a transport that keeps packets until they are taken.
type box struct {
	reliable bool
	packets  [][]byte
	free     [][]byte
	err      error
}

func (b *box) Reliable() bool { return b.reliable }

func (b *box) Send(_ time.Duration, p []byte) error {
	if b.err != nil {
		return b.err
	}
	var q []byte
	if n := len(b.free); n > 0 {
		q, b.free = b.free[n-1], b.free[:n-1]
	}
	b.packets = append(b.packets, append(q[:0], p...))
	return nil
}

func (b *box) take(f func(p []byte)) {
	for _, p := range b.packets {
		f(p)
		b.free = append(b.free, p)
	}
	b.packets = b.packets[:0]
}

// table is a host and peers joined by boxes, without loss.
type table struct {
	t        testing.TB
	host     *Host
	peers    []*Peer
	up, down []*box
	now      time.Duration
}

func newTable(t testing.TB, cfg HostConfig) *table {
	tb := &table{t: t, now: ms}
	var err error
	tb.host, err = NewHost(cfg, nil)
	require.NoError(t, err)
	for i := range cfg.Players {
		up, down := &box{}, &box{}
		p, err := NewPeer(PeerConfig{Config: cfg.Config, Player: i, Session: 5}, up)
		require.NoError(t, err)
		require.NoError(t, tb.host.Connect(i, down))
		tb.peers, tb.up, tb.down = append(tb.peers, p), append(tb.up, up), append(tb.down, down)
	}
	return tb
}

// exchange hands all packets over.
func (tb *table) exchange() {
	tb.now += 10 * ms
	for i, p := range tb.peers {
		p.Tick(tb.now)
		tb.up[i].take(func(pkt []byte) {
			if err := tb.host.Receive(tb.now, i, pkt); err != nil {
				tb.t.Fatal(err)
			}
		})
	}
	tb.host.Tick(tb.now)
	for i, p := range tb.peers {
		tb.down[i].take(func(pkt []byte) {
			if err := p.Receive(tb.now, pkt); err != nil {
				tb.t.Fatal(err)
			}
		})
	}
}

// turn lets all execute one turn, with a command each.
func (tb *table) turn(cmd []byte) {
	for _, p := range tb.peers {
		t, ok := p.Next()
		if !ok {
			tb.t.Fatalf("no turn %d", p.Turn())
		}
		sum := uint64(t.N)
		for player, c := range t.Commands() {
			sum = sum*31 + uint64(player) + uint64(len(c))
		}
		if len(cmd) > 0 && p.InGame() {
			if err := p.Submit(cmd); err != nil {
				tb.t.Fatal(err)
			}
		}
		if err := p.Done(sum); err != nil {
			tb.t.Fatal(err)
		}
	}
	tb.exchange()
}

func startedTable(t testing.TB, cfg HostConfig) *table {
	tb := newTable(t, cfg)
	for range 12 {
		tb.exchange()
	}
	require.Equal(t, tb.host.cfg.mask(), tb.host.Ready())
	tb.host.Start(tb.now)
	tb.exchange()
	return tb
}

// craft is an Input packet of the player's session in tb.
func (tb *table) craft(player int, in input, inputs [][]byte, hashes ...uint64) []byte {
	return craftKey(tb.host.clients[player].key, player, in, inputs, hashes...)
}

func craftKey(key uint32, player int, in input, inputs [][]byte, hashes ...uint64) []byte {
	in.received = max(in.received, 1) // a session's first stream begins there
	p := in.appendHead(envelope{typeInput, player, key}.append(nil))
	p = append(p, byte(len(inputs)))
	for _, i := range inputs {
		p = append(binary.AppendUvarint(p, uint64(len(i))), i...)
	}
	p = binary.AppendUvarint(p, uint64(in.firstHash))
	for _, h := range hashes {
		p = binary.LittleEndian.AppendUint64(p, h)
	}
	return p
}

func TestHostRefusals(t *testing.T) {
	tb := startedTable(t, config(2))
	for range 20 {
		tb.turn([]byte("move"))
	}
	h, head := tb.host, tb.host.Turn()
	life := tb.peers[0].life
	cmd := []byte{1, 'x'}
	for _, c := range []struct {
		name   string
		player int
		pkt    []byte
		want   error
	}{
		{"no such player", 9, tb.craft(0, input{}, nil), ErrNoPlayer},
		{"another's name", 0, tb.craft(1, input{}, nil), ErrPlayer},
		{"another session", 0, craftKey(4, 0, input{}, nil), ErrSession},
		{"no type", 0, envelope{9, 0, 5}.append(nil), ErrMalformed},
		{"a host's packet", 0, envelope{typeStream, 0, 5}.append(nil), ErrMalformed},
		{"turns ahead", 0, tb.craft(0, input{life: life, first: head + 1000}, [][]byte{cmd}), ErrAhead},
		{"just ahead", 0, tb.craft(0, input{life: life, first: head + int64(h.cfg.MaxDelay)}, [][]byte{cmd}), ErrAhead},
		{"a huge turn", 0, tb.craft(0, input{life: life, first: 1<<62 - 1}, [][]byte{cmd}), ErrMalformed},
		{"acks the future", 0, tb.craft(0, input{received: 1 << 40}, nil), ErrAhead},
		{"executed the future", 0, tb.craft(0, input{executed: head + 1}, nil), ErrAhead},
		{"hashes the future", 0, tb.craft(0, input{executed: 5, firstHash: 5}, nil, 1), ErrAhead},
		{"oversize", 0, tb.craft(0, input{life: life, first: head}, [][]byte{make([]byte, 257)}), ErrOversize},
		{"empty command", 0, tb.craft(0, input{life: life, first: head}, [][]byte{{0}}), ErrMalformed},
		{"command beyond", 0, tb.craft(0, input{life: life, first: head}, [][]byte{{9, 1, 2}}), ErrMalformed},
		{"half a hash", 0, append(tb.craft(0, input{executed: 5}, nil, 7), 1), ErrMalformed},
	} {
		require.ErrorIs(t, h.Receive(tb.now, c.player, c.pkt), c.want, c.name)
	}
	s := h.Stats()
	require.Equal(t, [5]uint64{6, 2, 1, 5, 1}, [5]uint64{s.RefusedMalformed, s.RefusedPlayer, s.RefusedSession, s.RefusedAhead, s.RefusedOversize})
	for _, d := range tb.down { // the denial of session 4 isn't the peers'
		d.packets = nil
	}
	for range 20 {
		tb.turn([]byte("move"))
	}
	require.Zero(t, h.Stats().Desyncs)
	require.ErrorIs(t, h.Connect(2, nil), ErrNoPlayer)
}

// TestTruncated cuts every packet of a short game at every length.
func TestTruncated(t *testing.T) {
	tb := startedTable(t, config(2))
	tb.turn([]byte("move"))
	victim := startedTable(t, config(2))
	for _, p := range tb.peers {
		if _, ok := p.Next(); ok {
			require.NoError(t, p.Submit([]byte("go")))
			require.NoError(t, p.Done(1))
		}
		p.Tick(tb.now)
	}
	whole := tb.up[0].packets[0]
	for n := range whole {
		_ = victim.host.Receive(victim.now, 0, whole[:n]) // whole hashes may be missing; else an error
		if n < 6 {
			require.ErrorIs(t, victim.host.Receive(victim.now, 0, whole[:n]), ErrMalformed)
		}
	}
	hello := hello{agreement: 1, have: 300}.append(envelope{typeHello, 0, 9}.append(nil))
	for n := range hello {
		require.ErrorIs(t, victim.host.Receive(victim.now, 0, hello[:n]), ErrMalformed)
	}
	w := welcome{start: 0, delay: 2, active: 3, life: 1}.append(envelope{typeWelcome, 0, 5}.append(nil))
	p, err := NewPeer(PeerConfig{Config: config(2).Config, Session: 5}, &box{})
	require.NoError(t, err)
	for n := range w {
		require.ErrorIs(t, p.Receive(0, w[:n]), ErrMalformed)
	}
	require.NoError(t, p.Receive(0, w))
	require.Equal(t, Running, p.State())
}

func TestDenials(t *testing.T) {
	cfg := config(2)
	for _, c := range []struct {
		change func(*PeerConfig)
		want   DenyReason
	}{
		{func(c *PeerConfig) { c.Protocol++ }, DenyVersion},
		{func(c *PeerConfig) { c.MaxInput = 100 }, DenyVersion},
		{func(c *PeerConfig) { c.Have, c.Generation = 100, newGeneration(&cfg) }, DenyAhead},
		{func(c *PeerConfig) { c.Session = 4 }, DenyStale},
	} {
		tb := startedTable(t, cfg)
		pc := PeerConfig{Config: cfg.Config, Player: 1, Session: 6}
		c.change(&pc)
		up := &box{}
		p, err := NewPeer(pc, up)
		require.NoError(t, err)
		for range 3 { // the challenge comes first
			p.Tick(tb.now)
			up.take(func(pkt []byte) { _ = tb.host.Receive(tb.now, 1, pkt) })
			tb.down[1].take(func(pkt []byte) { _ = p.Receive(tb.now, pkt) })
			tb.now += 60 * ms
		}
		require.Equal(t, Ended, p.State())
		require.ErrorIs(t, p.Err(), ErrDenied)
		require.Equal(t, ErrDenied.Error()+": "+denyNames[p.Reason()], p.Err().Error())
		require.Equal(t, c.want, p.Reason())
		_, ok := p.NextDeadline()
		require.False(t, ok)
	}
}

// TestHostileHost: a Peer leaves a host whose turns break the rules.
func TestHostileHost(t *testing.T) {
	for name, rec := range map[string][]byte{
		"empty record":     {0},
		"endless record":   {0xff, 0xff, 0xff, 0xff, 0x0f},
		"long length":      {0x80, 0x80, 0x80, 0x80, 0x80},
		"unknown flags":    {1, 0x80},
		"too long":         {2, 0, 0},
		"no such event":    {5, hasEvents, 1, 77, 0, 0},
		"no such player":   {5, hasEvents, 1, byte(Joined), 2, 1},
		"delay over max":   {5, hasEvents, 1, byte(DelayChanged), 0, 100},
		"inputs of nobody": {4, hasInputs, 4, 2, 1},
		"empty input":      {3, hasInputs, 1, 0},
	} {
		p, err := NewPeer(PeerConfig{Config: config(2).Config, Session: 5}, &box{})
		require.NoError(t, err)
		require.NoError(t, p.Receive(0, welcome{delay: 2, life: 1}.append(envelope{typeWelcome, 0, 5}.append(nil))))
		pkt := stream{}.append(envelope{typeStream, 0, 5}.append(nil))
		_ = p.Receive(0, append(pkt, rec...))
		_, ok := p.Next()
		require.False(t, ok, name)
		require.ErrorIs(t, p.Err(), ErrStream, name)
	}
}

func TestMisuse(t *testing.T) {
	tb := startedTable(t, config(2))
	p := tb.peers[0]
	require.ErrorIs(t, p.Done(0), ErrNoTurn)
	require.ErrorIs(t, p.Submit([]byte{1}), ErrInactive)
	tb.turn(nil)
	require.ErrorIs(t, p.Submit(nil), ErrEmptyCommand)
	require.NoError(t, p.Submit(make([]byte, 100)))
	require.NoError(t, p.Submit(make([]byte, 153)))
	require.ErrorIs(t, p.Submit([]byte{1}), ErrInputFull)
	a, ok := p.Next()
	require.True(t, ok)
	b, _ := p.Next()
	require.Same(t, a, b)
}

// TestTransportFull: packets not taken are tried again.
func TestTransportFull(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		tb := startedTable(t, config(2))
		for i := range tb.up {
			tb.up[i].reliable, tb.down[i].reliable = reliable, reliable
			tb.peers[i].reliable, tb.host.clients[i].reliable = reliable, reliable
		}
		for i := range 100 {
			for k := range tb.up {
				tb.up[k].err, tb.down[k].err = nil, nil
				if i%3 != 0 {
					tb.up[k].err, tb.down[k].err = ErrInputFull, ErrInputFull
				}
			}
			for _, p := range tb.peers {
				if _, ok := p.Next(); ok {
					if p.InGame() {
						require.NoError(t, p.Submit([]byte{byte(i)}))
					}
					require.NoError(t, p.Done(0))
				}
			}
			tb.exchange()
		}
		require.Greater(t, tb.peers[0].Turn(), int64(20))
		require.NotZero(t, tb.host.Stats().SendErrors)
		require.NotZero(t, tb.peers[0].Stats().SendErrors)
	}
}

func TestConfigs(t *testing.T) {
	for _, change := range []func(*HostConfig){
		func(c *HostConfig) { c.Players = 0 },
		func(c *HostConfig) { c.Players = 65 },
		func(c *HostConfig) { c.MaxPacket = 64 },
		func(c *HostConfig) { c.MaxInput = 1100 },
		func(c *HostConfig) { c.MaxInput = 1 },
		func(c *HostConfig) { c.MaxDelay = 61 },
		func(c *HostConfig) { c.TurnInterval = -1 },
		func(c *HostConfig) { c.InitialDelay = 17 },
		func(c *HostConfig) { c.Stall = 2 },
		func(c *HostConfig) { c.DropAfter = -1 },
		func(c *HostConfig) { c.DropAfter = 4*50*ms - 1 },
		func(c *HostConfig) { c.TurnInterval, c.DropAfter = time.Minute, 4*time.Second-1 },
		func(c *HostConfig) { c.LogBytes = 100 },
		func(c *HostConfig) { c.LogTurns = 10 },
		func(c *HostConfig) { c.Window = 10 },
		func(c *HostConfig) { c.Rate = 10 },
		func(c *HostConfig) { c.InputRate = 300 },
		func(c *HostConfig) { c.StallPercent = 101 },
		func(c *HostConfig) { c.RejoinAfter = -1 },
		func(c *HostConfig) { c.Spectators = MaxSpectators + 1 },
		func(c *HostConfig) { c.SpectatorDelay = 1 << 20 },
		func(c *HostConfig) { c.SpectatorDelay, c.LogBytes = 101, 2*44*100 },
	} {
		c := config(2)
		change(&c)
		_, err := NewHost(c, nil)
		require.ErrorIs(t, err, ErrConfig)
	}
	for _, change := range []func(*PeerConfig){
		func(c *PeerConfig) { c.Player = 2 + MaxSpectators },
		func(c *PeerConfig) { c.Parts = make([]string, 33) },
		func(c *PeerConfig) { c.Player = -1 },
		func(c *PeerConfig) { c.Have = -1 },
		func(c *PeerConfig) { c.Have = 1 }, // of which host?
		func(c *PeerConfig) { c.ReceiveBuffer = 10 },
		func(c *PeerConfig) { c.Players = 0 },
	} {
		c := PeerConfig{Config: Config{Players: 2}}
		change(&c)
		_, err := NewPeer(c, &box{})
		require.ErrorIs(t, err, ErrConfig)
	}
	_, err := NewPeer(PeerConfig{Config: Config{Players: 2}}, nil)
	require.ErrorIs(t, err, ErrConfig)
	h, err := NewHost(HostConfig{Config: Config{Players: 2}, Secret: [32]byte{1}}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, h.Connect(0, nil), ErrConfig)
	for players := 1; players <= MaxPlayers; players++ { // the defaults suit any number
		_, err := NewHost(HostConfig{Config: Config{Players: players}, LogTurns: 64}, nil)
		require.NoError(t, err)
		_, err = NewPeer(PeerConfig{Config: Config{Players: players}}, &box{})
		require.NoError(t, err)
	}
}

func TestAllocsTurn(t *testing.T) {
	cfg := config(4)
	cfg.LogTurns, cfg.LogBytes = 300, 16<<10 // so that it trims
	tb := startedTable(t, cfg)
	cmd := []byte("move 12 to 7")
	for range 500 {
		tb.turn(cmd)
	}
	require.Zero(t, testing.AllocsPerRun(500, func() { tb.turn(cmd) }))
}

// BenchmarkTurn is a turn of four players and their host: submit, send, collect, log, relay, execute,
// compare hashes.
func BenchmarkTurn(b *testing.B) {
	tb := startedTable(b, config(4))
	cmd := []byte("move 12 to 7")
	b.ReportAllocs()
	for b.Loop() {
		tb.turn(cmd)
	}
}
