package netclock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep/netclock"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

const ms = time.Millisecond

// rig is a client and a server whose clock differs, joined by two links.
type rig struct {
	t        testing.TB
	c        *netclock.Client
	up, down *netsim.Link
	server   func(real time.Duration) time.Duration
}

func newRig(t testing.TB, cfg netclock.Config, up, down netsim.Settings, seed uint64, server func(time.Duration) time.Duration) *rig {
	c, err := netclock.NewClient(cfg)
	require.NoError(t, err)
	r := &rig{t: t, c: c, server: server}
	r.up, err = netsim.NewLink(up, seed)
	require.NoError(t, err)
	r.down, err = netsim.NewLink(down, seed+1)
	require.NoError(t, err)
	return r
}

// step does all that is due at now.
func (r *rig) step(now time.Duration) {
	var buf [32]byte
	w := bitio.NewWriter(buf[:])
	ok, err := r.c.Request(now, w)
	require.NoError(r.t, err)
	if ok {
		r.up.Push(now, w.Bytes())
	}
	for p, ok := r.up.Pop(now); ok; p, ok = r.up.Pop(now) {
		w.Reset(buf[:])
		require.NoError(r.t, netclock.Answer(r.server(now), r.server(now)-3*ms, bitio.NewReader(p, 8*len(p)), w))
		r.down.Push(now, w.Bytes())
	}
	for p, ok := r.down.Pop(now); ok; p, ok = r.down.Pop(now) {
		require.NoError(r.t, r.c.Reply(now, bitio.NewReader(p, 8*len(p))))
	}
}

func TestFollowsABadNetwork(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		start, drift := time.Duration(rnd.Int64N(int64(time.Hour))), 1+(rnd.Float64()-0.5)*2e-4
		link := netsim.Settings{Loss: 10, Dup: 5, LagMin: 40 * ms, LagMax: 140 * ms}
		server := func(real time.Duration) time.Duration { return start + time.Duration(drift*float64(real)) }
		r := newRig(t, netclock.Config{}, link, link, seed*2, server)
		last, lastNow := time.Duration(0), time.Duration(0)
		for now := time.Duration(0); now < 60*time.Second; now += 5 * ms {
			r.step(now)
			got, ok := r.c.ServerTime(now)
			if !ok {
				continue
			}
			off := (got - server(now)).Abs()
			require.LessOrEqual(t, off, r.c.RTT()/2+5*ms, "seed %d at %v", seed, now)
			if now > 20*time.Second {
				require.LessOrEqual(t, off, 50*ms, "seed %d at %v", seed, now)
			}
			if last != 0 {
				d := float64(got-last) / float64(now-lastNow)
				require.True(t, d >= 0.9499 && d <= 1.0501, "seed %d at %v: rate %v", seed, now, d)
			}
			last, lastNow = got, now
		}
		require.NotZero(t, r.c.Counters.Unmatched, "no reply was repeated")
		jumps, stands := r.c.Jumps()
		require.Zero(t, jumps+stands)
	}
}

func TestExactOnAnEvenLink(t *testing.T) {
	server := func(real time.Duration) time.Duration { return real + 77*time.Second }
	r := newRig(t, netclock.Config{}, netsim.Settings{Lag: 50 * ms}, netsim.Settings{Lag: 50 * ms}, 1, server)
	for now := time.Duration(0); now < time.Second; now += ms {
		r.step(now)
	}
	got, ok := r.c.ServerTime(time.Second)
	require.True(t, ok && r.c.Synced())
	// What the server holds a request for, 3 ms in these tests, isn't part of the round trip.
	require.Equal(t, 97*ms, r.c.RTT())
	require.InDelta(t, float64(server(time.Second)), float64(got), float64(2*ms))
}

// The server's clock is set: forward the client jumps, back it waits; never back.
func TestServerClockSet(t *testing.T) {
	shift := 100 * time.Second
	r := newRig(t, netclock.Config{Window: 2}, netsim.Settings{Lag: 10 * ms}, netsim.Settings{Lag: 10 * ms}, 1,
		func(real time.Duration) time.Duration { return real + shift })
	last := time.Duration(0)
	run := func(from, to time.Duration) {
		for now := from; now < to; now += 5 * ms {
			r.step(now)
			if got, ok := r.c.ServerTime(now); ok {
				require.GreaterOrEqual(t, got, last)
				last = got
			}
		}
	}
	run(0, 2*time.Second)
	shift += 10 * time.Second
	run(2*time.Second, 6*time.Second)
	jumps, stands := r.c.Jumps()
	require.Equal(t, uint64(1), jumps)
	require.Zero(t, stands)
	require.InDelta(t, float64(6*time.Second+shift), float64(last), float64(10*ms))
	shift -= 3 * time.Second
	run(6*time.Second, 60*time.Second)
	_, stands = r.c.Jumps()
	require.NotZero(t, stands)
	require.InDelta(t, float64(60*time.Second+shift), float64(last), float64(10*ms))
}

func TestFollowerModel(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		cfg := netclock.FollowerConfig{MaxSlew: 0.01 + 0.49*rnd.Float64(), Jump: time.Duration(1+rnd.IntN(1000)) * ms}
		f, err := netclock.NewFollower(cfg)
		require.NoError(t, err)
		now, v := time.Duration(0), time.Duration(0)
		for i := range 200 {
			dt := time.Duration(rnd.IntN(50)) * ms
			now += dt
			target := now + time.Duration(rnd.IntN(4000)-2000)*ms
			got := f.Advance(now, target)
			require.Equal(t, got, f.Value())
			if i == 0 {
				require.Equal(t, target, got)
			} else {
				slew := time.Duration(cfg.MaxSlew * float64(dt))
				switch behind := target - v - dt; {
				case behind > cfg.Jump:
					require.Equal(t, target, got, "seed %d", seed)
				case behind < -cfg.Jump:
					require.Equal(t, v, got, "seed %d", seed)
				default:
					require.GreaterOrEqual(t, got-v, dt-slew, "seed %d", seed)
					require.LessOrEqual(t, got-v, dt+slew, "seed %d", seed)
					require.LessOrEqual(t, (target - got).Abs(), behind.Abs(), "seed %d: not nearer", seed)
				}
			}
			v = got
			require.Equal(t, v, f.Advance(now-time.Hour, v), "seed %d: time ran back", seed)
		}
	}
}

func TestConfigs(t *testing.T) {
	for i, cfg := range []netclock.Config{
		{Interval: ms}, {BurstInterval: ms}, {Burst: 17}, {Burst: -2}, {Window: 65}, {Window: -1},
		{Follower: netclock.FollowerConfig{MaxSlew: 0.6}}, {Follower: netclock.FollowerConfig{MaxSlew: -1}}, {Follower: netclock.FollowerConfig{Jump: 1}},
	} {
		_, err := netclock.NewClient(cfg)
		require.ErrorIs(t, err, netclock.ErrConfig, "case %d", i)
	}
}

func TestMalformed(t *testing.T) {
	c, err := netclock.NewClient(netclock.Config{Burst: -1})
	require.NoError(t, err)
	require.Zero(t, c.NextDeadline())
	var buf [32]byte
	small := bitio.NewWriter(buf[:1])
	_, err = c.Request(0, small)
	require.ErrorIs(t, err, bitio.ErrOverflow)
	require.NoError(t, small.Err())
	ok, err := c.Request(0, bitio.NewWriter(buf[:]))
	require.True(t, ok && err == nil)
	require.Equal(t, time.Second, c.NextDeadline())
	ok, err = c.Request(999*ms, bitio.NewWriter(buf[:]))
	require.True(t, !ok && err == nil)

	reply := func(number uint16, us uint64, held uint32) *bitio.Reader {
		w := bitio.NewWriter(buf[:])
		w.WriteUint16(number)
		w.WriteIntPacked64(us)
		w.WriteIntPacked(held)
		return bitio.NewReader(w.Bytes(), w.Len())
	}
	require.ErrorIs(t, c.Reply(20*ms, reply(0, 1<<62, 0)), netclock.ErrMessage)
	require.ErrorIs(t, c.Reply(20*ms, reply(0, 5, 11_000_000)), netclock.ErrMessage)
	require.ErrorIs(t, c.Reply(20*ms, reply(0, 5, 21_000)), netclock.ErrMessage)
	require.ErrorIs(t, c.Reply(20*ms, bitio.NewReader(nil, 0)), netclock.ErrMessage)
	require.NoError(t, c.Reply(20*ms, reply(9, 5, 0)))
	require.Equal(t, netclock.Counters{Requests: 1, Malformed: 4, Unmatched: 1}, c.Counters)
	require.False(t, c.Synced())
	require.NoError(t, c.Reply(20*ms, reply(0, 5_000_000, 0)))
	require.Equal(t, 5*time.Second-10*ms, c.Offset())

	w := bitio.NewWriter(buf[:])
	require.ErrorIs(t, netclock.Answer(0, 0, bitio.NewReader(nil, 0), w), netclock.ErrMessage)
	for _, at := range [][2]time.Duration{{0, 1}, {11 * time.Second, 0}, {-1, -1}} {
		require.Error(t, netclock.Answer(at[0], at[1], bitio.NewReader([]byte{1, 2}, 16), w))
	}
	require.ErrorIs(t, netclock.Answer(0, 0, bitio.NewReader([]byte{1, 2}, 16), bitio.NewWriter(buf[:2])), bitio.ErrOverflow)
}

func TestAllocs(t *testing.T) {
	c, err := netclock.NewClient(netclock.Config{})
	require.NoError(t, err)
	var a, b [32]byte
	up, down, r := bitio.NewWriter(a[:]), bitio.NewWriter(b[:]), bitio.NewReader(nil, 0)
	now := time.Duration(0)
	require.Zero(t, testing.AllocsPerRun(500, func() {
		now += time.Second
		up.Reset(a[:])
		down.Reset(b[:])
		_, err := c.Request(now, up)
		r.Reset(a[:], up.Len())
		err2 := netclock.Answer(now+time.Hour, now+time.Hour, r, down)
		r.Reset(b[:], down.Len())
		err3 := c.Reply(now+20*ms, r)
		if _, ok := c.ServerTime(now + 20*ms); !ok || err != nil || err2 != nil || err3 != nil {
			t.Fatal(err, err2, err3)
		}
	}))
}

func FuzzReply(f *testing.F) {
	f.Add([]byte{0, 0, 2, 2}, int64(20*ms))                                              // a plain one
	f.Add([]byte{0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, int64(0)) // too long a number
	f.Fuzz(func(t *testing.T, p []byte, at int64) {
		c, err := netclock.NewClient(netclock.Config{})
		require.NoError(t, err)
		_, err = c.Request(0, bitio.NewWriter(make([]byte, 8)))
		require.NoError(t, err)
		now := time.Duration(at & (1<<40 - 1))
		err = c.Reply(now, bitio.NewReader(p, 8*len(p)))
		require.Equal(t, err != nil, c.Counters.Malformed == 1)
		if c.Synced() {
			require.GreaterOrEqual(t, c.RTT(), time.Duration(0))
			require.LessOrEqual(t, c.RTT(), now)
		}
		w := bitio.NewWriter(make([]byte, 32))
		err = netclock.Answer(now, now, bitio.NewReader(p, 8*len(p)), w)
		require.Equal(t, len(p) < 2, err != nil)
	})
}

func Example() {
	clock, err := netclock.NewClient(netclock.Config{})
	if err != nil {
		panic(err)
	}
	var a, b [32]byte
	request, reply := bitio.NewWriter(a[:]), bitio.NewWriter(b[:])
	_, err = clock.Request(0, request) // the client's clock says 0
	if err == nil {                    // the server's says an hour, 40 ms later
		at := time.Hour
		err = netclock.Answer(at, at, bitio.NewReader(request.Bytes(), request.Len()), reply)
	}
	if err == nil {
		err = clock.Reply(80*time.Millisecond, bitio.NewReader(reply.Bytes(), reply.Len()))
	}
	now, ok := clock.ServerTime(100 * time.Millisecond)
	fmt.Println(now, ok, clock.RTT(), err)
	// Output: 1h0m0.06s true 80ms <nil>
}

// TestOwnClockStands: when the client's clock doesn't count all of a pause, as a driver's, which counts a second of it at most, the next answers tell, whatever faster ones came before.
func TestOwnClockStands(t *testing.T) {
	for seed := range uint64(20) {
		link := netsim.Settings{Loss: 10, LagMin: 40 * ms, LagMax: 60 * ms}
		behind := time.Duration(0)
		r := newRig(t, netclock.Config{}, link, link, seed, func(now time.Duration) time.Duration { return now + behind + time.Hour })
		now := time.Duration(0)
		until := func(end time.Duration) {
			for ; now < end; now += 10 * ms {
				r.step(now)
			}
		}
		until(20 * time.Second)
		require.InDelta(t, time.Hour, r.c.Offset(), float64(20*ms))
		behind = 500 * ms
		until(24 * time.Second)
		require.InDelta(t, time.Hour+behind, r.c.Offset(), float64(20*ms), "seed %d", seed)
	}
}

// TestOwnClockSetBack: when the client's clock is set back, the server's time goes on: it neither stands until the clock has caught up nor goes back, requests are made as before, and
// the answers under way aren't errors.
func TestOwnClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{500 * ms, 2 * time.Second, time.Hour, 72 * time.Hour} {
		c, err := netclock.NewClient(netclock.Config{})
		require.NoError(t, err)
		type reply struct {
			at   time.Duration
			data []byte
			bits int
		}
		var flying []reply
		local, last := 100*time.Hour, time.Duration(0)
		for now := time.Duration(0); now < 60*time.Second; now += 10 * ms {
			local += 10 * ms
			if now == 30*time.Second+30*ms { // a request is under way
				local -= back
			}
			for len(flying) > 0 && flying[0].at <= now {
				require.NoError(t, c.Reply(local, bitio.NewReader(flying[0].data, flying[0].bits)))
				flying = flying[1:]
			}
			request, answer := bitio.NewWriter(make([]byte, 32)), bitio.NewWriter(make([]byte, 32))
			if ok, err := c.Request(local, request); ok {
				require.NoError(t, err)
				at := now + 50*ms + time.Hour
				require.NoError(t, netclock.Answer(at, at, bitio.NewReader(request.Bytes(), request.Len()), answer))
				flying = append(flying, reply{now + 100*ms, answer.Bytes(), answer.Len()})
			}
			if is, ok := c.ServerTime(local); ok {
				require.GreaterOrEqual(t, is, last)
				if back >= time.Second {
					require.InDelta(t, now+time.Hour, is, float64(60*ms), "%v at %v", back, now)
				}
				last = is
			}
		}
		require.InDelta(t, 60*time.Second+time.Hour, last, float64(60*ms), "%v", back)
		require.Greater(t, c.Counters.Replies, uint64(60))
	}
}
