package flight_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
	"github.com/bunchnet/bunchnet/netconn/simtest"
)

// Cart moves along X, and has a secret that only its owner may have.
type Cart struct {
	actorrep.Base
	X      float64 `net:"q=0.01,notify=OnMoved"`
	Load   uint16  `net:""`
	Secret string  `net:"owner"`

	t testing.TB
}

// honk is recorded, and may not run for a film's actors either.
var honk = actorrep.MulticastRPC0(func(_ actorrep.Call, c *Cart) error {
	c.OnMoved()
	return nil
})

// OnMoved fails on a film's actors: nothing of the game's runs there.
func (c *Cart) OnMoved() {
	if c.t == nil && c.World().User != "a client" {
		panic("a film calls a notify")
	}
}

// rig is a server with a recorder, and clients, in virtual time.
type rig struct {
	t       testing.TB
	sim     *simtest.Simulation
	server  *driver.Driver
	world   *actorrep.World
	rec     *flight.Recorder
	carts   []*Cart
	clients map[string]*client
	errs    []error
}

type client struct {
	driver *driver.Driver
	world  *actorrep.World
	lags   []lag
}

// lag is what a client had at a time.
type lag struct {
	at   time.Duration
	x    float64
	load uint16
}

func newRig(t testing.TB, seed uint64, cfg flight.Config, net netsim.Settings, names ...string) *rig {
	r := &rig{t: t, clients: map[string]*client{}}
	r.begin(seed, cfg, net, names...)
	return r
}

func (r *rig) begin(seed uint64, cfg flight.Config, net netsim.Settings, names ...string) {
	t := r.t
	key := netcode.Key{1}
	r.sim = simtest.NewSimulation(seed, func(h *simtest.Host) (simtest.Program, error) {
		dc := driver.Config{Clock: h.Time, Rand: h.Secrets(), Link: driver.Netcode{Key: key}}
		if h.IsServer() {
			s, err := h.Listen(7777)
			if err != nil {
				return nil, err
			}
			r.world = actorrep.NewServer(actorrep.Config{Failed: func(err error) { r.errs = append(r.errs, err) }})
			require.NoError(t, r.world.Register("Cart", (*Cart)(nil), actorrep.RPCs{"honk": honk}))
			dc.Socket, dc.Channels = s, r.world.ChannelTypes()
			dc.Joined = func(c *driver.Conn) {
				cart := &Cart{X: 1, Secret: "of " + c.Login().URL, t: t}
				cart.SetOwner(r.world.AddConn(c))
				require.NoError(t, r.world.Spawn(cart))
				r.carts = append(r.carts, cart)
			}
			if r.server, err = driver.Listen("", dc); err != nil {
				return nil, err
			}
			r.rec, err = flight.New(r.world, r.server, cfg)
			return program(func(now time.Time) error {
				r.server.TickDispatch(now)
				at := r.server.Time(now)
				for _, c := range r.carts {
					c.X += 0.05
					if ms := int(at/time.Millisecond) / 500; ms != int(c.Load) {
						c.Load = uint16(ms)
						if err := honk.Call(c); err != nil {
							return err
						}
					}
				}
				r.world.Step(at)
				r.server.TickFlush(now)
				return r.server.Err()
			}), err
		}
		c := &client{world: actorrep.NewClient(actorrep.Config{})}
		c.world.User = "a client"
		require.NoError(t, c.world.Register("Cart", (*Cart)(nil), actorrep.RPCs{"honk": honk}))
		dc.Socket, dc.Channels, dc.Client = h.Open(), c.world.ChannelTypes(), control.ClientConfig{URL: h.Name()}
		var err error
		c.driver, err = driver.Dial("10.0.0.1:7777", dc)
		r.clients[h.Name()] = c
		return program(func(now time.Time) error {
			c.driver.TickDispatch(now)
			c.world.Step(c.driver.Time(now))
			c.driver.TickFlush(now)
			for a := range c.world.All {
				if cart := a.(*Cart); cart.Secret != "" { // its own
					c.lags = append(c.lags, lag{r.world.Now(), cart.X, cart.Load})
				}
			}
			return c.driver.Err()
		}), err
	})
	r.sim.AddHost("server", true)
	for _, name := range names {
		require.NoError(t, r.sim.AddHost(name, false).SetNet(net, net))
	}
}

type program func(now time.Time) error

func (p program) Tick(now time.Time) error { return p(now) }
func (p program) Close() error             { return nil }

// film is a document as the page reads it.
type film struct {
	Title, Cut string
	Steps      []float64
	Classes    []struct{ Name string }
	Client     bool
	Cause      []float64
	Notes      []note
	Unsaid     [][]any
	Waits      [][]any
	Actors     []*actor
	Conns      []*conn
}

type note struct {
	At    float64
	Conn  uint32
	Text  string
	Actor int
	Field string
}

type actor struct {
	ID       string
	Class    int
	From, To int
	Seen     float64
	Parts    []part
}

type part struct {
	Name, Units, Only, Drawn string

	At []int
	Of []any
}

type conn struct {
	ID      uint32
	Name    string
	Sent    []*packet
	Records []record
	Calls   []call
	Got     [][2]float64
	Set     []set
	Views   [][]any
	Waits   [][]any
	From    float64
	Began   float64
	Ended   float64
	Heard   float64
	Why     string
}

// set is that a client's world has set units of an actor.
type set struct {
	Actor int
	Units string
	At    float64
}

type call struct {
	Packet         *packet // nil for one that came
	Actor          int
	Name, Refused  string
	Reliable, Came bool
	At             float64
}

type packet struct {
	ID       int64
	At, Told float64
	Fate     int
}

type record struct {
	Packet        *packet
	Actor         int
	Units, Waited string
	Opens, Calls  bool
	Closes        bool
	Seq           int
	Of            float64 // the time whose values a reliable bunch has
}

func (r *rig) film(v flight.View) (d film, page string) { return read(r.t, r.rec.Take(), v) }

// read reads a film's page.
func read(t testing.TB, f *flight.Film, v flight.View) (d film, page string) {
	var out strings.Builder
	require.NoError(t, f.WriteHTML(&out, v))
	return readPage(t, out.String()), out.String()
}

func readPage(t testing.TB, page string) (d film) {
	m := regexp.MustCompile(`id="film">([^<]*)<`).FindStringSubmatch(page)
	require.NotNil(t, m)
	packed, err := base64.StdEncoding.DecodeString(m[1])
	require.NoError(t, err)
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	lines := json.NewDecoder(zip)
	var head struct {
		film
		Actors int
	}
	require.NoError(t, lines.Decode(&head))
	d = head.film
	for range head.Actors {
		a := &actor{}
		require.NoError(t, lines.Decode(a))
		for i := range a.Parts {
			for k := 1; k < len(a.Parts[i].At); k++ {
				a.Parts[i].At[k] += a.Parts[i].At[k-1]
			}
		}
		d.Actors = append(d.Actors, a)
	}
	for lines.More() {
		d.Conns = append(d.Conns, readConn(t, lines))
	}
	return d
}

// readConn reads a connection's line.
func readConn(t testing.TB, lines *json.Decoder) *conn {
	var raw struct {
		conn
		Sent, Fates [][3]float64
		Records     [][]any
		Calls       [][]any
		Set         [][]any
	}
	require.NoError(t, lines.Decode(&raw))
	c, packets := &raw.conn, map[float64]*packet{}
	for _, p := range raw.Sent {
		packets[p[0]] = &packet{ID: int64(p[0]), At: p[1]}
		c.Sent = append(c.Sent, packets[p[0]])
	}
	for _, p := range raw.Fates {
		if k := packets[p[0]]; k != nil {
			k.Fate, k.Told = int(p[1]), p[2]
		}
	}
	for _, raw := range raw.Records {
		rec := record{Packet: packets[raw[0].(float64)], Actor: int(raw[1].(float64)), Units: raw[2].(string)}
		if len(raw) > 3 {
			rec.Opens, rec.Calls, rec.Waited = raw[3].(float64) == 1, raw[3].(float64) == 2, raw[5].(string)
			rec.Closes, rec.Of = raw[3].(float64) == 3, raw[4].(float64)
		}
		if len(raw) > 6 {
			rec.Seq = int(raw[6].(float64))
		}
		if rec.Packet != nil {
			c.Records = append(c.Records, rec)
		}
	}
	for _, raw := range raw.Set {
		c.Set = append(c.Set, set{int(raw[0].(float64)), raw[1].(string), raw[2].(float64)})
	}
	for _, raw := range raw.Calls {
		flags := int(raw[3].(float64))
		c.Calls = append(c.Calls, call{packets[raw[0].(float64)], int(raw[1].(float64)), raw[2].(string), raw[5].(string), flags&1 != 0, flags&2 != 0, raw[4].(float64)})
	}
	return c
}

// at is a part's value in a step.
func (d *film) at(actor int, part string, step int) any {
	for _, p := range d.Actors[actor].Parts {
		if p.Name == part {
			var v any
			for i, s := range p.At {
				if s <= step {
					v = p.Of[i]
				}
			}
			return v
		}
	}
	return nil
}

// Crate has a field that marks itself.
type Crate struct {
	actorrep.Base
	Sum   actorrep.Var[int32]    `net:""`
	Place struct{ X, Y float64 } `net:"owner"`
}

// TestPartsOfAVar: a Var is shown as what it holds.
func TestPartsOfAVar(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Crate", (*Crate)(nil)))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	c := &Crate{}
	require.NoError(t, w.Spawn(c))
	for i := range 3 {
		c.Sum.Set(int32(i))
		w.Step(time.Duration(i+1) * 20 * time.Millisecond)
	}
	d, _ := read(t, rec.Take(), flight.View{})
	parts := d.Actors[0].Parts
	require.Equal(t, []string{"Sum", "Place.X", "Place.Y"}, []string{parts[0].Name, parts[1].Name, parts[2].Name})
	require.Equal(t, []any{0.0, 1.0, 2.0}, parts[0].Of)
	require.Equal(t, []string{"", "owner", "owner"}, []string{parts[0].Only, parts[1].Only, parts[2].Only})
}

// TestFilm plays at 20 % loss, and compares the film with what the server and the client had: the server's values in each Step; a
// value whose packet was acked was at the client, and one whose packets all were lost wasn't.
func TestFilm(t *testing.T) {
	r := newRig(t, 3, flight.Config{}, netsim.Settings{Lag: 60 * time.Millisecond, Loss: 20}, "Ann", "Bob")
	truth := map[float64]float64{}
	for at := time.Second; at <= 12*time.Second; at += time.Second / 60 {
		r.sim.RunUntil(at)
		if len(r.carts) > 0 {
			truth[float64(r.world.Now().Round(10*time.Microsecond))/1e6] = r.carts[0].X
		}
	}
	require.Nil(t, r.sim.Failure())
	r.rec.Note(0, "the end </script>")
	d, page := r.film(flight.View{Title: `<img src=x onerror="alert(1)">`, Names: map[uint32]string{1: "</script>"}})
	require.Empty(t, r.errs)
	require.NotContains(t, page, "<img src=x")
	require.Equal(t, 2, strings.Count(page, "</script>"), "only its own")
	require.Len(t, d.Actors, 2)
	require.Greater(t, len(d.Steps), 600)
	require.Empty(t, d.Cut)
	require.Equal(t, "the end </script>", d.Notes[len(d.Notes)-1].Text)
	compared := 0
	for i, at := range d.Steps {
		if want, ok := truth[at]; ok && i >= d.Actors[0].From {
			require.InDelta(t, want, d.at(0, "X", i), 0.0051, "at %v", at)
			compared++
		}
	}
	require.Greater(t, compared, 500)
	require.Contains(t, []string{"of Ann", "of Bob"}, d.at(0, "Secret", len(d.Steps)-1), "the server's truth has what only owners have")

	lost, again := 0, 0
	for _, c := range d.Conns {
		opens, fates := 0, map[int]int{}
		for _, p := range c.Sent {
			fates[p.Fate]++
		}
		require.Greater(t, fates[2], 50, "lost packets")
		require.Greater(t, fates[1], 200)
		for _, rec := range c.Records {
			if rec.Opens {
				opens++
				require.NotZero(t, units(rec.Units)&units(d.Actors[rec.Actor].Parts[0].Units), "it tells of X")
			}
			if rec.Packet.Fate == 2 {
				lost++
			}
			if rec.Waited != "" {
				again++
			}
		}
		require.GreaterOrEqual(t, opens, 2, "two actors were opened")
	}
	require.Greater(t, lost, 50)
	require.Greater(t, again, 5, "%d lost", lost)

	// Which actor's channel a bunch is of is known although its opening was long ago.
	for ch := range uint32(10) {
		r.rec.Trace(&nettrace.Event{Kind: nettrace.BunchSent, At: r.world.Now(), Conn: d.Conns[0].ID, PacketID: 99999, ChIndex: ch, A: nettrace.Reliable})
	}
	r.rec.Trace(&nettrace.Event{Kind: nettrace.PacketSent, At: r.world.Now(), Conn: d.Conns[0].ID, PacketID: 99999})
	f := r.rec.Take()
	f.Bound(1e6, 11)
	d, _ = read(t, f, flight.View{})
	require.Len(t, d.Conns[0].Records, 2)
	for _, rec := range d.Conns[0].Records {
		require.True(t, rec.Calls)
	}
}

// TestWayOfAChange follows a field that changes twice a second: its first packet that isn't lost brings it, about when the client has it.
func TestWayOfAChange(t *testing.T) {
	r := newRig(t, 4, flight.Config{}, netsim.Settings{Lag: 60 * time.Millisecond, Loss: 25}, "Ann")
	r.sim.RunUntil(20 * time.Second)
	require.Nil(t, r.sim.Failure())
	d, _ := r.film(flight.View{})
	ann, checked, resent := r.clients["Ann"], 0, 0
	var load part
	for _, p := range d.Actors[0].Parts {
		if p.Name == "Load" {
			load = p
		}
	}
	for i := 2; i+2 < len(load.At); i++ {
		set, until := d.Steps[load.At[i]], d.Steps[load.At[i+1]]
		arrived, tries := 0.0, 0
		for _, rec := range d.Conns[0].Records {
			p := rec.Packet
			if units(rec.Units)&units(load.Units) == 0 || p.At < set-0.5 || p.At >= until-0.5 {
				continue
			}
			if tries++; p.Fate == 1 && arrived == 0 {
				arrived = (p.At + p.Told) / 2
			}
		}
		require.NotZero(t, tries, "the change at %v was never sent", set)
		if tries > 1 {
			resent++
		}
		if arrived == 0 {
			continue
		}
		for _, l := range ann.lags {
			if float64(l.load) == load.Of[i] {
				require.InDelta(t, arrived, float64(l.at)/1e6, 80, "when the client had %v", l.load)
				checked++
				break
			}
		}
	}
	require.Greater(t, checked, 20)
	require.Greater(t, resent, 2)
}

func units(s string) (m uint64) {
	_, _ = fmt.Sscanf(s, "%x", &m)
	return m
}

// TestBounds: what is kept has a bound in time and bytes, and a film of the rest still plays.
func TestBounds(t *testing.T) {
	r := newRig(t, 5, flight.Config{Keep: 8 * time.Second, MaxBytes: 1 << 20}, netsim.Settings{Lag: 20 * time.Millisecond}, "Ann", "Bob")
	most := 0
	for at := time.Second; at <= 2*time.Minute; at += time.Second {
		r.sim.RunUntil(at)
		most = max(most, r.rec.Bytes())
	}
	require.Nil(t, r.sim.Failure())
	require.NoError(t, r.rec.Err())
	require.LessOrEqual(t, most, 1<<20)
	d, _ := r.film(flight.View{Conns: []uint32{1}})
	first, last := d.Steps[0], d.Steps[len(d.Steps)-1]
	require.Greater(t, last, 119_000.0)
	require.Greater(t, last-first, 7900.0, "at least Keep")
	require.Less(t, last-first, 20_000.0)
	require.Len(t, d.Conns, 1)
	require.InDelta(t, r.carts[0].X, d.at(0, "X", len(d.Steps)-1), 0.006)

	_, err := flight.New(r.world, nil, flight.Config{MaxBytes: 1<<20 - 1})
	require.ErrorIs(t, err, flight.ErrConfig)
}

// TestFull: a world that is too large for its bytes ends the recording, and the game goes on.
func TestFull(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	rec, err := flight.New(w, nil, flight.Config{MaxBytes: 1 << 20})
	require.NoError(t, err)
	for range 400 {
		c := &Cart{t: t}
		require.NoError(t, w.Spawn(c))
	}
	now := time.Duration(0)
	for range 60 * 12 {
		for a := range w.All {
			a.(*Cart).Secret = fmt.Sprintf("%0100d", now)
			a.(*Cart).MarkDirty()
		}
		now += time.Second / 60
		w.Step(now)
	}
	require.ErrorIs(t, rec.Err(), flight.ErrFull)
	require.LessOrEqual(t, rec.Bytes(), 1<<20)
	d, _ := read(t, rec.Take(), flight.View{})
	require.Contains(t, d.Cut, "larger than a quarter of MaxBytes")
	require.NoError(t, w.Destroy(firstOf(w)))
	require.ErrorIs(t, rec.Close(), flight.ErrFull)
	kept := rec.Bytes()
	for id := range int64(100_000) {
		rec.Trace(&nettrace.Event{Kind: nettrace.PacketAcked, At: now, Conn: 1, PacketID: id})
	}
	require.Equal(t, kept, rec.Bytes(), "nothing is kept after Close")
	d, _ = read(t, rec.Take(), flight.View{})
	require.NotEmpty(t, d.Steps)
}

// TestClosed: after Close a film has all that was there until then, the last Step too.
func TestClosed(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	c := &Cart{t: t}
	require.NoError(t, w.Spawn(c))
	for i := range 100 {
		c.X = float64(i)
		w.Step(time.Duration(i) * time.Second / 60)
	}
	require.NoError(t, rec.Close())
	require.NoError(t, rec.Close())
	c.X = 1000
	w.Step(2 * time.Second)
	d, _ := read(t, rec.Take(), flight.View{})
	require.Empty(t, d.Cut)
	require.Len(t, d.Steps, 100)
	require.InDelta(t, 99, d.at(0, "X", 99), 0.006)
}

// TestAllocs: a recorder that keeps as much as it may makes no memory, in Steps between checkpoints and in those that copy them.
func TestAllocs(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	rec, err := flight.New(w, nil, flight.Config{MaxBytes: 1 << 20, Keep: 10 * time.Second})
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, w.Spawn(&Cart{t: t}))
	}
	now, packet := time.Duration(0), int64(0)
	step := func() {
		now += time.Second / 60
		for a := range w.All {
			a.(*Cart).X++
		}
		w.Step(now)
		for conn := range uint32(30) {
			packet++
			rec.Trace(&nettrace.Event{Kind: nettrace.PacketSent, At: now, Conn: conn, PacketID: packet, A: 500})
			rec.Trace(&nettrace.Event{Kind: nettrace.PacketAcked, At: now, Conn: conn, PacketID: packet - 300})
		}
	}
	for range 60 * 60 {
		step()
	}
	require.NoError(t, rec.Err())
	require.Zero(t, testing.AllocsPerRun(60*20, step))
	require.LessOrEqual(t, rec.Bytes(), 1<<20)
}

// TestLargeFilm: a film has the newest of more packets than it may have, and the newest of more values, and says what it lacks.
func TestLargeFilm(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	for range 12 {
		require.NoError(t, w.Spawn(&Cart{t: t}))
	}
	now := time.Duration(0)
	for range 60 * 16 {
		now += time.Second / 60
		for a := range w.All {
			a.(*Cart).X++
		}
		w.Step(now)
	}
	for id := range int64(5100) {
		rec.Trace(&nettrace.Event{Kind: nettrace.PacketSent, At: now, Conn: 3 + uint32(id&1), PacketID: id, A: 500})
	}
	take := func(values, entries int, v flight.View) film {
		f := rec.Take()
		f.Bound(values, entries)
		d, _ := read(t, f, v)
		require.Len(t, d.Actors, 12)
		require.EqualValues(t, 60*16, d.at(11, "X", len(d.Steps)-1))
		require.InDelta(t, float64(now)/1e6, d.Steps[len(d.Steps)-1], 0.01, "the newest")
		return d
	}
	d := take(12*60*17, 5000, flight.View{})
	require.Contains(t, d.Cut, "the oldest 100 packets")
	require.Len(t, d.Conns, 2)
	require.EqualValues(t, 100, d.Conns[0].Sent[0].ID)
	require.Less(t, d.Steps[0], 20.0)

	d = take(12*60*13, 5000, flight.View{Conns: []uint32{4}})
	require.Empty(t, d.Cut)
	require.Len(t, d.Conns, 1)
	require.Len(t, d.Conns[0].Sent, 2550)
	require.Greater(t, d.Steps[0], 5_000.0, "a later checkpoint")
	require.Less(t, d.Steps[0], 11_000.0)

	f := rec.Take()
	f.Bound(100, 5000)
	d, _ = read(t, f, flight.View{})
	require.Contains(t, d.Cut, "too many values")
	require.Greater(t, d.Steps[0], 15_000.0)
}

// TestFilmOfOneAmongMany: when there is more than a film may have, it has all of the connection that it was saved for, the newest of the others, and from when on it has these.
// So it is when the log began before what is kept.
func TestFilmOfOneAmongMany(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Cart", (*Cart)(nil)))
	rec, err := flight.New(w, nil, flight.Config{MaxBytes: 1 << 20})
	require.NoError(t, err)
	id := int64(0)
	step := func() {
		id++
		now := time.Duration(id) * 10 * time.Millisecond
		w.Step(now)
		for conn := range uint32(10) {
			rec.Trace(&nettrace.Event{Kind: nettrace.PacketSent, At: now, Conn: 1 + conn, PacketID: id, A: 500})
		}
	}
	for range 1000 {
		step()
	}
	f := rec.Take()
	f.Bound(1e6, 1900)
	f.SavedFor(4)
	d, _ := read(t, f, flight.View{})
	require.Contains(t, d.Cut, "the oldest 8100 packets")
	for _, c := range d.Conns {
		if c.ID == 4 {
			require.Len(t, c.Sent, 1000)
			require.Zero(t, c.From)
			continue
		}
		require.InDelta(t, 100, len(c.Sent), 1)
		require.InDelta(t, 9000, c.From, 20)
	}
	f = rec.Take()
	f.Bound(1e6, 700)
	f.SavedFor(4)
	d, _ = read(t, f, flight.View{})
	require.Len(t, d.Conns, 1)
	require.Len(t, d.Conns[0].Sent, 700)
	require.InDelta(t, 3000, d.Conns[0].From, 20)

	// Without a connection that it was saved for, it has all of the first that is there and was sent something.
	for conn := range uint32(4) {
		rec.Trace(&nettrace.Event{Kind: nettrace.BunchSent, Conn: 6 + conn, PacketID: id, A: nettrace.Reliable})
	}
	rec.Trace(&nettrace.Event{Kind: nettrace.ConnClosed, Conn: 6, A: uint64(netconn.TimedOut)})
	f = rec.Take()
	f.Bound(1e6, 1900)
	d, _ = read(t, f, flight.View{})
	for _, c := range d.Conns {
		require.Equal(t, c.ID != 7, c.From > 0, c.ID)
	}

	d, _ = read(t, rec.Take(), flight.View{})
	require.Empty(t, d.Cut)
	require.Zero(t, d.Conns[0].From)
	for range 30_000 {
		step()
	}
	d, _ = read(t, rec.Take(), flight.View{})
	for _, c := range d.Conns {
		require.InDelta(t, c.Sent[0].At, c.From, 20)
		require.Greater(t, c.From, 10_000.0)
	}
}

// Door sleeps. Its Bolt tells when it changes.
type Door struct {
	actorrep.Base
	Open  bool               `net:""`
	Label string             `net:""`
	Keys  []uint16           `net:"max=4"`
	Turn  [4]float64         `net:"quat=12"`
	Bolt  actorrep.Var[bool] `net:""`
}

// Sign is compared once in 10 s, and only when it was marked if its class is Manual.
type Sign struct {
	actorrep.Base
	Text string `net:""`
}

type ManualSign struct{ Sign }

// TestUnsaid: what the game sets without FlushDormancy or MarkDirty is noted, once, and what it does right isn't.
func TestUnsaid(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Door", (*Door)(nil)))
	require.NoError(t, w.Register("Sign", (*Sign)(nil), actorrep.UpdateFrequency(0.1)))
	require.NoError(t, w.Register("ManualSign", (*ManualSign)(nil), actorrep.UpdateFrequency(0.1), actorrep.Manual()))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	var doors []*Door
	for i := range 100 {
		d := &Door{}
		require.NoError(t, w.Spawn(d))
		require.NoError(t, d.SetDormant(i > 0))
		doors = append(doors, d)
	}
	now := time.Duration(0)
	step := func(n int) {
		for range n {
			now += time.Second / 60
			w.Step(now)
		}
	}
	sign, manual := &Sign{}, &ManualSign{}
	require.NoError(t, w.Spawn(sign))
	require.NoError(t, w.Spawn(manual))
	step(10)
	sign.Text, manual.Text = "in 10 s", "in 10 s, and it was said"
	manual.MarkDirty()
	doors[0].Open = true // awake
	doors[1].Open = true // told
	doors[1].FlushDormancy()
	doors[2].Bolt.Set(true)
	doors[3].Label = "forgotten"
	step(10)
	doors[4].Open, doors[4].Keys, doors[5].Turn = true, []uint16{3}, [4]float64{1}
	step(10)
	doors[3].Label = ""
	doors[4].FlushDormancy()
	step(10)
	doors[4].Open = false
	step(10)
	doors[5].Label = "too"
	step(10)
	doors[5].FlushDormancy()
	step(600)
	manual.Text = "forgotten"
	step(10)
	d, _ := read(t, rec.Take(), flight.View{})
	var said []string
	for _, n := range d.Notes {
		require.Contains(t, n.Text, " "+d.Actors[n.Actor].ID+": ")
		said = append(said, n.Text)
	}
	require.Equal(t, []string{
		"Door actor 4: the game set Label, and nobody is told: it sleeps; call FlushDormancy",
		"Door actor 5: the game set Open, Keys, and nobody is told: it sleeps; call FlushDormancy",
		"Door actor 6: the game set Turn, and nobody is told: it sleeps; call FlushDormancy",
		"Door actor 5: the game set Open, and nobody is told: it sleeps; call FlushDormancy",
		"Door actor 6: the game set Label, and nobody is told: it sleeps; call FlushDormancy",
		"ManualSign actor 102: the game set Text, and nobody is told: call its setter, or the actor's MarkDirty",
	}, said)
	require.Zero(t, testing.AllocsPerRun(60, func() { step(1) }))
}

// TestSameID: what is said of an id is about the actor that had it then.
func TestSameID(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Door", (*Door)(nil)))
	rec, err := flight.New(w, nil, flight.Config{})
	require.NoError(t, err)
	now := time.Duration(0)
	step := func() {
		for range 30 {
			now += time.Second / 60
			w.Step(now)
		}
	}
	first := &Door{}
	require.NoError(t, w.Spawn(first))
	id := first.GUID()
	for i, d := range []*Door{first, {}, {}} {
		if i > 0 {
			require.NoError(t, w.SpawnAs(d, nil, id))
		}
		require.NoError(t, d.SetDormant(true))
		step()
		d.Open, d.Label = i%2 == 0, fmt.Sprint("of ", i)
		step()
		require.NoError(t, w.Destroy(d))
		step()
	}
	d, _ := read(t, rec.Take(), flight.View{})
	var of []int
	for _, n := range d.Notes {
		of = append(of, n.Actor)
	}
	require.Len(t, d.Actors, 3)
	require.Equal(t, []int{0, 1, 2}, of)
}

// TestWhileRecording: films are made on goroutines of their own while the recorder goes on, drops what they show, and is filled again.
func TestWhileRecording(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Door", (*Door)(nil)))
	rec, err := flight.New(w, nil, flight.Config{MaxBytes: 1 << 20, Keep: 10 * time.Second})
	require.NoError(t, err)
	d := &Door{}
	require.NoError(t, w.Spawn(d))
	var films sync.WaitGroup
	var errs [3]error
	now := time.Duration(0)
	for i := range 900 {
		now += time.Second / 30
		d.Label = fmt.Sprint(i)
		w.Step(now)
		for id := range int64(100) {
			rec.Trace(&nettrace.Event{Kind: nettrace.PacketAcked, At: now, Conn: 1, PacketID: id})
		}
		if i%300 == 150 {
			f := rec.Take()
			films.Go(func() { errs[i/300] = f.WriteHTML(io.Discard, flight.View{}) })
		}
	}
	films.Wait()
	require.Equal(t, [3]error{}, errs)
}

func firstOf(w *actorrep.World) (first actorrep.Actor) {
	for a := range w.All {
		return a
	}
	return nil
}

// TestManyPackets: of a Step whose records take several packets a film has each record once, and the packets in which they were.
func TestManyPackets(t *testing.T) {
	r := newRig(t, 8, flight.Config{}, netsim.Settings{Lag: 20 * time.Millisecond}, "Ann")
	r.sim.RunUntil(time.Second)
	var all []*Cart
	for range 600 {
		c := &Cart{t: t}
		require.NoError(t, r.world.Spawn(c))
		all = append(all, c)
	}
	r.sim.RunUntil(4 * time.Second)
	for i, c := range all {
		c.X, c.Load = float64(i), 7
	}
	r.sim.RunUntil(5 * time.Second)
	require.Nil(t, r.sim.Failure())
	d, _ := r.film(flight.View{})
	times, packets := map[int]int{}, map[int64]int{}
	for _, rec := range d.Conns[0].Records {
		if rec.Actor > 0 && !rec.Opens && !rec.Calls && rec.Packet.At >= 4000 {
			times[rec.Actor]++
			packets[rec.Packet.ID]++
		}
	}
	require.Len(t, times, len(all))
	for actor, n := range times {
		require.Equal(t, 1, n, "records of actor %d", actor)
	}
	require.Greater(t, len(packets), 2)
	for id, n := range packets {
		require.Less(t, n, len(all)/2, "records in packet %d", id)
	}
}
