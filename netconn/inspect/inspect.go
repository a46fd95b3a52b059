package inspect

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// Config is the settings of an Inspector. The zero value is useful.
type Config struct {
	// Title is the page's heading. Default "bunchnet".
	Title string
	// Name says who a connection is, beside its address. May be nil.
	Name func(c *driver.Conn) string
	// Actors lists what a connection replicates. May be nil.
	Actors func(c *driver.Conn) []Actor
	// Properties says what a connection's bits went to. May be nil.
	Properties func(c *driver.Conn) []Property
	// Interval is the time between two samples, and between two events of a viewer. Default 250 ms.
	Interval time.Duration
	// Samples bounds the samples kept of a connection. Default 240, a minute.
	Samples int
	// Packets bounds the packets kept of a connection, each way. Default 128.
	Packets int
	// Viewers bounds the streams of events. Default 8.
	Viewers int
}

func (c Config) filled() Config {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.Samples, 240)
	set(&c.Packets, 128)
	set(&c.Viewers, 8)
	if c.Interval <= 0 {
		c.Interval = 250 * time.Millisecond
	}
	if c.Title == "" {
		c.Title = "bunchnet"
	}
	return c
}

// Actor is something that a connection replicates.
type Actor struct {
	ID, Class string
	Channel   uint32
	Bits      uint64 // sent on this connection so far
	Explain   string // why it is sent, or not, in words
}

// Property is what of a connection's bits went to one property of a class.
type Property struct {
	Name string // like "Player.Pos"
	Bits uint64
}

// maxHistories bounds the connections that have a history.
const maxHistories = 512

// Inspector watches a driver and serves what it sees. It is an http.Handler and a nettrace.Sink.
type Inspector struct {
	cfg     Config
	source  *Source
	viewers chan struct{}

	// The rest belongs to the driver's goroutine.
	histories map[uint32]*history // by connection id
	next      time.Duration       // when to sample
	ended     []Ended             // the last maxEnded, oldest first
}

// Ended is a connection that was.
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

// New returns an inspector of a driver, from its next TickDispatch on. Any goroutine may call it.
func New(d *driver.Driver, cfg Config) *Inspector {
	cfg = cfg.filled()
	i := &Inspector{cfg: cfg, source: NewSource(d), viewers: make(chan struct{}, cfg.Viewers), histories: map[uint32]*history{}}
	i.source.name = cfg.Name
	d.Do(func() { d.AddTrace(i) })
	return i
}

// Trace is nettrace.Sink's, on the driver's goroutine.
func (i *Inspector) Trace(e *nettrace.Event) {
	if e.At >= i.next {
		i.next = e.At + i.cfg.Interval
		i.sample(e.At)
	}
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
	if h == nil && len(i.histories) < maxHistories {
		h = newHistory(&i.cfg)
		i.histories[conn] = h
	}
	return h
}

// sample notes every connection's figures, and forgets those that are gone.
func (i *Inspector) sample(at time.Duration) {
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
		if h.name == "" && i.cfg.Name != nil && c.Joined() {
			h.name = i.cfg.Name(c)
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

// View is what a viewer sees: all connections, and one of them closely.
type View struct {
	Title string
	Snapshot
	Ended  []Ended // the last 16, newest first
	Detail *Detail `json:",omitempty"`
}

// Detail is one connection seen closely.
type Detail struct {
	Conn           uint32
	Samples        []Sample
	Channels       []Channel // at most 256; Stats.Channels says how many there are
	Sent, Received []Packet  // newest first
	Actors         []Actor   // at most 256 of ActorCount
	ActorCount     int
	Properties     []Property // at most 256
}

// shownPackets bounds the packets in a Detail, each way.
const shownPackets = 64

// View waits for the driver's next TickDispatch and returns what a viewer of connection conn sees; 0 is the first
// connection. Detail is nil when there is no such connection.
func (i *Inspector) View(ctx context.Context, conn uint32) (View, error) {
	v := View{Title: i.cfg.Title}
	err := i.source.do(ctx, func() {
		v.Snapshot, v.Ended = i.source.take(), slices.Clone(i.ended)
		slices.Reverse(v.Ended)
		for c := range i.source.driver.Conns {
			if conn == 0 || c.ID() == conn {
				v.Detail = i.detail(c)
				return
			}
		}
	})
	if err != nil {
		return View{}, err
	}
	return v, nil
}

func (i *Inspector) detail(c *driver.Conn) *Detail {
	d := &Detail{Conn: c.ID(), Samples: []Sample{}, Channels: channels(c.Table()), Sent: []Packet{}, Received: []Packet{}, Actors: []Actor{}, Properties: []Property{}}
	if h := i.histories[c.ID()]; h != nil {
		d.Samples, d.Sent, d.Received = h.curve(), h.sent.newest(shownPackets), h.received.newest(shownPackets)
	}
	if i.cfg.Actors != nil {
		actors := i.cfg.Actors(c)
		d.ActorCount = len(actors)
		d.Actors = append(d.Actors, actors[:min(maxShown, len(actors))]...)
	}
	if i.cfg.Properties != nil {
		props := i.cfg.Properties(c)
		d.Properties = append(d.Properties, props[:min(maxShown, len(props))]...)
	}
	return d
}
