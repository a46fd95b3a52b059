package simtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Script is all that happens to a game from outside. The zero value of everything but Run is a quiet run of one
// server and one client.
type Script struct {
	// Comment is lines at the top, for people.
	Comment []string
	// Seed decides about everything the script leaves open.
	Seed uint64
	// Run is how long the game goes on under faults, Settle how long after that it may take until all is
	// as it should be; default 60 s.
	Run, Settle time.Duration
	// Servers and Clients default to 1. Client i belongs to server i modulo Servers.
	Servers, Clients int
	// Options are the game's own, in order.
	Options []Option
	// Net is every client's link, in both directions, until a fault changes it.
	Net netsim.Settings
	// Faults in the order of their times.
	Faults []Fault
}

// Option is a setting of the game.
type Option struct{ Key, Value string }

// Option is the value of a key, or "".
func (s *Script) Option(key string) string {
	for _, o := range s.Options {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}

// Set adds an option, or changes it.
func (s *Script) Set(key, value string) {
	for i := range s.Options {
		if s.Options[i].Key == key {
			s.Options[i].Value = value
			return
		}
	}
	s.Options = append(s.Options, Option{key, value})
}

// Kind is what a fault is.
type Kind string

// The kinds of faults, by their verbs in a script.
const (
	Net    Kind = "net"    // a client's link, both directions, is Net for a while
	NetUp  Kind = "netup"  // only what it sends
	NetDn  Kind = "netdn"  // only what it gets
	Cut    Kind = "cut"    // nothing passes between Host and Other for a while
	CutOne Kind = "cutone" // nothing passes from Host to Other
	Rebind Kind = "rebind" // a client's address changes
	Pause  Kind = "pause"  // a host stops for a while, and goes on
	Crash  Kind = "crash"  // a host loses everything, and boots after a while
	Skew   Kind = "skew"   // a host's clock runs PPM parts per million faster from then on
)

// Kinds is all kinds of faults.
var Kinds = []Kind{Net, NetUp, NetDn, Cut, CutOne, Rebind, Pause, Crash, Skew}

// Fault is something that goes wrong at a time.
type Fault struct {
	At          time.Duration
	Kind        Kind
	Host, Other string
	For         time.Duration
	Net         netsim.Settings
	PPM         int
}

func (f *Fault) takesFor() bool   { return f.Kind != Rebind && f.Kind != Skew }
func (f *Fault) takesNet() bool   { return f.Kind == Net || f.Kind == NetUp || f.Kind == NetDn }
func (f *Fault) takesOther() bool { return f.Kind == Cut || f.Kind == CutOne }

// String is the fault as a line of a script.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %v %s %s", f.At, f.Kind, f.Host)
	if f.takesOther() {
		fmt.Fprintf(&b, " %s", f.Other)
	}
	if f.takesFor() {
		fmt.Fprintf(&b, " for %v", f.For)
	}
	if f.Kind == Skew {
		fmt.Fprintf(&b, " ppm=%d", f.PPM)
	}
	if f.takesNet() {
		b.WriteString(netText(f.Net))
	}
	return b.String()
}

// String is the script as text; Parse reads it.
func (s Script) String() string {
	var b strings.Builder
	for _, c := range s.Comment {
		fmt.Fprintf(&b, "# %s\n", c)
	}
	fmt.Fprintf(&b, "seed %d\nrun %v\nsettle %v\nservers %d\nclients %d\n", s.Seed, s.Run, s.Settle, s.Servers, s.Clients)
	for _, o := range s.Options {
		fmt.Fprintf(&b, "option %s %s\n", o.Key, o.Value)
	}
	fmt.Fprintf(&b, "net%s\n", netText(s.Net))
	for _, f := range s.Faults {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}

func (s Script) filled() Script {
	if s.Settle == 0 {
		s.Settle = 60 * time.Second
	}
	s.Servers, s.Clients = max(1, s.Servers), max(1, s.Clients)
	return s
}

// clone is a copy that shares nothing that changes.
func (s Script) clone() Script {
	s.Comment = append([]string(nil), s.Comment...)
	s.Options = append([]Option(nil), s.Options...)
	s.Faults = append([]Fault(nil), s.Faults...)
	return s
}
