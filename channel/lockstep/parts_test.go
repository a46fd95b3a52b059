package lockstep

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurnBytes pins the record's format.
func TestTurnBytes(t *testing.T) {
	tn := Turn{
		Events:      []Event{{Kind: DelayChanged, Value: 300}, {Kind: Desynced, Player: 1, Value: 5, Got: 1, Want: 2}, {Kind: Split, Value: 5, Got: 1, Want: 2, Who: 1}},
		Substituted: 2, present: 1,
	}
	tn.inputs[0] = []byte{2, 'g', 'o', 1, '!'}
	require.Equal(t, "07"+"03"+"0300ac02"+"040105"+"0100000000000000"+"0200000000000000"+"050005"+"0100000000000000"+"0200000000000000"+"01"+"02"+"01"+"05"+"02676f"+"0121",
		hex.EncodeToString(tn.append(nil)))
	require.Equal(t, "00", hex.EncodeToString((&Turn{}).append(nil)))
}

func randomTurn(rng *rand.Rand, c *Config) (t Turn) {
	for range rng.IntN(4) {
		e := Event{Kind: EventKind(1 + rng.IntN(7)), Player: rng.IntN(c.Players), Value: rng.Int64N(int64(c.MaxDelay)) + 1}
		if e.Kind == Desynced || e.Kind == Split {
			e.Got, e.Want = rng.Uint64(), rng.Uint64()
		}
		if e.Kind == Split || e.Kind == Differs {
			e.Who = rng.Uint64() & c.mask()
		}
		if e.Kind == Differs {
			e.Who &= 1<<len(c.Parts) - 1
		}
		t.Events = append(t.Events, e)
	}
	t.Substituted = rng.Uint64() & rng.Uint64() & c.mask()
	for p := range c.Players {
		if rng.IntN(2) == 0 {
			continue
		}
		t.present |= 1 << p
		for range 1 + rng.IntN(3) {
			n := 1 + rng.IntN(20)
			t.inputs[p] = append(append(t.inputs[p], byte(n)), make([]byte, n)...)
		}
	}
	return t
}

func TestTurnRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		c, err := Config{Players: 1 + rng.IntN(MaxPlayers), Parts: []string{"units", "economy"}}.filled()
		require.NoError(t, err)
		want := randomTurn(rng, &c)
		b := want.append(nil)
		require.LessOrEqual(t, len(b), c.maxRecord())
		var got Turn
		require.True(t, got.parse(b, &c))
		require.Equal(t, b, got.append(nil))
		for n := range b {
			require.False(t, got.parse(b[:n], &c), "prefix of %d", n)
		}
	}
}

// TestLogModel compares with a slice of all records.
func TestLogModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := newTurnLog(1000, 50)
	var all []byte
	offsets := []int64{0}
	for n := range 5000 {
		rec := make([]byte, 1+rng.IntN(60))
		for i := range rec {
			rec[i] = byte(rng.Uint32())
		}
		l.append(rec, turnStart{delay: n})
		all = append(all, rec...)
		offsets = append(offsets, int64(len(all)))
		require.EqualValues(t, n+1, l.next)
		require.LessOrEqual(t, l.next-l.first, int64(50))
		require.LessOrEqual(t, l.end-l.start, int64(1000))
		// One turn more would not have fitted.
		if l.first > 0 && l.next-l.first < 50 {
			require.Greater(t, l.end-offsets[l.first-1], int64(1000))
		}
		turn := l.first + rng.Int64N(l.next-l.first)
		require.EqualValues(t, turn, l.index[turn%50].delay)
		require.Equal(t, offsets[turn], l.offset(turn))
		require.Equal(t, all[offsets[turn]:], l.appendRange(nil, l.offset(turn), l.end))
		require.False(t, l.holds(l.first-1))
		require.True(t, l.holds(l.next))
		require.False(t, l.holds(l.next+1))
	}
}

func TestJudge(t *testing.T) {
	vote := func(voters uint64, hashes ...uint64) (*judge, *ballot) {
		j := newJudge(4)
		j.begin(0, voters, voters)
		b := j.ballot(0)
		for p, h := range hashes {
			if h != 0 {
				j.vote(b, p, h)
			}
		}
		return &j, b
	}
	for _, c := range []struct {
		name   string
		voters uint64
		hashes []uint64
		state  verdict
		want   uint64
	}{
		{"three of four", 0b1111, []uint64{7, 7, 8, 7}, agreed, 7},
		{"three are enough", 0b1111, []uint64{7, 7, 0, 7}, agreed, 7},
		{"two may become three", 0b1111, []uint64{7, 7}, undecided, 0},
		{"two to two", 0b1111, []uint64{1, 2, 2, 1}, divided, 0},
		{"two to one of four", 0b1111, []uint64{1, 2, 2, 0}, undecided, 0},
		{"two players", 0b0011, []uint64{1, 2}, divided, 0},
		{"who isn't a voter doesn't count", 0b0011, []uint64{1, 0, 2, 2}, undecided, 0},
		{"one player", 0b0001, []uint64{1}, agreed, 1},
		{"three ways", 0b0111, []uint64{1, 2, 3}, divided, 0},
		{"nobody", 0b0111, nil, undecided, 0},
		{"no voters", 0, []uint64{1, 2}, undecided, 0},
	} {
		j, b := vote(c.voters, c.hashes...)
		require.Equal(t, c.state != undecided, j.decide(b), c.name)
		require.Equal(t, c.state, b.state, c.name)
		require.Equal(t, c.want, b.want, c.name)
		require.False(t, j.decide(b), c.name)
	}
	j, _ := vote(0b1111)
	for turn := int64(1); turn <= hashWindow; turn++ {
		j.begin(turn, 1, 1)
	}
	require.Nil(t, j.ballot(0))
	require.NotNil(t, j.ballot(1))
	require.Nil(t, j.ballot(hashWindow+1))
	require.Nil(t, j.ballot(-1))
}

// TestLateTurns: a host that took over at a late turn looks at the ballots there are only.
func TestLateTurns(t *testing.T) {
	h, err := NewHost(config(2), nil)
	require.NoError(t, err)
	h.openBallot(1 << 50)
	h.tell()
	require.Equal(t, int64(1<<50+1), h.settled)
}

func TestAdaptiveDelay(t *testing.T) {
	a := NewAdaptiveDelay()
	at := func(rtt, jitter time.Duration) []Path {
		return []Path{{RTT: rtt, Jitter: jitter}, {Player: 1, RTT: rtt, Jitter: jitter}}
	}
	require.Equal(t, 4, a.Delay(2, 50*ms, at(120*ms, 5*ms)), "grows at once")
	for range 3 {
		require.Equal(t, 4, a.Delay(4, 50*ms, at(20*ms, 0)), "shrinks with patience")
	}
	require.Equal(t, 3, a.Delay(4, 50*ms, at(20*ms, 0)), "by one")
	for range 3 {
		a.Delay(4, 50*ms, at(20*ms, 0))
	}
	require.Equal(t, 4, a.Delay(4, 50*ms, at(150*ms, 0)), "what is needed again ends the patience")
	require.Equal(t, 4, a.Delay(4, 50*ms, at(20*ms, 0)))
	b := NewAdaptiveDelay()
	require.Equal(t, 6, b.Delay(2, 50*ms, []Path{{RTT: 50 * ms}, {RTT: 700 * ms}}), "one player leads the others by 4 turns")
	require.Equal(t, 15, b.Delay(2, 50*ms, []Path{{RTT: 700 * ms}}), "alone it hurts nobody")
	b.Lead = -1
	require.Equal(t, 15, b.Delay(2, 50*ms, []Path{{RTT: 50 * ms}, {RTT: 700 * ms}}))
	require.Equal(t, 3, FixedDelay(3).Delay(9, 50*ms, nil))
}

// FuzzTurn: what parses is written again byte for byte, but for longer forms of numbers.
func FuzzTurn(f *testing.F) {
	c, _ := Config{Players: 4}.filled()
	rng := rand.New(rand.NewPCG(6, 6))
	for range 5 {
		t := randomTurn(rng, &c)
		f.Add(t.append(nil))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var a, b Turn
		if !a.parse(p, &c) {
			return
		}
		for _, cmd := range a.Commands() {
			require.NotEmpty(t, cmd)
		}
		require.True(t, b.parse(a.append(nil), &c))
		require.Equal(t, a.append(nil), b.append(nil))
	})
}

// packetsOf takes packets, each led by its length, off data.
func packetsOf(data []byte, f func(p []byte)) {
	for len(data) > 0 {
		n := min(int(data[0]), len(data)-1)
		f(data[1 : 1+n])
		data = data[1+n:]
	}
}

func lead(packets ...[]byte) (all []byte) {
	for _, p := range packets {
		all = append(append(all, byte(len(p))), p...)
	}
	return all
}

// FuzzHost plays packets to a host with a game under way.
func FuzzHost(f *testing.F) {
	key0 := startedTable(f, config(2)).host.clients[0].key
	f.Add(lead(craftKey(key0, 0, input{life: 1, first: 2}, [][]byte{{1, 'x'}, {}}, 3)))
	f.Add(lead(hello{agreement: 5, have: 1}.append(envelope{typeHello, 0, 6}.append(nil)), craftKey(key0, 1, input{executed: 2}, nil, 1, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg := config(2)
		cfg.LogTurns, cfg.LogBytes = 64, 4096
		tb := startedTable(t, cfg)
		tb.turn([]byte{1})
		packetsOf(data, func(p []byte) {
			tb.now += 30 * ms
			_ = tb.host.Receive(tb.now, 0, p)
			tb.host.Tick(tb.now)
			tb.down[0].packets, tb.down[1].packets = nil, nil
		})
		require.LessOrEqual(t, tb.host.Turn(), int64(len(data)+100))
		require.LessOrEqual(t, len(tb.host.events), tb.host.cfg.maxEvents())
	})
}

// FuzzPeer plays packets to a peer that executes whatever turns come.
func FuzzPeer(f *testing.F) {
	w := welcome{delay: 2, life: 1}.append(envelope{typeWelcome, 0, 5}.append(nil))
	s := stream{}.append(envelope{typeStream, 0, 5}.append(nil))
	f.Add(lead(w, append(s, 8, hasEvents, 2, byte(Joined), 0, 1, byte(DelayChanged), 0, 3, 1, 0, 1, 0)))
	f.Add(lead(welcome{start: 9, snapshot: 3, delay: 1}.append(envelope{typeWelcome, 0, 5}.append(nil)), append(s, 1, 2, 3, 1, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		up := &box{}
		p, err := NewPeer(PeerConfig{Config: config(2).Config, Session: 5, MaxSnapshot: 100}, up)
		require.NoError(t, err)
		var now time.Duration
		packetsOf(data, func(pkt []byte) {
			now += 30 * ms
			_ = p.Receive(now, pkt)
			p.TakeSnapshot()
			for range 10 {
				if _, ok := p.Next(); ok {
					_ = p.Submit([]byte{1})
					require.NoError(t, p.Done(1))
				}
			}
			p.Tick(now)
			up.packets = nil
		})
		require.LessOrEqual(t, p.sealed-max(p.acked, p.next), int64(p.cfg.MaxDelay+1))
	})
}

func TestSetupForm(t *testing.T) {
	want := Setup{Seed: 1 << 60, Map: "two rivers", MapHash: 7, Settings: []byte{1, 2, 3},
		Seats: []Seat{{Player: 0, Name: "Ada", Team: 1, Place: 3, Kind: 2}, {Player: -1, Name: "computer"}, {Player: 63}}}
	b, err := want.Append([]byte{9})
	require.NoError(t, err)
	got, err := ParseSetup(b[1:])
	require.NoError(t, err)
	require.Equal(t, want, got)
	for n := range b[1:] {
		_, err := ParseSetup(b[1 : 1+n])
		require.ErrorIs(t, err, ErrSetupForm, "prefix of %d", n)
	}
	_, err = ParseSetup(append(b[1:], 0))
	require.ErrorIs(t, err, ErrSetupForm)
	long := string(make([]byte, 256))
	for _, bad := range []Setup{{Map: long}, {Settings: make([]byte, maxSettings+1)}, {Seats: make([]Seat, 256)},
		{Seats: []Seat{{Player: -2}}}, {Seats: []Seat{{Player: 255}}}, {Seats: []Seat{{Name: long}}}} {
		rest, err := bad.Append([]byte{9})
		require.ErrorIs(t, err, ErrSetupForm)
		require.Equal(t, []byte{9}, rest)
	}
}

// FuzzSetup: what parses is written again and parses to the same.
func FuzzSetup(f *testing.F) {
	s := Setup{Map: "two rivers", Seats: []Seat{{Name: "Ada"}, {Player: -1}}}
	b, _ := s.Append(nil)
	f.Add(b)
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := ParseSetup(p)
		if err != nil {
			return
		}
		b, err := s.Append(nil)
		if err != nil {
			return // over MaxSetup as a whole
		}
		again, err := ParseSetup(b)
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
