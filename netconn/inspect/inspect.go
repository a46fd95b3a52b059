package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/internal/setting"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// Config configures an Inspector. The zero value has the defaults.
type Config struct {
	// Title is the page's heading. Default "bunchnet".
	Title string
	// Name returns a name for a connection, whose first 64 characters are shown beside its address. It is also called for connections that
	// haven't joined yet, and for a client's own, whose Login is nil. May be nil.
	Name func(c *driver.Conn) string
	// Actors returns actors that a connection replicates. May be nil.
	Actors func(c *driver.Conn, q ActorQuery) ActorPage
	// Properties returns how many bits of a connection each property took. May be nil.
	Properties func(c *driver.Conn) []Property
	// Figures returns counters of the game or the world. May be nil.
	Figures func() []Figure
	// Past is a flight recorder of the driver's world, a server's or a client's: the page then has a link to what it keeps. May be nil.
	Past *flight.Recorder
	// Token is what viewers need, on this machine as on others. They send it as a Bearer token in the Authorization header, or as ?token= in the
	// address, which the page turns into a cookie. Use at least 128 random bits and serve it over HTTPS. Default: none, and only this machine is
	// answered, at loopback addresses and localhost.
	Token string
	// Allow decides who is let in, instead of all these rules. May be nil.
	Allow func(r *http.Request) bool
	// Interval is the time between two samples, and between two events sent to a viewer: 1 ms to 1 h. Default 250 ms.
	Interval time.Duration
	// Samples is how many samples of a connection are kept: 1 to 14400. Default 240, which is a minute.
	Samples int
	// Packets is how many packets of a connection are kept in each direction: 1 to 65536. Default 128.
	Packets int
	// Viewers is the most event streams at a time: 1 to 4096. Default 8.
	Viewers int
}

// ErrConfig: a setting is out of range. New panics with an error that wraps it and names the setting.
var ErrConfig = errors.New("inspect: Config")

func (c Config) filled() Config {
	c.Samples, c.Packets, c.Viewers = cmp.Or(c.Samples, 240), cmp.Or(c.Packets, 128), cmp.Or(c.Viewers, 8)
	c.Interval, c.Title = cmp.Or(c.Interval, 250*time.Millisecond), cmp.Or(c.Title, "bunchnet")
	return c
}

func (c *Config) validate() error {
	return setting.First(
		setting.Within(ErrConfig, "Interval", c.Interval, time.Millisecond, time.Hour),
		setting.Within(ErrConfig, "Samples", c.Samples, 1, 14400),
		setting.Within(ErrConfig, "Packets", c.Packets, 1, 65536),
		setting.Within(ErrConfig, "Viewers", c.Viewers, 1, 4096))
}

// age is how old a look gets that viewers share. It is less than an interval: events come an interval apart but for a timer's jitter, and a viewer whose
// timer is early must not get the same look twice.
func (c *Config) age() time.Duration { return c.Interval - c.Interval/4 }

// Actor is an actor that a connection replicates.
type Actor struct {
	ID, Class string
	Channel   uint32
	Bits      uint64 // sent on this connection so far
	Explain   string // why it is sent, or not, in words
}

// ActorQuery asks for at most Max actors whose class or ID contains Match, from index From on.
type ActorQuery struct {
	Match     string
	From, Max int
}

// ActorPage is the answer to an ActorQuery: some of Count actors. Next is the From of the next page, or 0 at the end.
type ActorPage struct {
	Actors      []Actor
	Count, Next int
}

// Figure is a counter with a name.
type Figure struct {
	Name  string
	Value uint64
}

// Property is the bits of a connection that one property or procedure of a class took.
type Property struct {
	Name string // like "Player.Pos", or "Player.Fire()"
	Bits uint64
	// Sent and Received is how often a procedure was called by us and by the peer, Refused how many of the peer's calls
	// didn't run.
	Sent, Received, Refused uint64
}

// maxHistories bounds the connections that have a history.
const maxHistories = 512

// Inspector watches a driver and serves the page. It is an http.Handler and a nettrace.Sink.
type Inspector struct {
	cfg      Config
	source   *Source
	viewers  chan struct{}
	films    chan struct{} // one is made at a time
	looks    looks
	patience time.Duration // for a viewer to take an event
	answer   time.Duration // for one to take anything else
	most     int           // histories

	// The rest belongs to the driver's goroutine.
	histories map[uint32]*history // by connection id
	next      time.Duration       // when to sample
	ended     []Ended             // the last maxEnded, oldest first
	loads     loads
	snapshot  Snapshot // the last one, for Config.age
	shown     bool
}

// Ended is a connection that has ended.
type Ended struct {
	Conn    uint32
	At      time.Duration
	Addr    netip.AddrPort
	Name    string `json:",omitempty"`
	Why     string // netconn.CloseCode in words
	Unacked uint64 // reliable bunches that the peer may not have got
}

// maxEnded bounds the connections remembered after their end.
const maxEnded = 16

// New returns an inspector of a driver. It watches from the driver's next TickDispatch on. Any goroutine may call it. It panics when a setting is out of range.
func New(d *driver.Driver, cfg Config) *Inspector {
	cfg = cfg.filled()
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	i := &Inspector{cfg: cfg, source: NewSource(d), viewers: make(chan struct{}, cfg.Viewers), films: make(chan struct{}, 1), histories: map[uint32]*history{},
		looks: looks{age: cfg.age(), byQuery: map[string]*look{}}, loads: newLoads(cfg.Samples), patience: eventTimeout, answer: answerTimeout, most: maxHistories}
	i.source.name = cfg.Name
	d.Do(func() { d.AddTrace(i) })
	return i
}

// Trace implements nettrace.Sink. The driver's goroutine calls it.
func (i *Inspector) Trace(e *nettrace.Event) {
	i.sampleDue(e.At)
	if e.Kind == nettrace.ConnClosed {
		i.end(e)
		return
	}
	if h := i.history(e.Conn); h != nil {
		h.trace(e)
	}
}

// end remembers how a connection ended.
func (i *Inspector) end(e *nettrace.Event) {
	if len(i.ended) == maxEnded {
		i.ended = append(i.ended[:0], i.ended[1:]...)
	}
	ended := Ended{Conn: e.Conn, At: e.At, Why: netconn.CloseCode(e.A).String(), Unacked: e.B}
	if h := i.histories[e.Conn]; h != nil {
		ended.Addr, ended.Name = h.addr, h.name
	}
	i.ended = append(i.ended, ended)
}

func (i *Inspector) history(conn uint32) *history {
	h := i.histories[conn]
	if h == nil && len(i.histories) < i.most {
		h = newHistory(&i.cfg)
		i.histories[conn] = h
	}
	return h
}

// sampleDue takes a sample once an interval.
func (i *Inspector) sampleDue(at time.Duration) {
	if at >= i.next {
		i.next = at + i.cfg.Interval
		i.sample(at)
	}
}

// sample notes every connection's figures, and forgets those that are gone.
func (i *Inspector) sample(at time.Duration) {
	i.loads.sample(at, i.source.driver.TickTimes())
	for _, h := range i.histories {
		h.live = false
	}
	for c := range i.source.driver.Conns {
		h := i.history(c.ID())
		if h == nil {
			continue
		}
		h.live = true
		h.addr = c.RemoteAddr()
		if h.name == "" && c.Joined() {
			h.name = i.source.nameOf(c)
		}
		s := c.Stats()
		h.sample(Sample{At: at, RTT: s.RTT, Jitter: s.Jitter, InLoss: float32(s.Rates.InLoss), OutLoss: float32(s.Rates.OutLoss),
			InRate: float32(s.Rates.InBytes), OutRate: float32(s.Rates.OutBytes), InFlight: int32(s.PacketsInFlight), QueuedReliable: int32(s.QueuedReliable)})
	}
	for id, h := range i.histories {
		if !h.live {
			delete(i.histories, id)
		}
	}
}

// View is what a viewer sees: a page of the connections, and one of them in detail. Viewers share it, so don't change it.
type View struct {
	Title       string
	Interval    time.Duration // between two events
	Past        bool          // there is a flight recorder
	Snapshot                  // its Conns are at most 64, or 4096 in an export, of ConnMatches that Query.Conns looks for
	ConnCount   int           // all connections
	ConnMatches int
	ConnNext    int     // where to look on for more of them; 0 at the end
	Totals      Totals  // of all connections
	Ended       []Ended // the last 16, newest first
	Load        []Load  // of the driver and the process, oldest first
	Figures     []Figure
	Detail      *Detail `json:",omitempty"`
	Others      []Lanes // those of Query.Also that there are
}

// Detail is everything about one connection.
type Detail struct {
	Conn           uint32
	Name           string `json:",omitempty"`
	NoHistory      bool   `json:",omitempty"` // 512 other connections have samples and packets, so that this one has none
	ChannelCount   int
	Samples        []Sample
	Channels       []Channel      // at most 256 of ChannelCount, that have something to do
	Idle           []IdleChannels // the others, by type
	Sent, Received []Packet       // newest first
	Actors         []Actor        // at most 256 of ActorCount
	ActorCount     int
	ActorNext      int        // where to look on for more; 0 at the end
	Properties     []Property // at most 256
}

// Lanes holds the packets of one connection, newest first.
type Lanes struct {
	Conn           uint32
	Name           string
	NoHistory      bool `json:",omitempty"` // as in Detail
	Sent, Received []Packet
}

// shownPackets bounds the packets in a Detail, each way.
const shownPackets = 64

// View returns what a viewer sees. It is at most Config.Interval old, or comes from the driver's next TickDispatch. Detail is nil if there is
// no such connection.
func (i *Inspector) View(ctx context.Context, q Query) (View, error) {
	k, err := i.get(ctx, q)
	if err != nil {
		return View{}, err
	}
	return k.view, nil
}

// get is a look at what a viewer asks for.
func (i *Inspector) get(ctx context.Context, q Query) (*look, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	q.Actors.Max = maxShown
	return i.looks.get(ctx, fmt.Sprintf("%#v", q), func() (View, error) { return i.look(ctx, q) })
}

// look asks the driver.
func (i *Inspector) look(ctx context.Context, q Query) (View, error) {
	v := View{Title: i.cfg.Title, Interval: i.cfg.Interval, Past: i.cfg.Past != nil, Figures: []Figure{}, Others: []Lanes{}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout) // others may wait for it too
	defer cancel()
	err := i.source.do(ctx, func() {
		i.sampleDue(i.source.driver.Now()) // without connections there are no events
		v.Snapshot, v.Ended, v.Load = i.recent(), slices.Clone(i.ended), i.loads.list()
		slices.Reverse(v.Ended)
		if i.cfg.Figures != nil {
			v.Figures = append(v.Figures, i.cfg.Figures()...)
		}
		n := shownPackets
		if q.Export {
			n = i.cfg.Packets
		}
		for c := range i.source.driver.Conns {
			if v.Detail == nil && (q.Conn == 0 || c.ID() == q.Conn) {
				v.Detail = i.detail(c, q, n)
			}
			if slices.Contains(q.Also, c.ID()) {
				v.Others = append(v.Others, i.lanes(c, n))
			}
		}
	})
	if err != nil {
		return View{}, err // the driver may be at v still
	}
	most := maxRows
	if q.Export {
		most = maxExportRows
	}
	v.rows(q.Conns, most)
	return v, nil
}

// recent is a snapshot that is younger than Config.age.
func (i *Inspector) recent() Snapshot {
	if !i.shown || i.source.driver.Now()-i.snapshot.At >= i.cfg.age() {
		i.snapshot, i.shown = i.source.take(), true
	}
	return i.snapshot
}

// lanes is the packets of a connection.
func (i *Inspector) lanes(c *driver.Conn, packets int) Lanes {
	h := i.history(c.ID())
	if h == nil {
		return Lanes{Conn: c.ID(), Name: i.source.nameOf(c), NoHistory: true, Sent: []Packet{}, Received: []Packet{}}
	}
	return Lanes{Conn: c.ID(), Name: h.name, Sent: h.sent.newest(packets), Received: h.received.newest(packets)}
}

func (i *Inspector) detail(c *driver.Conn, q Query, packets int) *Detail {
	d := &Detail{Conn: c.ID(), ChannelCount: c.Table().Len(), Samples: []Sample{}, Actors: []Actor{}, Properties: []Property{}}
	d.Channels, d.Idle = channels(c.Table())
	l := i.lanes(c, packets)
	d.Name, d.NoHistory, d.Sent, d.Received = l.Name, l.NoHistory, l.Sent, l.Received
	if h := i.histories[c.ID()]; h != nil {
		d.Samples = h.curve()
	}
	if i.cfg.Actors != nil {
		page := i.cfg.Actors(c, q.Actors)
		d.ActorCount, d.ActorNext = page.Count, page.Next
		d.Actors = append(d.Actors, page.Actors[:min(maxShown, len(page.Actors))]...)
	}
	if i.cfg.Properties != nil {
		props := i.cfg.Properties(c)
		d.Properties = append(d.Properties, props[:min(maxShown, len(props))]...)
	}
	return d
}
