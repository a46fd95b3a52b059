package netcode

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestAdmit: a client joins once Admit lets it in, also at 20 % loss, and is denied as Full when Admit refuses; it is asked only about clients that have
// answered their challenge and for whom there is a slot, and once more for each packet while it waits.
func TestAdmit(t *testing.T) {
	for _, loss := range []float64{0, 20} {
		for _, last := range []Admission{Admit, Refuse} {
			r := newRig(t, 7, netsim.Settings{Loss: loss, LagMin: 10 * time.Millisecond, LagMax: 20 * time.Millisecond}, 2)
			answer, asked := Wait, 0
			var who ClientInfo
			r.server.cfg.Admit = func(c ClientInfo) Admission {
				asked++
				who = c
				return answer
			}
			require.NoError(t, r.client.Connect(r.now, token(t, 5, func(c *TokenConfig) { c.ClientID, c.UserData[3] = 77, 9 })))
			r.server.Receive(r.now, addrOf(9), requestOf(t, token(t, 6, nil)))
			for begin := r.now; r.now < begin+time.Second; {
				r.step()
			}
			require.Equal(t, SendingResponse, r.client.State())
			require.EqualValues(t, asked, r.server.Counters.Waited)
			require.Greater(t, asked, 3)
			require.Less(t, asked, 12)
			require.EqualValues(t, 77, who.ID)
			require.Equal(t, clientAddr, who.Addr)
			require.EqualValues(t, 9, who.UserData[3])
			require.Empty(t, r.infos)
			answer = last
			for range 200 {
				r.step()
			}
			if last == Admit {
				require.Equal(t, Connected, r.client.State())
				require.Len(t, r.infos, 1)
				continue
			}
			require.Equal(t, Denied, r.client.State())
			require.Equal(t, Full, r.client.Denial())
			require.Empty(t, r.infos)
			require.Zero(t, r.server.Clients())
			require.NotZero(t, r.server.Counters.NotAdmitted)
		}
	}
}

// TestAdmitIsAskedSeldom: a client that repeats the answer to its challenge, a thousand times a second, has the game's Admit called 20 times, whether it
// says Wait or Refuse.
func TestAdmitIsAskedSeldom(t *testing.T) {
	for _, answer := range []Admission{Wait, Refuse} {
		r := newRig(t, 7, netsim.Settings{}, 2)
		asked := 0
		r.server.cfg.Admit = func(ClientInfo) Admission { asked++; return answer }
		require.NoError(t, r.client.Connect(r.now, token(t, 5, nil)))
		for r.client.State() == SendingRequest {
			r.step()
		}
		again := make([]byte, Headroom+len(r.client.challenge), Headroom+len(r.client.challenge)+Tailroom)
		copy(again[Headroom:], r.client.challenge[:])
		response := r.client.send.seal(typeResponse, 1000, again)
		before := r.server.Counters
		for begin := r.now; r.now < begin+time.Second; r.now += time.Millisecond {
			r.server.Receive(r.now, clientAddr, append([]byte(nil), response...))
		}
		waited, refused := r.server.Counters.Waited-before.Waited, r.server.Counters.NotAdmitted-before.NotAdmitted
		require.EqualValues(t, 1000, waited+refused)
		require.Greater(t, asked, 10)
		require.LessOrEqual(t, asked, 21)
		require.Equal(t, answer == Refuse, refused > 0)
		require.Empty(t, r.infos)
	}
}

// TestAdmitOfOneWhoTakesOver: a client that is connected is asked about too, and its former connection stays when Admit refuses.
func TestAdmitOfOneWhoTakesOver(t *testing.T) {
	r := newRig(t, 7, netsim.Settings{}, 1)
	r.server.cfg.TakeOver = true
	r.join(addrOf(1), 99)
	answer := Refuse
	r.server.cfg.Admit = func(ClientInfo) Admission { return answer }
	require.NoError(t, r.client.Connect(r.now, token(t, 1000, nil)))
	for range 100 {
		r.step()
	}
	require.Equal(t, Denied, r.client.State())
	require.Empty(t, r.gone)
	answer = Admit
	require.NoError(t, r.client.Connect(r.now, token(t, 1001, nil)))
	for range 100 {
		r.step()
	}
	require.Equal(t, Connected, r.client.State())
	require.Equal(t, []Reason{Replaced}, r.gone)
}

// TestNotAskedWhenFull: Admit isn't asked about a client for whom there is no slot, so each Admit is followed by Connected.
func TestNotAskedWhenFull(t *testing.T) {
	r := newRig(t, 7, netsim.Settings{LagMin: 20 * time.Millisecond, LagMax: 20 * time.Millisecond}, 1)
	admitted := 0
	r.server.cfg.Admit = func(ClientInfo) Admission { admitted++; return Admit }
	require.NoError(t, r.client.Connect(r.now, token(t, 5, nil)))
	for r.client.State() == SendingRequest {
		r.step() // it has a challenge, and its slot goes to another one
	}
	r.join(addrOf(1), 99)
	for range 100 {
		r.step()
	}
	require.Equal(t, Denied, r.client.State())
	require.EqualValues(t, admitted, r.server.Counters.Connected)
}

// TestNotAskedWithoutAPlace: whoever gives way at an address, Admit is asked only about a client that then gets a slot: a client that fell silent there may have
// another connection, which keeps its place.
func TestNotAskedWithoutAPlace(t *testing.T) {
	for _, silent := range []int{1, 2, 3} { // the address of the former connection of 99, that of the one beside it, and that of another client
		l := newHanded(t, 1)
		admitted := 0
		var err error
		l.server, err = NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Slots: 2, Handler: &l.down, UnixAtZero: unixStart - 60,
			TakeOver: true, HoldFormer: true, Admit: func(ClientInfo) Admission { admitted++; return Admit }})
		require.NoError(t, err)
		for i, id := range []uint64{99, 99, 5} {
			require.Equal(t, Connected, l.joins(addrOf(i+1), uint64(i), id).State())
		}
		l.now += 3 * time.Second
		want := Denied
		if silent == 3 {
			want = Connected
		}
		require.Equal(t, want, l.joins(addrOf(silent), 10, 7).State())
		connected := int(l.server.Counters.Connected)
		require.Equal(t, connected, admitted)
		require.Equal(t, connected, len(l.down.slots))
		require.Equal(t, []Reason{AddrTaken}, l.down.gone)
	}
}

// TestAdmitEndsTheFormer: Admit may end connections, the former one of the client that it is asked about too.
func TestAdmitEndsTheFormer(t *testing.T) {
	r := newRig(t, 7, netsim.Settings{}, 2)
	r.server.cfg.TakeOver = true
	r.join(addrOf(1), 99)
	r.server.cfg.Admit = func(c ClientInfo) Admission {
		for slot := range 2 {
			r.server.Disconnect(r.now, slot)
		}
		return Admit
	}
	require.NoError(t, r.client.Connect(r.now, token(t, 1000, nil)))
	for range 100 {
		r.step()
	}
	require.Equal(t, Connected, r.client.State())
	require.Equal(t, []Reason{Kicked}, r.gone)
	require.Equal(t, 1, r.server.Clients())
}
