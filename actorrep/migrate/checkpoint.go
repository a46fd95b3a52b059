package migrate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// A checkpoint is, with numbers as uvarints and texts behind their length,
//
//	4 "BNCP" | version, 1 | the world's time, ns
//	classes, and for each: its name | bits of its schema | the schema, as to a client
//	actors, and for each: class | id | its parent's id, 0 for none | 1 flags | 4 cull distance | 4 priority
//	                      bits of its values | a mask of its units, and those units as to a client that knows nothing | what Save gave
//	what Save gave for the game
//
// A parent comes before its components.
const (
	checkpointMagic   = "BNCP"
	checkpointVersion = 1
	maxActors         = 1 << 16
	maxClasses        = 1 << 10
	maxValues         = 4 << 20   // bytes of an actor's
	maxStructs        = 256 << 20 // bytes of all actors' structs, as on a client

	flagDormant   = 1
	flagAlways    = 2
	flagOnlyOwner = 4
)

// Errors of checkpoints.
var (
	// ErrCheckpoint is wrapped by Restore's errors: the bytes aren't a checkpoint of a world with these classes.
	ErrCheckpoint = errors.New("migrate: not a checkpoint of this game")
	// ErrLarge: a checkpoint is larger than MaxCheckpoint, or has more than 65536 actors, 4 MiB for one, or 256 MiB of structs. It isn't sent.
	ErrLarge = errors.New("migrate: the checkpoint is larger than MaxCheckpoint")
)

// Save appends to dst what the game stores of an actor besides its replicated fields, such as its owner. For a nil actor it
// appends what the game stores as a whole.
type Save func(a actorrep.Actor, dst []byte) []byte

// Load gets what Save appended: for each actor, in the order in which they were spawned, when all are; and last for a nil
// actor. data is valid as long as the checkpoint isn't changed.
type Load func(a actorrep.Actor, data []byte) error

// Checkpoint appends the state of a server's world to dst: each actor's id, components, dormancy, cull distance, priority and
// replicated fields, and what save appends; save may be nil. Fields are included whoever may see them, as they are sent:
// numbers in steps of their q=. Not included are owners, update frequencies, groups and what SetCondition set: the game must set
// these again. Actors that were torn off aren't included either. It takes as long as opening all actors for one client.
// Errors: actorrep.ErrClient, ErrLarge.
func Checkpoint(dst []byte, w *actorrep.World, save Save) ([]byte, error) {
	if !w.IsServer() {
		return dst, actorrep.ErrClient
	}
	if save == nil {
		save = func(_ actorrep.Actor, dst []byte) []byte { return dst }
	}
	list := classes(w)
	byName := make(map[string]int, len(list))
	scratch := make([]byte, 1<<16)
	var out bitio.Writer
	dst = append(dst, checkpointMagic...)
	dst = binary.AppendUvarint(dst, checkpointVersion)
	dst = binary.AppendUvarint(dst, uint64(w.Now()))
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for i, c := range list {
		byName[c.Name] = i
		out.Reset(scratch)
		c.Layout.WriteSchema(&out)
		if out.Err() != nil {
			return dst, out.Err()
		}
		dst = appendText(dst, []byte(c.Name))
		dst = appendBits(dst, &out)
	}
	all, n := []actorrep.Actor(nil), 0
	for a := range w.All {
		if !baseOf(a).TornOff() {
			all = append(all, a)
		}
	}
	if n = len(all); n > maxActors {
		return dst, fmt.Errorf("%w: %d actors", ErrLarge, n)
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	var extra []byte
	structs := int64(0)
	for _, a := range all {
		b := baseOf(a)
		class := byName[b.ClassName()]
		l := list[class].Layout
		if structs += int64(l.Type.Size()); structs > maxStructs {
			return dst, fmt.Errorf("%w: the structs of its actors take over %d MiB", ErrLarge, maxStructs>>20)
		}
		parent := netguid.GUID(0)
		if p := b.Parent(); p != nil {
			parent = baseOf(p).GUID()
		}
		flags := flag(b.Dormant(), flagDormant) | flag(b.AlwaysRelevant(), flagAlways) | flag(b.OnlyOwner(), flagOnlyOwner)
		for _, v := range []uint64{uint64(class), uint64(b.GUID()), uint64(parent), uint64(flags)} {
			dst = binary.AppendUvarint(dst, v)
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(b.CullDistance())))
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(b.ActorPriority()))
		for {
			out.Reset(scratch)
			if writeValues(&out, l, a); out.Err() == nil {
				dst = appendBits(dst, &out)
				break
			}
			if len(scratch) >= maxValues {
				return dst, fmt.Errorf("%w: the values of %T", ErrLarge, a)
			}
			scratch = make([]byte, 2*len(scratch))
		}
		extra = save(a, extra[:0])
		dst = appendText(dst, extra)
	}
	return appendText(dst, save(nil, extra[:0])), nil
}

func flag(on bool, f byte) byte {
	if on {
		return f
	}
	return 0
}

// writeValues writes an actor's units that aren't zero.
func writeValues(w *bitio.Writer, l *layout.Layout, a actorrep.Actor) {
	s := l.NewShadow()
	l.Compare(s, reflect.ValueOf(a).UnsafePointer(), l.All())
	m := l.NonZero(s)
	w.WriteBits(uint64(m), len(l.Units))
	for i := range l.Units {
		if m>>i&1 != 0 {
			l.WriteUnit(w, s, i, nil)
		}
	}
}

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendBits(dst []byte, w *bitio.Writer) []byte {
	return append(binary.AppendUvarint(dst, uint64(w.Len())), w.Bytes()...)
}

// Restore spawns the actors of a checkpoint, with their ids, in a server's world that has none of these ids. Then it calls load,
// which may be nil, with what Save appended. at is the time of the checkpoint's world. When data is bad, or a value doesn't fit its field of another build, the
// error wraps ErrCheckpoint, and nothing is spawned. An error of load is returned as it is; the actors stay. It spawns at most 65536
// actors, at most one for each 14 bytes of data, and at most 256 MiB of structs.
func Restore(w *actorrep.World, data []byte, load Load) (at time.Duration, err error) {
	if !w.IsServer() {
		return 0, actorrep.ErrClient
	}
	r := reader{kind: ErrCheckpoint, data: data}
	list, at := r.head(w)
	n := r.count(maxActors, 14)
	all := make([]restored, 0, n)
	place := make(map[netguid.GUID]int, n)
	structs := int64(0)
	for range n {
		a := r.actor(list, &structs)
		if r.err != nil {
			break
		}
		if _, twice := place[a.id]; twice || !a.id.Valid() || w.Find(a.id) != nil {
			r.fail("the id %v is invalid or already used", a.id)
		}
		if a.parentID != 0 {
			p, ok := place[a.parentID]
			if !ok {
				r.fail("a component before its parent")
				break
			}
			a.parent = all[p].actor
		}
		place[a.id] = len(all)
		all = append(all, a)
	}
	game := r.text()
	if r.err == nil && len(r.data) > 0 {
		r.fail("%d bytes too many", len(r.data))
	}
	if r.err != nil {
		return 0, r.err
	}
	for i := range all {
		a := &all[i]
		if err := w.SpawnAs(a.actor, a.parent, a.id); err != nil {
			for _, spawned := range all[:i] {
				_ = w.Destroy(spawned.actor) // or its parent took it along
			}
			return 0, fmt.Errorf("%w: %w", ErrCheckpoint, err)
		}
		if a.flags&flagDormant != 0 {
			if err := baseOf(a.actor).SetDormant(true); err != nil {
				return 0, err
			}
		}
	}
	if load == nil {
		return at, nil
	}
	for i := range all {
		if err := load(all[i].actor, all[i].extra); err != nil {
			return at, err
		}
	}
	return at, load(nil, game)
}

// restored is an actor that isn't spawned yet.
type restored struct {
	actor, parent actorrep.Actor
	id, parentID  netguid.GUID
	flags         byte
	extra         []byte
}

// described is a class as the checkpoint has it, with ours.
type described struct {
	bridge.Class
	remote *layout.Remote
}

// reader takes a checkpoint apart. After the first error it reads nothing more.
type reader struct {
	kind error
	data []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{r.kind}, args...)...)
	}
	r.data = nil
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail("it is cut off")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count is how many of what takes so many bytes each follow.
func (r *reader) count(most, bytes int) int {
	n := r.uvarint()
	if n > uint64(most) || n > uint64(len(r.data)/bytes) {
		r.fail("a count of %d, more than there is room for", n)
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.fail("it is cut off")
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) text() []byte { return r.bytes(r.uvarint()) }

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) bits() *bitio.Reader {
	n := r.uvarint()
	b := r.bytes(n/8 + (n%8+7)/8)
	return bitio.NewReader(b, min(int(n&math.MaxInt32), 8*len(b)))
}

// head reads what precedes the actors.
func (r *reader) head(w *actorrep.World) (list []described, at time.Duration) {
	if string(r.bytes(4)) != checkpointMagic {
		r.fail("it doesn't begin with %q", checkpointMagic)
	}
	if v := r.uvarint(); v != checkpointVersion {
		r.fail("version %d, not %d", v, checkpointVersion)
	}
	now := r.uvarint()
	if now > math.MaxInt64 {
		r.fail("the time %d is out of range", now)
	}
	own := map[string]bridge.Class{}
	for _, c := range classes(w) {
		own[c.Name] = c
	}
	for range r.count(maxClasses, 3) {
		name := string(r.text())
		in := r.bits()
		if r.err != nil {
			return nil, 0
		}
		c, ok := own[name]
		if !ok {
			r.fail("the class %q isn't registered", name)
			return nil, 0
		}
		m := layout.ReadSchema(in)
		if m == nil || in.Err() != nil {
			r.fail("the class %q: %v", name, in.Err())
			return nil, 0
		}
		if err := m.Match(c.Layout); err != nil {
			r.fail("the class %q: %v", name, err)
			return nil, 0
		}
		list = append(list, described{c, m})
	}
	return list, time.Duration(now)
}

// actor reads one. structs is the bytes of those that were made.
func (r *reader) actor(list []described, structs *int64) (a restored) {
	class, id, parent, flags := r.uvarint(), r.uvarint(), r.uvarint(), r.uvarint()
	cull, priority := math.Float32frombits(r.uint32()), math.Float32frombits(r.uint32())
	in := r.bits()
	a.extra = r.text()
	switch {
	case r.err != nil:
		return a
	case class >= uint64(len(list)) || id > math.MaxUint32 || parent > math.MaxUint32 || flags > 7:
		r.fail("an actor with class %d, id %d, parent %d or flags %d out of range", class, id, parent, flags)
		return a
	case !(cull >= 0 && priority >= 0) || math.IsInf(float64(cull), 1) || math.IsInf(float64(priority), 1):
		r.fail("a cull distance of %v or a priority of %v is out of range", cull, priority)
		return a
	}
	c := &list[class]
	if *structs += int64(c.Layout.Type.Size()); *structs > maxStructs {
		r.fail("the structs of its actors take over %d MiB", maxStructs>>20)
		return a
	}
	v := reflect.New(c.Layout.Type)
	a.actor, _ = v.Interface().(actorrep.Actor)
	a.id, a.parentID, a.flags = netguid.GUID(id), netguid.GUID(parent), byte(flags)
	var words [layout.MaxNumbers]uint64
	m := in.ReadBits(len(c.remote.Units))
	o := c.Layout.Object(v.UnsafePointer())
	for i := range c.remote.Units {
		if m>>i&1 == 0 || in.Err() != nil {
			continue
		}
		if c.remote.ReadUnit(in, i, words[:], nil, o); c.remote.Unread != nil || c.remote.Clamped {
			u := &c.remote.Units[i]
			if len(u.Parts) > 0 { // it is one of them
				u = &u.Parts[0]
			}
			r.fail("%s.%s can't have the value that it had: %w", c.Name, u.Path, cmp.Or(c.remote.Unread, layout.ErrUnfit))
			return a
		}
	}
	err := in.Err()
	if err == nil {
		err = c.Layout.Keep(v.UnsafePointer())
	}
	if err != nil {
		r.fail("values of %s: %v", c.Name, err)
		return a
	}
	b := baseOf(a.actor)
	b.SetCullDistance(float64(cull))
	b.SetPriority(priority)
	b.SetAlwaysRelevant(a.flags&flagAlways != 0)
	b.SetOnlyOwner(a.flags&flagOnlyOwner != 0)
	return a
}
