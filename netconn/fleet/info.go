package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// State is where a server stands.
type State string

// The states.
const (
	Starting State = "starting" // announced; nobody is placed there yet
	Ready    State = "ready"    // players are placed there
	Draining State = "draining" // nobody new is placed there; its players move on
	Stopped  State = "stopped"  // its announcement is being deleted; never announced
)

// Load is how busy a server is. It is for people and for PlacerConfig.Accept; seats are counted apart.
type Load struct {
	TickP99     time.Duration `json:"tick_p99"` // of the last seconds, in nanoseconds
	Connections int           `json:"connections"`
	BytesOut    int64         `json:"bytes_out"` // a second
	BytesIn     int64         `json:"bytes_in"`  // a second
}

// Info is a server's announcement. In the store it is JSON, at most MaxInfo bytes.
type Info struct {
	// ID is unique for each start of a server. NewServer makes it from ServerConfig.Name and 8 random bytes.
	ID string `json:"id"`
	// Addrs are the addresses that clients dial, in the order to try. Internal are those that the server knows as its own (see
	// driver.Netcode.Addrs), if they differ.
	Addrs    []netip.AddrPort `json:"addrs"`
	Internal []netip.AddrPort `json:"internal,omitempty"`
	// Region is the name by which clients measure latency. May be empty.
	Region string `json:"region,omitempty"`
	// Build is the server's build. Builds are those of clients that it takes; default its own.
	Build  string   `json:"build,omitempty"`
	Builds []string `json:"builds,omitempty"`
	// Schema is the hash of what both ends must agree on, such as actorrep.World.SchemaHash.
	Schema uint64 `json:"schema,omitempty"`
	// Capacity is the most players.
	Capacity int   `json:"capacity"`
	State    State `json:"state"`
	Load     Load  `json:"load"`
}

// MaxInfo is the most bytes of an announcement in the store.
const MaxInfo = 4 << 10

// MaxCapacity is the most players of a server, as many as a netcode.Server has slots.
const MaxCapacity = netcode.MaxSlots

// errInfo is an announcement that can't be.
var errInfo = errors.New("fleet: not an announcement")

// check returns what is wrong with an announcement, or nil.
func (i *Info) check() error {
	switch {
	case !validName(i.ID):
		return fmt.Errorf("%w: ID %q", errInfo, i.ID)
	case len(i.Addrs) == 0 || len(i.Addrs) > netcode.MaxServers || len(i.Internal) > netcode.MaxServers:
		return fmt.Errorf("%w: %d Addrs and %d Internal; 1 to %d are possible", errInfo, len(i.Addrs), len(i.Internal), netcode.MaxServers)
	case i.Capacity < 1 || i.Capacity > MaxCapacity:
		return fmt.Errorf("%w: Capacity %d; 1 to %d are possible", errInfo, i.Capacity, MaxCapacity)
	}
	for _, a := range slices.Concat(i.Addrs, i.Internal) {
		if !a.IsValid() || a.Addr().Zone() != "" || a.Port() == 0 {
			return fmt.Errorf("%w: address %v", errInfo, a)
		}
	}
	for _, a := range i.Addrs {
		if a.Addr().IsUnspecified() {
			return fmt.Errorf("%w: clients can't dial %v; announce the public address", errInfo, a)
		}
	}
	return nil
}

func (i *Info) encode() ([]byte, error) {
	b, err := json.Marshal(i)
	if err == nil && len(b) > MaxInfo {
		err = fmt.Errorf("%w: %d bytes; %d are possible", errInfo, len(b), MaxInfo)
	}
	return b, err
}

func parseInfo(id string, b []byte) (*Info, error) {
	if len(b) > MaxInfo {
		return nil, errInfo
	}
	var i Info
	if err := json.Unmarshal(b, &i); err != nil {
		return nil, fmt.Errorf("%w: %w", errInfo, err)
	}
	if err := i.check(); err != nil {
		return nil, err
	}
	if i.ID != id {
		return nil, fmt.Errorf("%w: ID %q below the key of %q", errInfo, i.ID, id)
	}
	return &i, nil
}

// takes reports whether clients of a build may join.
func (i *Info) takes(build string) bool {
	return build == "" || len(i.Builds) == 0 && build == i.Build || slices.Contains(i.Builds, build)
}

// maxBuilds is the most builds of an OtherBuild.
const maxBuilds = 16

// addBuilds adds the builds of clients that may join to those that are there.
func (i *Info) addBuilds(all []string) []string {
	more := i.Builds
	if len(more) == 0 {
		more = []string{i.Build}
	}
	for _, b := range more {
		if len(all) < maxBuilds && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// maxName is the most bytes of a name in a key.
const maxName = 96

// validName reports whether a name may be a part of a key: letters, digits, - and _.
func validName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// The keys of the store.
const (
	serverKey = "server."
	seatsKey  = "seats."
	partyKey  = "party."
	playerKey = "player."
	markKey   = "mark."
)
