package actorrep_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// sailor has fields of every kind and condition.
type sailor struct {
	actorrep.Base
	Seq    uint32                       `net:""` // changes with anything else
	Var    actorrep.Var[uint32]         `net:""`
	Pos    vec3                         `net:"q=0.01"`
	Rot    [4]float64                   `net:"quat=15"`
	When   time.Time                    `net:""`
	Dur    time.Duration                `net:""`
	Addr   netip.Addr                   `net:""`
	Port   netip.AddrPort               `net:""`
	Pouch  *pouch                       `net:""`
	Papers papers                       `net:"notify=OnPapers"`
	Old    []papers                     `net:"cap=6"`
	Mate   actorrep.Ref[*sailor]        `net:"notify=OnMate"`
	Gear   fastarray.List[gear]         `net:""`
	Debts  fastarray.Map[string, int32] `net:""`
	UUID   [16]byte                     `net:""`
	Own    uint32                       `net:"owner"`
	Not    uint32                       `net:"skipowner"`
	Red    uint32                       `net:"group=red"`
	Cust   uint32                       `net:"custom"`
	F64    float64                      `net:""`
	F32s   [3]float32                   `net:""`
	Str    actorrep.Var[string]         `net:"cap=200"`
	Raw    []byte                       `net:"cap=6000"`

	gear  []fastarray.ID
	heard uint32
}

type pouch struct{ Gold, Silver int32 }

type papers struct {
	A    int16
	Who  actorrep.Ref[*sailor]
	More []actorrep.Ref[*sailor] `net:"cap=8"`
	Text string                  `net:"cap=50"`
}

type gear struct {
	Seq  uint32
	Beat uint16 `net:"max=999"`
}

func (s *sailor) OnPapers(papers) {}
func (s *sailor) OnMate()         {}
func (s *sailor) Location() (x, y, z float64) {
	return float64(s.Pos.X), float64(s.Pos.Y), float64(s.Pos.Z)
}

// newest is the Seq of the newest gear.
func (s *sailor) newest() (n uint32) {
	for _, g := range s.Gear.All {
		n = max(n, g.Seq)
	}
	return n
}

// crew is a component with more than 64 units.
type crew struct {
	actorrep.Base
	Seq  uint32     `net:""`
	Many [120]int32 `net:""`
	P    [20]struct {
		A uint8   `net:"max=30"`
		B float32 `net:"q=0.5"`
	} `net:""`
	Lead actorrep.Ref[*sailor] `net:""`
	Own  uint32                `net:"owner"`
}

// shouted is a call's number, and the values that the actor had when it was made.
type shouted struct{ N, Seq, Var, Gear uint32 }

// voyage is a game in which actors with every kind of field and components come, change in every way that the package has, and go,
// with calls all the while; connections change from good to dark, come and go; and all of it is recorded.
type voyage struct {
	*world
	sailors        []*sailor
	crews          []*crew
	n              uint32
	shout, whisper *actorrep.RPC[*sailor, shouted]
	clap           *actorrep.RPC[*sailor, uint32]
	clapped        map[uint32]bool
	torn           map[netguid.GUID]string // what everybody is to have of actors that were torn off
	early          map[string]bool         // those of which a connection has less, as Failed said
	seeking        bool
	errs           []string
}

func (o *voyage) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Sprintf("%v: ", o.Now)+fmt.Sprintf(format, args...))
}

// right fails the test with the first of what went wrong.
func (o *voyage) right() {
	if len(o.errs) > 0 {
		o.T.Fatal(strings.Join(o.errs[:min(5, len(o.errs))], "\n"))
	}
}

// hear runs a call at a client, where what was set before it is there.
func (o *voyage) hear(c actorrep.Call, s *sailor, n shouted) error {
	if c.World.IsServer() {
		return nil
	}
	if s.Seq < n.Seq || s.Var.Get() < n.Var || s.newest() < n.Gear {
		o.bad("call %d runs on %v with %d, %d, %d; want %v", n.N, s.GUID(), s.Seq, s.Var.Get(), s.newest(), n)
	}
	if n.N <= s.heard && !o.seeking {
		o.bad("call %d runs on %v behind %d", n.N, s.GUID(), s.heard)
	}
	s.heard = n.N
	return nil
}

func (o *voyage) call(s *sailor) {
	full := func(err error) bool { return err == nil || errors.Is(err, actorrep.ErrFull) } // MissedError says it, too
	o.n++
	if err := o.shout.Call(s, shouted{o.n, s.Seq, s.Var.Get(), s.newest()}); !full(err) {
		o.bad("shout: %v", err)
	}
	o.n++
	if s.Owner() == nil {
		return
	}
	if err := o.whisper.Call(s, shouted{o.n, s.Seq, s.Var.Get(), s.newest()}); !full(err) && !errors.Is(err, actorrep.ErrNotThere) {
		o.bad("whisper: %v", err)
	}
}

func (o *voyage) line() *rig.Line { return o.Lines[o.Rand.IntN(len(o.Lines))] }

func (o *voyage) look(l *rig.Line) {
	l.Peer.SetViewpoint(o.Rand.Float64()*200, o.Rand.Float64()*200, 0)
}

func (o *voyage) ref() actorrep.Ref[*sailor] {
	if len(o.sailors) == 0 || o.Rand.IntN(4) == 0 {
		return actorrep.Ref[*sailor]{}
	}
	return actorrep.RefTo(o.sailors[o.Rand.IntN(len(o.sailors))])
}

func (o *voyage) spawn() {
	s := &sailor{Pos: vec3{o.Rand.Float32() * 200, o.Rand.Float32() * 200, 0}}
	if o.Rand.IntN(4) == 0 {
		s.Raw = bytes.Repeat([]byte{7}, 3000+o.Rand.IntN(3000))
	}
	if o.Rand.IntN(2) == 0 {
		s.SetOwner(o.line().Peer)
	}
	require.NoError(o.T, o.Server.Spawn(s))
	o.sailors = append(o.sailors, s)
	if o.Rand.IntN(3) == 0 {
		o.call(s)
	}
}

// mutate changes values of an actor.
func (o *voyage) mutate(s *sailor) {
	r := o.Rand
	s.Seq++
	switch r.IntN(28) {
	case 0:
		s.Var.Set(s.Var.Get() + 1)
	case 1, 2, 3:
		s.Pos.X += r.Float32()*6 - 3
		s.Pos.Y += r.Float32()*6 - 3
	case 4:
		s.Rot = [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	case 5:
		s.When, s.Dur = time.Unix(r.Int64N(1e10), r.Int64N(1e9)), time.Duration(r.Int64())
	case 6:
		s.When = time.Time{}
	case 7:
		s.Addr = netip.AddrFrom4([4]byte{1, 2, 3, byte(r.IntN(9))})
		s.Port = netip.AddrPortFrom(netip.MustParseAddr("fe80::1%eth"+strconv.Itoa(r.IntN(5))), uint16(r.UintN(65536)))
	case 8:
		s.Addr, s.Port = netip.Addr{}, netip.AddrPort{}
	case 9:
		s.Pouch = nil
	case 10:
		if s.Pouch == nil {
			s.Pouch = &pouch{Silver: r.Int32()}
		}
		s.Pouch.Gold++
	case 11:
		s.Papers = papers{int16(r.IntN(100)), o.ref(), nil, strings.Repeat("é", r.IntN(25))}
		for range r.IntN(4) {
			s.Papers.More = append(s.Papers.More, o.ref())
		}
	case 12:
		s.Old = s.Old[:r.IntN(len(s.Old)+1)]
	case 13:
		if len(s.Old) < 6 {
			s.Old = append(s.Old, papers{A: int16(r.IntN(9)), Who: o.ref(), More: []actorrep.Ref[*sailor]{o.ref()}})
		}
	case 14:
		s.Mate = o.ref()
	case 15, 16:
		if id, err := s.Gear.Add(gear{s.Seq, uint16(r.IntN(1000))}); err == nil {
			s.gear = append(s.gear, id)
		}
	case 17, 18: // never the newest, which calls tell of
		if len(s.gear) < 2 {
			break
		}
		i := r.IntN(len(s.gear) - 1)
		if r.IntN(2) == 0 {
			require.NoError(o.T, s.Gear.Set(s.gear[i], gear{Beat: uint16(r.IntN(1000))}))
			break
		}
		require.NoError(o.T, s.Gear.Remove(s.gear[i]))
		s.gear = slices.Delete(s.gear, i, i+1)
	case 19:
		require.NoError(o.T, s.Debts.Set(strconv.Itoa(r.IntN(20)), r.Int32()))
	case 20:
		require.NoError(o.T, s.Debts.Delete(strconv.Itoa(r.IntN(20))))
		if r.IntN(10) == 0 {
			require.NoError(o.T, s.Debts.Clear())
		}
	case 21:
		s.UUID[r.IntN(16)] = byte(r.IntN(256))
	case 22:
		s.Own++
		s.Not++
		s.Red++
	case 23:
		s.Cust++
	case 24:
		s.F64 = []float64{r.NormFloat64(), math.Inf(1), 0, math.SmallestNonzeroFloat64}[r.IntN(4)]
		s.F32s[r.IntN(3)] = r.Float32()
	case 25:
		s.Str.Set(strings.Repeat("s", r.IntN(200)))
	case 26:
		if r.IntN(5) == 0 {
			s.Raw = bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(6001))
		}
	}
	if s.Dormant() && r.IntN(20) == 0 {
		s.FlushDormancy()
	}
}

// happen does something with an actor or a connection, and changes values of all actors.
func (o *voyage) happen() {
	r := o.Rand
	if len(o.sailors) == 0 {
		o.spawn()
	}
	i := r.IntN(len(o.sailors))
	s := o.sailors[i]
	switch r.IntN(36) {
	case 0, 1:
		if len(o.sailors) < 14 {
			o.spawn()
		}
	case 2:
		if len(o.sailors) > 3 {
			s.Seq++
			o.call(s)
			require.NoError(o.T, o.Server.Destroy(s))
			o.sailors = slices.Delete(o.sailors, i, i+1)
		}
	case 3:
		c := &crew{Lead: o.ref()}
		require.NoError(o.T, o.Server.SpawnIn(s, c))
		o.crews = append(o.crews, c)
	case 4:
		if len(o.crews) > 0 {
			require.NoError(o.T, o.Server.Destroy(o.crews[r.IntN(len(o.crews))]))
		}
	case 5, 6:
		if r.IntN(2) == 0 {
			o.call(s)
		}
		s.SetOwner(o.line().Peer)
		o.call(s)
	case 7:
		s.SetOwner(nil)
	case 8, 9:
		require.NoError(o.T, s.SetDormant(!s.Dormant()))
	case 10:
		s.SetAutonomous(r.IntN(2) == 0)
	case 11:
		require.NoError(o.T, s.SetCondition("Cust", r.IntN(2) == 0))
	case 12, 13:
		o.look(o.line())
	case 14:
		require.NoError(o.T, s.SetUpdateFrequency(float64(r.IntN(3)*10)))
	case 15:
		s.SetOnlyOwner(r.IntN(4) == 0)
	case 16:
		s.SetAlwaysRelevant(r.IntN(4) == 0)
	case 17:
		o.line().Peer.SetUpdateEvery(s, 1+r.IntN(7))
	case 18:
		if p := o.line().Peer; p.InGroup("red") {
			p.LeaveGroup("red")
		} else {
			require.NoError(o.T, p.JoinGroup("red"))
		}
	case 19:
		if r.IntN(3) == 0 && len(o.sailors) > 3 {
			o.call(s)
			require.NoError(o.T, s.TearOff())
			o.torn[s.GUID()] = common(s)
			if r.IntN(2) == 0 {
				require.NoError(o.T, o.Server.Destroy(s))
			}
			o.sailors = slices.Delete(o.sailors, i, i+1)
		}
	case 20:
		if p := o.line().Peer; r.IntN(2) == 0 {
			p.Hold(func(actorrep.Actor) bool { return true })
		} else {
			p.Release()
		}
	case 21, 22, 23:
		o.call(s)
	case 24:
		s.Seq++
		o.call(s)
		s.Seq++
		o.call(s)
	}
	o.crews = slices.DeleteFunc(o.crews, func(c *crew) bool {
		return c.World() == nil || !slices.Contains(o.sailors, c.Parent().(*sailor))
	})
	for _, s := range o.sailors {
		o.mutate(s)
	}
	for _, c := range o.crews {
		c.Seq++
		c.Many[r.IntN(120)] = r.Int32N(1000)
		p := &c.P[r.IntN(20)]
		p.A, p.B = uint8(r.IntN(31)), float32(r.IntN(100))/2
		if r.IntN(10) == 0 {
			c.Lead, c.Own = o.ref(), c.Own+1
		}
	}
	for _, l := range o.Lines {
		for a := range l.World.All {
			if m, ok := a.(*sailor); ok && m.IsOwned() && r.IntN(10) == 0 {
				o.n++
				_ = o.clap.Call(m, o.n) // of those that are refused, or that the other end loses, it is told
			}
		}
	}
}

// common is the values that everybody has, in text.
func common(s *sailor) string {
	text := fmt.Sprint(s.Seq, s.Var.Get(), s.When.UTC(), s.Dur, s.Addr, s.Port, s.Papers, s.Old, s.Mate.GUID(), s.UUID, s.F64, s.F32s, s.Str.Get(), len(s.Raw), bytes.Count(s.Raw, []byte{7}))
	for _, g := range s.Gear.All {
		text += fmt.Sprint(g)
	}
	for k, v := range s.Debts.All {
		text += fmt.Sprint(k, v)
	}
	if s.Pouch != nil {
		text += fmt.Sprint(*s.Pouch)
	}
	return text
}

// differs says what a client has otherwise than it should.
func (o *voyage) differs(l *rig.Line, s, m *sailor) string {
	w := []any{common(s), m.Own, s.Not, m.Red, s.Cust}
	if s.Owner() == l.Peer {
		w[1], w[2] = s.Own, m.Not
	}
	if l.Peer.InGroup("red") {
		w[3] = s.Red
	}
	if o.Server.Explain(l.Peer, s, "Cust").Reason == actorrep.ReasonInactive {
		w[4] = m.Cust
	}
	if w, g := fmt.Sprint(w...), fmt.Sprint(common(m), m.Own, m.Not, m.Red, m.Cust); w != g {
		return fmt.Sprintf("%v:\n got %s\nwant %s", s.GUID(), g, w)
	}
	if math.Hypot(float64(s.Pos.X-m.Pos.X), float64(s.Pos.Y-m.Pos.Y)) > 0.0075 {
		return fmt.Sprintf("%v: %v, not %v", s.GUID(), m.Pos, s.Pos)
	}
	return ""
}

// same says what a client lacks of all.
func (o *voyage) same(l *rig.Line) string {
	for _, s := range o.sailors {
		relevant, e := l.Peer.IsRelevant(s), o.Server.Explain(l.Peer, s)
		m, _ := l.World.Find(s.GUID()).(*sailor)
		switch {
		case relevant != (m != nil):
			return fmt.Sprintf("%v relevant %v, there %v: %s", s.GUID(), relevant, m != nil, e.Text)
		case !relevant:
			continue
		case m.IsOwned() != (s.Owner() == l.Peer):
			return fmt.Sprintf("%v owned %v", s.GUID(), m.IsOwned())
		case l.World.Find(s.Mate.GUID()) != nil && m.Mate.In(l.World) == nil:
			return fmt.Sprintf("%v has no mate", s.GUID())
		case e.Reason != actorrep.ReasonUpToDate && e.Reason != actorrep.ReasonDormant && e.Reason != actorrep.ReasonInFlight:
			return fmt.Sprintf("%v: %s", s.GUID(), e.Text)
		}
		if d := o.differs(l, s, m); d != "" {
			return d + "\n" + e.Text
		}
	}
	for _, c := range o.crews {
		m, _ := l.World.Find(c.GUID()).(*crew)
		if relevant := l.Peer.IsRelevant(c.Parent()); relevant != (m != nil) {
			return fmt.Sprintf("crew %v relevant %v, there %v", c.GUID(), relevant, m != nil)
		}
		if m == nil {
			continue
		}
		own := m.Own
		if c.Owner() == l.Peer {
			own = c.Own
		}
		if w, g := fmt.Sprint(c.Seq, c.Many, c.P, c.Lead.GUID(), own), fmt.Sprint(m.Seq, m.Many, m.P, m.Lead.GUID(), m.Own); w != g {
			return fmt.Sprintf("crew %v:\n got %s\nwant %s\n%s", c.GUID(), g, w, o.Server.Explain(l.Peer, c).Text)
		}
	}
	return ""
}

// believe looks whether clients have what Explain says they have.
func (o *voyage) believe() {
	for _, l := range o.Lines {
		for _, s := range o.sailors {
			if o.Server.Explain(l.Peer, s).Reason != actorrep.ReasonUpToDate {
				continue
			}
			if m, _ := l.World.Find(s.GUID()).(*sailor); m == nil {
				o.bad("%v is up to date, and isn't there", s.GUID())
			} else if d := o.differs(l, s, m); d != "" {
				o.bad("up to date: %s", d)
			}
		}
	}
}

// tornRight looks at what clients have of actors that were torn off.
func (o *voyage) tornRight() {
	for _, l := range o.Lines {
		for a := range l.World.All {
			m, ok := a.(*sailor)
			if !ok || !m.TornOff() {
				continue
			}
			if w, g := o.torn[m.GUID()], common(m); w != g && !o.early[fmt.Sprint(m.GUID(), l.Peer)] {
				o.bad("%v torn off:\n got %s\nwant %s", m.GUID(), g, w)
			}
			if o.Rand.IntN(3) == 0 {
				require.NoError(o.T, l.World.Destroy(m))
			}
		}
	}
}

func newVoyage(t *testing.T, seed uint64) *voyage {
	o := &voyage{clapped: map[uint32]bool{}, torn: map[netguid.GUID]string{}, early: map[string]bool{}}
	o.shout = actorrep.MulticastRPC(o.hear, actorrep.Reliable)
	o.whisper = actorrep.ClientRPC(o.hear, actorrep.Reliable)
	o.clap = actorrep.ServerRPC(func(c actorrep.Call, s *sailor, n uint32) error {
		if s.Owner() != c.Peer || o.clapped[n] {
			o.bad("clap %d by another, or again", n)
		}
		o.clapped[n] = true
		return nil
	}, actorrep.Reliable)
	cfg := actorrep.Config{RelevantTimeout: relevantTimeout, Failed: func(err error) {
		var e *actorrep.ActorError
		switch {
		case errors.Is(err, actorrep.ErrTornEarly) && errors.As(err, &e):
			o.early[fmt.Sprint(e.Actor.(*sailor).GUID(), e.Peer)] = true
		case !errors.Is(err, actorrep.ErrActorGone) && !errors.Is(err, actorrep.ErrOwnerGone):
			o.bad("failed: %v", err)
		}
	}}
	if seed%3 == 1 {
		cfg.Parallel = driver.Cores(3)
	}
	o.world = newWorld(t, seed, netsim.Settings{Loss: 20, LagMin: 30 * time.Millisecond, LagMax: 130 * time.Millisecond}, cfg, func(t testing.TB, w *actorrep.World) {
		require.NoError(t, w.Register("crew", (*crew)(nil)))
		require.NoError(t, w.Register("sailor", (*sailor)(nil), actorrep.CullDistance(120), actorrep.RPCs{"Shout": o.shout, "Whisper": o.whisper, "Clap": o.clap}))
	})
	if seed%2 == 1 {
		o.Server.SetFrame(math.MaxUint32 - 300)
	}
	if seed%3 == 1 {
		o.Server.CompareOnCoresFrom(10)
	}
	if seed%5 == 2 {
		o.Speed = 12 << 10
	}
	return o
}

// weathers are how connections are for two seconds each.
var weathers = []netsim.Settings{
	{},
	{Loss: 5, LagMin: 20 * time.Millisecond, LagMax: 40 * time.Millisecond},
	{Loss: 20, Dup: 5, Order: 10, LagMin: 30 * time.Millisecond, LagMax: 130 * time.Millisecond},
	{Loss: 40, Dup: 10, Order: 30, LagMin: 10 * time.Millisecond, LagMax: 200 * time.Millisecond},
	{Loss: 100},
}

func (o *voyage) sail(steps int, seed uint64) {
	for range 3 {
		o.look(o.join())
	}
	rest := 0
	for i := range steps {
		if i%60 == 0 {
			for _, l := range o.Lines {
				require.NoError(o.T, l.Up.Set(weathers[o.Rand.IntN(len(weathers))]))
				require.NoError(o.T, l.Down.Set(weathers[o.Rand.IntN(len(weathers))]))
			}
		}
		switch {
		case rest > 0:
			rest--
		case o.Rand.IntN(150) == 0:
			rest = o.Rand.IntN(90)
		default:
			for range 1 + o.Rand.IntN(2) {
				o.happen()
			}
		}
		switch {
		case i == steps*4/9 || i == steps*6/9:
			o.look(o.join())
		case i == steps*5/9 && seed%2 == 0:
			o.Server.RemoveConn(o.Lines[1].Peer)
			o.Lines = slices.Delete(o.Lines, 1, 2)
		case i%97 == 0:
			o.tornRight()
		}
		o.believe()
		o.Step()
		o.believe()
		o.right()
	}
}

// land ends with good connections, on which all that was said comes true.
func (o *voyage) land() {
	for _, l := range o.Lines {
		require.NoError(o.T, l.Up.Set(weathers[1]))
		require.NoError(o.T, l.Down.Set(weathers[1]))
		l.Peer.Release()
	}
	for _, s := range o.sailors {
		require.NoError(o.T, s.SetCondition("Cust", true))
		s.FlushDormancy()
	}
	for _, c := range o.crews {
		c.FlushDormancy()
	}
	o.UntilBy(o.Step, o.same)
	for range 60 {
		o.Step()
	}
	for _, l := range o.Lines {
		require.Empty(o.T, o.same(l), "later")
	}
	o.tornRight()
	o.right()
}

// play plays the recording, from its beginning or with seeks; at its end it shows what was.
func (o *voyage) play(file []byte, seek bool) {
	r, err := replay.Open(bytes.NewReader(file), int64(len(file)))
	require.NoError(o.T, err)
	c := actorrep.NewClient(actorrep.Config{Failed: func(err error) { o.bad("replay: %v", err) }})
	o.seeking = seek
	require.NoError(o.T, o.register(c))
	require.NoError(o.T, r.Play(c))
	if seek {
		for range 10 {
			require.NoError(o.T, r.Seek(time.Duration(o.Rand.Int64N(int64(r.Duration())))))
			require.NoError(o.T, r.Step(0))
		}
		require.NoError(o.T, r.Seek(r.Duration()))
	}
	for now := time.Duration(0); now < r.Duration()+time.Second; now += time.Second / 20 {
		require.NoError(o.T, r.Step(now))
	}
	for _, s := range o.sailors {
		m, _ := c.Find(s.GUID()).(*sailor)
		require.NotNil(o.T, m)
		require.Equal(o.T, fmt.Sprint(common(s), s.Red, s.Cust), fmt.Sprint(common(m), m.Red, m.Cust), "replay, seek %v", seek)
	}
	o.right()
}

// TestAllFeatures plays everything that the package has at once. It checks in every Step that Explain is right and that calls run
// after what was set before them, and at the end that all clients, and the recording, have what the server has.
func TestAllFeatures(t *testing.T) {
	seeds, steps := 3, 600
	if os.Getenv("CI") != "" {
		seeds, steps = 24, 900
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := newVoyage(t, seed)
			var file bytes.Buffer
			rec, err := replay.Record(o.Server, &file, replay.Config{})
			require.NoError(t, err)
			o.sail(steps, seed)
			o.land()
			require.NoError(t, rec.Close())
			o.play(file.Bytes(), false)
			o.play(file.Bytes(), true)
		})
	}
}
