package simtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// Script holds the hosts, links and faults of a run. If all fields but Run are zero, it is a run of one server and one client without faults.
type Script struct {
	// Comment holds the lines of text at the top.
	Comment []string
	// Seed determines everything that the script leaves open.
	Seed uint64
	// Run is how long the game runs with faults. Settle is how long it may take after that until Game.Pending returns "". Default of Settle: 60 s.
	Run, Settle time.Duration
	// Servers and Clients are the numbers of hosts. Default of each: 1. Client i belongs to server i modulo Servers.
	Servers, Clients int
	// Options holds the game's own settings, in order.
	Options []Option
	// Net is the link of every client, in both directions, until a fault changes it.
	Net netsim.Settings
	// Faults holds the faults in the order of their times.
	Faults []Fault
}

// Option is a setting of the game in a script. Its meaning is the game's.
type Option struct{ Key, Value string }

// Option returns the value of an option, or "".
func (s *Script) Option(key string) string {
	for _, o := range s.Options {
		if o.Key == key {
			return o.Value
		}
	}
	return ""
}

// Set adds an option or changes its value.
func (s *Script) Set(key, value string) {
	for i := range s.Options {
		if s.Options[i].Key == key {
			s.Options[i].Value = value
			return
		}
	}
	s.Options = append(s.Options, Option{key, value})
}

// Kind is the kind of a fault.
type Kind string

// The kinds of faults, by their verbs in a script.
const (
	Net    Kind = "net"    // for a while a client's link has the settings Fault.Net, in both directions
	NetUp  Kind = "netup"  // the same for what the client sends
	NetDn  Kind = "netdn"  // the same for what the client receives
	Cut    Kind = "cut"    // nothing passes between Host and Other for a while
	CutOne Kind = "cutone" // nothing passes from Host to Other
	Rebind Kind = "rebind" // a client's address changes
	Pause  Kind = "pause"  // a host stops for a while, then goes on
	Crash  Kind = "crash"  // a host's program ends at once; the host boots after a while
	Skew   Kind = "skew"   // from then on a host's clock runs PPM parts per million faster
)

// Kinds lists all kinds of faults.
var Kinds = []Kind{Net, NetUp, NetDn, Cut, CutOne, Rebind, Pause, Crash, Skew}

// Fault is one thing that goes wrong, and when. Which fields have a meaning depends on Kind.
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

// String returns the fault as a line of a script.
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

// String returns the script as text that Parse reads.
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
