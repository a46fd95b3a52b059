package bench

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"math"
	"net/http"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/channel/lockstep"
	"github.com/bunchnet/bunchnet/channel/lockstep/link"
	"github.com/bunchnet/bunchnet/channel/lockstep/rollback"
	"github.com/bunchnet/bunchnet/channel/message"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/driver/session"
	"github.com/bunchnet/bunchnet/netconn/driver/stream"
	"github.com/bunchnet/bunchnet/netconn/handshake"
	"github.com/bunchnet/bunchnet/netconn/inspect"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/salted"
	"github.com/bunchnet/bunchnet/netconn/udp"
	"github.com/bunchnet/bunchnet/netconn/udp/proxy"
	"github.com/bunchnet/bunchnet/packetnotify"
	"github.com/bunchnet/bunchnet/packetnotify/ackbits"
)

// checked is a configuration whose fields are checked where they are given.
type checked struct {
	// name is package.Type; inner configurations are in those that have them.
	name string
	// base returns a pointer to one that is fine.
	base func() any
	// make gives it to whoever checks it.
	make func(cfg any) error
	// rules is what holds for each exported field. Inner structs of the module have their fields as Outer.Inner.
	rules map[string]rule
}

// rule is the values of a field around the bounds of its range. A field for which every value is right says why.
type rule struct {
	wrong, right []any
	free         string
	as           string // the error's word for the field, if it is another
}

func limits(wrong, right []any) rule { return rule{wrong: wrong, right: right} }

// named is the rule with another word for the field in its errors.
func (r rule) named(word string) rule {
	r.as = word
	return r
}

func list(v ...any) []any { return v }

func free(why string) rule { return rule{free: why} }

var (
	either   = free("a bool")
	function = free("a function, or nil")
)

// durations is a time from low to high; 0 is the default's, below 0 is never when negative says so.
func durations(low, high time.Duration, negative bool) rule {
	r := limits(list(low-1, high+1, time.Duration(math.MaxInt64)), list(time.Duration(0), low, high))
	if negative {
		r.right = append(r.right, time.Duration(-1), time.Duration(math.MinInt64))
	} else {
		r.wrong = append(r.wrong, time.Duration(-1))
	}
	return r
}

// numbers is an int from low to high; 0 is the default's.
func numbers(low, high int) rule {
	r := limits(list(-1, math.MinInt), list(0, low, high))
	if low > 1 {
		r.wrong = append(r.wrong, low-1)
	}
	if high < math.MaxInt {
		r.wrong = append(r.wrong, high+1)
	}
	return r
}

const (
	century = 100 * 365 * 24 * time.Hour
	year    = 365 * 24 * time.Hour
)

// bunchRules is bunch.Protocol's, under the name that it has.
func bunchRules(name string) map[string]rule {
	return map[string]rule{
		name + ".CustomExportsFinal": either,
		name + ".SequenceBits":       limits(list(uint8(1), uint8(2), uint8(17), uint8(255)), list(uint8(14), uint8(16))),
		name + ".MaxPacket":          numbers(256, 8192),
		name + ".HandlerBits":        numbers(1, 1024),
	}
}

func connRules() map[string]rule {
	return map[string]rule{
		"Protocol.Name":                limits(list(""), list("mine")),
		"Protocol.Unreal":              either,
		"Protocol.Notify.WaitForFlush": limits(list(true), list(false)).named("PacketWindow"),
		"Protocol.Notify.AckRecords":   limits(list(-1, 8192), list(0, 8191)),
		"Protocol.PacketWindow":        limits(list(-1, 15, 6145), list(0, 16, 6144)),
		"Protocol.ReliableBuffer":      limits(list(-1, 1, 100, 16384), list(0, 2, 8192)),
		"Protocol.CloseOnOverflow":     either, "Protocol.FirstFree": either, "Protocol.StrictControl": either,
		"MaxChannels":     numbers(1, 32767),
		"MaxMemory":       numbers(256<<10, math.MaxInt32),
		"PeerMemory":      numbers(256<<10, math.MaxInt32),
		"NeverReuseIndex": either, "RestartSequence": either, "NoPacketInfo": either,
		"KeepAlive":           limits(list(time.Duration(-1), time.Millisecond-1, 30*time.Second+1, time.Hour+1), list(time.Duration(0), time.Millisecond, 30*time.Second)),
		"Timeout":             limits(list(time.Duration(1), 10*time.Millisecond-1, 399*time.Millisecond, century+1), list(time.Duration(0), 400*time.Millisecond, century, time.Duration(-1))),
		"LingerTimeout":       limits(list(time.Duration(-1), time.Hour+1), list(time.Duration(0), time.Duration(1), time.Hour)),
		"AckDelay":            limits(list(time.Duration(-1), 500*time.Millisecond+1, 10*time.Second), list(time.Duration(0), 500*time.Millisecond)),
		"ReorderWindow":       limits(list(time.Second+1, time.Hour), list(time.Duration(0), time.Second, time.Duration(-1))), // negative: the end of the tick
		"Redundancy.Copies":   numbers(1, 16),
		"Redundancy.Adaptive": either, // with Copies 0 none, as both docs say
		"Redundancy.MaxBits":  numbers(1, 65536),
		"Coding.Repairs":      limits(list(-0.1, 3.1, math.NaN(), math.Inf(1)), list(0.0, 0.5, 3.0)),
		"Coding.Adaptive":     either,
		"NetSpeed":            numbers(congestion.MinNetSpeed, math.MaxInt32),
		"Trace":               free("an interface, or nil"), "Packets": free("an interface, or nil"),
	}
}

var noName = []channel.Type{{ClientOpen: true}}

func driverConfig() any {
	return &driver.Config{Link: driver.PlainSalted{}, Protocol: netconn.Bunchnet()}
}

func makeDriver(cfg any) error {
	c := *cfg.(*driver.Config)
	d, err := driver.Listen("127.0.0.1:0", c)
	if err == nil {
		d.Close()
	}
	client, dialed := driver.Dial("127.0.0.1:9", c)
	if dialed == nil {
		client.Close()
	}
	if err == nil {
		return dialed
	}
	return err
}

func driverRules() map[string]rule {
	long := strings.Repeat("x", 5000)
	return merged(connRules(), bunchRules("Protocol.Bunch"), map[string]rule{
		"Protocol.Bunch.MaxPacket": limits(list(255, -1, 1440), list(0, 256, 1439)), // what the link carries
		"Protocol.Unreal":          limits(nil, list(false)),
		"Channels":                 limits(list(noName), list([]channel.Type(nil))).named("Name"),
		"Link": limits(list(driver.PlainSalted{Slots: -1}, driver.PlainSalted{Slots: 1025}, driver.Netcode{Slots: -1}, driver.Netcode{Slots: 16385}, driver.Netcode{FirstSequence: 1 << 62},
			driver.PlainUnreal{Handshake: handshake.Protocol{Version: 5}}), list(driver.PlainSalted{Slots: 1024}, driver.Netcode{Slots: 16384}, driver.PlainUnreal51())).named("(Slots|FirstSequence|Version)"),
		"MaxDatagram": limits(list(1, 100, 1024, 1501), list(0, -1, 1100, 1500)),
		"Joined":      function, "Closed": function, "Accepted": function,
		"Server.NetworkVersion": free("any number is a version"), "Server.Features": either,
		"Server.Map": limits(list(long), list("")), "Server.GameMode": limits(list(long), list("")), "Server.Challenge": limits(list(long), list("")),
		"Server.Level": function, "Server.Authorize": function, "Server.NetSpeed": function, "Server.Admitted": function,
		"Server.MaxNetSpeed":    limits(list(-1, 1, 1799), list(0, 1800)),
		"Client.NetworkVersion": free("any number is a version"), "Client.Features": either,
		"Client.Token": limits(list(long), list("")), "Client.URL": limits(list(long), list("")), "Client.Platform": limits(list(long), list("")),
		"Client.UniqueID": limits(list(make([]byte, 300)), list([]byte(nil))),
		"Client.Respond":  function, "Client.Welcomed": function, "Client.Entered": function,
		"Client.NetSpeed":  numbers(1800, math.MaxInt32),
		"MaxConns":         limits(list(-1, 1025, 1<<20+1), list(0, 1, 1024)).named("MaxConns|Slots"), // 1024 is the link's
		"MaxPerAddr":       free("negative is no bound, and more than MaxConns is none either"),
		"LoginTimeout":     durations(10*time.Millisecond, 24*time.Hour, false),
		"TickRate":         numbers(1, 10_000),
		"Parallel":         limits(list(driver.Cores(-1), driver.Cores(257)), list(driver.Cores(0), driver.Cores(1), driver.Cores(256))),
		"MaxDatagrams":     numbers(1, 1<<24),
		"MaxConnDatagrams": limits(list(1<<24+1), list(-1, 0, 1, 1<<24)),
		"Prompt":           either, "Checksum": either,
		"Controller": function, "Socket": free("an interface, or nil"), "Rand": free("an interface, or nil"), "Clock": function, "Logger": free("nil is none"),
		"UDP.ReadBuffer": numbers(2048, 1<<30), "UDP.WriteBuffer": numbers(2048, 1<<30),
		"UDP.ReusePort": either, "UDP.NoPoller": either, "UDP.NoOffload": either, "UDP.Whole": either,
	})
}

func merged(all ...map[string]rule) map[string]rule {
	m := map[string]rule{}
	for _, r := range all {
		for k, v := range r {
			m[k] = v
		}
	}
	return m
}

// panicked is what f panics with, as an error.
func panicked(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	f()
	return nil
}

type saltedHandler struct{ salted.ServerHandler }

type netcodeServer struct{ netcode.ServerHandler }

type netcodeClient struct{ netcode.ClientHandler }

type saltedClient struct{ salted.ClientHandler }

type handshakeHandler struct{ handshake.Handler }

type rollbackGame struct{ rollback.Game }

type linkHandler struct{ link.Handler }

type lockstepTransport struct{ lockstep.Transport }

func (lockstepTransport) Send(time.Duration, []byte) error { return nil }

func settings(t *testing.T) []checked {
	watched, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, watched.Close()) })
	addr := netip.MustParseAddrPort("127.0.0.1:7777")
	noPort := []netip.AddrPort{netip.AddrPortFrom(addr.Addr(), 0)}
	kinds := new(message.Registry)
	kinds.Add("note", func() message.Message { return nil })
	salts := map[string]rule{
		"ProtocolID": free("any number is an id"), "Rand": free("an interface, or nil"),
		"Timeout":  limits(list(time.Duration(1), 100*time.Millisecond, century+1), list(time.Duration(0), 101*time.Millisecond, century, time.Duration(-1))),
		"Interval": limits(list(time.Duration(-1), time.Millisecond-1, 5*time.Second, time.Hour), list(time.Duration(0), time.Millisecond, 5*time.Second-1)),
	}
	lockRules := map[string]rule{
		"Protocol": free("any number is a protocol"),
		"Players":  limits(list(-1, 0, 65), list(1, 64)), "MaxInput": limits(list(-1, 1, 1005), list(0, 2, 1004)), "InputRate": limits(list(-1, 257), list(0, 1, 256)),
		"MaxDelay": numbers(1, 60), "TurnInterval": durations(time.Millisecond, time.Minute, false), "Parts": limits(list(make([]string, 33)), list([]string(nil), make([]string, 32))),
		"MaxPacket": limits(list(-1, 127, 65508), list(0, 128, 65507)),
	}
	embedded := map[string]rule{}
	for k, v := range lockRules {
		embedded["Config."+k] = v
	}
	return []checked{
		{"netconn.Config", func() any { return &netconn.Config{Protocol: netconn.Bunchnet(), LowLevelSend: func([]byte) {}} },
			func(c any) error { _, err := netconn.New(*c.(*netconn.Config), 0, 1, 1); return err },
			merged(connRules(), bunchRules("Protocol.Bunch"), map[string]rule{
				"Server": either, "Channels": limits(list(noName), list([]channel.Type(nil))).named("Name"), "Pool": free("nil is one of its own"),
				"LowLevelSend": limits(list((func([]byte))(nil)), nil), "Headroom": numbers(1, 4096), "Tailroom": numbers(1, 4096), "Handlers": free("nil is none"),
				"AllowOpen": function, "Closed": function,
				"OrderCache": limits(list(24, 512), list(0, 1, 256, -1)), // negative is none
				"Controller": free("an interface, or nil"), "LargestPacket": limits(list(-1, 1, 1023, 8193), list(0, 1024, 8192)), "PacketOverhead": numbers(1, 1024),
				"Secret": free("any number is a secret"), "ID": free("any number is an id"), "Owner": free("the caller's"),
			})},
		{"channel.Config", func() any { return &channel.Config{} }, func(c any) error { return c.(*channel.Config).Validate() },
			merged(bunchRules("Protocol"), map[string]rule{
				"Protocol.SequenceBits": limits(list(uint8(2), uint8(17)), list(uint8(0), uint8(9), uint8(16))), // the buffer needs 9
				"Types": limits(list(noName, []channel.Type{{Name: bunch.Actor, Index: 3}}, []channel.Type{{Name: bunch.Actor}, {Name: bunch.Actor}}, []channel.Type{{Name: bunch.Actor, Static: true}},
					[]channel.Type{{Name: bunch.Actor, Static: true, Index: 32767}}), list([]channel.Type{{Name: bunch.Actor, Static: true, Index: 32766}})).named("type"),
				"ReliableBuffer": limits(list(-1, 1, 100, 1024), list(0, 2, 512)), "MaxChannels": numbers(1, 32767), "MaxMemory": numbers(256<<10, math.MaxInt32), "PeerMemory": numbers(256<<10, math.MaxInt32),
				"PartialReliableThreshold": free("negative is never, and every number of parts may be the threshold"),
				"EvenParts":                either, "CloseOnOverflow": either, "NeverReuseIndex": either, "FirstFree": either, "StrictControl": either, "RestartSequence": either,
				"MaxQueuedControl": numbers(1, 1<<20), "Pool": free("nil is one of its own"),
			})},
		{"driver.Config", driverConfig, makeDriver, driverRules()},
		{"netcode.ServerConfig", func() any {
			return &netcode.ServerConfig{PrivateKey: netcode.Key{1}, Addrs: []netip.AddrPort{addr}, Handler: netcodeServer{}}
		}, func(c any) error { _, err := netcode.NewServer(*c.(*netcode.ServerConfig)); return err }, map[string]rule{
			"ProtocolID": free("any number is an id"), "PrivateKey": limits(list(netcode.Key{}), nil), "UnixAtZero": free("any time is one"), "Rand": free("an interface, or nil"),
			"Addrs":         limits(list([]netip.AddrPort{}, []netip.AddrPort{{}}, []netip.AddrPort{netip.AddrPortFrom(addr.Addr(), 0)}), list([]netip.AddrPort{addr})),
			"FirstSequence": limits(list(uint64(1)<<62), list(uint64(1)<<62-1)), "Timeout": durations(200*time.Millisecond, century, true),
			"TakeOver": either, "HoldFormer": either, "Admit": function, "Slots": numbers(1, netcode.MaxSlots), "Handler": limits(list(nil), nil),
		}},
		{"netcode.ClientConfig", func() any { return &netcode.ClientConfig{Handler: netcodeClient{}} },
			func(c any) error { _, err := netcode.NewClient(*c.(*netcode.ClientConfig)); return err }, map[string]rule{
				"Handler": limits(list(nil), nil), "ProtocolID": free("any number is an id"), "Timeout": durations(200*time.Millisecond, century, true),
			}},
		{"netcode.TokenConfig", func() any {
			return &netcode.TokenConfig{Create: 10, Expire: 20, Timeout: 5, Servers: []netip.AddrPort{addr}, PrivateKey: netcode.Key{1}}
		}, func(c any) error { _, err := netcode.GenerateConnectToken(*c.(*netcode.TokenConfig)); return err }, map[string]rule{
			"ProtocolID": free("any number is an id"), "ClientID": free("any number is an id"), "UserData": free("the game's"), "Rand": free("an interface, or nil"),
			"Create": limits(list(uint64(21)), list(uint64(0), uint64(20))), "Expire": limits(list(uint64(0), uint64(9)), list(uint64(10), uint64(math.MaxUint64))),
			"Timeout": limits(list(int32(0)), list(int32(-1), int32(1), int32(math.MaxInt32))), "PrivateKey": limits(list(netcode.Key{}), nil),
			"Servers":  limits(list([]netip.AddrPort{}, make([]netip.AddrPort, 1), noPort, many(addr, 33)), list(many(addr, 32))),
			"Internal": limits(list([]netip.AddrPort{}, make([]netip.AddrPort, 1), noPort, many(addr, 2), many(addr, 33)), list([]netip.AddrPort(nil), many(addr, 1))), // one for each of Servers
		}},
		{"salted.ServerConfig", func() any { return &salted.ServerConfig{Handler: saltedHandler{}} },
			func(c any) error { _, err := salted.NewServer(*c.(*salted.ServerConfig)); return err }, merged(salts, map[string]rule{
				"Slots": numbers(1, 1024), "MaxPerAddr": free("negative is no bound, and more than Slots is none either"), "SecretLife": durations(time.Second, time.Hour, false),
				"Handler": limits(list(nil), nil),
			})},
		{"salted.ClientConfig", func() any { return &salted.ClientConfig{Handler: saltedClient{}} },
			func(c any) error { _, err := salted.NewClient(*c.(*salted.ClientConfig)); return err }, merged(salts, map[string]rule{
				"ConnectTimeout": durations(10*time.Millisecond, century, false), "Handler": limits(list(nil), nil),
			})},
		{"handshake.ServerConfig", func() any {
			return &handshake.ServerConfig{Handler: handshakeHandler{}, Protocol: handshake.Unreal51()}
		},
			func(c any) error { _, err := handshake.NewServer(*c.(*handshake.ServerConfig)); return err }, merged(handshakeRules(), map[string]rule{
				"Handler": limits(list(nil), nil), "SessionID": free("a count, modulo 4"), "Rand": free("an interface, or nil"),
				"MaxRestarts": free("negative is none, and any number may be the most"), "MaxUpgrades": free("negative is none, and any number may be the most"),
				"MaxConns": numbers(1, 1<<20),
			})},
		{"handshake.ClientConfig", func() any { return &handshake.ClientConfig{Send: func([]byte) {}, Protocol: handshake.Unreal51()} },
			func(c any) error { _, err := handshake.NewClient(*c.(*handshake.ClientConfig)); return err }, merged(handshakeRules(), map[string]rule{
				"Send": limits(list((func([]byte))(nil)), nil), "ClientID": free("a count, modulo 8"), "Rand": free("an interface, or nil"), "Timeout": durations(10*time.Millisecond, century, true),
			})},
		{"udp.Config", func() any { return &udp.Config{} }, func(c any) error {
			s, err := udp.Listen("127.0.0.1:0", *c.(*udp.Config))
			if err == nil {
				_ = s.Close()
			}
			return err
		}, map[string]rule{"ReadBuffer": numbers(2048, 1<<30), "WriteBuffer": numbers(2048, 1<<30), "ReusePort": either, "NoPoller": either, "NoOffload": either, "Whole": either}},
		{"congestion.AdaptiveConfig", func() any { return &congestion.AdaptiveConfig{} },
			func(c any) error { _, err := congestion.NewAdaptive(*c.(*congestion.AdaptiveConfig)); return err }, map[string]rule{
				"InitialRate": limits(list(-1, 1, 3999, 1_250_000_001), list(0, 4000, 1_250_000_000)), "MinRate": limits(list(-1, 30_001), list(0, 1, 30_000)), "MaxRate": limits(list(-1, 29_999), list(0, 30_000, math.MaxInt32)),
				"TargetDelay": durations(100*time.Microsecond, time.Second, false), "MaxBurst": durations(time.Millisecond, time.Second, false),
				"LossTolerance": limits(list(0.41, math.NaN(), math.Inf(1)), list(0.0, 0.4, -1.0)), "MaxPacket": numbers(64, 65535),
			}},
		{"stream.Config", func() any { return &stream.Config{} }, func(c any) error { return panicked(func() { stream.Listen(bunch.Voice, *c.(*stream.Config)) }) }, map[string]rule{
			"Window": numbers(stream.InitialCredit, 1<<30), "Buffer": numbers(1, 1<<30), "MaxStreams": numbers(1, 1<<20), "MaxPerConn": numbers(1, 1<<20), "Backlog": numbers(1, 1<<20),
		}},
		{"capture.Config", func() any { return &capture.Config{} }, func(c any) error {
			_, err := capture.Record(nil, capture.Outside{}, *c.(*capture.Config), nil)
			if err == capture.ErrOutside {
				err = nil // the configuration is checked first
			}
			return err
		}, map[string]rule{"StateEvery": limits(list(-2), list(-1, 0, 1)), "MaxBytes": limits(list(int64(-1)), list(int64(0), int64(1)))}},
		{"message.Config", func() any { return &message.Config{Kinds: kinds} }, func(c any) error { return panicked(func() { message.New(*c.(*message.Config)) }) }, map[string]rule{
			"Mode": limits(list(message.Mode(3)), list(message.Ordered, message.Sequenced)), "Kinds": limits(list((*message.Registry)(nil), new(message.Registry)), nil),
			"Window": limits(list(-1, 3, 32768), list(0, 1, 16384)), "Resend": durations(time.Millisecond, time.Hour, false), "MaxBits": numbers(8, 524280), "Budget": numbers(56, 524280),
		}},
		{"message.BlocksConfig", func() any { return &message.BlocksConfig{} }, func(c any) error { return panicked(func() { message.NewBlocks(*c.(*message.BlocksConfig)) }) }, map[string]rule{
			"MaxBytes": limits(list(-1, math.MinInt), list(0, 1, 1<<20)), "MaxBlocks": numbers(1, 512), "MaxHeld": limits(list(-1, 1, 64<<20-1), list(0, 64<<20)),
			"Received": function, "Progress": function, "Sent": function, "Failed": function, "Broken": function,
		}},
		{"lockstep.HostConfig", func() any { return &lockstep.HostConfig{Config: lockstep.Config{Players: 2}} },
			func(c any) error { _, err := lockstep.NewHost(*c.(*lockstep.HostConfig), nil); return err }, merged(embedded, map[string]rule{
				"Config.MaxPacket": limits(list(-1, 127, 16385), list(0, 128, 16384)), // the Window's
				"InitialDelay":     limits(list(-1, 17), list(0, 1, 16)), "Delay": free("an interface, or nil"), "DelayEvery": numbers(1, 1<<20), "Stall": limits(list(lockstep.StallPolicy(2)), list(lockstep.Wait, lockstep.Substitute)),
				"Spectators": numbers(1, 128), "SpectatorDelay": limits(list(-1, 32769), list(0, 1)), "StallAfter": limits(list(time.Duration(-1), time.Hour+1), list(time.Duration(0), time.Hour)),
				"DropAfter": durations(200*time.Millisecond, year, false), "StallPercent": numbers(1, 100), "RejoinAfter": limits(list(time.Duration(-1), year+1), list(time.Duration(0), year)),
				"Secret": free("32 bytes"), "LogBytes": limits(list(-1, 100, 1<<30+1, math.MaxInt), list(0, 1<<20)), "LogTurns": limits(list(-1, 31, 1<<24+1, math.MaxInt), list(0, 32)), "MaxSnapshot": numbers(1, math.MaxInt32),
				"Window": limits(list(-1, 1099, 1<<30+1, math.MaxInt), list(0, 1100, 1<<30)), "Resume": limits(list(&lockstep.Resume{}), list((*lockstep.Resume)(nil))), "Rate": limits(list(-1, 1023, 1<<30+1, math.MaxInt), list(0, 1024, 1<<30)),
			})},
		{"lockstep.PeerConfig", func() any { return &lockstep.PeerConfig{Config: lockstep.Config{Players: 2}} },
			func(c any) error {
				_, err := lockstep.NewPeer(*c.(*lockstep.PeerConfig), lockstepTransport{})
				return err
			}, merged(embedded, map[string]rule{
				"Player": limits(list(-1, 130), list(0, 129)), "Session": free("any number is a session"), "Have": limits(list(int64(-1), int64(1)), list(int64(0))), "Generation": limits(list(int64(-1)), list(int64(0), int64(1))),
				"ReceiveBuffer": limits(list(-1, 100, 1<<30+1, math.MaxInt), list(0, 1<<20)), "MaxSnapshot": numbers(1, math.MaxInt32), "Timeout": durations(4*50*time.Millisecond, year, true),
			})},
		{"link.Config", func() any { return &link.Config{} }, func(c any) error { _, err := link.New(*c.(*link.Config), linkHandler{}); return err }, map[string]rule{
			"Conversation": free("any number is one"), "Window": limits(list(-1, 1, 3, 32768), list(0, 2, 16384)), "MTU": numbers(263, 65507),
			"MinRTO": limits(list(time.Duration(-1), time.Millisecond-1, time.Second+1), list(time.Duration(0), time.Millisecond, time.Second)), "MaxRTO": limits(list(time.Duration(-1), time.Millisecond, time.Minute+1), list(time.Duration(0), 30*time.Millisecond, time.Minute)),
			"InitialRTO": limits(list(time.Duration(-1), time.Minute+1), list(time.Duration(0), time.Minute)), "Backoff": limits(list(-1.0, 0.9, 4.1, math.NaN()), list(0.0, 1.0, 4.0)),
			"AckDelay": limits(list(time.Second+1), list(time.Duration(0), time.Second, time.Duration(-1))), "PingInterval": durations(time.Millisecond, time.Hour, true),
		}},
		{"rollback.Config", func() any { return &rollback.Config{Players: 2, InputSize: 1} }, func(c any) error {
			_, err := rollback.New(*c.(*rollback.Config), rollbackGame{})
			return err
		}, map[string]rule{
			"Session": free("any number is a session"), "Players": limits(list(-1, 0, 1, 9), list(2, 8)), "Local": limits(list(-1, 2), list(0, 1)), "InputSize": limits(list(-1, 0, 33), list(1, 32)),
			"Delay": limits(list(17), list(0, 16, -1)), "MaxRollback": numbers(1, 16), "FrameTime": durations(time.Millisecond, time.Second, false), "DropAfter": durations(2*(time.Second/60), year, true),
			"MaxPacket": numbers(128, 1400), "SpectatorDelay": numbers(1, 512), "Event": function,
		}},
		{"ackbits.Config", func() any { return &ackbits.Config{} }, func(c any) error { _, err := ackbits.New(*c.(*ackbits.Config), nil); return err }, map[string]rule{
			"Window": limits(list(-1, 16, 33, 32768), list(0, 32, 16384)), "LossAfter": durations(time.Millisecond, time.Hour, false), "Smoothing": limits(list(-0.1, 1.1, math.NaN()), list(0.0, 0.1, 1.0)),
		}},
		{"netsim.Settings", func() any { return &netsim.Settings{} }, func(c any) error { return c.(*netsim.Settings).Validate() }, netRules("")},
		{"proxy.Config", func() any { return &proxy.Config{Listen: "127.0.0.1:0", To: "127.0.0.1:9"} }, func(c any) error {
			p, err := proxy.New(*c.(*proxy.Config))
			if err == nil {
				_ = p.Close()
			}
			return err
		}, merged(netRules("Up."), netRules("Down."), map[string]rule{
			"Listen": limits(list("nonsense", "127.0.0.1:99999"), list("127.0.0.1:0")), "To": limits(list("", "nonsense", "127.0.0.1:99999"), list("127.0.0.1:9")), "Seed": free("any number is a seed"),
			"MaxClients": numbers(1, 1<<20), "IdleTimeout": durations(time.Millisecond, century, false),
		})},
		{"session.Config", func() any { return &session.Config[int]{New: func(*driver.Conn) int { return 0 }} },
			func(c any) error { _, err := session.NewPlayers(*c.(*session.Config[int])); return err }, map[string]rule{
				"ID": function, "Keep": limits(list(time.Duration(-1), century+1), list(time.Duration(0), time.Duration(1), century)), "MaxAway": numbers(1, math.MaxInt32), "Refuse": either, "Keeps": function,
				"New": limits(list(nil), nil), "Rejoin": function, "Away": function, "Gone": function,
			}},
		{"session.RedialConfig", func() any {
			return &session.RedialConfig{Dial: func() (*driver.Driver, error) { return nil, nil }}
		}, func(c any) error { _, err := session.NewRedialer(*c.(*session.RedialConfig)); return err }, map[string]rule{
			"Dial": limits(list((func() (*driver.Driver, error))(nil)), nil), "Silence": limits(list(time.Duration(-1), 24*time.Hour+1), list(time.Duration(0), time.Duration(1), 24*time.Hour)), "Pause": limits(list(time.Duration(-1), 24*time.Hour+1), list(time.Duration(0), time.Duration(1), 24*time.Hour)),
			"MaxPause": limits(list(time.Duration(-1), 250*time.Millisecond-1, 24*time.Hour+1), list(time.Duration(0), 250*time.Millisecond, 24*time.Hour)), "GiveUp": function, "Failed": function,
		}},
		{"tokenserver.Config", func() any {
			return &tokenserver.Config{Key: netcode.Key{1}, Authenticate: func(*http.Request) (tokenserver.Player, error) { return tokenserver.Player{}, nil }, Servers: []netip.AddrPort{addr}}
		}, func(c any) error { _, err := tokenserver.New(*c.(*tokenserver.Config)); return err }, map[string]rule{
			"Key": limits(list(netcode.Key{}), nil), "ProtocolID": free("any number is an id"), "Authenticate": limits(list(nil), nil), "Place": function,
			"Servers":  limits(list(make([]netip.AddrPort, 1), noPort, many(addr, 33)), list([]netip.AddrPort(nil), many(addr, 32))),
			"Internal": limits(list(make([]netip.AddrPort, 1), noPort, many(addr, 33)), list([]netip.AddrPort(nil), []netip.AddrPort{addr})),
			"Life":     limits(list(time.Duration(-1)), list(time.Duration(0), time.Duration(1), time.Duration(math.MaxInt64))), "Timeout": free("negative is forever, and more than a token can say is the most that it can"),
			"Challenge": free("a header's text"), "Origins": limits(list([]string{"nonsense"}), list([]string{"*"}, []string{"https://play.example.com"})),
			"Rate": limits(list(-1.0, math.NaN()), list(0.0, 0.1, math.Inf(1))), "Burst": limits(list(-1), list(0, 1, math.MaxInt)), "TotalRate": limits(list(-1.0, math.NaN()), list(0.0, 0.1, math.Inf(1))),
			"MaxBody": limits(list(int64(-1)), list(int64(0), int64(1), int64(math.MaxInt64))), "MaxAddrs": limits(list(-1, 2), list(0, 3)), "ClientAddr": function,
			"Logger": free("nil is none"), "Now": function, "Rand": free("an interface, or nil"),
		}},
		{"inspect.Config", func() any { return &inspect.Config{} }, func(c any) error {
			return panicked(func() { inspect.New(watched, *c.(*inspect.Config)) })
		}, map[string]rule{
			"Title": free("a heading"), "Name": function, "Actors": function, "Properties": function, "Figures": function, "Past": free("nil is none"), "Token": free("any text is a token, none is none"), "Allow": function,
			"Interval": durations(time.Millisecond, time.Hour, false), "Samples": numbers(1, 14400), "Packets": numbers(1, 65536), "Viewers": numbers(1, 4096),
		}},
	}
}

// netRules is netsim.Settings', behind a prefix.
func netRules(prefix string) map[string]rule {
	rules := map[string]rule{}
	for k, v := range map[string]rule{
		"Loss": percent, "BurstLoss": limits(list(-0.1, 100.1, math.NaN(), 1.0), list(0.0)), "Dup": percent, "Order": percent, "Corrupt": percent, "BurstLength": limits(list(-1), list(0, 1)), // BurstLoss needs a length
		"LossMinSize": limits(list(-1), list(0, 1)), "LossMaxSize": limits(list(-1), list(0, 1)), "MTU": limits(list(-1), list(0, 1)), "MaxPackets": limits(list(-1), list(0, 1)), "MaxBytes": limits(list(-1), list(0, 1)),
		"OrderDelay": positive, "Lag": positive, "LagVariance": positive, "LagMin": limits(list(time.Duration(-1), time.Duration(1)), list(time.Duration(0))), "LagMax": positive, "Jitter": positive, "QueueDelay": positive,
		"Bandwidth": limits(list(-1.0, math.NaN()), list(0.0, 1.0)),
	} {
		rules[prefix+k] = v
	}
	return rules
}

var (
	percent  = limits(list(-0.1, 100.1, math.NaN()), list(0.0, 100.0))
	positive = limits(list(time.Duration(-1)), list(time.Duration(0), time.Duration(1)))
)

func many(a netip.AddrPort, n int) []netip.AddrPort {
	all := make([]netip.AddrPort, n)
	for i := range all {
		all[i] = a
	}
	return all
}

func handshakeRules() map[string]rule {
	return map[string]rule{
		"Protocol.Version": limits(list(uint8(5), uint8(0)), list(uint8(1), uint8(4))), "Protocol.MinVersion": limits(list(uint8(4)), list(uint8(0), uint8(3))), // the base has 3 and 1
		"Protocol.NetworkVersion": free("any number is a version"), "Protocol.Features": either, "Protocol.RuntimeFeatures": free("any bits"),
		"Protocol.Magic": limits(list(uint32(1)), list(uint32(0))), "Protocol.MagicBits": limits(list(-1, 33), list(0, 32)), "Protocol.OriginalReplies": either,
	}
}

// leaves returns the paths of the exported fields of a struct, those of the module's own structs inside included.
func leaves(t reflect.Type, prefix string) (paths []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct && strings.HasPrefix(f.Type.PkgPath(), strings.TrimSuffix(module, "/")):
			paths = append(paths, leaves(f.Type, prefix+f.Name+".")...)
		default:
			paths = append(paths, prefix+f.Name)
		}
	}
	return paths
}

func set(cfg any, path string, value any) {
	v := reflect.ValueOf(cfg).Elem()
	for _, name := range strings.Split(path, ".") {
		v = v.FieldByName(name)
	}
	if value == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(value))
}

// TestSettings: every field of every configuration has a range or a reason why it has none. A value below or above it is an error that
// names the field, where the configuration is given; values at its ends are fine. A field that has no rule here fails.
func TestSettings(t *testing.T) {
	for _, c := range settings(t) {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.make(c.base()), "the base")
			known := map[string]bool{}
			for _, path := range leaves(reflect.TypeOf(c.base()).Elem(), "") {
				known[path] = true
				r, ok := c.rules[path]
				if !ok {
					t.Errorf("%s has no rule here: which values are wrong, and who says so?", path)
					continue
				}
				field := cmp.Or(r.as, path[strings.LastIndex(path, ".")+1:])
				for _, v := range r.wrong {
					cfg := c.base()
					set(cfg, path, v)
					err := c.make(cfg)
					if err == nil {
						t.Errorf("%s %.100s is taken without a word", path, fmt.Sprint(v))
					} else if !names(err, field) {
						t.Errorf("%s %.100s: the error doesn't name it: %v", path, fmt.Sprint(v), err)
					}
				}
				for _, v := range r.right {
					cfg := c.base()
					set(cfg, path, v)
					if err := c.make(cfg); err != nil {
						t.Errorf("%s %.100s is fine, and refused: %v", path, fmt.Sprint(v), err)
					}
				}
				if r.free == "" && len(r.wrong)+len(r.right) == 0 {
					t.Errorf("%s has an empty rule", path)
				}
			}
			for path := range c.rules {
				if !known[path] {
					t.Errorf("there is a rule for %s, which isn't there", path)
				}
			}
		})
	}
}

// names reports whether an error says which field it is about.
func names(err error, field string) bool {
	return regexp.MustCompile(`\b(` + field + `)\b`).MatchString(err.Error())
}

// TestSettingsAreAllThere: a new configuration of these packages is in the table of TestSettings, or here with the reason why not.
func TestSettingsAreAllThere(t *testing.T) {
	listed := map[string]bool{
		"control.ServerConfig": true, "control.ClientConfig": true, "netconn.Protocol": true, "handshake.Protocol": true, "bunch.Protocol": true, "lockstep.Config": true, // within others
		"packetnotify.Config": true, // Notify.Init has no error; netconn.Config bounds it, and its doc says what AckRecords beyond the bounds stand for
	}
	for _, c := range settings(t) {
		listed[c.name] = true
	}
	packages := regexp.MustCompile(`^(netconn|netconn/driver|netconn/driver/(stream|capture|session)|netconn/inspect|netconn/udp/proxy|netconn/netcode/tokenserver|channel|channel/.*|netconn/(netcode|salted|handshake|udp|congestion|netsim)|packetnotify|packetnotify/ackbits|bunch)$`)
	goFiles(t, func(pkg, _ string, file *ast.File, _ *token.FileSet) {
		if !packages.MatchString(pkg) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !regexp.MustCompile(`^([A-Z]\w*)?(Config|Settings|Protocol|Options)$`).MatchString(spec.Name.Name) {
				return true
			}
			if _, ok := spec.Type.(*ast.StructType); ok && !listed[file.Name.Name+"."+spec.Name.Name] {
				t.Errorf("%s.%s isn't in the table of TestSettings", file.Name.Name, spec.Name.Name)
			}
			return true
		})
	})
}

// TestSettingsTogether: values that are fine alone and wrong together.
func TestSettingsTogether(t *testing.T) {
	flush := netconn.Bunchnet()
	flush.Notify = packetnotify.Config{WaitForFlush: true}
	for name, cfg := range map[string]netconn.Config{
		"PacketWindow 6144": {Protocol: flush},
		"has no Name":       {Protocol: netconn.Protocol{Bunch: bunch.Protocol{MaxPacket: 1200}}},
		"KeepAlive 200ms":   {Timeout: 100 * time.Millisecond},
		"KeepAlive 2s":      {Timeout: 3 * time.Second, KeepAlive: 2 * time.Second},
	} {
		cfg.LowLevelSend = func([]byte) {}
		_, err := netconn.New(cfg, 0, 1, 1)
		require.ErrorIs(t, err, netconn.ErrConfig)
		require.ErrorContains(t, err, name)
	}
}
