package mesh

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
)

// Bounds of a Keeper.
const (
	maxWaiting   = 1024 // callers of Keep
	maxActorOps  = 128  // of the store, under way at a time
	maxZoneOps   = 48   // the same. All together are less than natskv.MaxOps, and this server's lease has room
	maxPageOps   = 16   // the same
	maxEndOps    = 24   // the same
	maxSaves     = 32   // states in a Step
	pageIDs      = 256  // actors in a page of the list of a server's actors
	claimEpochs  = 3    // by which a claim's epoch is above that of the record: one that was given, one that came back, and its own
	keepVersion  = 1
	splitVersion = 2 // of a zone that is split
	leaseVersion = 4
	splitBeats   = 1 << 40 // the beats of a server that knows zones that are split are above it. Releases before can read its lease
	maxTenancies = 1 << 47 // of a zone: those of maxCells together fit in the epoch of a Table
	maxLease     = time.Hour
	maxRecord    = MaxActorState + 1024
	maxPageBytes = 8 + 5*pageIDs
)

// leaseValue is the value of a server's lease.
type leaseValue struct {
	over   bool
	leaves bool // Leave was called
	beat   uint64
	seen   uint64
	length time.Duration // in milliseconds
	away   time.Duration // the same
	load   uint64        // load.told; 0 without KeeperConfig.Weight
	closed uint64        // of the rounds in which it asked to go on without the store, the last that it doesn't rely on
	heir   string
}

func (v *leaseValue) append(b []byte) []byte {
	b = append(b, leaseVersion, byte(b2u(v.over)|b2u(v.leaves)<<1))
	for _, n := range [...]uint64{v.beat, v.seen, milliseconds(v.length), milliseconds(v.away), v.closed, v.load} {
		b = binary.AppendUvarint(b, n)
	}
	return appendBytes(b, []byte(v.heir))
}

func (v *leaseValue) read(b []byte) bool {
	r := reader{b: b}
	version, flags := r.byte(), r.byte()
	*v = leaseValue{over: flags&1 > 0, leaves: flags&2 > 0, beat: r.number(), seen: r.number()}
	v.length, v.away, v.closed, v.load = r.milliseconds(), r.milliseconds(), r.number(), r.number()
	v.heir = string(r.bytes(maxID))
	return r.end() && version == leaseVersion && flags <= 3
}

// milliseconds rounds up.
func milliseconds(d time.Duration) uint64 {
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}

func (r *reader) milliseconds() time.Duration {
	n := r.number()
	if n > uint64(maxLease/time.Millisecond) {
		r.bad, n = true, 0
	}
	return time.Duration(n) * time.Millisecond
}

// zoneValue is the value of a zone's key.
type zoneValue struct {
	epoch uint64 // how often it was split or merged, or changed hands, or a part of it
	parts []part
}

func (v *zoneValue) append(b []byte) []byte {
	if len(v.parts) == 1 {
		b = binary.AppendUvarint(append(b, keepVersion), v.epoch)
		return appendBytes(b, []byte(v.parts[0].holder))
	}
	b = binary.AppendUvarint(append(b, splitVersion), v.epoch)
	for _, p := range v.parts {
		b = appendBytes(append(b, p.depth<<1|b2u(p.calm)), []byte(p.holder))
	}
	return b
}

func (v *zoneValue) read(b []byte) bool {
	r := reader{b: b}
	version := r.byte()
	*v = zoneValue{epoch: r.number()}
	if version == keepVersion {
		v.parts = wholly(string(r.bytes(maxID)))
	}
	for version == splitVersion && len(r.b) > 0 && !r.bad && len(v.parts) <= maxParts {
		b := r.byte()
		v.parts = append(v.parts, part{b >> 1, b&1 > 0, string(r.bytes(maxID))})
	}
	return r.end() && v.epoch < maxTenancies && len(v.parts) <= maxParts && (len(v.parts) > 1) == (version == splitVersion) && fits(v.parts) &&
		!slices.ContainsFunc(v.parts, func(p part) bool { return p.holder == "" })
}

// actorRecord is an actor as the store has it.
type actorRecord struct {
	epoch  uint32
	write  uint64
	holder string
	class  string
	state  []byte
}

func (v *actorRecord) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(append(b, keepVersion), uint64(v.epoch)), v.write)
	return appendBytes(appendBytes(appendBytes(b, []byte(v.holder)), []byte(v.class)), v.state)
}

func (v *actorRecord) read(b []byte) bool {
	r := reader{b: b}
	version := r.byte()
	*v = actorRecord{epoch: r.number32(), write: r.number()}
	v.holder, v.class, v.state = string(r.bytes(maxID)), string(r.bytes(maxClassName)), r.bytes(MaxActorState)
	return r.end() && version == keepVersion && v.epoch > 0 && v.epoch < maxEpoch && len(b) <= maxRecord
}

func appendPage(b []byte, ids []netguid.GUID) []byte {
	b = append(b, keepVersion)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

func readPage(b []byte) (ids []netguid.GUID, ok bool) {
	r := reader{b: b}
	version := r.byte()
	for len(r.b) > 0 && !r.bad && len(ids) < pageIDs {
		ids = append(ids, netguid.GUID(r.number32()))
	}
	return ids, r.end() && version == keepVersion && len(b) <= maxPageBytes
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
