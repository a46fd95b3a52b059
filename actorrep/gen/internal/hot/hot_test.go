package hot

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// plain is the same struct without the generated code.
type plain Craft

func (*plain) OnPos() {}

// vars is the same class made of Vars.
type vars struct {
	actorrep.Base
	Pos    actorrep.Var[Vec]           `net:"q=0.01"`
	Rot    actorrep.Var[[3]float32]    `net:"rot=16"`
	Speed  actorrep.Var[float32]       `net:""`
	Mass   actorrep.Var[float64]       `net:""`
	Armor  actorrep.Var[uint8]         `net:"max=100"`
	Fuel   actorrep.Var[Liters]        `net:"q=0.1,owner"`
	Heat   actorrep.Var[int16]         `net:""`
	Shots  actorrep.Var[uint32]        `net:""`
	Lights actorrep.Var[bool]          `net:""`
	Target actorrep.Var[netguid.GUID]  `net:""`
	Doors  actorrep.Var[[3]bool]       `net:""`
	Guns   actorrep.Var[[2]Engine]     `net:""`
	Name   actorrep.Var[string]        `net:"cap=32"`
	Log    actorrep.Var[[]int32]       `net:"cap=16"`
	Alive  actorrep.Var[time.Duration] `net:""`
	Shield actorrep.Var[Vec]           `net:"q=0.1"`
	Cargo  fastarray.List[Crate]       `net:""`
	trim   actorrep.Var[int8]          `net:""`
	Att    actorrep.Var[[4]float32]    `net:"quat=14"`
}

// state is what a craft of any kind has.
type state struct {
	pos    Vec
	rot    [3]float32
	speed  float32
	mass   float64
	armor  uint8
	fuel   Liters
	heat   int16
	shots  uint32
	lights bool
	target netguid.GUID
	doors  [3]bool
	guns   [2]Engine
	name   string
	log    []int32
	alive  time.Duration
	shield Vec
	trim   int8
	att    [4]float32
}

// setters is how each kind takes a state, a field at a time.
type setter interface {
	actorrep.Actor
	GUID() netguid.GUID
	set(s *state, field int)
	state() state
	cargo() *fastarray.List[Crate]
}

const fields = 18

func (c *Craft) set(s *state, field int) {
	switch field {
	case 0:
		c.SetPos(s.pos)
	case 1:
		c.SetRotAt(1, s.rot[1])
	case 2:
		c.SetSpeed(s.speed)
	case 3:
		c.SetMass(s.mass)
	case 4:
		c.SetArmor(s.armor)
	case 5:
		c.SetFuel(s.fuel)
	case 6:
		c.SetHeat(s.heat)
	case 7:
		c.SetShots(s.shots)
	case 8:
		c.SetLights(s.lights)
	case 9:
		c.SetTarget(s.target)
	case 10:
		c.SetDoorsAt(2, s.doors[2])
	case 11:
		c.SetGunsAt(1, s.guns[1])
	case 12:
		c.SetName(s.name)
	case 13:
		c.SetLog(s.log)
	case 14:
		c.SetAlive(s.alive)
	case 15:
		c.Shield.Set(s.shield)
	case 16:
		c.setTrim(s.trim)
	case 17:
		c.SetAtt(s.att)
	}
}

func (c *plain) set(s *state, field int) {
	switch field {
	case 0:
		c.Pos = s.pos
	case 1:
		c.Rot[1] = s.rot[1]
	case 2:
		c.Speed = s.speed
	case 3:
		c.Mass = s.mass
	case 4:
		c.Armor = s.armor
	case 5:
		c.Fuel = s.fuel
	case 6:
		c.Heat = s.heat
	case 7:
		c.Shots = s.shots
	case 8:
		c.Lights = s.lights
	case 9:
		c.Target = s.target
	case 10:
		c.Doors[2] = s.doors[2]
	case 11:
		c.Guns[1] = s.guns[1]
	case 12:
		c.Name = s.name
	case 13:
		c.Log = s.log
	case 14:
		c.Alive = s.alive
	case 15:
		c.Shield.Set(s.shield)
	case 16:
		c.trim = s.trim
	case 17:
		c.Att = s.att
	}
}

func (c *vars) set(s *state, field int) {
	switch field {
	case 0:
		c.Pos.Set(s.pos)
	case 1:
		rot := c.Rot.Get()
		rot[1] = s.rot[1]
		c.Rot.Set(rot)
	case 2:
		c.Speed.Set(s.speed)
	case 3:
		c.Mass.Set(s.mass)
	case 4:
		c.Armor.Set(s.armor)
	case 5:
		c.Fuel.Set(s.fuel)
	case 6:
		c.Heat.Set(s.heat)
	case 7:
		c.Shots.Set(s.shots)
	case 8:
		c.Lights.Set(s.lights)
	case 9:
		c.Target.Set(s.target)
	case 10:
		doors := c.Doors.Get()
		doors[2] = s.doors[2]
		c.Doors.Set(doors)
	case 11:
		guns := c.Guns.Get()
		guns[1] = s.guns[1]
		c.Guns.Set(guns)
	case 12:
		c.Name.Set(s.name)
	case 13:
		c.Log.Set(s.log)
	case 14:
		c.Alive.Set(s.alive)
	case 15:
		c.Shield.Set(s.shield)
	case 16:
		c.trim.Set(s.trim)
	case 17:
		c.Att.Set(s.att)
	}
}

func (c *Craft) state() state { return (*plain)(c).state() }

func (c *plain) state() state {
	return state{c.Pos, c.Rot, c.Speed, c.Mass, c.Armor, c.Fuel, c.Heat, c.Shots, c.Lights, c.Target, c.Doors, c.Guns, c.Name, c.Log, c.Alive, c.Shield.Get(), c.trim, c.Att}
}

func (c *vars) state() state {
	return state{c.Pos.Get(), c.Rot.Get(), c.Speed.Get(), c.Mass.Get(), c.Armor.Get(), c.Fuel.Get(), c.Heat.Get(), c.Shots.Get(), c.Lights.Get(),
		c.Target.Get(), c.Doors.Get(), c.Guns.Get(), c.Name.Get(), c.Log.Get(), c.Alive.Get(), c.Shield.Get(), c.trim.Get(), c.Att.Get()}
}

func (c *Craft) cargo() *fastarray.List[Crate] { return &c.Cargo }
func (c *plain) cargo() *fastarray.List[Crate] { return &c.Cargo }
func (c *vars) cargo() *fastarray.List[Crate]  { return &c.Cargo }

func randomState(rng *rand.Rand) (s state) {
	f := func() float64 { return math.Round((rng.Float64()-0.5)*1e5) / 100 }
	s = state{pos: Vec{f(), f(), f()}, rot: [3]float32{0, float32(f()), 0}, speed: float32(f()), mass: f(), armor: uint8(rng.UintN(256)), fuel: Liters(f()),
		heat: int16(rng.Uint32()), shots: rng.Uint32(), lights: rng.IntN(2) == 0, target: netguid.GUID(rng.Uint32N(4)), name: fmt.Sprint(rng.IntN(100)),
		alive: time.Duration(rng.Int64()), shield: Vec{Y: f()}, trim: int8(rng.Uint32()), att: [4]float32{rng.Float32() - 0.5, rng.Float32() - 0.5, rng.Float32() - 0.5, rng.Float32() - 0.5}}
	s.doors[2], s.guns[1] = rng.IntN(2) == 0, Engine{f(), uint16(rng.Uint32()), [2]int8{int8(rng.Uint32()), 3}}
	for range rng.IntN(17) {
		s.log = append(s.log, rng.Int32())
	}
	return s
}

// TestSame compares random values with the generated code and with reflection: the same numbers, the same changes.
func TestSame(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	own, err := layout.Build(reflect.TypeFor[Craft]())
	require.NoError(t, err)
	bare, err := layout.Build(reflect.TypeFor[plain]())
	require.NoError(t, err)
	require.Equal(t, bare.Hash(), own.Hash())
	require.Equal(t, own.All(), own.Pushed)
	c := &Craft{}
	a, b := own.NewShadow(), bare.NewShadow()
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat64, 1e300, 360, -360}
	for step := range 20000 {
		s := randomState(rng)
		if rng.IntN(4) == 0 {
			s.pos.Y, s.rot[1], s.mass, s.fuel = odd[rng.IntN(len(odd))], float32(odd[rng.IntN(len(odd))]), odd[rng.IntN(len(odd))], Liters(odd[rng.IntN(len(odd))])
			s.att[2] = float32(odd[rng.IntN(len(odd))])
		}
		for range rng.IntN(4) {
			(*plain)(c).set(&s, rng.IntN(fields))
		}
		m := layout.Mask(rng.Uint64()) | 0xf0f0
		require.Equal(t, bare.Compare(b, unsafe.Pointer(c), m&bare.All()), own.Compare(a, unsafe.Pointer(c), m&own.All()), "seed %d step %d", seed, step)
		require.Equal(t, b.Words, a.Words, "seed %d step %d", seed, step)
	}
}

type stale struct {
	actorrep.Base
	A int8 `net:""`
	B int8 `net:""`
}

func (*stale) NetUnits() string                                 { return "A {int 1 0 0 0}\n" }
func (*stale) NetCompare([]uint64, layout.Mask) (_ layout.Mask) { return 0 }

func TestStale(t *testing.T) {
	err := actorrep.NewServer(actorrep.Config{}).Register("stale", (*stale)(nil))
	require.ErrorIs(t, err, layout.ErrStale)
	require.ErrorContains(t, err, "B {int")
}

// kinds is the class in its three forms.
var kinds = []struct {
	name string
	make func() setter
}{
	{"plain", func() setter { return &plain{} }},
	{"vars", func() setter { return &vars{} }},
	{"generated", func() setter { return &Craft{} }},
}

// near is what a client should have of a state that isn't its own.
func near(s state, mine bool) state {
	c := &plain{}
	for i := range fields {
		c.set(&s, i)
	}
	l, _ := layout.Build(reflect.TypeFor[plain]())
	shadow := l.NewShadow()
	l.Compare(shadow, unsafe.Pointer(c), l.All())
	n := 0
	next := func() float64 { n++; return float64(int64(shadow.Words[n-1]>>1) ^ -int64(shadow.Words[n-1]&1)) }
	s.pos = Vec{next() * 0.01, next() * 0.01, next() * 0.01}
	for i := range s.rot {
		s.rot[i] = float32(float64(shadow.Words[n+i]) * 360 / 65536)
	}
	n = 9
	s.fuel = Liters(next() * 0.1)
	if !mine {
		s.fuel = 0
	}
	s.armor = min(s.armor, 100)
	for i := range s.guns {
		n = 17 + 4*i
		s.guns[i].Power = next() * 0.5
		s.guns[i].RPM = min(s.guns[i].RPM, 9000)
	}
	n = 26
	s.shield = Vec{next() * 0.1, next() * 0.1, next() * 0.1}
	n = l.Words() - 4
	att := [4]float64{next(), next(), next(), next()}
	length := math.Sqrt(max(1, att[0]*att[0]+att[1]*att[1]+att[2]*att[2]+att[3]*att[3]))
	for i := range s.att {
		s.att[i] = float32(att[i] / length)
	}
	s.log = append([]int32{}, s.log[:min(16, len(s.log))]...)
	return s
}

// TestInterop has servers and clients with the class in each form: whoever speaks with whom, over a bad network. Some numbers are over their
// max; in each form the server is told of them, and clients have the largest that fits.
func TestInterop(t *testing.T) {
	for i, server := range kinds {
		t.Run(server.name, func(t *testing.T) {
			unfit := map[string]int{"craft.Armor ": 0, "craft.Guns[1].RPM ": 0}
			failed := func(err error) {
				for field := range unfit {
					if errors.Is(err, actorrep.ErrUnfit) && strings.Contains(err.Error(), field) {
						unfit[field]++
						return
					}
				}
				t.Error(err)
			}
			network := netsim.Settings{Loss: 10, LagMin: 10 * time.Millisecond, LagMax: 50 * time.Millisecond}
			r := rig.New(t, uint64(i), network, actorrep.Config{Failed: failed}, func(w *actorrep.World) error {
				return w.Register("craft", server.make())
			})
			for _, client := range kinds {
				r.Join(func(w *actorrep.World) error { return w.Register("craft", client.make()) })
			}
			crafts := []setter{server.make(), server.make(), server.make()}
			for j, c := range crafts {
				require.NoError(t, r.Server.Spawn(c))
				c.(interface{ SetOwner(*actorrep.Peer) }).SetOwner(r.Lines[j].Peer)
			}
			for range 300 {
				c := crafts[r.Rand.IntN(len(crafts))]
				s := randomState(r.Rand)
				c.set(&s, r.Rand.IntN(fields))
				if r.Rand.IntN(5) == 0 {
					_, err := c.cargo().Add(Crate{uint8(r.Rand.Uint32()), "a crate"})
					require.NoError(t, err)
				}
				r.Step()
			}
			r.Until(func(l *rig.Line) string {
				for j, c := range crafts {
					mirror, ok := l.World.Find(c.GUID()).(setter)
					if !ok {
						return "an actor is missing"
					}
					got := mirror.state()
					got.log = append([]int32{}, got.log...)
					if want := near(c.state(), r.Lines[j] == l); !reflect.DeepEqual(got, want) || mirror.cargo().Len() != c.cargo().Len() {
						return fmt.Sprintf("%T\n got %v\nwant %v", mirror, got, want)
					}
				}
				return ""
			})
			for field, n := range unfit {
				require.NotZero(t, n, "the server isn't told that %sis over its max", field)
			}
		})
	}
}

// TestPush: a generated class is compared when something was set, not otherwise.
func TestPush(t *testing.T) {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("craft", (*Craft)(nil)))
	c := &Craft{}
	require.NoError(t, w.Spawn(c))
	w.Step(0)
	compared, changed := w.Counters.Compared, w.Counters.Changed
	for i := range 10 {
		w.Step(time.Duration(i))
	}
	require.Equal(t, compared, w.Counters.Compared)
	c.SetArmor(4)
	w.Step(20)
	require.Equal(t, []uint64{compared + 1, changed + 1}, []uint64{w.Counters.Compared, w.Counters.Changed})
	c.Armor = 7 // not through the setter
	w.Step(21)
	require.Equal(t, changed+1, w.Counters.Changed)
	c.MarkDirty()
	w.Step(22)
	require.Equal(t, changed+2, w.Counters.Changed)
}

// TestAllocs: comparing with generated code allocates nothing.
func TestAllocs(t *testing.T) {
	l, err := layout.Build(reflect.TypeFor[Craft]())
	require.NoError(t, err)
	c := &Craft{}
	s := l.NewShadow()
	l.Compare(s, unsafe.Pointer(c), l.All())
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Pos.X++
		l.Compare(s, unsafe.Pointer(c), l.All())
	}))
}

// BenchmarkCompare compares the numbers of a craft that moves, all of them or what was marked.
func BenchmarkCompare(b *testing.B) {
	own, _ := layout.Build(reflect.TypeFor[Craft]())
	bare, _ := layout.Build(reflect.TypeFor[plain]())
	var numbers layout.Mask
	for i := range own.Units {
		if !own.Units[i].Kind.IsBlob() {
			numbers |= 1 << i
		}
	}
	for _, how := range []struct {
		name string
		l    *layout.Layout
		m    layout.Mask
	}{{"reflective", bare, numbers}, {"generated", own, numbers}, {"generated, only what is marked", own, own.FieldMask("Pos")}} {
		b.Run(how.name, func(b *testing.B) {
			c := &Craft{}
			s := how.l.NewShadow()
			b.ReportAllocs()
			for b.Loop() {
				c.Pos.X++
				how.l.Compare(s, unsafe.Pointer(c), how.m)
			}
		})
	}
}

// BenchmarkStep is a tick of a world with 10,000 crafts of which 100 move.
func BenchmarkStep(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			w := actorrep.NewServer(actorrep.Config{})
			if err := w.Register("craft", kind.make()); err != nil {
				b.Fatal(err)
			}
			var list []setter
			for range 10000 {
				c := kind.make()
				if err := w.Spawn(c); err != nil {
					b.Fatal(err)
				}
				list = append(list, c)
			}
			w.Step(0)
			s := state{}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				s.pos.X++
				for range 100 {
					list[n%len(list)].set(&s, 0)
					n++
				}
				w.Step(time.Duration(n))
			}
		})
	}
}
