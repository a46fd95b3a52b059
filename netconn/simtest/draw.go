package simtest

import (
	"cmp"
	"fmt"
	"sort"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Profile bounds the scripts that Draw makes. The zero value has the defaults.
type Profile struct {
	// MaxServers and MaxClients are the most hosts of each. Defaults: 1 and 4.
	MaxServers, MaxClients int
	// MinRun and MaxRun bound Script.Run. Defaults without a MaxRun: 2 s, and 8 s or MinRun, if that is longer.
	MinRun, MaxRun time.Duration
	// MaxFaults is the most faults. Default 8.
	MaxFaults int
	// Kinds lists the kinds of faults to draw from. Default: all.
	Kinds []Kind
	// Corrupt allows links that flip bits. It is for games whose packets have a checksum or are encrypted.
	Corrupt bool
}

// Draw makes a script from a seed: the hosts, the links and the faults, without options.
func Draw(seed uint64, p Profile) Script {
	if p.MaxServers == 0 {
		p.MaxServers = 1
	}
	if p.MaxClients == 0 {
		p.MaxClients = 4
	}
	if p.MaxRun == 0 {
		p.MinRun = cmp.Or(p.MinRun, 2*time.Second)
		p.MaxRun = max(8*time.Second, p.MinRun)
	}
	if p.MaxFaults == 0 {
		p.MaxFaults = 8
	}
	if p.Kinds == nil {
		p.Kinds = Kinds
	}
	d := drawer{NewRand(seed, 0x64726177), p}
	s := Script{Seed: seed, Servers: 1 + d.IntN(p.MaxServers), Clients: 1 + d.IntN(p.MaxClients)}
	s.Run = d.duration(p.MinRun, p.MaxRun)
	s.Net = d.link(d.IntN(4))
	if d.IntN(4) > 0 && len(p.Kinds) > 0 {
		for range 1 + d.IntN(p.MaxFaults) {
			s.Faults = append(s.Faults, d.fault(&s))
		}
	}
	sort.SliceStable(s.Faults, func(i, j int) bool { return s.Faults[i].At < s.Faults[j].At })
	return s.filled()
}

type drawer struct {
	Rand
	p Profile
}

func (d *drawer) duration(lo, hi time.Duration) time.Duration {
	return (lo + time.Duration(d.Int64N(int64(hi-lo)+1))).Round(time.Millisecond)
}

// percent is up to so much, in tenths.
func (d *drawer) percent(upTo int) float64 { return float64(d.IntN(upTo*10+1)) / 10 }

// link is a link of a badness from 0 to 3.
func (d *drawer) link(badness int) (s netsim.Settings) {
	s.Lag = d.duration(0, 60*time.Millisecond)
	if badness == 0 {
		return s
	}
	s.LagVariance = d.duration(0, s.Lag)
	worst := []int{0, 5, 20, 50}[badness]
	for range badness {
		switch d.IntN(8) {
		case 0, 1:
			s.Loss = d.percent(worst)
		case 2:
			s.BurstLoss, s.BurstLength = d.percent(max(1, worst/5)), 1+d.IntN(40)
		case 3:
			s.Dup = d.percent(worst)
		case 4:
			s.Order, s.OrderDelay = d.percent(worst), d.duration(time.Millisecond, 200*time.Millisecond)
		case 5:
			s.Jitter = d.duration(0, 80*time.Millisecond)
		case 6:
			s.Bandwidth, s.QueueDelay = float64(100_000*(1+d.IntN(40))), d.duration(50*time.Millisecond, time.Second)
		case 7:
			if d.p.Corrupt {
				s.Corrupt = d.percent(worst)
			}
		}
	}
	return s
}

func (d *drawer) fault(s *Script) Fault {
	f := Fault{Kind: d.p.Kinds[d.IntN(len(d.p.Kinds))], At: d.duration(0, s.Run)}
	client := fmt.Sprintf("client%d", 1+d.IntN(s.Clients))
	server := fmt.Sprintf("server%d", 1+d.IntN(s.Servers))
	f.Host = client
	if d.IntN(4) == 0 && !f.takesNet() && f.Kind != Rebind {
		f.Host = server
	}
	if f.takesOther() {
		f.Other = server
		if f.Host == server {
			f.Other = client
		}
	}
	if f.takesNet() {
		f.Net = d.link(1 + d.IntN(3))
		if d.IntN(10) == 0 {
			f.Net.MTU = 400 + d.IntN(1100)
		}
	}
	switch {
	case f.Kind == Skew:
		f.PPM = d.IntN(20_001) - 10_000
	case f.takesFor():
		f.For = d.duration(10*time.Millisecond, 3*time.Second)
	}
	return f
}
