package actorrep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

// lane is an outlet to a client's world in memory. Any of its methods may have no room now, and any packet may be lost. What arrives does so
// in order, a while later.
type lane struct {
	t       testing.TB
	rng     *rand.Rand
	peer    *Peer
	client  *World
	to      bridge.Player
	step    int
	mail    []letter
	packet  int64
	lost    bool // the packet
	tight   bool // there may be no room
	bits    int  // left in this Step
	places  uint32
	ids     map[netguid.GUID]uint32 // places of the actors that the client has
	flying  map[*view]int           // messages sent reliably and not acked
	missing int                     // how often there was no room
	opens   int                     // how often an opening was tried
	full    bool                    // there is no room for openings
	drop    bool                    // what is sent now is lost
	starved bool                    // there is no bandwidth
	scarce  bool                    // there is bandwidth for some
	free    int                     // bits left in the packet under way; 0 is any number
	narrow  int                     // bits of a packet, if it has fewer
	chunks  []int                   // bits of those that were sent
	sent    [bridge.End]int         // bits, by the kind of the message
	far     int                     // chunks that say the whole time of their Step
	times   int                     // bits of these times
}

// letter is a message under way.
type letter struct {
	due    int
	kind   bridge.Kind
	place  uint32
	data   []byte
	bits   int
	v      *view // sent reliably for it
	packet int64 // with records
	lost   bool
}

const laneRoom, lanePacket = 8, 8000

// addLane connects a client's world to a server's, with room for everything, and without loss.
func addLane(t testing.TB, server, client *World) *lane {
	l := &lane{t: t, rng: rand.New(rand.NewPCG(1, 1)), client: client, to: newPlayer(client), flying: map[*view]int{}, ids: map[netguid.GUID]uint32{}}
	data, n := server.encodeSchema()
	if ok, err := l.to.Describe(bitio.NewReader(data, n)); !ok || err != nil {
		t.Fatal(err)
	}
	l.peer = server.newPeer()
	l.peer.out = l
	server.addPeer(l.peer)
	return l
}

func (l *lane) refuse() bool {
	no := l.tight && l.rng.IntN(4) == 0
	if no {
		l.missing++
	}
	return no
}

func (l *lane) post(m letter) {
	m.due, m.data = l.step+2, append([]byte(nil), m.data...)
	l.sent[m.kind] += m.bits
	if m.v != nil {
		l.flying[m.v]++
	}
	l.mail = append(l.mail, m)
}

func (l *lane) begin(time.Duration) bool {
	l.bits = 1 << 20
	if l.starved {
		l.bits = 0
	}
	if l.scarce {
		l.bits = 2000
	}
	if l.tight {
		l.bits = []int{-100, 0, 40, 300, 3000, 30000}[l.rng.IntN(6)]
	}
	return !l.tight || l.rng.IntN(8) > 0
}
func (l *lane) end()            {}
func (l *lane) introduce() bool { return l.step > 2 }
func (l *lane) open(v *view, w *bitio.Writer, _ layout.Mask) bool {
	if l.opens++; l.full || l.refuse() || w.Len() > laneRoom*lanePacket {
		return false
	}
	if v.state != asleep {
		l.places++
		v.id = l.places
		l.ids[v.b.guid] = v.id
	}
	l.bits -= w.Len()
	l.post(letter{kind: bridge.Open, place: v.id, data: w.Bytes(), bits: w.Len(), v: v})
	return true
}
func (l *lane) reliable(v *view, w *bitio.Writer, _ bool, _ layout.Mask) bool {
	if w.Err() != nil || w.Len() > l.room(v)*lanePacket || l.refuse() {
		return false
	}
	l.bits -= w.Len()
	l.post(letter{kind: bridge.Values, place: v.id, data: w.Bytes(), bits: w.Len(), v: v})
	return true
}
func (l *lane) close(v *view, reason channel.CloseReason) bool {
	if l.refuse() {
		return false
	}
	l.leave(v.b.guid, reason)
	return true
}
func (l *lane) gone(f farewell) bool {
	if l.refuse() {
		return false
	}
	reason := bunch.Destroyed
	if f.torn {
		reason = bunch.TearOff
		l.post(letter{kind: bridge.Values, place: l.ids[f.id], data: []byte{wire.TornOff}, bits: wire.KindBits})
	}
	l.leave(f.id, reason)
	return true
}

func (l *lane) leave(id netguid.GUID, reason channel.CloseReason) {
	l.post(letter{kind: bridge.Close, place: l.ids[id], data: []byte{byte(reason)}, bits: 8})
	if reason != bunch.Dormancy {
		delete(l.ids, id)
	}
}

func (l *lane) refused(wire.Refusal) bool { return true }
func (l *lane) chunk(data []byte, n int) (int64, bool) {
	if l.refuse() {
		return 0, false
	}
	if l.packet == 0 || l.rng.IntN(3) > 0 {
		l.packet, l.lost = l.packet+1, l.drop || l.tight && l.rng.IntN(4) == 0
	}
	l.bits -= n
	l.chunks = append(l.chunks, n)
	r := bitio.NewReader(data, n)
	if wire.SkipTime(r); data[0]&1 != 0 {
		l.far++
	}
	l.times += r.Pos()
	l.post(letter{kind: bridge.Records, data: data[:(n+7)/8], bits: n, packet: l.packet, lost: l.lost})
	return l.packet, true
}
func (l *lane) drained(v *view) bool { return l.flying[v] == 0 }
func (l *lane) room(v *view) int     { return max(0, laneRoom-2*l.flying[v]) }
func (l *lane) newRoom() int         { return laneRoom }
func (l *lane) largest() int         { return bunch.MaxPayload * 8 }
func (l *lane) budget() int          { return l.bits }
func (l *lane) freeBits() int {
	if l.free > 0 {
		return l.free
	}
	return l.rng.IntN(lanePacket)
}
func (l *lane) packetBits() int {
	if l.narrow > 0 {
		return l.narrow
	}
	return lanePacket
}
func (l *lane) now() time.Duration { return l.peer.world.now }
func (l *lane) fail(err error)     { l.t.Error(err) }

// deliver hands over what is due, and acks it or says that it was lost.
func (l *lane) deliver() {
	for l.step++; len(l.mail) > 0 && l.mail[0].due <= l.step; l.mail = l.mail[1:] {
		m := l.mail[0]
		r := bitio.NewReader(m.data, m.bits)
		var err error
		switch {
		case m.lost:
		case m.kind == bridge.Records:
			err = l.to.Records(&bunch.In{Data: *r})
		default:
			err = l.to.Message(m.kind, m.place, r)
		}
		if err != nil {
			l.t.Fatalf("message %d of place %d: %v", m.kind, m.place, err)
		}
		switch {
		case m.packet > 0:
			l.peer.hear(m.packet, m.lost)
		case m.v != nil:
			l.peer.learnFates()
			if l.flying[m.v]--; l.flying[m.v] == 0 {
				delete(l.flying, m.v)
			}
			m.v.opened()
			if m.v.versions != nil && l.drained(m.v) {
				m.v.keep()
			}
		}
	}
}

// parcel has a field of each kind that is sent in a way of its own. All follow from a number.
type parcel struct {
	Base
	Line [3]float64             `net:"q=0.25"`
	Fall float64                `net:"q=0.125"`
	Many [60]uint16             `net:"max=60000"`
	Text string                 `net:"cap=6000"`
	More string                 `net:"cap=6000"`
	Mine uint32                 `net:"owner"`
	Rest uint32                 `net:"skipowner"`
	List fastarray.List[uint32] `net:""`
	Born uint32                 `net:"initial"`

	n uint32
}

func (p *parcel) set(n uint32) {
	v := float64(n)
	p.n, p.Mine, p.Rest, p.Born = n, n, n, n
	p.Line, p.Fall = [3]float64{v, -v / 4, v * 2}, v*v/8
	for i := range p.Many {
		p.Many[i] = uint16(n / uint32(i+1))
	}
	p.Text = fmt.Sprint(n, strings.Repeat("x", int(n%5)*1400))
	p.More = fmt.Sprint(n, strings.Repeat("y", int(n%3)*2500))
	for id := range p.List.All {
		if p.List.Len() > 5 {
			_ = p.List.Remove(id)
		} else {
			_ = p.List.Set(id, n)
		}
	}
	_, _ = p.List.Add(n)
}

// parcels is one of each number that the test has.
var parcels = func() (all []*parcel) {
	for n := range uint32(150) {
		p := &parcel{}
		if n > 0 {
			p.set(n)
		}
		all = append(all, p)
	}
	return all
}()

// numbers is from which number each field is; -1 when it is from none. Nothing says so of the list.
func (p *parcel) numbers() map[string]int {
	of := func(n uint32, field func(p *parcel) any) int {
		if n >= uint32(len(parcels)) || !reflect.DeepEqual(field(parcels[n]), field(p)) {
			return -1
		}
		return int(n)
	}
	root := 0
	for float64(root*root)/8 < p.Fall {
		root++
	}
	var text, more uint32
	_, _ = fmt.Sscanf(p.Text, "%d", &text)
	_, _ = fmt.Sscanf(p.More, "%d", &more)
	return map[string]int{"Mine": int(p.Mine), "Rest": int(p.Rest), "Born": int(p.Born),
		"Line": of(uint32(p.Line[0]), func(p *parcel) any { return p.Line }), "Fall": of(uint32(root), func(p *parcel) any { return p.Fall }),
		"Many": of(uint32(p.Many[0]), func(p *parcel) any { return p.Many }),
		"Text": of(text, func(p *parcel) any { return p.Text }), "More": of(more, func(p *parcel) any { return p.More })}
}

func (p *parcel) list() (all []uint32) {
	for _, v := range p.List.All {
		all = append(all, v)
	}
	return all
}

// TestWithoutRoom: whatever has no room now, packets, openings, closes and calls, and whatever is lost, a client has values that the server
// set, each newer than the last; a call finds what was set before it; and in the end all is there, once.
func TestWithoutRoom(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { withoutRoom(t, seed) })
	}
}

func withoutRoom(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 14))
	made, ran := map[string]int{}, map[string]int{}
	call := MulticastRPC(func(c Call, p *parcel, n uint32) error {
		if c.World.server {
			return nil
		}
		ran[fmt.Sprintf("%p %v %d", c.World, p.guid, n)]++
		for name, has := range p.numbers() {
			if allowed := name != "Born" && (name != "Mine" || p.IsOwned()) && (name != "Rest" || !p.IsOwned()); allowed && has < int(n) {
				t.Errorf("%s is of %d when the call of %d runs", name, has, n)
			}
		}
		return nil
	}, Reliable)
	dropped, early := 0, map[string]bool{}
	register := func(w *World) {
		if err := w.Register("parcel", (*parcel)(nil), RPCs{"Call": call}); err != nil {
			t.Fatal(err)
		}
	}
	seen := true
	s := NewServer(Config{RelevantTimeout: -1, Failed: func(err error) {
		if e := err.(*ActorError); errors.Is(err, ErrTornEarly) {
			early[fmt.Sprintf("%p %p", e.Peer, e.Actor)] = true
		} else {
			dropped++
		}
	}, Relevant: func(_ *Peer, a Actor) bool { return seen || a.base().guid%4 > 1 }})
	register(s)
	var lanes []*lane
	for range 2 {
		c := NewClient(Config{Failed: func(err error) { t.Error(err) }})
		register(c)
		l := addLane(t, s, c)
		l.rng, l.tight = rng, true
		lanes = append(lanes, l)
	}
	var all, torn []*parcel
	had := map[*parcel]map[string]int{}
	now := time.Duration(0)
	step := func() {
		now += 33 * time.Millisecond
		for _, l := range lanes {
			l.deliver()
			l.client.Step(now)
			l.client.Consistent(t)
			for a := range l.client.All {
				p := a.(*parcel)
				numbers := p.numbers()
				for name, n := range numbers {
					if n < had[p][name] {
						t.Fatalf("%s is of %d, and was of %d: %v", name, n, had[p][name], p)
					}
				}
				had[p] = numbers
			}
		}
		s.Step(now)
		s.Consistent(t)
	}
	for n := uint32(1); n < 120; n++ {
		if len(all) < 8 && rng.IntN(4) == 0 {
			p := &parcel{}
			p.set(n)
			if err := s.Spawn(p); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		for i := 0; i < len(all); i++ {
			p := all[i]
			if rng.IntN(3) > 0 {
				p.set(n)
			}
			switch l := lanes[rng.IntN(2)]; rng.IntN(50) {
			case 0:
				p.SetOwner(l.peer)
			case 1:
				p.SetOwner(nil)
			case 2, 3:
				_ = p.SetDormant(!p.dormant)
			case 4:
				l.peer.SetUpdateEvery(p, 1+rng.IntN(4))
			case 5, 6, 7, 8:
				if rng.IntN(2) == 0 {
					p.set(n)
					p.ForceUpdate()
				}
				if p.rep.newborn() { // who sees it isn't known yet
					break
				}
				var missed *MissedError
				if err := call.Call(p, p.n); err == nil || errors.As(err, &missed) {
					for _, v := range p.rep.views {
						if missed == nil || !slices.Contains(missed.Peers, v.peer) {
							made[fmt.Sprintf("%p %v %d", v.peer.out.(*lane).client, p.guid, p.n)]++
						}
					}
				}
			case 9, 10:
				if rng.IntN(4) == 0 {
					p.set(n)
					_ = p.TearOff()
					torn = append(torn, p)
				}
				_ = s.Destroy(p)
				all = append(all[:i], all[i+1:]...)
				i--
			}
		}
		if rng.IntN(20) == 0 {
			seen = !seen
		}
		step()
	}
	for _, l := range lanes {
		l.tight = false
		if l.missing < 10 {
			t.Errorf("room was missing %d times only", l.missing)
		}
	}
	seen = true
	for range 60 {
		step()
	}
	lost := 0
	for name := range made {
		lost += max(0, made[name]-ran[name])
	}
	if lost > dropped {
		t.Errorf("%d calls are missing, %d were told of", lost, dropped)
	}
	for name, n := range ran {
		if n > made[name] {
			t.Errorf("the call %s ran %d times", name, n)
		}
	}
	for _, l := range lanes {
		own := 0
		for _, p := range torn {
			c, ok := l.client.Find(p.guid).(*parcel)
			if !ok {
				continue
			}
			own++
			if told := early[fmt.Sprintf("%p %p", l.peer, p)]; !c.tornOff || !told && c.numbers()["Text"] != int(p.n) {
				t.Errorf("%v was torn off with %d and has %v, told %v", p.guid, p.n, c.numbers(), told)
			}
		}
		if l.client.Len()-own != len(all) {
			t.Errorf("%d actors of %d, %d torn off", l.client.Len(), len(all), own)
		}
		for _, p := range all {
			p.FlushDormancy()
		}
	}
	for range 10 {
		step()
	}
	for _, l := range lanes {
		for _, p := range all {
			if e := s.Explain(l.peer, p); e.Reason != ReasonUpToDate && e.Reason != ReasonDormant {
				t.Errorf("%v: %s", p.guid, e.Text)
			}
			c, ok := l.client.Find(p.guid).(*parcel)
			if !ok {
				t.Errorf("%v isn't there", p.guid)
				continue
			}
			for name, n := range c.numbers() {
				if mine := p.Owner() == l.peer; n != int(p.n) && name != "Born" && (name != "Mine" || mine) && (name != "Rest" || !mine) {
					t.Errorf("%s of %v is of %d instead of %d", name, p.guid, n, p.n)
				}
			}
			if !reflect.DeepEqual(c.list(), p.list()) {
				t.Errorf("the list of %v has %v instead of %v", p.guid, c.list(), p.list())
			}
		}
	}
}
