package netcode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

func requestOf(t testing.TB, token []byte) []byte {
	var p public
	require.NoError(t, p.read(token))
	return appendRequest(nil, &p)
}

func addrOf(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 7)
}

// TestFewTokensFillNothing: who has few tokens, or many of one account, takes no room from others.
func TestFewTokensFillNothing(t *testing.T) {
	for name, from := range map[string]func(i int) netip.AddrPort{
		"two tokens in turn":    func(int) netip.AddrPort { return addrOf(0) },
		"one account, anywhere": addrOf,
	} {
		r := newRig(t, 1, netsim.Settings{}, 4)
		var requests [][]byte
		for i := range 200 {
			if from(1) == from(0) {
				i %= 2
			}
			requests = append(requests, requestOf(t, token(t, uint64(i+1), nil)))
		}
		for i, p := range requests {
			r.server.Receive(r.now, from(i), bytes.Clone(p))
		}
		require.LessOrEqual(t, len(r.server.mappings.heap), mappingsPerID, name)
		r.join(clientAddr, 7)
	}
}

// TestMappingsAgainstModel: a random crowd of requests and answers, with a list that is searched as the model.
func TestMappingsAgainstModel(t *testing.T) {
	const seed = 11
	var n modelCounts
	for _, c := range []struct{ room, ids int }{{24, 6}, {24, 12}, {96, 14}} {
		mappingsAgainstModel(t, seed, c.room, c.ids, &n)
	}
	require.NotContains(t, []int{n.fullAddrs, n.made, n.gaveWay, n.grouped, n.early, n.rested, n.kept}, 0, "%+v", n)
}

// modelCounts is how often what a mapping's fate depends on was so.
type modelCounts struct {
	fullAddrs     int // an address had as many as it may
	made, gaveWay int // one made room for another in the table, or in its network
	grouped       int // one of its network didn't
	early         int // because of its client's others
	rested        int // a client that was displaced had to wait
	kept          int // the oldest of an address or client was too young
}

func mappingsAgainstModel(t *testing.T, seed uint64, room, ids int, n *modelCounts) {
	rng := rand.New(rand.NewPCG(seed, 1))
	table := newMappings(room)
	var model []*mapping // the oldest first
	drop := func(gone func(m *mapping) bool) { model = slices.DeleteFunc(model, gone) }
	now := time.Duration(0)
	rests := map[uint64]time.Duration{}
	full := 0
	steps := 10_000
	if testing.Short() {
		steps = 4000
	}
	for i := range steps {
		now += time.Duration(rng.IntN(6)) * 10 * time.Millisecond
		addr := netip.AddrPortFrom(addrOf(rng.IntN(12)).Addr(), uint16(rng.IntN(4)))
		if rng.IntN(3) == 0 {
			addr = clientAddr
		}
		if rng.IntN(8) == 0 { // it connects
			if list := table.at(now, addr); len(list) > 0 {
				got := list[rng.IntN(len(list))]
				table.remove(got)
				drop(func(m *mapping) bool { return m == got })
			}
		} else {
			m := &mapping{addr: addr, clientID: uint64(rng.IntN(ids)), timeout: time.Duration(rng.IntN(20)-1) * time.Second, first: uint64(i)}
			drop(func(m *mapping) bool { return now >= m.until })
			var atAddr, ofID []*mapping
			for _, o := range model {
				if o.addr == addr {
					atAddr = append(atAddr, o)
				}
				if o.clientID == m.clientID {
					ofID = append(ofID, o)
				}
			}
			var gone []*mapping
			if len(atAddr) == mappingsPerAddr {
				gone = append(gone, atAddr[0])
				n.fullAddrs++
			}
			if len(ofID) == mappingsPerID {
				gone = append(gone, ofID[0])
			}
			var ofGroup []*mapping
			givesWay := func(o *mapping) bool {
				of := func(id uint64) (has int) {
					for _, o := range model {
						if o.clientID == id {
							has++
						}
					}
					return has
				}
				if of(o.clientID) < of(m.clientID)+2 {
					if now < rests[m.clientID] {
						n.rested++
						return false
					}
					if of(m.clientID) > of(o.clientID) || now-o.since < placeTime {
						return false
					}
				} else if now-o.since < placeTime {
					n.early++
				}
				if now >= rests[o.clientID] {
					rests[o.clientID] = now + answerTime
				}
				drop(func(other *mapping) bool { return other == o })
				return true
			}
			want := !slices.ContainsFunc(gone, func(o *mapping) bool { return now-o.since < placeTime })
			if want {
				drop(func(o *mapping) bool { return slices.Contains(gone, o) })
				for _, o := range model {
					if o.addr.Addr() == addr.Addr() {
						ofGroup = append(ofGroup, o)
					}
				}
				if len(ofGroup) >= room/groupShare {
					if want = givesWay(ofGroup[0]); want {
						n.gaveWay++
					} else {
						n.grouped++
					}
				}
				if want && len(model) >= room {
					table.at(now, addr) // forgets those whose time is over
					first := table.heap[0]
					for _, o := range model {
						require.LessOrEqual(t, first.until, o.until)
					}
					if want = givesWay(first); want {
						n.made++
					}
					full++
				}
			} else {
				n.kept++
			}
			require.Equal(t, want, table.put(now, m), "seed %d, step %d", seed, i)
			if want {
				lives := m.timeout
				if lives < 0 || lives > answerTime {
					lives = answerTime
				}
				require.Equal(t, now+lives, m.until)
				model = append(model, m)
			}
		}
		if i%8 != 0 {
			continue
		}
		ofAddr, ofID := 0, 0
		for _, list := range table.byAddr {
			require.LessOrEqual(t, len(list), mappingsPerAddr)
			ofAddr += len(list)
		}
		for _, list := range table.byID {
			require.LessOrEqual(t, len(list), mappingsPerID)
			ofID += len(list)
		}
		require.Equal(t, len(table.heap), ofAddr, "seed %d, step %d", seed, i)
		require.Equal(t, len(table.heap), ofID, "seed %d, step %d", seed, i)
		for _, m := range model {
			require.Equal(t, now < m.until, slices.Contains(table.at(now, m.addr), m), "seed %d, step %d", seed, i)
		}
	}
	require.Equal(t, ids*mappingsPerID > room, full > 0, "ids with 8 places each")
}

// TestSilentClientBlocksNobody: one that never answers its challenge, though its token has it wait for an hour, doesn't
// keep the room of those who connect after it.
func TestSilentClientBlocksNobody(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	r.server.Receive(0, addrOf(0), requestOf(t, token(t, 1, func(c *TokenConfig) { c.Timeout = 3600 })))
	for i := 1; i < 100; i++ {
		r.join(addrOf(i), uint64(1000+i))
		r.server.free(0, ClientLeft)
	}
	require.Zero(t, r.server.Counters.NoRoom)
	require.Len(t, r.server.mappings.heap, 1)
	r.now += answerTime
	r.join(addrOf(100), 2000)
	require.Empty(t, r.server.mappings.heap, "it had its time")
}

// TestSessionReplayed: all that a client sent, sent again from its address after it left, connects nobody, not even
// when its token is forgotten.
func TestSessionReplayed(t *testing.T) {
	for _, forget := range []bool{false, true} {
		r := newRig(t, 1, netsim.Settings{}, 2)
		tok := token(t, 1, func(c *TokenConfig) { c.Expire = NeverExpires })
		out, h := &capture{ServerHandler: serverSide{r}}, &relay{r: r}
		r.server.cfg.Handler = out
		c := newClient(t, h)
		require.NoError(t, c.Connect(0, tok))
		var session [][]byte
		for range 4 {
			for _, p := range h.up {
				session = append(session, p)
				r.server.Receive(0, clientAddr, bytes.Clone(p))
			}
			h.up = nil
			for _, p := range out.sent {
				c.Receive(0, serverAddr, p)
			}
			out.sent = nil
		}
		require.Equal(t, Connected, c.State())
		require.Len(t, session, 3)
		r.server.free(0, ClientLeft)
		if forget {
			for i := range minUsed {
				r.server.used.add([macBytes]byte{1, byte(i), byte(i >> 8)}, clientAddr)
			}
		}
		connected := r.server.Counters.Connected
		for range 3 {
			for _, p := range session {
				r.server.Receive(r.now, clientAddr, bytes.Clone(p))
			}
		}
		require.Equal(t, connected, r.server.Counters.Connected, "forgotten: %v", forget)
		require.Zero(t, r.server.Clients())
		if forget {
			require.NotZero(t, r.server.Counters.NotBound)
		} else {
			require.NotZero(t, r.server.Counters.TokenUsed)
		}
	}
}

// TestResponsesOfTheConnected: a response that comes again, or is forged, is counted.
func TestResponsesOfTheConnected(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	c := r.join(clientAddr, 5)
	h := &relay{r: r}
	c.cfg.Handler, c.state = h, SendingResponse
	c.transmit(r.now)
	before := refused(&r.server.Counters)
	r.server.Receive(r.now, clientAddr, bytes.Clone(h.up[0]))
	require.Equal(t, before+1, refused(&r.server.Counters))
	h.up[0][100] ^= 1
	r.server.Receive(r.now, clientAddr, bytes.Clone(h.up[0]))
	require.Equal(t, before+2, refused(&r.server.Counters))
	require.EqualValues(t, 1, r.server.Counters.NotSealed)
}

// TestMappedAddresses: an IPv4 address in the clothes of IPv6, as sockets for both families and some back ends have
// them, is that IPv4 address.
func TestMappedAddresses(t *testing.T) {
	mapped := netip.AddrPortFrom(netip.AddrFrom16(serverAddr.Addr().As16()), serverAddr.Port())
	require.True(t, mapped.Addr().Is4In6())
	r := newRig(t, 1, netsim.Settings{}, 1)
	server, err := NewServer(ServerConfig{ProtocolID: 7, PrivateKey: Key{1}, Addrs: []netip.AddrPort{mapped}, Handler: serverSide{r}, UnixAtZero: unixStart})
	require.NoError(t, err)
	r.server = server
	require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
	for range 10 {
		for p, ok := r.up.Pop(r.now); ok; p, ok = r.up.Pop(r.now) {
			r.server.Receive(r.now, clientAddr, bytes.Clone(p))
		}
		for p, ok := r.down.Pop(r.now); ok; p, ok = r.down.Pop(r.now) {
			r.client.Receive(r.now, mapped, bytes.Clone(p))
		}
	}
	require.Equal(t, Connected, r.client.State())

	b := []byte{1, 0, 0, 0, v6}
	ip := mapped.Addr().As16()
	for i := 0; i < 16; i += 2 {
		b = append(b, ip[i+1], ip[i])
	}
	servers, _, err := readServers(binary.LittleEndian.AppendUint16(b, mapped.Port()))
	require.NoError(t, err)
	require.Equal(t, []netip.AddrPort{serverAddr}, servers)
}

// TestSetClock: a server whose clock was wrong at its start, or stood still, learns the time.
func TestSetClock(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	late := requestOf(t, token(t, 1, func(c *TokenConfig) { c.Create, c.Expire = unixStart-60, unixStart }))
	r.server.cfg.UnixAtZero = 0
	r.now = time.Minute
	r.server.SetClock(r.now, unixStart)
	r.server.Receive(r.now, clientAddr, bytes.Clone(late))
	require.EqualValues(t, 1, r.server.Counters.Expired)
	r.server.SetClock(r.now, unixStart-2)
	r.server.Receive(r.now+time.Second, clientAddr, bytes.Clone(late))
	require.EqualValues(t, 1, r.server.Counters.Challenges)
	r.server.Receive(r.now+2*time.Second, addrOf(1), bytes.Clone(late))
	require.EqualValues(t, 2, r.server.Counters.Expired)
}

// TestNoKey: a key that was forgotten isn't one that everybody knows.
func TestNoKey(t *testing.T) {
	_, err := GenerateConnectToken(TokenConfig{Timeout: 5, Servers: []netip.AddrPort{serverAddr}})
	require.ErrorIs(t, err, ErrNoKey)
	_, err = NewServer(ServerConfig{Addrs: []netip.AddrPort{serverAddr}, Handler: &capture{}})
	require.ErrorIs(t, err, ErrNoKey)
	for _, slots := range []int{-1, MaxSlots + 1, math.MaxInt} {
		_, err = NewServer(ServerConfig{PrivateKey: Key{1}, Addrs: []netip.AddrPort{serverAddr}, Handler: &capture{}, Slots: slots})
		require.ErrorContains(t, err, "Slots")
	}
}

// TestConnectAgain: a client that connects while it is connected leaves its server first.
func TestConnectAgain(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	require.NoError(t, r.client.Connect(0, token(t, 1, nil)))
	r.run(10)
	require.Equal(t, Connected, r.client.State())
	require.NoError(t, r.client.Connect(r.now, token(t, 2, nil)))
	r.run(10)
	require.Equal(t, Connected, r.client.State())
	require.Equal(t, []Reason{ClientLeft}, r.gone)
}

// TestPrintsNoSecrets: machines and tokens, printed and logged in every way, show none of their keys.
func TestPrintsNoSecrets(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	r.server.cfg.PrivateKey = Key(bytes.Repeat([]byte{0xe7, 0xd3}, 16))
	tok := Token(token(t, 1, nil))
	require.NoError(t, r.client.Connect(0, tok))
	r.client.token.c2s = r.server.cfg.PrivateKey
	copy(tok[1200:], r.server.cfg.PrivateKey[:])
	var log bytes.Buffer
	for _, v := range []any{r.server, r.client, tok, struct{ T Token }{tok}, []Token{tok}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%d", "%q"} {
			fmt.Fprintf(&log, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "v", v)
	}
	for _, leak := range []string{"e7d3", "E7D3", "231 211", "231,211", "231, 211", "0xe7, 0xd3", "59Pn", "\xe7\xd3", `\xe7\xd3`} {
		require.False(t, strings.Contains(log.String(), leak), leak)
	}
	require.Contains(t, log.String(), redactedToken)
}

// TestAllocsHostile: packets that are refused cost no memory.
func TestAllocsHostile(t *testing.T) {
	r := newRig(t, 1, netsim.Settings{}, 2)
	r.join(clientAddr, 5)
	req := requestOf(t, token(t, 1, nil))
	req[100] ^= 1
	response := make([]byte, 333)
	response[0] = 8<<4 | byte(typeResponse)
	payload := make([]byte, 100)
	payload[0] = 1<<4 | byte(typePayload)
	buf := make([]byte, len(req))
	for _, c := range []struct {
		p    []byte
		from netip.AddrPort
	}{{req, addrOf(1)}, {response, addrOf(1)}, {response, clientAddr}, {payload, clientAddr}, {payload, addrOf(1)}, {payload[:9], addrOf(1)}} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			copy(buf, c.p)
			r.server.Receive(r.now, c.from, buf[:len(c.p)])
		}), "type %d of %d bytes", c.p[0]&15, len(c.p))
	}
}
