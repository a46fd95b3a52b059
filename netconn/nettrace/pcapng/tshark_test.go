package pcapng

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/nettrace/dissector"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
)

var names = []bunch.Name{{Index: 300}, {Text: "Chat", Number: 7}}

// quiet is a channel that only listens.
type quiet struct {
	channel.Nop
	payloads map[string]bool
}

func (q quiet) ReceivedBunch(_ *channel.Channel, in *bunch.In) {
	b := make([]byte, (in.Bits+7)/8)
	in.Data.ReadBitsTo(b, in.Bits)
	q.payloads[string(b)] = true
}

// engine is what the server's connection says it received.
type engine struct {
	sent     int
	received map[string]bool // packets by wire sequence; what came too late isn't among them
	bunches  []nettrace.Event
}

func (e *engine) Trace(ev *nettrace.Event) {
	switch ev.Kind {
	case nettrace.PacketSent:
		e.sent++
	case nettrace.PacketReceived:
		e.received[seq(ev.PacketID)] = true
	case nettrace.BunchReceived:
		e.bunches = append(e.bunches, *ev)
	}
}

func seq(packetID int64) string { return strconv.Itoa(int(packetID & (1<<14 - 1))) }

// link is a way to connect, with the preferences that its captures need.
type link struct {
	name           string
	server, client driver.Link
	protocol       netconn.Protocol
	prefs          []string
}

func links(t *testing.T) []link {
	key := netcode.Key{1, 2, 3}
	now := uint64(time.Now().Unix())
	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: 9, ClientID: 42, Create: now, Expire: now + 60, Timeout: 3,
		Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:7777")}, PrivateKey: key})
	require.NoError(t, err)
	return []link{
		{"Unreal 5.1", driver.PlainUnreal51(), driver.PlainUnreal51(), netconn.Unreal51(), []string{"handlers:true", "sequence_bits:10"}},
		{"Unreal 4.27", driver.PlainUnreal427(), driver.PlainUnreal427(), netconn.Unreal427(), []string{"handlers:true", "ids:false", "sequence_bits:10"}},
		{"Unreal 5.8", driver.PlainUnreal53(), driver.PlainUnreal53(), netconn.Unreal53(true), []string{"handlers:true", "custom_exports_final:true", "sequence_bits:10"}},
		{"encrypted", driver.Netcode{ProtocolID: 9, Key: key}, driver.Netcode{ProtocolID: 9, Token: token}, netconn.Protocol{}, nil},
	}
}

// ship is the arena's.
type ship struct {
	actorrep.Base
	Pos   [2]float32          `net:"q=0.01"`
	Armor actorrep.Var[uint8] `net:"max=100"`
	Name  string              `net:""`
}

// fire makes the client talk on actors' channels too.
var fire = actorrep.ServerRPC(func(_ actorrep.Call, s *ship, dir uint16) error {
	s.Armor.Set(uint8(dir % 100))
	return nil
}, actorrep.Reliable)

// arena is twenty ships that fly about, and are seen and shot with by a client.
type arena struct {
	server, client *actorrep.World
	ships          []*ship
}

func newArena(t *testing.T) *arena {
	a := &arena{server: actorrep.NewServer(actorrep.Config{}), client: actorrep.NewClient(actorrep.Config{})}
	for _, w := range []*actorrep.World{a.server, a.client} {
		require.NoError(t, w.Register("ship", (*ship)(nil), actorrep.RPCs{"Fire": fire}))
	}
	return a
}

func (a *arena) joined(t *testing.T, c *driver.Conn) {
	p := a.server.AddConn(c)
	for i := range 20 {
		s := &ship{Name: fmt.Sprint("ship ", i)}
		s.SetOwner(p)
		require.NoError(t, a.server.Spawn(s))
		a.ships = append(a.ships, s)
	}
}

// step flies, and has the client shoot now and then.
func (a *arena) step(t *testing.T, now time.Time, server, client *driver.Driver, tick int) {
	for i, s := range a.ships {
		s.Pos[0] += float32(i) * 0.1
	}
	a.server.Step(server.Time(now))
	a.client.Step(client.Time(now))
	if tick%20 != 19 || len(a.ships) == 0 {
		return
	}
	if m, ok := a.client.Find(a.ships[tick/20%20].GUID()).(*ship); ok && m.IsOwned() {
		require.NoError(t, fire.Call(m, uint16(tick)))
	}
}

// record has a client talk to a server over a bad network and writes the server's packets to a file.
func record(t *testing.T, l link, file string) (said engine, packets int, payloads map[string]bool) {
	f, err := os.Create(file)
	require.NoError(t, err)
	defer f.Close()
	w, err := NewWriter(f, time.Now())
	require.NoError(t, err)
	e := &engine{received: map[string]bool{}}
	payloads = map[string]bool{}
	var types []channel.Type
	for _, n := range names {
		types = append(types, channel.Type{Name: n, ClientOpen: true, Accept: func(*channel.Channel) channel.Handler { return quiet{payloads: payloads} }})
	}
	game := newArena(t)
	types = append(types, game.server.ChannelTypes()...)
	clientTypes := append(types[:len(names):len(names)], game.client.ChannelTypes()...)
	a, b := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:1234"))
	bad := netsim.Settings{Loss: 10, LagMin: 2 * time.Millisecond, LagMax: 3 * time.Millisecond, Dup: 5}
	impaired, err := proxy.Impair(b, bad, bad, 1)
	require.NoError(t, err)
	server, err := driver.Listen("", driver.Config{Link: l.server, Protocol: l.protocol, Socket: a, Channels: types, Trace: e, Packets: w,
		Joined: func(c *driver.Conn) { game.joined(t, c) }})
	require.NoError(t, err)
	defer server.Close()
	client, err := driver.Dial("127.0.0.1:7777", driver.Config{Link: l.client, Protocol: l.protocol, Socket: impaired, Channels: clientTypes})
	require.NoError(t, err)
	defer client.Close()
	talk(t, game, server, client)
	require.Equal(t, 20, game.client.Len())
	require.NoError(t, w.Flush())
	return *e, w.Packets(), payloads // before the drivers close
}

func talk(t *testing.T, game *arena, server, client *driver.Driver) {
	seed := uint64(11)
	rng := rand.New(rand.NewPCG(seed, 0))
	var chans []*channel.Channel
	for ticks := 0; ticks < 400; {
		now := time.Now()
		client.TickDispatch(now)
		server.TickDispatch(now)
		if c := client.Server(); c != nil && c.Joined() {
			for len(chans) < len(names) {
				ch, err := c.Open(names[len(chans)], nil)
				require.NoError(t, err)
				_, err = ch.SendBunch(&bunch.Out{Data: []byte("open"), Reliable: true, NoMerge: true})
				require.NoError(t, err)
				chans = append(chans, ch)
			}
			if ticks++; ticks%3 == 0 {
				speak(t, rng, chans[rng.IntN(2)])
			}
		}
		game.step(t, now, server, client, ticks)
		client.TickFlush(now)
		server.TickFlush(now)
		time.Sleep(time.Millisecond) // virtual
	}
}

// speak sends a bunch of any size and kind.
func speak(t *testing.T, rng *rand.Rand, ch *channel.Channel) {
	data := make([]byte, 1+rng.IntN(60))
	if rng.IntN(10) == 0 {
		data = make([]byte, 2000) // in parts
	}
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	out := &bunch.Out{Data: data, Bits: len(data)*8 - rng.IntN(8), Reliable: rng.IntN(2) == 0}
	data[len(data)-1] &= 1<<((out.Bits-1)%8+1) - 1
	if ch.Room() <= 8 {
		return
	}
	if _, err := ch.SendBunch(out); out.Reliable || !errors.Is(err, channel.ErrNotSent) { // the rest of a reliable one in parts may wait
		require.NoError(t, err)
	}
}

// tshark is the fields of each packet of a file, as the dissector sees them.
func tshark(t *testing.T, file string, prefs, fields []string) [][]string {
	bin, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark isn't installed; apt-get install tshark")
	}
	lua := filepath.Join(t.TempDir(), "bunchnet.lua")
	require.NoError(t, os.WriteFile(lua, []byte(dissector.Lua), 0o644))
	args := []string{"-X", "lua_script:" + lua, "-r", file, "-T", "fields"}
	for _, p := range prefs {
		args = append(args, "-o", "bunchnet."+p)
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.Command(bin, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	require.NotContains(t, stderr.String(), "Lua", stderr.String())
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

var fields = []string{"bunchnet.malformed", "udp.srcport", "bunchnet.seq", "bunchnet.bunch.ch_index", "bunchnet.bunch.reliable", "bunchnet.bunch.bits", "bunchnet.bunch.ch_sequence", "bunchnet.bunch.payload"}

// TestTshark: what tshark decodes of a capture is what the engine says it received, bunch for bunch.
func TestTshark(t *testing.T) {
	for i := range links(t) {
		l := links(t)[i]
		t.Run(l.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "capture.pcapng")
			var e engine
			var packets int
			var payloads map[string]bool
			synctest.Test(t, func(t *testing.T) { e, packets, payloads = record(t, links(t)[i], file) })
			rows := tshark(t, file, l.prefs, fields)
			require.Len(t, rows, packets)
			got := map[string]int{}
			outgoing, seen := 0, map[string]bool{}
			whole := 0
			for _, row := range rows {
				require.Empty(t, row[0], row)
				if row[1] == "7777" {
					outgoing++
					continue
				}
				if seen[row[2]] || !e.received[row[2]] {
					continue // the network repeated it, or it came too late
				}
				seen[row[2]] = true
				seqs, payload := split(row[6]), split(row[7])
				for i, ch := range split(row[3]) {
					chSeq := "0"
					reliable := split(row[4])[i]
					if reliable == "1" || reliable == "True" {
						chSeq, seqs = seqs[0], seqs[1:]
					}
					got[fmt.Sprintf("packet %s channel %s sequence %s bits %s", row[2], ch, chSeq, split(row[5])[i])]++
				}
				for _, p := range payload {
					if b, err := hex.DecodeString(strings.ReplaceAll(p, ":", "")); err == nil && payloads[string(b)] {
						whole++
					}
				}
			}
			want := map[string]int{}
			for _, b := range e.bunches {
				want[fmt.Sprintf("packet %s channel %d sequence %d bits %d", seq(b.PacketID), b.ChIndex, b.ChSequence, b.Bits)]++
			}
			require.Equal(t, e.sent, outgoing)
			require.Equal(t, want, got)
			require.Equal(t, len(e.received), len(seen))
			require.Greater(t, len(e.bunches), 50)
			require.Greater(t, whole, 20, "payloads that arrived as tshark shows them")
			t.Logf("%d packets, %d bunches received, %d payloads compared", packets, len(e.bunches), whole)
		})
	}
}

// TestMalformed: what is cut, empty or noise is marked, and no Lua error.
func TestMalformed(t *testing.T) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, time.Unix(1_700_000_000, 0))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 0))
	local, remote := netip.MustParseAddrPort("[::]:7777"), netip.MustParseAddrPort("[2001:db8::1]:4242")
	for i := range 300 {
		data := make([]byte, 1+rng.IntN(60))
		for j := range data {
			data[j] = byte(rng.Uint32())
		}
		w.TracePacket(&nettrace.Packet{At: time.Duration(i) * time.Millisecond, Sent: i%2 == 0, Local: local, Remote: remote, Data: data})
	}
	w.TracePacket(&nettrace.Packet{Local: local, Remote: netip.MustParseAddrPort("10.1.2.3:99"), Data: []byte{0}})
	require.NoError(t, w.Flush())
	file := filepath.Join(t.TempDir(), "noise.pcapng")
	require.NoError(t, os.WriteFile(file, buf.Bytes(), 0o644))
	rows := tshark(t, file, nil, []string{"bunchnet.malformed", "ipv6.src", "ip.dst", "udp.checksum.status"})
	require.Len(t, rows, 301)
	malformed := 0
	for _, row := range rows {
		if row[0] != "" {
			malformed++
			require.NotContains(t, row[0], "lua", row)
		}
	}
	require.Greater(t, malformed, 200)
	require.Equal(t, "2001:db8::1", rows[1][1])
	require.Equal(t, "0.0.0.0", rows[300][2])
	require.Equal(t, "a broken trailer", rows[300][0])
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriterError(t *testing.T) {
	w, err := NewWriter(failing{}, time.Now())
	if err == nil {
		w.TracePacket(&nettrace.Packet{Data: []byte{1}})
		err = w.Flush()
		require.ErrorIs(t, w.Flush(), os.ErrClosed)
	}
	require.ErrorIs(t, err, os.ErrClosed)
}
