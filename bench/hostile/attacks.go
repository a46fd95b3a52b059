package main

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/salted"
)

// attack is what a stranger sends.
type attack struct {
	name string
	n    int
	// send is the i-th datagram and where it says it comes from.
	send func(i int) (from netip.AddrPort, p []byte)
	// touches is whether the datagrams claim to come from an honest player, so that answers to them are his.
	touches bool
}

// stranger is the i-th address that nobody has.
func stranger(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{100 + byte(i>>24), byte(i >> 16), byte(i >> 8), byte(i)}), uint16(1024+i%60000))
}

// attacks is all of them on a link, n datagrams each.
func (g *game) attacks(n int, rng *rand.Rand) ([]attack, error) {
	addr, session, err := g.formerPlayer()
	if err != nil {
		return nil, err
	}
	list := []attack{{name: "a former player's packets again, as he", n: n, send: func(i int) (netip.AddrPort, []byte) {
		return addr, session[i%len(session)]
	}}}
	switch g.link {
	case "unreal":
		list = append(list, g.unrealAttacks(n, rng)...)
	case "salted":
		list = append(list, g.saltedAttacks(n)...)
	default:
		list = append(list, g.netcodeAttacks(n, rng)...)
	}
	return append(list, g.commonAttacks(n, rng)...), nil
}

func (g *game) commonAttacks(n int, rng *rand.Rand) []attack {
	junk := make([]byte, 1400)
	list := []attack{
		{name: "random bytes, random sizes", n: n, send: func(i int) (netip.AddrPort, []byte) {
			b := junk[:rng.IntN(len(junk))]
			for j := 0; j < len(b); j += 8 {
				v := rng.Uint64()
				for k := j; k < min(j+8, len(b)); k++ {
					b[k], v = byte(v), v>>8
				}
			}
			return stranger(i), b
		}},
		{name: "a player's packets from elsewhere", n: n, send: func(i int) (netip.AddrPort, []byte) {
			return stranger(i), g.tap[i%len(g.tap)]
		}},
		{name: "a player's packets, cut short", n: n, touches: g.link == "netcode", send: func(i int) (netip.AddrPort, []byte) {
			b := g.tap[i%len(g.tap)]
			from := stranger(i)
			if g.link == "netcode" {
				from = playerAddr(0)
			}
			return from, b[:rng.IntN(len(b))]
		}},
		{name: "a player's packets again, as he", n: n, touches: true, send: func(i int) (netip.AddrPort, []byte) {
			return playerAddr(0), g.tap[i%len(g.tap)]
		}},
	}
	if g.link == "unreal" {
		return list // its packets have no checksum: who can forge a player's address can disturb him
	}
	return append(list, attack{name: "a player's packets, one bit flipped, as he", n: n, touches: true, send: func(i int) (netip.AddrPort, []byte) {
		b := append([]byte(nil), g.tap[i%len(g.tap)]...)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		return playerAddr(0), b
	}})
}

// request keeps the last packet of a client.
type request struct{ p []byte }

func (r *request) Send(_ netip.AddrPort, p []byte)         { r.p = append(r.p[:0], p...) }
func (*request) StateChanged(netcode.State, netcode.State) {}
func (*request) Payload([]byte)                            {}

// requestFor is the request packet with a token.
func requestFor(token []byte) []byte {
	var r request
	c, err := netcode.NewClient(netcode.ClientConfig{ProtocolID: binary.LittleEndian.Uint64(token[13:]), Handler: &r})
	if err == nil {
		err = c.Connect(0, token)
	}
	if err != nil {
		panic(err) // the token is ours
	}
	return r.p
}

func (g *game) netcodeAttacks(n int, rng *rand.Rand) []attack {
	const tokenAt = 54 // of the private part in a request
	forged := requestFor(g.token(1e6, nil))
	good := requestFor(g.token(1e6+1, nil))
	var list []attack
	add := func(name string, n int, send func(i int) (netip.AddrPort, []byte)) {
		list = append(list, attack{name: name, n: n, send: send})
	}
	add("requests with forged tokens", n, func(i int) (netip.AddrPort, []byte) {
		forged[tokenAt+rng.IntN(1024)] ^= byte(1 + rng.IntN(255))
		return stranger(i), forged
	})
	response := make([]byte, 333)
	add("responses to challenges never made", n, func(i int) (netip.AddrPort, []byte) {
		response[0] = 8<<4 | 3
		for j := 1; j < len(response); j += 40 {
			response[j] = byte(rng.Uint32())
		}
		return stranger(i), response
	})
	add("one stolen token from everywhere", n, func(i int) (netip.AddrPort, []byte) { return stranger(i), good })
	two := [][]byte{requestFor(g.token(1e6+2, nil)), requestFor(g.token(1e6+3, nil))}
	add("two good tokens in turn, unanswered", n, func(i int) (netip.AddrPort, []byte) { return stranger(1), two[i%2] })
	account := make([][]byte, 1000)
	for i := range account {
		account[i] = requestFor(g.token(1e6+4, nil))
	}
	add("one account's thousand tokens", n, func(i int) (netip.AddrPort, []byte) { return stranger(i % 1000), account[i%1000] })
	few := min(n, 20_000)
	for _, bad := range []struct {
		name string
		edit func(*netcode.TokenConfig)
	}{
		{"expired tokens", func(c *netcode.TokenConfig) { c.Create, c.Expire = c.Create-60, c.Expire-60 }},
		{"tokens for another server", func(c *netcode.TokenConfig) {
			c.Servers = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:7777")}
		}},
		{"tokens of another key", func(c *netcode.TokenConfig) { c.PrivateKey = netcode.Key{9} }},
		{"tokens of another game", func(c *netcode.TokenConfig) { c.ProtocolID++ }},
		{"the token of a player again", func(c *netcode.TokenConfig) { c.ClientID = 1 }},
	} {
		add(bad.name, few, func(i int) (netip.AddrPort, []byte) {
			return stranger(i), requestFor(g.token(uint64(2e6+i), bad.edit))
		})
	}
	return list
}

func (g *game) unrealAttacks(n int, rng *rand.Rand) []attack {
	p := handshake.Unreal51()
	buf := make([]byte, 128)
	packet := func(pk handshake.Packet) []byte {
		w := bitio.NewWriter(buf)
		pk.MinVersion, pk.CurVersion, pk.ClientID = p.MinVersion, p.Version, uint8(1+rng.IntN(7))
		p.Write(w, &pk, make([]byte, 8+rng.IntN(9)))
		return w.Bytes()
	}
	game := make([]byte, 60)
	return []attack{
		{name: "initial packets", n: n, send: func(i int) (netip.AddrPort, []byte) {
			return stranger(i), packet(handshake.Packet{Type: handshake.Initial})
		}},
		{name: "responses with forged cookies", n: n, send: func(i int) (netip.AddrPort, []byte) {
			pk := handshake.Packet{Type: handshake.Response, SecretID: i%2 == 0, Timestamp: g.now.Sub(g.start).Seconds() - 1}
			for j := range pk.Cookie {
				pk.Cookie[j] = byte(rng.Uint32())
			}
			return stranger(i), packet(pk)
		}},
		{name: "game packets without a connection", n: n, send: func(i int) (netip.AddrPort, []byte) {
			game[0], game[59] = 0, byte(1+rng.IntN(255)) // the handshake bit is 0
			return stranger(i), game
		}},
	}
}

// first keeps the first packet of a salted client.
type first struct{ p []byte }

func (f *first) Send(_ netip.AddrPort, p []byte)       { f.p = append(f.p[:0], p...) }
func (*first) StateChanged(salted.State, salted.State) {}
func (*first) Payload([]byte)                          {}

func (g *game) saltedAttacks(n int) []attack {
	var f first
	c, err := salted.NewClient(salted.ClientConfig{ProtocolID: protocolID, Handler: &f})
	if err != nil {
		panic(err) // the settings are ours
	}
	return []attack{
		{name: "requests", n: n, send: func(i int) (netip.AddrPort, []byte) {
			c.Disconnect(0)
			if err := c.Connect(time.Duration(i)*time.Millisecond, serverAddr); err != nil {
				panic(err)
			}
			return stranger(i), f.p
		}},
		{name: "responses to challenges never made", n: n, send: func(i int) (netip.AddrPort, []byte) {
			return stranger(i), g.tap[1] // a player's own
		}},
	}
}
