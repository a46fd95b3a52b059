package migrate

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// name is that of the channel, which a player opens.
var name = bunch.Name{Index: 290}

// Messages are reliable bunches: a kind, and
//
//	from the host    plan     epoch | the player's id | 1 standing | players: their ids | candidates: id, address | key, of none or 32 bytes
//	                 tokens   candidate | tokensEach of 2048 bytes
//	                 chunk    number | bytes of the checkpoint | where these begin | the rest
//	                 leave
//	from a player    offer    port, 0 for none | 1 when it needs new tokens, 2 when it counts for this host, 4 before its key as a candidate of the host before
const (
	kindPlan = 1 + iota
	kindTokens
	kindChunk
	kindLeave
	kindOffer
)

// The bounds.
const (
	maxPlayers    = 1024
	maxCandidates = 8
	tokensEach    = 3 // dials of one candidate
	chunkBytes    = 1000
	maxOffer      = 8 + netcode.KeyBytes

	offerAgain = 1
	offerVotes = 2
	offerKey   = 4
)

var errFormat = errors.New("migrate: a malformed message")

// plan is what a host tells of the succession.
type plan struct {
	epoch      uint32
	you        uint64
	standing   bool // the host hears enough of its players
	players    []uint64
	candidates []candidate
	key        netcode.Key // zero for who is no candidate
}

type candidate struct {
	id   uint64
	addr netip.AddrPort
}

// keep keeps a candidate's key while the host, which hasn't heard of it yet, lists the candidate without one.
func (p *plan) keep(key netcode.Key) {
	if p.key.IsZero() && slices.ContainsFunc(p.candidates, func(c candidate) bool { return c.id == p.you }) {
		p.key = key
	}
}

func (p *plan) append(b []byte) []byte {
	b = append(b, kindPlan)
	b = binary.AppendUvarint(b, uint64(p.epoch))
	b = binary.LittleEndian.AppendUint64(b, p.you)
	b = append(b, flag(p.standing, 1))
	b = binary.AppendUvarint(b, uint64(len(p.players)))
	for _, id := range p.players {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	b = binary.AppendUvarint(b, uint64(len(p.candidates)))
	for _, c := range p.candidates {
		b = binary.LittleEndian.AppendUint64(b, c.id)
		addr, _ := c.addr.MarshalBinary()
		b = appendText(b, addr)
	}
	if p.key.IsZero() {
		return appendText(b, nil)
	}
	return appendText(b, p.key[:])
}

// plan reads one.
func (r *reader) plan() (p plan) {
	epoch := r.uvarint()
	p.epoch, p.you = uint32(epoch), r.uint64()
	p.standing = r.flag()
	for range r.count(maxPlayers, 8) {
		p.players = append(p.players, r.uint64())
	}
	for range r.count(maxCandidates, 9) {
		c := candidate{id: r.uint64()}
		if err := c.addr.UnmarshalBinary(r.text()); err != nil || !c.addr.IsValid() || c.addr.Port() == 0 {
			r.fail("a candidate's address is malformed")
		}
		p.candidates = append(p.candidates, c)
	}
	key := r.text()
	if len(key) > 0 && copy(p.key[:], key) != len(key) || len(key) > 0 && len(key) != len(p.key) || epoch>>32 != 0 {
		r.fail("a key of %d bytes or epoch %d is out of range", len(key), epoch)
	}
	return p
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) flag() bool {
	b := r.bytes(1)
	if b != nil && b[0] > 1 {
		r.fail("a flag of %d, not 0 or 1", b[0])
	}
	return b != nil && b[0] == 1
}

// done is the error, or that something is left.
func (r *reader) done() error {
	if r.err == nil && len(r.data) > 0 {
		r.fail("%d bytes too many", len(r.data))
	}
	return r.err
}

// read takes a bunch's bytes.
func read(in *bunch.In) reader {
	b := make([]byte, in.Data.Remaining()/8)
	in.Data.ReadBytes(b)
	return reader{kind: errFormat, data: b}
}

// send sends a message, and reports whether there was room.
func send(ch *channel.Channel, b []byte) bool {
	_, err := ch.SendBunch(&bunch.Out{Data: b, Reliable: true, NoMerge: true})
	return err == nil
}

// moved is the words with which a player leaves a host that it has lost.
const moved = "migrate: gone to the next host"

// The defaults.
const (
	defaultSilence    = 700 * time.Millisecond
	defaultTurn       = 300 * time.Millisecond
	defaultWait       = 3 * time.Second
	defaultInterval   = time.Second
	defaultCheckpoint = 1 << 20
	mostCheckpoint    = 64 << 20
	defaultRate       = 256 << 10
	defaultCandidates = 3
)
