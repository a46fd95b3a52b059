package lockstep

import (
	"encoding/binary"
	"time"

	"github.com/bunchnet/bunchnet/channel/lockstep/internal/wire"
)

type packetType uint8

const (
	typeHello   packetType = 1
	typeWelcome packetType = 2
	typeStream  packetType = 3
	typeInput   packetType = 4
	typeDenied  packetType = 5
	// typeChallenge answers a Hello without a proof.
	typeChallenge packetType = 6
	// typeReady accepts a setup.
	typeReady packetType = 7
	// typeParts has the parts' hashes of a turn; the host answers with the turn's number.
	typeParts packetType = 8
)

// DenyReason is why a host refuses a session.
type DenyReason uint8

const (
	// DenyVersion: the peer's Config, Protocol or wire version differs from the host's.
	DenyVersion DenyReason = 1
	// DenyTooOld: the turns the peer needs are no longer in the log, or it has those of a Generation that the host doesn't know, and there is no snapshot.
	DenyTooOld DenyReason = 2
	// DenyAhead: the peer has executed more turns than the host has.
	DenyAhead DenyReason = 3
	// DenyDropped: Host.Drop was called.
	DenyDropped DenyReason = 4
	// DenyStale: the player has begun a session with a higher number, or has ended this one.
	DenyStale DenyReason = 5
	// DenyUnknown: the host doesn't know the session, as after its restart. Begin a new one.
	DenyUnknown DenyReason = 6
	// DenySnapshot: the peer needs a snapshot that is larger than its MaxSnapshot.
	DenySnapshot DenyReason = 7
	// DenyOldHost: the peer has played with a later host of the same game; this one is out of date.
	DenyOldHost DenyReason = 8
)

// noHold stands for a stamp that isn't known.
const noHold = 0xffff

// envelope is what each packet begins with. session is the peer's number for it in a Hello and in all that
// the host sends, and otherwise the key of the welcome.
type envelope struct {
	typ     packetType
	player  int
	session uint32
}

func (e envelope) append(dst []byte) []byte {
	dst = append(dst, byte(e.typ), byte(e.player))
	return binary.LittleEndian.AppendUint32(dst, e.session)
}

func readEnvelope(r *wire.Reader) (e envelope) {
	e.typ, e.player, e.session = packetType(r.Uint8()), int(r.Uint8()), r.Uint32()
	return e
}

// hello asks for a session.
type hello struct {
	agreement   uint32
	proof       uint64 // of the challenge; 0 before
	have        int64  // turns
	maxSnapshot int64
	generation  int64 // of the host with which they were executed
}

func (h hello) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, wireVersion), h.agreement)
	dst = binary.LittleEndian.AppendUint64(dst, h.proof)
	dst = binary.AppendUvarint(dst, uint64(h.have))
	dst = binary.AppendUvarint(dst, uint64(h.maxSnapshot))
	return binary.AppendUvarint(dst, uint64(h.generation))
}

// readHello reads no further than the version when that isn't ours.
func readHello(r *wire.Reader) (h hello, version uint8, ok bool) {
	version = r.Uint8()
	if version != wireVersion {
		return h, version, !r.Bad
	}
	h.agreement, h.proof, h.have, h.maxSnapshot, h.generation = r.Uint32(), r.Uint64(), r.Count(), r.Count(), r.Count()
	return h, version, r.Done()
}

// welcome says what the stream of the session begins with.
type welcome struct {
	key        uint32 // the peer's packets bear it
	base       int64  // position of the stream's first byte; above all that were sent before
	version    int64  // of the setup; 0 for none
	setup      int    // bytes of it before all else
	start      int64  // turn before which the stream's turns begin
	snapshot   int    // bytes of it before the first turn
	delay      int    // before start
	active     uint64
	life       int64 // of the player's first Joined event in this session
	generation int64 // of the host
}

func (w welcome) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, w.key)
	dst = binary.AppendUvarint(dst, uint64(w.base))
	dst = binary.AppendUvarint(dst, uint64(w.version))
	dst = binary.AppendUvarint(dst, uint64(w.setup))
	dst = binary.AppendUvarint(dst, uint64(w.start))
	dst = binary.AppendUvarint(dst, uint64(w.snapshot))
	dst = append(dst, byte(w.delay))
	dst = binary.AppendUvarint(dst, w.active)
	dst = binary.AppendUvarint(dst, uint64(w.life))
	return binary.AppendUvarint(dst, uint64(w.generation))
}

func readWelcome(r *wire.Reader) (w welcome, ok bool) {
	w.key, w.base, w.version, w.setup = r.Uint32(), r.Count(), r.Count(), int(min(r.Count(), 1<<31-1))
	w.start, w.snapshot = r.Count(), int(min(r.Count(), 1<<31-1))
	w.delay, w.active, w.life, w.generation = int(r.Uint8()), r.Uvarint(), r.Count(), r.Count()
	return w, r.Done()
}

// stream carries a piece of the session's stream to a peer.
type stream struct {
	inputs  int64 // the next turn whose input the host lacks
	hashes  int64 // the next turn whose hash the host lacks
	stamp   uint16
	waiting uint64 // players whose input the host waits for
	offset  int64
	data    []byte
}

func (s stream) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.inputs))
	dst = binary.AppendUvarint(dst, uint64(s.hashes))
	dst = binary.LittleEndian.AppendUint16(dst, s.stamp)
	dst = binary.AppendUvarint(dst, s.waiting)
	return binary.AppendUvarint(dst, uint64(s.offset)) // data is appended by the caller
}

func readStream(r *wire.Reader) (s stream, ok bool) {
	s.inputs, s.hashes = r.Count(), r.Count()
	s.stamp, s.waiting, s.offset = r.Uint16(), r.Uvarint(), r.Count()
	s.data = r.P
	return s, !r.Bad
}

// input carries commands and hashes to the host.
type input struct {
	received  int64 // bytes of the stream
	executed  int64 // turns
	stamp     uint16
	hold      uint16 // ms since the stream packet with stamp came; noHold: none came
	life      int64  // the player's; 0 when not in the game
	first     int64  // turn of the first input
	count     int
	inputs    []byte // count times a length and so many bytes
	firstHash int64  // turn of the first hash
	hashes    []byte // 8 bytes each
}

// appendHead appends all before the inputs.
func (in *input) appendHead(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(in.received))
	dst = binary.AppendUvarint(dst, uint64(in.executed))
	dst = binary.LittleEndian.AppendUint16(dst, in.stamp)
	dst = binary.LittleEndian.AppendUint16(dst, in.hold)
	dst = binary.AppendUvarint(dst, uint64(in.life))
	return binary.AppendUvarint(dst, uint64(in.first))
}

// readInput checks all of it before anything is believed.
func readInput(r *wire.Reader, c *Config) (in input, err error) {
	in.received, in.executed = r.Count(), r.Count()
	in.stamp, in.hold, in.life = r.Uint16(), r.Uint16(), r.Count()
	in.first, in.count = r.Count(), int(r.Uint8())
	in.inputs = r.P
	for range in.count {
		size := r.Uvarint()
		if size > uint64(c.MaxInput) {
			return in, ErrOversize
		}
		if !checkInput(r.Take(int(size))) {
			r.Bad = true
		}
	}
	in.inputs = in.inputs[:len(in.inputs)-len(r.P)]
	in.firstHash = r.Count()
	in.hashes = r.P
	if r.Bad || len(r.P)%8 != 0 {
		return in, ErrMalformed
	}
	return in, nil
}

// held is hold as a time.
func (in *input) held() time.Duration { return time.Duration(in.hold) * time.Millisecond }
