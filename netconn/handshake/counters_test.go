package handshake

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCountersOfAConnection: what both ends count of an exchange, a lost Ack and a move to another address.
func TestCountersOfAConnection(t *testing.T) {
	for name, p := range protocols() {
		r := newRig(t, p, 9, 0)
		r.client.Start(0)
		r.h.refuse = true
		r.step(time.Millisecond) // Initial, Challenge
		r.step(time.Millisecond) // Response, refused
		r.h.refuse = false
		r.step(time.Second - 2*time.Millisecond)
		r.server.Receive(r.now, r.addr, r.toSrv[0], nil)
		r.h.since, r.h.sent = r.now, nil // the Ack is lost
		r.step(time.Millisecond)
		require.Equal(t, Done, r.client.State(), name)
		require.Equal(t, ClientCounters{Sent: 3, Challenges: 1, Acks: 1}, r.client.Counters, name)
		require.Equal(t, ServerCounters{Initials: 1, Accepted: 1, Repeated: 1, NoRoom: 1}, r.server.Counters, name)

		r.addr = netip.MustParseAddrPort("10.0.0.2:999")
		r.now += 11 * time.Second
		r.client.Restart(r.now)
		for range 4 {
			r.step(time.Millisecond)
		}
		require.Equal(t, Done, r.client.State(), name)
		r.client.GamePacket(r.now)
		require.Equal(t, ClientCounters{Sent: 5, Challenges: 2, Acks: 2, Restarts: 1}, r.client.Counters, name)
		require.Equal(t, ServerCounters{Initials: 2, Accepted: 1, Repeated: 1, NoRoom: 1, Restarts: 1}, r.server.Counters, name)
		r.client.Restart(r.now)
		r.client.GamePacket(r.now)
		require.EqualValues(t, 1, r.client.Counters.RestartsNeedless, name)
	}
}

// TestClientRefusals: each reason of the client has its counter, and what is refused changes nothing.
func TestClientRefusals(t *testing.T) {
	p := Unreal51()
	challenge := Packet{Type: Challenge, SessionID: 2, ClientID: 5, MinVersion: 1, CurVersion: 3, Timestamp: 3}
	ack := Packet{Type: Ack, SessionID: 2, ClientID: 5, MinVersion: 1, CurVersion: 3, Timestamp: -1}
	with := func(pk Packet, change func(*Packet)) []byte {
		change(&pk)
		return write(p, pk)
	}
	for _, v := range []struct {
		name  string
		state State
		b     []byte
		want  ClientCounters
	}{
		{"empty", SendingInitial, nil, ClientCounters{Malformed: Malformed{Empty: 1}}},
		{"game packet", SendingInitial, []byte{0, 1}, ClientCounters{Malformed: Malformed{NotHandshake: 1}}},
		{"challenge without a time", SendingInitial, with(challenge, func(pk *Packet) { pk.Timestamp = 0 }), ClientCounters{Malformed: Malformed{Contradictory: 1}}},
		{"another client's", SendingInitial, with(challenge, func(pk *Packet) { pk.ClientID = 4 }), ClientCounters{WrongClientID: 1}},
		{"version", SendingInitial, with(challenge, func(pk *Packet) { pk.MinVersion, pk.CurVersion = 4, 4 }), ClientCounters{WrongVersion: 1}},
		{"a client's", SendingInitial, with(challenge, func(pk *Packet) { pk.Type = Response }), ClientCounters{WrongType: 1}},
		{"second challenge", SendingResponse, write(p, challenge), ClientCounters{Unexpected: 1}},
		{"late challenge", Done, write(p, challenge), ClientCounters{Unexpected: 1}},
		{"early ack", SendingInitial, write(p, ack), ClientCounters{Unexpected: 1}},
		{"late ack", Done, write(p, ack), ClientCounters{Unexpected: 1}},
		{"another session's ack", SendingResponse, with(ack, func(pk *Packet) { pk.SessionID = 1 }), ClientCounters{WrongSession: 1}},
		{"another exchange's ack", SendingResponse, with(ack, func(pk *Packet) { pk.Cookie[0] = 1 }), ClientCounters{WrongCookie: 1}},
		{"late upgrade", Done, with(ack, func(pk *Packet) { pk.Type = VersionUpgrade }), ClientCounters{Unexpected: 1}},
	} {
		c, sent := lone(t, ClientConfig{Protocol: p, ClientID: 5})
		c.Start(0)
		c.state, c.challenge.SessionID, c.Counters, *sent = v.state, 2, ClientCounters{}, nil
		c.Receive(0, v.b)
		require.Equal(t, v.want, c.Counters, v.name)
		require.Equal(t, v.state, c.State(), v.name)
		require.Empty(t, *sent, v.name)
	}
}

// TestTimestampsOfTypes: a packet whose time doesn't go with its type is refused as contradictory.
func TestTimestampsOfTypes(t *testing.T) {
	p := Unreal51()
	for typ, ok := range map[Type]func(float64) bool{
		Initial:         func(float64) bool { return true },
		Challenge:       func(ts float64) bool { return ts > 0 },
		Response:        func(ts float64) bool { return ts > 0 },
		RestartResponse: func(ts float64) bool { return ts > 0 },
		Ack:             func(ts float64) bool { return ts < 0 },
	} {
		for _, ts := range []float64{-1, 0, 1, math.NaN()} {
			_, err := p.Read(write(p, Packet{Type: typ, MinVersion: 1, CurVersion: 3, Timestamp: ts}), true)
			if ok(ts) {
				require.NoError(t, err, "%v at %v", typ, ts)
			} else {
				require.ErrorIs(t, err, ErrFormat, "%v at %v", typ, ts)
			}
		}
	}
}

// TestUnknownGameCounters: what becomes of packets of addresses without a connection.
func TestUnknownGameCounters(t *testing.T) {
	p := Unreal51()
	p.Magic, p.MagicBits = 0x5eed, 16
	game := func(session uint8) []byte {
		b := make([]byte, 40)
		b[0], b[1], b[2], b[39] = 0xed, 0x5e, session, 1
		return b
	}
	for _, v := range []struct {
		name string
		b    []byte
		want ServerCounters
		sent int
	}{
		{"asked to restart", game(2), ServerCounters{RestartRequests: 1}, 1},
		{"empty", nil, ServerCounters{Malformed: Malformed{WrongMagic: 1}}, 0},
		{"short", []byte{0xed, 0x5e}, ServerCounters{Malformed: Malformed{TooShort: 1}}, 0},
		{"handshake", write(p, Packet{Type: Initial, SessionID: 2}), ServerCounters{WrongType: 1}, 0},
		{"session", game(1), ServerCounters{WrongSession: 1}, 0},
	} {
		h := &testHandler{}
		s, err := NewServer(ServerConfig{Protocol: p, Handler: h, SessionID: 2})
		require.NoError(t, err)
		s.UnknownGame(time.Second, here, v.b)
		require.Equal(t, v.want, s.Counters, v.name)
		require.Len(t, h.sent, v.sent, v.name)
	}
	h := &testHandler{}
	s, err := NewServer(ServerConfig{Protocol: p, Handler: h, MaxRestarts: -1})
	require.NoError(t, err)
	s.UnknownGame(time.Second, here, game(0))
	require.Equal(t, ServerCounters{RestartsLimited: 1}, s.Counters)
}
