package actorrep_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/actorrep/internal/rig"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/actorrep/replay"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// vault has a counter for each condition, and values of other kinds with conditions.
type vault struct {
	actorrep.Base
	Always  uint32               `net:"notify=OnAlways"`
	Initial uint32               `net:"initial"`
	Own     uint32               `net:"owner,notify=OnOwn"`
	Skip    uint32               `net:"skipowner"`
	Sim     uint32               `net:"simulated"`
	Auto    uint32               `net:"autonomous"`
	IniOwn  uint32               `net:"initialorowner"`
	Cust    uint32               `net:"custom,notify=OnCust"`
	Cust2   actorrep.Var[uint32] `net:"custom"`
	Rep     uint32               `net:"replay"`
	RepOwn  uint32               `net:"replayorowner"`
	SkipRep uint32               `net:"skipreplay"`
	Never   uint32               `net:"never"`
	Phys    uint32               `net:"simulatedorphysics"`
	SimNR   uint32               `net:"simulatednoreplay"`
	PhysNR  uint32               `net:"simulatedorphysicsnoreplay"`
	Red     uint32               `net:"group=red,notify=OnRed"`
	Blue    actorrep.Var[uint32] `net:"group=blue"`

	Coins fastarray.List[coin]         `net:"group=red"`
	Debts fastarray.Map[string, int32] `net:"owner"`
	Rot   [4]float64                   `net:"quat=12,skipowner"`
	Pos   vec3                         `net:"q=0.01"`
	UUID  [16]byte                     `net:"custom"`
	First actorrep.Ref[*drawer]        `net:""`
	Big   []byte                       `net:"cap=7000,skipowner"`

	place [2]float64
	o     *estate
	heard uint32
	was   map[string]uint32       // counters, as their notifies said
	coins map[fastarray.ID]string // Coins, as its functions said
}

type coin struct {
	N    uint32
	Q    float32 `net:"q=0.5"`
	Text string  `net:"cap=20"`
}

func (v *vault) Location() (x, y, z float64) { return v.place[0], v.place[1], 0 }
func (v *vault) OnAlways(old uint32)         { v.notified("Always", old, v.Always) }
func (v *vault) OnOwn(old uint32)            { v.notified("Own", old, v.Own) }
func (v *vault) OnCust(old uint32)           { v.notified("Cust", old, v.Cust) }
func (v *vault) OnRed(old uint32)            { v.notified("Red", old, v.Red) }

func (v *vault) notified(name string, old, now uint32) {
	if v.was == nil {
		return // at spawn
	}
	if v.was[name] != old {
		v.o.bad("notify of %v.%s: old %d, was told %d", v.GUID(), name, old, v.was[name])
	}
	v.was[name] = now
}

func (v *vault) counters() map[string]uint32 {
	return map[string]uint32{"Always": v.Always, "Own": v.Own, "Cust": v.Cust, "Red": v.Red}
}

func (v *vault) Spawned() {
	v.o, v.was, v.coins = v.World().User.(*estate), v.counters(), map[fastarray.ID]string{}
	for id, c := range v.Coins.All {
		v.coins[id] = fmt.Sprint(c)
	}
	v.Coins.OnAdd = func(id fastarray.ID, c coin) { v.toldCoin(id, "", fmt.Sprint(c)) }
	v.Coins.OnChange = func(id fastarray.ID, old, c coin) { v.toldCoin(id, fmt.Sprint(old), fmt.Sprint(c)) }
	v.Coins.OnRemove = func(id fastarray.ID, old coin) {
		v.toldCoin(id, fmt.Sprint(old), "")
		delete(v.coins, id)
	}
}

func (v *vault) toldCoin(id fastarray.ID, old, now string) {
	if v.coins[id] != old {
		v.o.bad("coin %d of %v becomes %q: old %q, was told %q", id, v.GUID(), now, old, v.coins[id])
	}
	v.coins[id] = now
}

// told checks that a client's game was told all that its vault has.
func (v *vault) told() {
	if v.was == nil {
		return // Spawned comes later in the Step
	}
	if now := v.counters(); fmt.Sprint(now) != fmt.Sprint(v.was) {
		v.o.bad("%v has %v, told %v", v.GUID(), now, v.was)
	}
	n := 0
	for id, c := range v.Coins.All {
		if n++; v.coins[id] != fmt.Sprint(c) {
			v.o.bad("coin %d of %v is %v, told %s", id, v.GUID(), c, v.coins[id])
		}
	}
	if n != len(v.coins) {
		v.o.bad("%v has %d coins, told %d", v.GUID(), n, len(v.coins))
	}
}

// drawer is a component with more than 64 units and conditions.
type drawer struct {
	actorrep.Base
	Always uint32                       `net:""`
	Own    uint32                       `net:"owner"`
	Skip   uint32                       `net:"skipowner"`
	Red    uint32                       `net:"group=red"`
	Cust   uint32                       `net:"custom"`
	Ini    uint32                       `net:"initial"`
	RepOwn uint32                       `net:"replayorowner"`
	O      [40]struct{ A, B uint16 }    `net:"owner"`
	S      [40]struct{ A, B int32 }     `net:"skipowner"`
	R      [30]struct{ A int32 }        `net:"group=red"`
	C      [30]struct{ A int32 }        `net:"custom"`
	Boxes  [4][]byte                    `net:"cap=6000"`
	Names  fastarray.Map[uint32, int32] `net:"skipowner"`
	Coins  fastarray.List[coin]         `net:"custom"`
	Up     actorrep.Ref[*vault]         `net:""`
}

// vaultOther and drawerOther are the classes of another build: in another order, with fields that the server lacks, and without some of its.
type vaultOther struct {
	actorrep.Base
	Extra  [70]struct{ A uint32 }       `net:""`
	Red    uint32                       `net:"group=red"`
	Coins  fastarray.List[coin]         `net:"group=red"`
	Cust2  actorrep.Var[uint32]         `net:"custom"`
	Always uint32                       `net:""`
	Own    uint32                       `net:"owner"`
	IniOwn uint32                       `net:"initialorowner"`
	Skip   uint32                       `net:"skipowner"`
	PhysNR uint32                       `net:"simulatedorphysicsnoreplay"`
	Pos    vec3                         `net:"q=0.01"`
	Debts  fastarray.Map[string, int32] `net:"owner"`
	First  actorrep.Ref[*drawerOther]   `net:""`
	Big    []byte                       `net:"cap=7000,skipowner"`
	UUID   [16]byte                     `net:"custom"`
}

type drawerOther struct {
	actorrep.Base
	Coins  fastarray.List[coin]      `net:"custom"`
	Boxes  [4][]byte                 `net:"cap=6000"`
	C      [30]struct{ A int32 }     `net:"custom"`
	Red    uint32                    `net:"group=red"`
	S      [40]struct{ A, B int32 }  `net:"skipowner"`
	O      [40]struct{ A, B uint16 } `net:"owner"`
	More   uint64                    `net:""`
	Always uint32                    `net:""`
	Own    uint32                    `net:"owner"`
}

// property is what the game has: vaults and drawers at the server, or a client's of either build.
type property interface {
	actorrep.Actor
	GUID() netguid.GUID
	Owner() *actorrep.Peer
	Parent() actorrep.Actor
	IsOwned() bool
	Role() actorrep.Role
	SetCondition(string, bool) error
	SetDormant(bool) error
	Dormant() bool
	FlushDormancy()
}

// promise is a call's number, and the counters that its actor had when it was made.
type promise struct{ N, Always, Own, Skip, Cust, Red uint32 }

// ofField is a field of an actor, at a line or at all.
type ofField struct {
	at    any
	field string
}

// estate is a game with a naive model of who may have which field.
type estate struct {
	*rig.Rig
	n              uint32 // the newest counter
	vaults         []*vault
	drawers        []*drawer
	shout, whisper *actorrep.RPC[*vault, promise]
	auto, phys     map[actorrep.Actor]bool
	off            map[ofField]bool                 // at is an actor: SetCondition has it off
	since          map[*rig.Line]map[ofField]uint32 // at is an actor: the counter since which the line may have it
	seen           map[ofField]uint32               // at is a client's actor: its newest counter
	errs           []string
}

func (o *estate) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Sprintf("%v: ", o.Now)+fmt.Sprintf(format, args...))
}

func (o *estate) check(err error) {
	if err != nil {
		o.T.Helper()
		o.T.Fatal(err)
	}
}

// right fails the test with the first of what went wrong.
func (o *estate) right() {
	if len(o.errs) > 0 {
		o.T.Helper()
		o.T.Fatal(strings.Join(o.errs[:min(5, len(o.errs))], "\n"))
	}
}

// all is what the server has.
func (o *estate) all(yield func(property) bool) {
	for _, v := range o.vaults {
		if !yield(v) {
			return
		}
	}
	for _, d := range o.drawers {
		if !yield(d) {
			return
		}
	}
}

var notConditions = []string{"", "q", "quat", "cap", "notify"}

// conditionOf is a field's condition, and whether it is replicated.
func conditionOf(f reflect.StructField) (condition string, ok bool) {
	tag, ok := f.Tag.Lookup("net")
	for part := range strings.SplitSeq(tag, ",") {
		if name, _, _ := strings.Cut(part, "="); !slices.Contains(notConditions, name) {
			condition = part
		}
	}
	return condition, ok
}

// eachField calls f for the replicated fields of a's class.
func eachField(a any, f func(name, condition string)) {
	t := reflect.TypeOf(a).Elem()
	for i := range t.NumField() {
		if c, ok := conditionOf(t.Field(i)); ok {
			f(t.Field(i).Name, c)
		}
	}
}

// may reports whether a connection is to have a field's changes.
func (o *estate) may(p *actorrep.Peer, a property, name, condition string) bool {
	owner, replay := a.Owner() == p, p.IsReplay()
	auto := owner && o.auto[a]
	simulated := !auto
	physics := simulated || o.phys[a]
	switch condition {
	case "":
		return true
	case "initial", "never":
		return false
	case "owner", "initialorowner":
		return owner
	case "skipowner":
		return !owner
	case "simulated":
		return simulated
	case "autonomous":
		return auto
	case "custom":
		return !o.off[ofField{a, name}]
	case "replay":
		return replay
	case "replayorowner":
		return replay || owner
	case "skipreplay":
		return !replay
	case "simulatedorphysics":
		return physics
	case "simulatednoreplay":
		return simulated && !replay
	case "simulatedorphysicsnoreplay":
		return physics && !replay
	}
	return replay || p.InGroup(strings.TrimPrefix(condition, "group="))
}

// valueText is a value as a client has it.
func valueText(a any, name string) string {
	field := reflect.ValueOf(a).Elem().FieldByName(name)
	if !field.IsValid() {
		return "lacks it"
	}
	switch x := field.Addr().Interface().(type) {
	case *actorrep.Var[uint32]:
		return fmt.Sprint(x.Get())
	case *fastarray.List[coin]:
		text := ""
		for id, c := range x.All {
			text += fmt.Sprint(id, c, ";")
		}
		return text
	case interface{ GUID() netguid.GUID }:
		return fmt.Sprint(x.GUID())
	case *fastarray.Map[string, int32]:
		text := ""
		for k, v := range x.All {
			text += fmt.Sprint(k, v, ";")
		}
		return text
	case *fastarray.Map[uint32, int32]:
		text := ""
		for k, v := range x.All {
			text += fmt.Sprint(k, v, ";")
		}
		return text
	case *vec3:
		return fmt.Sprint(math.Round(float64(x.X)*100), math.Round(float64(x.Y)*100))
	case *[]byte:
		return fmt.Sprint(len(*x), bytes.Count(*x, []byte{7}))
	case *[4][]byte:
		text := ""
		for _, b := range x {
			text += fmt.Sprint(len(b), bytes.Count(b, []byte{7}), ";")
		}
		return text
	}
	return fmt.Sprint(field.Interface())
}

// differs says what a client has otherwise in a field.
func differs(a, m property, name string) string {
	if name == "Rot" {
		s := a.(*vault)
		c, ok := m.(*vault)
		if !ok {
			return ""
		}
		dot, one, other := 0.0, 0.0, 0.0
		for i := range s.Rot {
			dot, one, other = dot+s.Rot[i]*c.Rot[i], one+s.Rot[i]*s.Rot[i], other+c.Rot[i]*c.Rot[i]
		}
		if math.Abs(other-1) > 1e-12 && c.Rot != ([4]float64{}) {
			return fmt.Sprintf("%v.Rot has length %v", a.GUID(), math.Sqrt(other))
		}
		if c.Rot == s.Rot || math.Abs(dot) > (1-1e-5)*math.Sqrt(one*other) {
			return ""
		}
	}
	if w, g := valueText(a, name), valueText(m, name); w != g && g != "lacks it" {
		return fmt.Sprintf("%v.%s is %s, not %s", a.GUID(), name, g, w)
	}
	return ""
}

func (o *estate) line() *rig.Line { return o.Lines[o.Rand.IntN(len(o.Lines))] }

func (o *estate) next() uint32 {
	o.n++
	return o.n
}

// count gives some of an actor's counters their next values.
func (o *estate) count(a any) {
	v := reflect.ValueOf(a).Elem()
	eachField(a, func(name, _ string) {
		if o.Rand.IntN(6) > 0 {
			return
		}
		switch x := v.FieldByName(name).Addr().Interface().(type) {
		case *uint32:
			*x = o.next()
		case *actorrep.Var[uint32]:
			x.Set(o.next())
		}
	})
}

// bank changes a list.
func (o *estate) bank(l *fastarray.List[coin]) {
	r := o.Rand
	c := coin{o.next(), float32(r.IntN(100)) / 2, strings.Repeat("é", r.IntN(10))}
	switch r.IntN(20) {
	case 0:
		o.check(l.Clear())
	case 1, 2, 3, 4, 5, 6, 7, 8:
		_, _ = l.Add(c) // until it is full
	default:
		for id := range l.All {
			if r.IntN(3) == 0 {
				o.check(l.Set(id, c))
				break
			}
			if r.IntN(3) == 0 {
				o.check(l.Remove(id))
				break
			}
		}
	}
}

func (o *estate) box() []byte {
	return bytes.Repeat([]byte{byte(6 + o.Rand.IntN(3))}, o.Rand.IntN(6001))
}

func (o *estate) changeVault(v *vault) {
	r := o.Rand
	o.count(v)
	switch r.IntN(14) {
	case 0, 1:
		o.bank(&v.Coins)
	case 2:
		o.check(v.Debts.Set(fmt.Sprint(r.IntN(12)), r.Int32()))
	case 3:
		o.check(v.Debts.Delete(fmt.Sprint(r.IntN(12))))
	case 4:
		v.Rot = [4]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
	case 5:
		v.UUID[r.IntN(16)] = byte(r.IntN(256))
	case 6:
		v.First = actorrep.Ref[*drawer]{}
		if len(o.drawers) > 0 {
			v.First = actorrep.RefTo(o.drawers[r.IntN(len(o.drawers))])
		}
	case 7:
		if r.IntN(4) == 0 {
			v.Big = o.box()
		}
	case 8, 9, 10:
		v.Pos.X, v.Pos.Y = v.Pos.X+0.37, v.Pos.Y+r.Float32()
	}
}

func (o *estate) changeDrawer(d *drawer) {
	r := o.Rand
	o.count(d)
	switch r.IntN(10) {
	case 0:
		d.O[r.IntN(40)].A = uint16(r.IntN(1 << 16))
	case 1:
		d.S[r.IntN(40)].B = r.Int32()
	case 2:
		d.R[r.IntN(30)].A = r.Int32N(100)
	case 3:
		d.C[r.IntN(30)].A = r.Int32N(100)
	case 4:
		if r.IntN(4) == 0 {
			d.Boxes[r.IntN(4)] = o.box()
		}
	case 5:
		o.check(d.Names.Set(uint32(r.IntN(20)), r.Int32()))
	case 6:
		o.check(d.Names.Delete(uint32(r.IntN(20))))
	case 7:
		o.bank(&d.Coins)
	case 8:
		d.Up = actorrep.RefTo(o.vaults[r.IntN(len(o.vaults))])
	}
}

func (o *estate) spawn() {
	v := &vault{place: [2]float64{o.Rand.Float64() * 200, o.Rand.Float64() * 200}}
	for range 10 {
		o.changeVault(v)
	}
	if o.Rand.IntN(2) == 0 {
		v.SetOwner(o.line().Peer)
	}
	o.check(o.Server.Spawn(v))
	o.vaults = append(o.vaults, v)
}

func (o *estate) call(v *vault) {
	for _, c := range []*actorrep.RPC[*vault, promise]{o.shout, o.whisper} {
		if c == o.whisper && v.Owner() == nil {
			continue
		}
		err := c.Call(v, promise{o.next(), v.Always, v.Own, v.Skip, v.Cust, v.Red})
		if err != nil && !errors.Is(err, actorrep.ErrFull) && !errors.Is(err, actorrep.ErrNotThere) {
			o.bad("call: %v", err)
		}
	}
}

// hear runs a call at a client, where what was set before it is there, if the client might have it all the while.
func (o *estate) hear(c actorrep.Call, v *vault, p promise) error {
	i := slices.IndexFunc(o.Lines, func(l *rig.Line) bool { return l.World == c.World })
	if i < 0 {
		return nil // at the server, in a recording
	}
	if p.N <= v.heard {
		o.bad("call %d of %v runs behind %d", p.N, v.GUID(), v.heard)
	}
	v.heard = p.N
	s, _ := o.Server.Find(v.GUID()).(*vault)
	for name, both := range map[string][2]uint32{"Always": {v.Always, p.Always}, "Own": {v.Own, p.Own}, "Skip": {v.Skip, p.Skip}, "Cust": {v.Cust, p.Cust}, "Red": {v.Red, p.Red}} {
		since, may := o.since[o.Lines[i]][ofField{s, name}]
		if may && since < p.N && both[0] < both[1] {
			o.bad("call %d of %v runs with %s %d, set to %d before it", p.N, v.GUID(), name, both[0], both[1])
		}
	}
	return nil
}

// track notes since when each client may have what.
func (o *estate) track() {
	for _, l := range o.Lines {
		if o.since[l] == nil {
			o.since[l] = map[ofField]uint32{}
		}
		for _, v := range o.vaults {
			eachField(v, func(name, condition string) {
				f := ofField{v, name}
				if _, had := o.since[l][f]; !o.may(l.Peer, v, name, condition) {
					delete(o.since[l], f)
				} else if !had {
					o.since[l][f] = o.n
				}
			})
		}
	}
}

func (o *estate) toggle(a property, names ...string) {
	f := ofField{a, names[o.Rand.IntN(len(names))]}
	o.off[f] = !o.off[f]
	o.check(a.SetCondition(f.field, !o.off[f]))
}

// happen changes who may have what of an actor, then values of all.
func (o *estate) happen() {
	r := o.Rand
	if len(o.vaults) == 0 {
		o.spawn()
	}
	i := r.IntN(len(o.vaults))
	v, d := o.vaults[i], (*drawer)(nil)
	if len(o.drawers) > 0 {
		d = o.drawers[r.IntN(len(o.drawers))]
	}
	switch r.IntN(26) {
	case 0:
		if len(o.vaults) < 9 {
			o.spawn()
		}
	case 1:
		if len(o.vaults) > 3 && r.IntN(2) == 0 {
			o.call(v)
			o.check(o.Server.Destroy(v))
			o.vaults = slices.Delete(o.vaults, i, i+1)
			o.drawers = slices.DeleteFunc(o.drawers, func(d *drawer) bool { return d.World() == nil })
		}
	case 2:
		if len(o.drawers) < 10 {
			d := &drawer{}
			for range 20 {
				o.changeDrawer(d)
			}
			o.check(o.Server.SpawnIn(v, d))
			o.drawers = append(o.drawers, d)
		}
	case 3, 4, 5:
		if r.IntN(2) == 0 {
			o.call(v)
		}
		v.SetOwner(o.line().Peer)
		o.track()
		o.call(v)
	case 6:
		v.SetOwner(nil)
	case 7, 8:
		o.check(v.SetDormant(!v.Dormant()))
	case 9:
		if d != nil {
			o.check(d.SetDormant(!d.Dormant()))
		}
	case 10:
		o.auto[v] = !o.auto[v]
		v.SetAutonomous(o.auto[v])
	case 11:
		o.phys[v] = !o.phys[v]
		v.SetPhysics(o.phys[v])
	case 12, 13:
		o.toggle(v, "Cust", "Cust2", "UUID")
	case 14:
		if d != nil {
			o.toggle(d, "Cust", "C", "Coins")
		}
	case 15:
		o.line().Peer.SetViewpoint(r.Float64()*200, r.Float64()*200, 0)
	case 16:
		v.place = [2]float64{r.Float64() * 200, r.Float64() * 200}
	case 17:
		o.check(v.SetUpdateFrequency(float64(r.IntN(3) * 10)))
	case 18:
		v.SetOnlyOwner(r.IntN(4) == 0)
	case 19:
		o.line().Peer.SetUpdateEvery(v, 1+r.IntN(7))
	case 20, 21, 22:
		p, group := o.line().Peer, []string{"red", "blue"}[r.IntN(2)]
		if p.InGroup(group) {
			p.LeaveGroup(group)
		} else {
			o.check(p.JoinGroup(group))
		}
	case 23:
		o.line().Peer.Hold(func(a actorrep.Actor) bool { return a.(property).Parent() == nil })
	case 24:
		o.line().Peer.Release()
	case 25:
		o.call(v)
	}
	o.track()
	for a := range o.all {
		if r.IntN(2) == 0 {
			switch a := a.(type) {
			case *vault:
				o.changeVault(a)
			case *drawer:
				o.changeDrawer(a)
			}
		}
		if a.Dormant() && r.IntN(15) == 0 {
			a.FlushDormancy()
		}
	}
}

// look checks what holds at any time: the game was told what there is, no counter goes back, and Explain is right.
func (o *estate) look() {
	for _, l := range o.Lines {
		for a := range l.World.All {
			if v, ok := a.(*vault); ok {
				v.told()
			}
			eachField(a, func(name, _ string) {
				n := uint32(0)
				switch x := reflect.ValueOf(a).Elem().FieldByName(name).Addr().Interface().(type) {
				case *uint32:
					n = *x
				case *actorrep.Var[uint32]:
					n = x.Get()
				}
				f := ofField{a, name}
				if n < o.seen[f] {
					o.bad("%v.%s goes back from %d to %d", a.(property).GUID(), name, o.seen[f], n)
				}
				o.seen[f] = n
			})
		}
		for a := range o.all {
			if o.Rand.IntN(10) == 0 {
				o.believe(l, a)
			}
		}
	}
	o.right()
}

// believe checks what Explain says of an actor's fields.
func (o *estate) believe(l *rig.Line, a property) {
	m, _ := l.World.Find(a.GUID()).(property)
	eachField(a, func(name, condition string) {
		may := o.may(l.Peer, a, name, condition)
		switch e := o.Server.Explain(l.Peer, a, name); e.Reason {
		case actorrep.ReasonUpToDate, actorrep.ReasonDormant:
			if m == nil || !may {
				o.bad("%v.%s: %v, there %v, may %v", a.GUID(), name, e.Reason, m != nil, may)
			} else if d := differs(a, m, name); d != "" {
				o.bad("%v: %s", e.Reason, d)
			}
		case actorrep.ReasonCondition, actorrep.ReasonInactive:
			if may {
				o.bad("%v.%s: %s, and may have it", a.GUID(), name, e.Text)
			}
		}
	})
}

// same says what a client has otherwise than it is to have.
func (o *estate) same(l *rig.Line) string {
	for a := range o.all {
		root := a
		if p := a.Parent(); p != nil {
			root = p.(property)
		}
		m, _ := l.World.Find(a.GUID()).(property)
		mine := a.Owner() == l.Peer
		switch relevant := l.Peer.IsRelevant(root); {
		case relevant != (m != nil):
			return fmt.Sprintf("%v: relevant %v, there %v: %s", a.GUID(), relevant, m != nil, o.Server.Explain(l.Peer, a).Text)
		case m == nil:
			continue
		case m.IsOwned() != mine || (m.Role() == actorrep.AutonomousProxy) != (mine && o.auto[a]):
			return fmt.Sprintf("%v: owned %v, role %v: %s", a.GUID(), m.IsOwned(), m.Role(), o.Server.Explain(l.Peer, a).Text)
		case root != a && (m.Parent() == nil || m.Parent().(property).GUID() != root.GUID()):
			return fmt.Sprintf("%v has parent %v", a.GUID(), m.Parent())
		}
		if d := o.lacks(l.Peer, a, m); d != "" {
			return d
		}
	}
	return ""
}

// lacks says what m has otherwise of the fields of a that p may have.
func (o *estate) lacks(p *actorrep.Peer, a, m property) (lacks string) {
	eachField(a, func(name, condition string) {
		if d := differs(a, m, name); d != "" && o.may(p, a, name, condition) {
			lacks = d + ": " + o.Server.Explain(p, a, name).Text
		}
	})
	return lacks
}

func (o *estate) register(w *actorrep.World) error {
	w.User = o
	return errors.Join(w.Register("vault", (*vault)(nil), actorrep.CullDistance(120), actorrep.RPCs{"Shout": o.shout, "Whisper": o.whisper}),
		w.Register("drawer", (*drawer)(nil)))
}

func (o *estate) registerOther(w *actorrep.World) error {
	return errors.Join(w.Register("drawer", (*drawerOther)(nil)), w.Register("vault", (*vaultOther)(nil), actorrep.CullDistance(120)))
}

func newEstate(t *testing.T, seed uint64) *estate {
	o := &estate{auto: map[actorrep.Actor]bool{}, phys: map[actorrep.Actor]bool{}, off: map[ofField]bool{},
		since: map[*rig.Line]map[ofField]uint32{}, seen: map[ofField]uint32{}}
	o.shout = actorrep.MulticastRPC(o.hear, actorrep.Reliable)
	o.whisper = actorrep.ClientRPC(o.hear, actorrep.Reliable)
	cfg := actorrep.Config{RelevantTimeout: relevantTimeout, SchemaRefused: func(_ *actorrep.Peer, why string) { // the other build has no procedures
		for line := range strings.Lines(why) {
			if !strings.Contains(line, "has no procedure") {
				o.bad("refused: %v", line)
			}
		}
	}, Failed: func(err error) {
		if !errors.Is(err, actorrep.ErrActorGone) && !errors.Is(err, actorrep.ErrOwnerGone) {
			o.bad("failed: %v", err)
		}
	}}
	if seed%3 == 1 {
		cfg.Parallel = driver.Cores(2)
	}
	o.Rig = rig.New(t, seed, weathers[1], cfg, o.register)
	if seed%5 == 2 {
		o.Speed = 20 << 10
	}
	return o
}

// join adds a client, of another build or of the server's.
func (o *estate) join(other bool) {
	register := o.register
	if other {
		register = o.registerOther
	}
	o.JoinOther(register).Peer.SetViewpoint(100, 100, 0)
	o.track()
}

// live lets the game go on with bad connections.
func (o *estate) live(steps int, seed uint64) {
	for i := range steps {
		if i%60 == 0 {
			for _, l := range o.Lines {
				o.check(l.Up.Set(weathers[o.Rand.IntN(len(weathers))]))
				o.check(l.Down.Set(weathers[o.Rand.IntN(len(weathers))]))
			}
		}
		if i/60%4 != 3 {
			o.happen()
		}
		if i == steps/2 {
			o.join(false)
		}
		if i == steps*2/3 && seed%3 == 0 {
			o.Server.RemoveConn(o.Lines[0].Peer)
			o.Lines = slices.Delete(o.Lines, 0, 1)
		}
		o.look()
		o.Step()
		o.look()
	}
}

// settle ends with good connections, on which everybody gets what they may have.
func (o *estate) settle() {
	for _, l := range o.Lines {
		o.check(l.Up.Set(weathers[1]))
		o.check(l.Down.Set(weathers[1]))
		l.Peer.Release()
	}
	for a := range o.all {
		a.FlushDormancy()
	}
	o.UntilBy(o.Step, o.same)
	for range 40 {
		o.Step()
		o.look()
	}
	for _, l := range o.Lines {
		if d := o.same(l); d != "" {
			o.T.Fatal("later: ", d)
		}
		for _, err := range l.Failed {
			if !errors.Is(err, actorrep.ErrNoProcedure) { // the other build has none
				o.bad("client failed: %v", err)
			}
		}
	}
	o.right()
}

// shownBy is what a client's world has, in text.
func shownBy(w *actorrep.World) []string {
	list := []string{}
	for a := range w.All {
		p := a.(property)
		eachField(a, func(name, _ string) {
			list = append(list, fmt.Sprint(p.GUID(), p.Parent() != nil, name, " ", valueText(a, name)))
		})
	}
	slices.Sort(list)
	return list
}

// playback plays the recording: at its end it has what its conditions say, and a seek shows what was played.
func (o *estate) playback(p *actorrep.Peer, file []byte) {
	open := func() (*replay.Replay, *actorrep.World) {
		r, err := replay.Open(bytes.NewReader(file), int64(len(file)))
		o.check(err)
		c := actorrep.NewClient(actorrep.Config{Failed: func(err error) { o.bad("replay: %v", err) }})
		o.check(o.register(c))
		o.check(r.Play(c))
		return r, c
	}
	r, c := open()
	played, at := [][]string{}, []time.Duration{}
	for now := time.Duration(0); !r.Done(); now += 50 * time.Millisecond {
		o.check(r.Step(now))
		if len(at) == 0 || r.Position()-at[len(at)-1] > 700*time.Millisecond {
			played, at = append(played, shownBy(c)), append(at, r.Position())
		}
	}
	for a := range o.all {
		m, _ := c.Find(a.GUID()).(property)
		if m == nil {
			o.T.Fatal("the recording lacks ", a.GUID())
		}
		if d := o.lacks(p, a, m); d != "" {
			o.T.Fatal("recorded: ", d)
		}
	}
	r, c = open()
	for range 12 {
		i := o.Rand.IntN(len(at))
		o.check(r.Seek(at[i]))
		if now := shownBy(c); !slices.Equal(now, played[i]) {
			for j := range min(len(now), len(played[i])) {
				if now[j] != played[i][j] {
					o.T.Fatalf("seek to %v of %v: %s, played %s", at[i], r.Duration(), now[j], played[i][j])
				}
			}
			o.T.Fatalf("seek to %v of %v: %d values, played %d", at[i], r.Duration(), len(now), len(played[i]))
		}
		for a := range c.All {
			if v, ok := a.(*vault); ok {
				v.told()
			}
		}
	}
	o.right()
}

// TestEverybodyHasWhatTheyMay compares clients, one of another build, and a recording with a naive model of who may have a field: all conditions, of counters,
// fast arrays, rotations, references and components, as owners, roles, groups, switches, sleep and relevancy change on bad connections. At any time
// the game was told what there is, no counter goes back, Explain is right, and calls run behind what was set before them.
func TestEverybodyHasWhatTheyMay(t *testing.T) {
	seeds, steps := uint64(4), 400
	if os.Getenv("CI") != "" {
		seeds, steps = 12, 600
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			o := newEstate(t, seed)
			for i := range 3 {
				o.join(i == 2 && seed%2 == 0)
			}
			var file bytes.Buffer
			rec, err := replay.Record(o.Server, &file, replay.Config{Rate: []float64{0, -1, 7}[seed%3], Checkpoints: 2 * time.Second, ActorsPerFrame: []int{0, 4, 8}[seed/3%3]})
			o.check(err)
			o.live(steps, seed)
			o.settle()
			o.check(rec.Close())
			o.playback(rec.Peer(), file.Bytes())
		})
	}
}
