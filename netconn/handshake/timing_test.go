package handshake

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// write is a packet as a datagram, with 8 bytes of padding.
func write(p Protocol, pk Packet) []byte {
	w := bitio.NewWriter(make([]byte, maxPacket))
	p.Write(w, &pk, make([]byte, minPadding))
	return bytes.Clone(w.Bytes())
}

// lone is a client without a server, and what it sent.
func lone(t *testing.T, cfg ClientConfig) (c *Client, sent *[]Packet) {
	sent = new([]Packet)
	p := cfg.Protocol
	cfg.Send = func(b []byte) {
		pk, err := p.Read(b, false)
		require.NoError(t, err)
		*sent = append(*sent, pk)
	}
	c, err := NewClient(cfg)
	require.NoError(t, err)
	return c, sent
}

// TestClientDeadlines: an unanswered client sends every second and not before, until its timeout, which NextDeadline tells
// to the moment. A negative timeout never ends it.
func TestClientDeadlines(t *testing.T) {
	for _, v := range []struct{ timeout, ends time.Duration }{{4500 * time.Millisecond, 4500 * time.Millisecond}, {0, time.Minute}, {-1, -1}} {
		c, sent := lone(t, ClientConfig{Timeout: v.timeout})
		const began = 10 * time.Second
		c.Start(began)
		for i := 1; ; i++ {
			require.Len(t, *sent, i)
			at, ok := c.NextDeadline()
			require.True(t, ok)
			c.Tick(at - 1)
			require.Len(t, *sent, i, "too early")
			require.Equal(t, SendingInitial, c.State())
			c.Tick(at)
			if c.State() == TimedOut {
				require.Equal(t, began+v.ends, at)
				require.Len(t, *sent, i)
				break
			}
			require.Equal(t, began+time.Duration(i)*time.Second, at)
			if i == 200 {
				require.Negative(t, v.ends)
				break
			}
		}
		if v.ends > 0 {
			_, ok := c.NextDeadline()
			require.False(t, ok, "nothing to do after the timeout")
		}
	}
}

// TestOldChallengeIsGivenUp: a challenge is answered for 5 s, in a restart for 3 s; then the client asks for another.
func TestOldChallengeIsGivenUp(t *testing.T) {
	for _, restart := range []bool{false, true} {
		p := Unreal51()
		c, sent := lone(t, ClientConfig{Protocol: p})
		begin, life, answer := c.Start, 5*time.Second, Response
		if restart {
			c.state = Done
			begin, life, answer = c.Restart, 3*time.Second, RestartResponse
		}
		begin(10 * time.Second)
		const heard = 10 * time.Second
		c.Receive(heard, write(p, Packet{Type: Challenge, Restart: restart, MinVersion: 1, CurVersion: 3, Timestamp: 1}))
		for now := heard + time.Second; now < heard+20*time.Second; now += time.Second {
			c.Tick(now)
			want := answer
			if now-heard >= life {
				want = Initial
			}
			require.Equal(t, want, (*sent)[len(*sent)-1].Type, "%v after the challenge", now-heard)
		}
		for i, pk := range *sent {
			require.EqualValues(t, i, pk.SentCount)
		}
	}
}

// TestRestartRequestIsBelieved: only long after the own last packet, and when requests and game packets don't both come all the time.
func TestRestartRequestIsBelieved(t *testing.T) {
	p := Unreal51()
	request := write(p, Packet{Type: RestartHandshake, Restart: true, MinVersion: 1, CurVersion: 3})
	const base = time.Minute // the last packet of the handshake
	for _, v := range []struct {
		name              string
		before, game, ask time.Duration // an earlier request, the last game packet, the request; 0 is none
		believed          bool
	}{
		{"right after the handshake", 0, 0, base + restartSilence, false},
		{"later", 0, 0, base + restartSilence + 1, true},
		{"later, with game packets", 0, base + 20*time.Second, base + 20*time.Second, true},
		{"the second within 1.1 s, with game packets", base + 5*time.Second, base + 5100*time.Millisecond, base + 6*time.Second, false},
		{"the second within 1.1 s, with game packets, late", base + 10*time.Second, base + 10500*time.Millisecond, base + 11*time.Second, false},
		{"the second after 1.1 s, with game packets", base + 10*time.Second, base + 11*time.Second, base + 10*time.Second + restartInterval, true},
		{"the second within 1.1 s, without game packets for a second", base + 10*time.Second, base + 9500*time.Millisecond, base + 10500*time.Millisecond, true},
		{"the second within 1.1 s, without game packets for less", base + 10*time.Second, base + 9501*time.Millisecond, base + 10500*time.Millisecond, false},
	} {
		c, sent := lone(t, ClientConfig{Protocol: p})
		c.Start(base)
		c.state = Done
		if v.before > 0 {
			c.Receive(v.before, request)
			require.Equal(t, Done, c.State(), v.name)
		}
		if v.game > 0 {
			c.GamePacket(v.game)
		}
		unlikely := c.Counters.RestartUnlikely
		c.Receive(v.ask, request)
		require.Equal(t, v.believed, c.State() == SendingInitial, v.name)
		if v.believed {
			require.Len(t, *sent, 2, v.name)
			require.True(t, (*sent)[1].Restart, v.name)
			require.EqualValues(t, 1, c.Counters.RestartRequests, v.name)
		} else {
			require.Equal(t, unlikely+1, c.Counters.RestartUnlikely, v.name)
		}
	}
}

// TestRestartTimesOut: a connection that couldn't be moved is where it was, and Done.
func TestRestartTimesOut(t *testing.T) {
	r := done(t, Unreal51())
	r.client.Restart(r.now)
	r.client.Tick(r.now + time.Minute)
	require.Equal(t, Done, r.client.State())
	require.EqualValues(t, 1, r.client.Counters.RestartTimeouts)
	r.client.GamePacket(r.now + time.Minute)
	require.Zero(t, r.client.Counters.RestartsNeedless, "no restart is under way any more")
}

// flaky is a source of randomness that fails at the call numbered at, counted from 1, or at each from then on.
type flaky struct {
	at, n  int
	always bool
}

func (f *flaky) Read(b []byte) (int, error) {
	f.n++
	if f.n == f.at || f.always && f.n > f.at {
		return 0, errors.New("no randomness")
	}
	for i := range b {
		b[i] = byte(f.n*131 + i*7 + 1)
	}
	return len(b), nil
}

// TestNoChallengeWithoutRandomness: a secret that isn't random is never used, whichever read fails, and the next packet is answered.
func TestNoChallengeWithoutRandomness(t *testing.T) {
	p := Unreal51()
	for at := 1; at <= 3; at++ {
		h := &testHandler{}
		s, err := NewServer(ServerConfig{Protocol: p, Handler: h, Rand: &flaky{at: at}})
		require.NoError(t, err)
		initial := write(p, Packet{Type: Initial, MinVersion: 1, CurVersion: 3})
		s.Receive(0, here, initial, nil)
		require.Empty(t, h.sent, "read %d failed", at)
		require.EqualValues(t, 1, s.Counters.RandomnessFailed)
		s.Receive(0, here, initial, nil)
		require.Len(t, h.sent, 1)
	}
}

// TestClientPadding: 8 to 16 bytes, of every size, different each time; zeros when there is no randomness.
func TestClientPadding(t *testing.T) {
	source := &flaky{at: 1000, always: true}
	var sent [][]byte
	c, err := NewClient(ClientConfig{Protocol: Unreal51(), Rand: source, Timeout: -1, Send: func(b []byte) { sent = append(sent, bytes.Clone(b)) }})
	require.NoError(t, err)
	c.Start(0)
	sizes := map[int]bool{}
	p := Unreal51()
	var last []byte
	for i := range 300 {
		c.Tick(time.Duration(i) * time.Second)
		pk, err := p.Read(sent[len(sent)-1], false)
		require.NoError(t, err)
		sizes[pk.PaddingBytes] = true
		pad := c.padding()
		require.NotEqual(t, last, pad)
		last = bytes.Clone(pad)
	}
	for n := range maxPadding + 10 {
		require.Equal(t, n >= minPadding && n <= maxPadding, sizes[n], "%d bytes", n)
	}
	source.n = source.at
	require.Equal(t, make([]byte, minPadding), c.padding())
}

// TestSecretsTurn: the secret of the challenges changes every 15 to 20 s, at moments that nobody can tell in advance.
func TestSecretsTurn(t *testing.T) {
	r := newRig(t, Unreal51(), 4, 0)
	r.client.Start(0)
	p := Unreal51()
	var last bool
	var since, shortest, longest time.Duration
	shortest = time.Hour
	for now := time.Duration(0); now < 20*time.Minute; now += 50 * time.Millisecond {
		r.h.sent = nil
		r.server.Receive(now, here, r.toSrv[0], nil)
		pk, err := p.Read(r.h.sent[0], true)
		require.NoError(t, err)
		if now == 0 {
			last = pk.SecretID
		} else if pk.SecretID != last {
			last = pk.SecretID
			shortest, longest, since = min(shortest, now-since), max(longest, now-since), now
		}
	}
	require.GreaterOrEqual(t, shortest, 15*time.Second)
	require.Less(t, shortest, 16*time.Second)
	require.LessOrEqual(t, longest, 20*time.Second+50*time.Millisecond)
	require.Greater(t, longest, 19*time.Second)
}

// TestCookieLife: a cookie is good for less than 40 s.
func TestCookieLife(t *testing.T) {
	for _, age := range []time.Duration{40*time.Second - time.Millisecond, 40 * time.Second} {
		r := newRig(t, Unreal51(), 4, 0)
		r.client.Start(0)
		r.server.Receive(0, here, r.toSrv[0], nil)
		r.client.Receive(0, r.h.sent[0])
		r.server.Receive(age, here, r.toSrv[1], nil)
		require.Equal(t, age < 40*time.Second, len(r.h.accepted) == 1, "after %v", age)
	}
}

// TestUpgradeLimit: a client that is too old is told which version there is, by a server of version 4, to strangers 512 times in five minutes.
func TestUpgradeLimit(t *testing.T) {
	p := Unreal53()
	p.NetworkVersion, p.RuntimeFeatures = 0xabcd1234, 0x55
	old := write(p, Packet{Type: Initial, MinVersion: 1, CurVersion: 3})
	for _, v := range []struct{ limit, want int }{{0, 512}, {7, 7}, {-1, 0}} {
		h := &testHandler{}
		s, err := NewServer(ServerConfig{Protocol: p, Handler: h, MaxUpgrades: v.limit})
		require.NoError(t, err)
		for i := range 1000 {
			s.Receive(time.Hour+time.Duration(i)*time.Microsecond, here, old, nil)
		}
		require.Len(t, h.sent, v.want)
		require.Equal(t, ServerCounters{WrongVersion: 1000, Upgrades: uint64(v.want), UpgradesLimited: uint64(1000 - v.want)}, s.Counters)
		s.Receive(time.Hour+300*time.Second, here, old, nil)
		require.Len(t, h.sent, v.want+min(v.want, 1))
		if v.want > 0 {
			c, _ := lone(t, ClientConfig{Protocol: p})
			c.Start(0)
			c.Receive(0, h.sent[0])
			network, features, ok := c.UpgradeDemanded()
			require.True(t, ok)
			require.EqualValues(t, uint32(0xabcd1234), network)
			require.EqualValues(t, 0x55, features)
			require.EqualValues(t, 1, c.Counters.Upgrades)
			c.Start(time.Second)
			_, _, ok = c.UpgradeDemanded()
			require.False(t, ok, "an earlier exchange is forgotten")
		}
	}
	h := &testHandler{}
	s, err := NewServer(ServerConfig{Protocol: Unreal51(), Handler: h})
	require.NoError(t, err)
	s.Receive(0, here, write(Unreal51(), Packet{Type: Initial, MinVersion: 4, CurVersion: 4}), nil)
	require.Empty(t, h.sent, "version 3 has no such message")
}
