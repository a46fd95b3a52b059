package inspect

import (
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// State is the fate of a packet.
type State uint8

// The states. A sent packet is Sent until it is Acked or Lost; a received one Received.
const (
	Building State = iota
	Sent
	Acked
	Lost
	Received
)

var stateNames = []string{"building", "sent", "acked", "lost", "received"}

// String returns the state's name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// MarshalText returns the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Bunch is one bunch of a Packet.
type Bunch struct {
	Channel  uint32
	Bits     uint32
	Sequence uint16 // on the wire, when Reliable
	Reliable bool
	Open     bool `json:",omitempty"`
	Close    bool `json:",omitempty"`
	Partial  bool `json:",omitempty"`
	Resent   bool `json:",omitempty"` // a packet with it was lost before
}

// shownBunches bounds the bunches that are kept of a packet.
const shownBunches = 8

// Packet is one packet of a connection.
type Packet struct {
	ID      int64
	At      time.Duration
	RTT     time.Duration `json:",omitempty"`
	Bytes   uint32
	State   State
	Bunches []Bunch // at most 8
	More    int     `json:",omitempty"` // bunches beyond these
}

// record is a Packet that is reused.
type record struct {
	id      int64
	at, rtt time.Duration
	bytes   uint32
	n, more uint16
	state   State
	used    bool
	bunches [shownBunches]Bunch
}

func (r *record) packet() Packet {
	return Packet{ID: r.id, At: r.at, RTT: r.rtt, Bytes: r.bytes, State: r.state, Bunches: append([]Bunch{}, r.bunches[:r.n]...), More: int(r.more)}
}

// packets is the last packets of one direction, by id.
type packets struct {
	ring []record
	last int64
}

// at is the record of a packet, begun when it is new; nil when it is older than the ring.
func (p *packets) at(id int64) *record {
	r := &p.ring[uint64(id)%uint64(len(p.ring))]
	if r.used && r.id == id {
		return r
	}
	if r.used && r.id > id {
		return nil
	}
	*r = record{id: id, used: true}
	p.last = max(p.last, id)
	return r
}

// known is a packet's record if it is still there.
func (p *packets) known(id int64) *record {
	if r := &p.ring[uint64(id)%uint64(len(p.ring))]; r.used && r.id == id {
		return r
	}
	return nil
}

// newest is up to n packets, newest first, without those not sent yet.
func (p *packets) newest(n int) []Packet {
	list := []Packet{}
	for id := p.last; id > p.last-int64(len(p.ring)) && len(list) < n; id-- {
		if r := p.known(id); r != nil && r.state != Building {
			list = append(list, r.packet())
		}
	}
	return list
}

// Sample holds the values of a connection at one moment, for the curves.
type Sample struct {
	At             time.Duration
	RTT, Jitter    time.Duration
	InLoss         float32 // 0 to 1
	OutLoss        float32
	InRate         float32 // bytes a second
	OutRate        float32
	InFlight       int32 // packets
	QueuedReliable int32
}

// history is what is remembered of a connection.
type history struct {
	sent, received packets
	samples        []Sample // a ring
	sampled        int
	lost           [64]Bunch // reliable ones of lost packets, the latest; a ring
	lostN          int
	live           bool // still there at the last sampling
	addr           netip.AddrPort
	name           string
}

func newHistory(cfg *Config) *history {
	return &history{sent: packets{ring: make([]record, cfg.Packets)}, received: packets{ring: make([]record, cfg.Packets)}, samples: make([]Sample, cfg.Samples)}
}

func (h *history) sample(s Sample) {
	h.samples[h.sampled%len(h.samples)] = s
	h.sampled++
}

// curve is the samples, oldest first.
func (h *history) curve() []Sample {
	list := []Sample{}
	for i := max(0, h.sampled-len(h.samples)); i < h.sampled; i++ {
		list = append(list, h.samples[i%len(h.samples)])
	}
	return list
}

// trace takes an event of the connection.
func (h *history) trace(e *nettrace.Event) {
	var r *record
	switch e.Kind {
	case nettrace.BunchSent:
		if r = h.sent.at(e.PacketID); r != nil {
			h.bunch(r, e, true)
		}
	case nettrace.PacketSent:
		if r = h.sent.at(e.PacketID); r != nil {
			r.at, r.bytes, r.state = e.At, uint32(e.A), Sent
		}
	case nettrace.PacketAcked:
		if r = h.sent.known(e.PacketID); r != nil {
			r.state, r.rtt = Acked, time.Duration(e.A)
		}
	case nettrace.PacketNak:
		if r = h.sent.known(e.PacketID); r != nil {
			r.state = Lost
			h.lose(r)
		}
	case nettrace.PacketReceived:
		if r = h.received.at(e.PacketID); r != nil {
			r.at, r.bytes, r.state = e.At, uint32(e.A), Received
		}
	case nettrace.BunchReceived:
		if r = h.received.at(e.PacketID); r != nil {
			h.bunch(r, e, false)
		}
	}
}

func (h *history) bunch(r *record, e *nettrace.Event, sent bool) {
	if r.n == shownBunches {
		r.more++
		return
	}
	b := Bunch{Channel: e.ChIndex, Bits: e.Bits, Sequence: uint16(e.ChSequence), Reliable: e.A&nettrace.Reliable != 0,
		Open: e.A&nettrace.Open != 0, Close: e.A&nettrace.Close != 0, Partial: e.A&nettrace.Partial != 0}
	b.Resent = sent && b.Reliable && h.wasLost(&b)
	r.bunches[r.n] = b
	r.n++
}

// lose notes the reliable bunches of a lost packet, which will come again.
func (h *history) lose(r *record) {
	for _, b := range r.bunches[:r.n] {
		if b.Reliable {
			h.lost[h.lostN%len(h.lost)] = b
			h.lostN++
		}
	}
}

func (h *history) wasLost(b *Bunch) bool {
	for i := range h.lost[:min(h.lostN, len(h.lost))] {
		l := &h.lost[i]
		if l.Reliable && l.Channel == b.Channel && l.Sequence == b.Sequence {
			l.Reliable = false // until it is lost again
			return true
		}
	}
	return false
}
