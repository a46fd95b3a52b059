package exercise

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bunchnet/bunchnet/history"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/congestion"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// options is what a script's options say.
type options struct {
	preset, link, controller, way                                              string
	protocol                                                                   netconn.Protocol
	window, buffer, maxPacket, netSpeed, copies, bunches, churn, leave, actors int
	mayhem, adaptive, lazyAcks, checksum, messages, blocks, lockstep, liars    bool
	timeout, reorder, keepAlive, tick, serverTick                              time.Duration
	coding                                                                     netconn.Coding
}

func readOptions(s *simtest.Script) (o options, err error) {
	o = options{preset: "bunchnet", link: "salted", timeout: 4 * time.Second, tick: simtest.DefaultTick, serverTick: simtest.DefaultTick}
	texts := map[string]*string{"preset": &o.preset, "link": &o.link, "controller": &o.controller, "way": &o.way}
	numbers := map[string]*int{"netspeed": &o.netSpeed, "copies": &o.copies, "bunches": &o.bunches, "churn": &o.churn, "leave": &o.leave, "actors": &o.actors,
		"window": &o.window, "buffer": &o.buffer, "maxpacket": &o.maxPacket}
	flags := map[string]*bool{"adaptive": &o.adaptive, "lazyacks": &o.lazyAcks, "checksum": &o.checksum, "messages": &o.messages, "blocks": &o.blocks, "lockstep": &o.lockstep, "liars": &o.liars, "mayhem": &o.mayhem,
		"codingadaptive": &o.coding.Adaptive}
	times := map[string]*time.Duration{"timeout": &o.timeout, "reorder": &o.reorder, "keepalive": &o.keepAlive, "tick": &o.tick, "servertick": &o.serverTick}
	for _, opt := range s.Options {
		switch {
		case texts[opt.Key] != nil:
			*texts[opt.Key] = opt.Value
		case numbers[opt.Key] != nil:
			*numbers[opt.Key], err = strconv.Atoi(opt.Value)
		case opt.Key == "coding":
			o.coding.Repairs, err = strconv.ParseFloat(opt.Value, 64)
		case flags[opt.Key] != nil:
			*flags[opt.Key] = opt.Value != "0"
		case times[opt.Key] != nil:
			*times[opt.Key], err = time.ParseDuration(opt.Value)
		default:
			err = fmt.Errorf("exercise: no option is called %q", opt.Key)
		}
		if err != nil {
			return o, fmt.Errorf("exercise: option %s: %w", opt.Key, err)
		}
	}
	if o.protocol, err = presetOf(o.preset); err != nil {
		return o, err
	}
	if _, err = o.carrier(0); err != nil {
		return o, err
	}
	if o.window > 0 {
		o.protocol.PacketWindow = o.window
		if o.protocol.Notify.WaitForFlush {
			o.protocol.PacketWindow = min(o.window, history.Bits)
		}
	}
	if o.buffer > 0 {
		o.protocol.ReliableBuffer = o.buffer
	}
	o.protocol.Bunch.MaxPacket = o.maxPacket
	return o, nil
}

// Presets, Links and Controllers is what there is to choose from.
var (
	Presets     = []string{"bunchnet", "unreal427", "unreal51", "unreal53"}
	Links       = []string{"unreal427", "unreal51", "unreal53", "salted", "netcode"}
	Controllers = []string{"bucket", "adaptive", "goodbad"}
)

func presetOf(name string) (netconn.Protocol, error) {
	switch name {
	case "bunchnet":
		return netconn.Bunchnet(), nil
	case "unreal427":
		return netconn.Unreal427(), nil
	case "unreal51":
		return netconn.Unreal51(), nil
	case "unreal53":
		return netconn.Unreal53(false), nil
	}
	return netconn.Protocol{}, fmt.Errorf("exercise: no preset is called %q", name)
}

// carrier is what carries the datagrams of a client's n-th dial; 0 is UDP.
func (o *options) carrier(n int) (simtest.Carrier, error) {
	switch o.way {
	case "", "udp":
		return 0, nil
	case "mixed":
		if n %= len(simtest.Carriers) + 1; n > 0 {
			return simtest.Carriers[n-1], nil
		}
		return 0, nil
	}
	for _, c := range simtest.Carriers {
		if c.String() == o.way {
			return c, nil
		}
	}
	return 0, fmt.Errorf("exercise: no way is called %q", o.way)
}

// mayCode reports whether a preset over a link may have coding.
func mayCode(preset, link string) bool {
	return preset == "bunchnet" && (link == "salted" || link == "netcode")
}

// serverOpens reports whether only the server opens channels: Unreal's takes the lowest free index.
func (o *options) serverOpens() bool { return o.protocol.FirstFree }

const protocolID = 0x62756e63

var key = netcode.Key{1, 2, 3}

// linkOf is the link below the connections of one driver. token is a netcode client's.
func (o *options) linkOf(token []byte) (driver.Link, error) {
	switch o.link {
	case "unreal427":
		return byHand(driver.PlainUnreal427()), nil
	case "unreal51":
		return byHand(driver.PlainUnreal51()), nil
	case "unreal53":
		return byHand(driver.PlainUnreal53()), nil
	case "salted":
		return driver.PlainSalted{ProtocolID: protocolID}, nil
	case "netcode":
		return driver.Netcode{ProtocolID: protocolID, Key: key, Token: token}, nil
	}
	return nil, fmt.Errorf("exercise: no link is called %q", o.link)
}

// byHand is a preset's handshake as one's own, which goes with the packets of every preset.
func byHand(l driver.PlainUnreal) driver.Link {
	return driver.PlainUnreal{Handshake: l.Handshake, LenientIDs: l.LenientIDs}
}

// controllerOf makes the pace of a connection; nil for the preset's.
func (o *options) controllerOf() (func() congestion.Controller, error) {
	switch o.controller {
	case "":
		return nil, nil
	case "bucket":
		return func() congestion.Controller { return congestion.NewTokenBucket(max(o.netSpeed, 20_000)) }, nil
	case "goodbad":
		return func() congestion.Controller { return congestion.NewGoodBad(1200) }, nil
	case "adaptive":
		if _, err := congestion.NewAdaptive(congestion.AdaptiveConfig{}); err != nil {
			return nil, err
		}
		return func() congestion.Controller {
			c, _ := congestion.NewAdaptive(congestion.AdaptiveConfig{}) // tried above
			return c
		}, nil
	}
	return nil, fmt.Errorf("exercise: no controller is called %q", o.controller)
}

// partBits is the least payload of a part of a large bunch.
func (o *options) partBits() int {
	if o.maxPacket == 0 {
		return 7000
	}
	return 8 * (o.maxPacket - 100 - o.codingBytes())
}

// codingBytes is what coding leaves less of a packet for bunches.
func (o *options) codingBytes() int {
	if o.coding.Repairs == 0 {
		return 0
	}
	return 40
}

// delay is how long acks wait for company.
func (o *options) delay() time.Duration {
	if o.lazyAcks {
		return 20 * time.Millisecond
	}
	return 0
}
