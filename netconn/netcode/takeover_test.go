package netcode

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestTakeOver: with a fresh token a client has the place of its former connection, at 30 % loss and on a full server, also from the
// same address; and only one of the two is there.
func TestTakeOver(t *testing.T) {
	for name, former := range map[string]int{"elsewhere": 1, "the same address": 0} {
		for seed := range uint64(20) {
			r := newRig(t, seed, netsim.Settings{Loss: 30, LagMin: 45 * time.Millisecond, LagMax: 55 * time.Millisecond}, 2)
			r.server.cfg.TakeOver = true
			r.join(addrOf(2), 5)
			if former == 0 {
				r.join(clientAddr, 99)
			} else {
				r.join(addrOf(1), 99)
			}
			require.NoError(t, r.client.Connect(r.now, token(t, 1000+seed, nil)))
			for r.client.State() > Disconnected && r.client.State() != Connected {
				r.step()
			}
			require.Equal(t, Connected, r.client.State(), "%s, seed %d: %v", name, seed, r.client.Denial())
			require.Equal(t, []Reason{Replaced}, r.gone, "%s, seed %d", name, seed)
			require.Equal(t, 2, r.server.Clients())
			require.EqualValues(t, 1, r.server.Counters.Replaced)
			slot, ok := r.server.SlotOf(clientAddr)
			require.True(t, ok)
			require.Equal(t, 1, slot)
		}
	}
}

// TestTakeOverIsProven: requests alone replace nobody, nor does a token that was used, nor one of another id from the same address.
func TestTakeOverIsProven(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 4)
	r.server.cfg.TakeOver = true
	first := token(t, 3, nil)
	require.NoError(t, r.client.Connect(r.now, first))
	r.run(5)
	require.Equal(t, Connected, r.client.State())

	for i := range 50 { // fresh tokens whose requests were seen by somebody without their keys
		r.server.Receive(r.now, addrOf(i%3), requestOf(t, token(t, uint64(10+i), nil)))
		r.run(5)
	}
	r.server.Receive(r.now, addrOf(9), requestOf(t, first))
	r.server.Receive(r.now, clientAddr, requestOf(t, token(t, 100, func(c *TokenConfig) { c.ClientID = 5 })))
	require.EqualValues(t, 1, r.server.Counters.AddrConnected)
	require.EqualValues(t, 1, r.server.Counters.TokenUsed)
	r.run(100)
	require.Equal(t, Connected, r.client.State())
	require.Empty(t, r.gone)
}

// lastWord sends a payload from within Disconnected.
type lastWord struct {
	*recorder
	s *Server
}

func (h lastWord) Disconnected(slot int, reason Reason) {
	h.recorder.Disconnected(slot, reason)
	if reason == Replaced && h.s.SendPayload(time.Minute, slot, payload("replaced")) == nil {
		h.s.Disconnect(time.Minute, slot) // what a handler may do, but needn't
	}
}

// TestReplacedHearsWhy: the handler has a last word to who is replaced, and may free the slot itself.
func TestReplacedHearsWhy(t *testing.T) {
	l := newHanded(t, 1)
	l.server.cfg.TakeOver = true
	l.server.cfg.Handler = lastWord{&l.down, l.server}
	l.connect()
	l.toServer()
	second := newClient(t, &l.up)
	require.NoError(t, second.Connect(l.now, token(t, 2, nil)))
	l.server.Receive(l.now, addrOf(1), bytes.Clone(l.up.up[0]))
	l.up.up = nil
	second.Receive(l.now, serverAddr, l.down.sent[len(l.down.sent)-1])
	l.down.sent, l.down.to = nil, nil
	l.server.Receive(l.now, addrOf(1), l.up.up[0])
	require.Equal(t, []Reason{Replaced, Kicked}, l.down.gone)
	require.Equal(t, clientAddr, l.down.to[0])
	l.client.Receive(l.now, serverAddr, l.down.sent[0])
	require.EqualValues(t, 1, l.client.Counters.Payloads)
	for i, p := range l.down.sent {
		if l.down.to[i] == clientAddr {
			l.client.Receive(l.now, serverAddr, p)
		}
	}
	require.Equal(t, Disconnected, l.client.State())
	require.Equal(t, 1, l.server.Clients())
}

// TestReplacedIsDisconnected: who is replaced at another address hears at once that its connection has ended.
func TestReplacedIsDisconnected(t *testing.T) {
	l := newHanded(t, 1)
	l.server.cfg.TakeOver = true
	l.connect()
	l.toServer()
	l.down.sent, l.down.to = nil, nil
	var again relay
	c := newClient(t, &again)
	require.NoError(t, c.Connect(l.now, token(t, 2, nil)))
	for range 2 {
		for _, p := range again.up {
			l.server.Receive(l.now, addrOf(7), p)
		}
		again.up = nil
		for i, p := range l.down.sent {
			if l.down.to[i] == addrOf(7) {
				c.Receive(l.now, serverAddr, p)
			} else {
				l.client.Receive(l.now, serverAddr, p)
			}
		}
		l.down.sent, l.down.to = nil, nil
	}
	require.Equal(t, Connected, c.State())
	require.Equal(t, []Reason{Replaced}, l.down.gone)
	require.Equal(t, Disconnected, l.client.State())
}

// joins has a client connect from an address and returns it.
func (l *handed) joins(from netip.AddrPort, seed uint64, id uint64) *Client {
	var up relay
	c := newClient(l.t, &up)
	require.NoError(l.t, c.Connect(l.now, token(l.t, seed, func(c *TokenConfig) { c.ClientID = id })))
	for range 2 {
		for _, p := range up.up {
			l.server.Receive(l.now, from, p)
		}
		up.up = nil
		for i, p := range l.down.sent {
			if l.down.to[i] == from {
				c.Receive(l.now, serverAddr, p)
			}
		}
		l.down.sent, l.down.to = nil, nil
	}
	return c
}

// TestFormerIsHeld: with HoldFormer a client's former connection stays beside the new one until that is settled, one at the same address and one that isn't
// settled yet don't. The two have one place of the server's, whoever of them goes.
func TestFormerIsHeld(t *testing.T) {
	l := newHanded(t, 1)
	var err error
	l.server, err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: 3, Handler: &l.down, UnixAtZero: unixStart - 60, TakeOver: true, HoldFormer: true})
	require.NoError(t, err)
	seed := uint64(100)
	join := func(addr int, id uint64, slot int, gone ...Reason) {
		t.Helper()
		l.down.gone = nil
		seed++
		c := l.joins(addrOf(addr), seed, id)
		require.Equal(t, gone, l.down.gone)
		if slot < 0 {
			require.Equal(t, Denied, c.State())
			require.Equal(t, Full, c.Denial())
			return
		}
		require.Equal(t, Connected, c.State())
		at, ok := l.server.SlotOf(addrOf(addr))
		require.True(t, ok)
		require.Equal(t, slot, at)
		its, slots := c.Slot()
		require.Equal(t, []int{slot % 3, 3}, []int{its, slots}, "to the client there are three places")
	}
	leave := func(slot int) { l.server.Disconnect(l.now, slot) }
	settle := func(slot int, gone ...Reason) {
		t.Helper()
		l.down.gone = nil
		if former, ok := l.server.Former(slot); ok {
			l.server.Disconnect(l.now, former)
		}
		require.Equal(t, gone, l.down.gone)
	}
	join(1, 99, 0)
	join(2, 99, 3)
	join(3, 99, 3, Replaced) // the one that wasn't settled
	join(4, 5, 1)
	join(5, 6, 2)
	join(9, 7, -1)
	settle(0)
	settle(3, Kicked)
	settle(3)
	join(10, 6, 5)
	settle(5, Kicked)
	join(9, 7, -1) // there are slots, but their places are those of 3 and 5
	join(6, 99, 0)
	join(6, 99, 0, Replaced)
	leave(0) // the new one, whose login was refused
	join(7, 99, 0)
	leave(3) // the former one goes by itself
	settle(0)
	join(8, 99, 3)
	join(7, 99, 0, Replaced, Replaced) // the one that wasn't settled, and the former one at the same address
	join(1, 99, 3)
	settle(3, Kicked)
	join(2, 99, 0)
	for _, slot := range []int{-1, 4, 6} {
		settle(slot) // nobody is there
	}
	settle(0, Kicked)
	leave(0)
	join(9, 7, 0)
}

// TestLateResponseOfAnEarlierDial: a response of a dial that its client has given up, which comes after the client has connected with another token, from the same address or
// another one, doesn't take that connection over.
func TestLateResponseOfAnEarlierDial(t *testing.T) {
	for _, from := range []netip.AddrPort{clientAddr, addrOf(1)} {
		r := newRig(t, 1, netsim.Settings{}, 4)
		r.server.cfg.TakeOver = true
		first := &relay{r: r}
		c := newClient(t, first)
		require.NoError(t, c.Connect(0, token(t, 5, nil)))
		h := r.server.cfg.Handler
		seen := &capture{ServerHandler: h}
		r.server.cfg.Handler = seen
		r.server.Receive(r.now, from, first.up[0])
		r.server.cfg.Handler = h
		c.Receive(r.now, serverAddr, seen.sent[0])
		late := bytes.Clone(first.up[1])
		r.now += time.Second
		require.NoError(t, r.client.Connect(r.now, token(t, 6, nil)))
		for r.client.State() != Connected {
			r.step()
		}
		r.server.Receive(r.now, from, late)
		for range 20 {
			r.step()
		}
		require.Equal(t, Connected, r.client.State(), "%v", from)
		require.EqualValues(t, 1, r.server.Counters.Connected)
		require.EqualValues(t, 1, r.server.Counters.NotSealed+r.server.Counters.NoMapping)
	}
}
