package netcode

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestRepeatedRequestKeepsNobodyOut: an observer who repeats a request of the victim's that was never admitted, every 5 ms and from
// elsewhere, doesn't delay the victim's own handshake.
func TestRepeatedRequestKeepsNobodyOut(t *testing.T) {
	for name, elsewhere := range map[string]func(i int) netip.AddrPort{
		"one address":  func(int) netip.AddrPort { return addrOf(1) },
		"many of them": addrOf,
	} {
		r := newRig(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, 4)
		var captured [][]byte // with the victim's id, from before
		for i := range 5 {
			captured = append(captured, requestOf(t, token(t, uint64(10+i), nil)))
		}
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		for i := 0; r.client.State() != Connected; i++ {
			require.Less(t, r.now, time.Second, "%s: %v %+v", name, r.client.State(), r.server.Counters)
			for range 3 {
				h := r.server.cfg.Handler
				r.server.cfg.Handler = &capture{ServerHandler: h}
				r.server.Receive(r.now, elsewhere(i), bytes.Clone(captured[i%len(captured)]))
				r.server.cfg.Handler = h
			}
			r.step()
		}
	}
}

// TestRequestThatMustWaitIsItsOwners: a client whose request can't be answered yet, as its address has a former connection or no room, keeps its token though an
// observer repeats each request from elsewhere.
func TestRequestThatMustWaitIsItsOwners(t *testing.T) {
	for _, full := range []bool{false, true} {
		r := newRig(t, 1, netsim.Settings{Lag: 40 * time.Millisecond}, 4)
		others := mappingsPerAddr
		if !full {
			others = 1
		}
		for i := range others {
			r.server.Receive(r.now, clientAddr, requestOf(t, token(t, uint64(100+i), func(c *TokenConfig) { c.ClientID = uint64(5000 + i) })))
		}
		if !full {
			m := r.server.mappings.byAddr[clientAddr][0]
			r.server.connect(r.now, m, &challenge{clientID: m.clientID}, 0)
		}
		seen := &capture{}
		own := token(t, 1, nil)
		require.NoError(t, r.client.Connect(r.now, own))
		for r.client.State() != Connected {
			require.Less(t, r.now, 4*time.Second, "full %v: %v %+v", full, r.client.State(), r.server.Counters)
			r.step()
			if r.server.Counters.Requests > uint64(others) {
				h := r.server.cfg.Handler
				r.server.cfg.Handler = seen
				r.server.Receive(r.now, addrOf(1), requestOf(t, own))
				r.server.cfg.Handler = h
			}
		}
	}
}

// TestForgedAddressKeepsNobodyOut: who has tokens of its own, knows a client's address and sends requests from there every 5 ms delays the client by a second
// at most.
func TestForgedAddressKeepsNobodyOut(t *testing.T) {
	for _, tokens := range []int{1, 2, mappingsPerAddr + 1} {
		for seed := range uint64(10) {
			r := newRig(t, 1+seed, netsim.Settings{Lag: 40 * time.Millisecond}, 8)
			var own [][]byte
			for i := range tokens {
				own = append(own, requestOf(t, token(t, uint64(100+i), func(c *TokenConfig) { c.ClientID = uint64(5000 + i) })))
			}
			require.NoError(t, r.client.Connect(0, token(t, 1+seed, nil)))
			for i := 0; r.client.State() != Connected; i++ {
				require.Less(t, r.now, 2*placeTime, "%d tokens, seed %d: %v %+v", tokens, seed, r.client.State(), r.server.Counters)
				h := r.server.cfg.Handler
				r.server.cfg.Handler = &capture{ServerHandler: h}
				for k := range 3 {
					r.server.Receive(r.now, clientAddr, bytes.Clone(own[(3*i+k)%tokens]))
				}
				r.server.cfg.Handler = h
				r.step()
			}
		}
	}
}

// TestForgedAddressNeedsManyAccounts: who has many tokens of a few accounts, knows a client's address and sends requests from all its ports, ten a millisecond, delays the
// client by no more than the way there and back. For twice as many accounts as an address has places it is two seconds, whenever the client comes, and also when an observer repeats a request of
// the client's from elsewhere.
func TestForgedAddressNeedsManyAccounts(t *testing.T) {
	const places = minMappings / groupShare
	for _, c := range []struct {
		tokens, accounts int
		repeated         bool // a request of the client's, from before
		within           time.Duration
	}{{places, places / mappingsPerID, true, 300 * time.Millisecond}, {3 * places, places / 2, false, 300 * time.Millisecond}, {4 * places, places, true, 2*placeTime + 300*time.Millisecond},
		{2 * places, 2 * places, false, 2*placeTime + 300*time.Millisecond}} {
		for seed := range uint64(2) {
			r := newRig(t, 1+seed, netsim.Settings{Lag: 40 * time.Millisecond}, 8)
			var own [][]byte
			for i := range c.tokens {
				own = append(own, requestOf(t, token(t, uint64(100+i), func(cfg *TokenConfig) { cfg.ClientID = uint64(5000 + i%c.accounts) })))
			}
			before := requestOf(t, token(t, 99, nil))
			sent := 0
			forge := func(n int) {
				h := r.server.cfg.Handler
				r.server.cfg.Handler = &capture{ServerHandler: h}
				for range n {
					i := sent % len(own)
					r.server.Receive(r.now, netip.AddrPortFrom(clientAddr.Addr(), uint16(2000+i)), bytes.Clone(own[i]))
					sent++
				}
				if c.repeated {
					r.server.Receive(r.now, addrOf(1), bytes.Clone(before))
				}
				r.server.cfg.Handler = h
			}
			forge(c.tokens)
			require.Equal(t, places, r.server.mappings.groups[clientAddr.Addr()].Len())
			for r.now < time.Duration(seed)*350*time.Millisecond {
				forge(160)
				r.step()
			}
			start := r.now
			require.NoError(t, r.client.Connect(r.now, token(t, 1+seed, nil)))
			for r.client.State() != Connected {
				require.Less(t, r.now-start, c.within, "%d tokens of %d accounts, seed %d: %v %+v", c.tokens, c.accounts, seed, r.client.State(), r.server.Counters)
				forge(160)
				r.step()
			}
			require.LessOrEqual(t, len(r.server.mappings.heap), places+1)
		}
	}
}

// TestIDIsBounded: many tokens of one account, from many addresses, have few places; and who waits gets one.
func TestIDIsBounded(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 4)
	r.now = 10 * time.Second
	for i := range 100 {
		r.server.Receive(r.now, addrOf(i), requestOf(t, token(t, uint64(10+i), nil)))
	}
	require.Len(t, r.server.mappings.heap, mappingsPerID)
	require.EqualValues(t, 100-mappingsPerID, r.server.Counters.NoRoom)
	r.now += placeTime
	c := newClient(t, &relay{r: r})
	require.NoError(t, c.Connect(r.now, token(t, 1, nil)))
	r.server.Receive(r.now, clientAddr, c.cfg.Handler.(*relay).up[0])
	require.Len(t, r.server.mappings.heap, mappingsPerID)
	require.Len(t, r.server.mappings.at(r.now, clientAddr), 1, "the oldest has had its time")
}

// TestDeniedTokenIsItsOwners: the denial of a full server binds the token to its address: whoever repeats the request gets no
// answer, and when there is room the owner gets in with it.
func TestDeniedTokenIsItsOwners(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 1)
	other := r.join(addrOf(1), 5)
	out := &capture{}
	h := r.server.cfg.Handler
	r.server.cfg.Handler = out
	req := requestOf(t, token(t, 1, nil))
	r.server.Receive(r.now, clientAddr, bytes.Clone(req))
	require.Len(t, out.sent, 1)
	for i := range 100 {
		r.server.Receive(r.now, addrOf(10+i), bytes.Clone(req))
	}
	require.Len(t, out.sent, 1, "a full server answers one address")
	require.EqualValues(t, 100, r.server.Counters.TokenUsed)

	other.Disconnect(r.now)
	r.server.Receive(r.now, addrOf(1), other.cfg.Handler.(*relay).up[0])
	require.Zero(t, r.server.Clients())
	r.server.Receive(r.now, addrOf(10), bytes.Clone(req)) // the observer, before the owner
	r.server.cfg.Handler = h
	require.NoError(t, r.client.Connect(r.now, token(t, 1, nil)))
	r.run(10)
	require.Equal(t, Connected, r.client.State(), "%+v", r.server.Counters)
}

// TestMuteTokensBlockNobody: valid tokens that never answer, a thousand of them, from an address each, leave an 8-slot server's
// door open; from one address they have an eighth of the places.
func TestMuteTokensBlockNobody(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 8)
	mute := func(i int, from netip.AddrPort) {
		r.server.Receive(r.now, from, requestOf(t, token(t, uint64(i), func(c *TokenConfig) { c.ClientID = uint64(i) })))
	}
	for i := range 1023 {
		mute(1000+i, addrOf(i))
	}
	require.Len(t, r.server.mappings.heap, 1023)
	require.Zero(t, r.server.Counters.NoRoom)
	r.join(clientAddr, 7)

	// More of them than challenges are kept, again and again: one that is older than a second makes room.
	r = newRig(t, 1, netsim.Settings{}, 8)
	for range 3 {
		for i := range 1100 {
			mute(1000+i, addrOf(i))
		}
		require.Len(t, r.server.mappings.heap, minMappings)
		require.NotZero(t, r.server.Counters.NoRoom)
		r.now += placeTime
	}
	r.join(clientAddr, 7)

	r = newRig(t, 1, netsim.Settings{}, 8)
	for i := range 300 {
		mute(1000+i, netip.AddrPortFrom(netip.MustParseAddr("2001:db8::").Next(), uint16(1+i)))
	}
	require.Len(t, r.server.mappings.heap, minMappings/groupShare)
	mute(2000, netip.MustParseAddrPort("[2001:db8::77]:9")) // of the same /64
	require.Len(t, r.server.mappings.heap, minMappings/groupShare)
	r.join(netip.MustParseAddrPort("[2001:db8:0:1::77]:9"), 7)
}

// TestOtherProtocolID: a client takes no token of another build.
func TestOtherProtocolID(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 1)
	require.ErrorIs(t, r.client.Connect(0, token(t, 1, func(c *TokenConfig) { c.ProtocolID = 8 })), ErrProtocol)
	require.Equal(t, InvalidToken, r.client.State())
	_, sent := r.up.Pop(time.Hour)
	require.False(t, sent)
}

// TestFirstSequence: two servers with a FirstSequence each never use the same number with the keys of one token, and the client plays
// at either.
func TestFirstSequence(t *testing.T) {
	used := map[uint64]bool{}
	for server, first := range []uint64{0, 1 << 40, 2 << 40} {
		r := newRig(t, uint64(server), netsim.Settings{}, 1)
		r.server.cfg.FirstSequence = first
		out := &capture{}
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		for r.now < time.Second {
			p, ok := r.up.Pop(r.now + time.Hour)
			if !ok {
				r.client.Tick(r.now)
			}
			out.sent = nil
			r.server.cfg.Handler = out
			if ok {
				r.server.Receive(r.now, clientAddr, bytes.Clone(p))
			}
			r.server.Tick(r.now)
			for _, p := range out.sent {
				_, seq, _, err := header(p)
				require.NoError(t, err)
				require.False(t, used[seq], "server %d: %#x", server, seq)
				used[seq] = true
				r.client.Receive(r.now, serverAddr, p)
			}
			r.now += 16 * time.Millisecond
		}
		require.Equal(t, Connected, r.client.State())
		require.Zero(t, r.client.Counters.Replayed)
	}
	_, err := NewServer(ServerConfig{PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Handler: &capture{}, FirstSequence: 1 << 62})
	require.ErrorContains(t, err, "FirstSequence")
}

// TestDenials: each reason reaches the client that it is for, at 30 % loss too.
func TestDenials(t *testing.T) {
	for want, prepare := range map[Denial]func(r *rig){
		Full:             func(r *rig) { r.join(addrOf(1), 5) },
		AlreadyConnected: func(r *rig) { r.join(addrOf(1), 99) },
		OtherProtocol:    func(r *rig) { r.server.cfg.ProtocolID = 8 },
	} {
		for seed := range uint64(20) {
			r := newRig(t, seed, netsim.Settings{Loss: 30, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, 1)
			prepare(r)
			require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
			for r.client.State() > Disconnected {
				r.step()
			}
			require.Equal(t, Denied, r.client.State(), "%v, seed %d", want, seed)
			require.Equal(t, want, r.client.Denial(), "seed %d", seed)
		}
	}
}

// TestOwnTimeouts: an end's Timeout stands before the token's once it is connected, and not while it connects.
func TestOwnTimeouts(t *testing.T) {
	for _, c := range []struct {
		own, lasts time.Duration
	}{{0, 5 * time.Second}, {2 * time.Second, 2 * time.Second}, {time.Minute, time.Minute}, {-1, time.Hour}} {
		r := newRig(t, 1, netsim.Settings{}, 1)
		r.server.cfg.Timeout, r.client.cfg.Timeout = c.own, c.own
		require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
		r.run(10)
		require.Equal(t, Connected, r.client.State())
		require.NoError(t, r.up.Set(netsim.Settings{Loss: 100}))
		require.NoError(t, r.down.Set(netsim.Settings{Loss: 100}))
		begin := r.now
		r.now += c.lasts - 150*time.Millisecond
		r.server.Tick(r.now)
		r.client.Tick(r.now)
		require.Equal(t, Connected, r.client.State(), "%v", c.own)
		require.Empty(t, r.gone, "%v", c.own)
		r.now = begin + c.lasts + 150*time.Millisecond
		r.server.Tick(r.now)
		r.client.Tick(r.now)
		if c.own < 0 {
			require.Equal(t, Connected, r.client.State())
			require.Empty(t, r.gone)
			continue
		}
		require.Equal(t, ConnTimedOut, r.client.State(), "%v", c.own)
		require.Equal(t, []Reason{TimedOut}, r.gone, "%v", c.own)

		require.NoError(t, r.client.Connect(r.now, token(t, 2, nil)))
		begin = r.now
		for r.client.State() > Disconnected {
			r.step()
		}
		require.InDelta(t, 5, (r.now - begin).Seconds(), 0.2, "the token's, while connecting")
	}
}
