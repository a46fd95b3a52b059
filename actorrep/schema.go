package actorrep

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

const initialFlag = layout.Initial

func writeAudience(w *bitio.Writer, a layout.Audience) {
	w.WriteBool(a&layout.Owner != 0)
	w.WriteBool(a&layout.Autonomous != 0)
}

func readAudience(r *bitio.Reader) (owner, autonomous bool) {
	owner = r.ReadBool()
	return owner, r.ReadBool()
}

// encodeSchema is the classes of a world, in bits:
//
//	2          0, the message
//	IntPacked  classes, each:
//	  text     name
//	  ...      units (package layout)
//	  IntPacked procedures, each: text name, 3 kind and reliability, 32 hash of the parameters
func (w *World) encodeSchema() (data []byte, bits int) {
	if w.schema != nil {
		return w.schema, w.schemaLen
	}
	bw := bitio.NewWriter(make([]byte, len(w.scratch)))
	bw.WriteBits(msgSchema, msgBits)
	bw.WriteIntPacked(uint32(len(w.classes)))
	for _, c := range w.classes {
		layout.WriteText(bw, c.name)
		c.layout.WriteSchema(bw)
		bw.WriteIntPacked(uint32(len(c.rpcs)))
		for i := range c.rpcs {
			d := c.rpcs[i].definition()
			layout.WriteText(bw, c.rpcs[i].name)
			bw.WriteBits(uint64(d.wireKind()), 3)
			bw.WriteUint32(d.params.Hash())
		}
	}
	w.schema, w.schemaLen = bw.Bytes(), bw.Len()
	return w.schema, w.schemaLen
}

// remoteClass is a class as the other end has it.
type remoteClass struct {
	id    int
	name  string
	units *layout.Remote
	rpcs  []remoteRPC
	local *class // ours of that name, or nil
	err   error  // why ours can't be used

	last  layout.Mask // of its last record, in that chunk
	chunk uint32
}

// lastOf is the mask of the class's last record in a chunk, to be read and set.
func (c *remoteClass) lastOf(chunk uint32) *layout.Mask {
	if c.chunk != chunk {
		c.last, c.chunk = 0, chunk
	}
	return &c.last
}

type remoteRPC struct {
	name  string
	kind  uint8
	hash  uint32
	local int // ours, or -1
}

// Errors of schemas.
var (
	// ErrSchema is a class that both ends have in forms that don't go together; the text names the fields.
	ErrSchema = errors.New("actorrep: the two ends have different classes")
	// ErrNoClass is a class of a server's that the client doesn't have, so that it sees no actors of it.
	ErrNoClass = errors.New("actorrep: the client has no such class; register it there under the same name")
	// ErrNoAnswer is a client that has the connection and never answers the server's classes.
	ErrNoAnswer = errors.New("actorrep: the client doesn't answer; give World.ChannelTypes() to the connections of both ends")
	// ErrNoChannelTypes is a World whose ChannelTypes were never asked for.
	ErrNoChannelTypes = errors.New("actorrep: give World.ChannelTypes() to the connection's config (driver.Config.Channels)")
	errFormat         = errors.New("actorrep: malformed bunch")
)

// Bounds of a schema.
const (
	maxClasses    = 4096
	maxProcedures = 256
)

// readSchema reads the other end's classes and finds ours beside them. Its error names the classes and fields that
// don't fit; the others can be used.
func (w *World) readSchema(r *bitio.Reader) (list []*remoteClass, err error) {
	n := r.ReadIntPacked()
	if r.Err() != nil || n > maxClasses {
		return nil, errFormat
	}
	var errs []error
	list = []*remoteClass{} // not nil, when there are no classes either
	names := make(map[string]bool, n)
	for range n {
		c := &remoteClass{id: len(list), name: layout.ReadText(r, layout.MaxPath), units: layout.ReadSchema(r)}
		rpcs := r.ReadIntPacked()
		if r.Err() != nil || rpcs > maxProcedures || names[c.name] {
			return nil, fmt.Errorf("%w: class %q: %w", errFormat, c.name, errors.Join(r.Err()))
		}
		names[c.name] = true
		for range rpcs {
			c.rpcs = append(c.rpcs, remoteRPC{name: layout.ReadText(r, layout.MaxPath), kind: uint8(r.ReadBits(3)), hash: r.ReadUint32(), local: -1})
		}
		if r.Err() != nil {
			return nil, fmt.Errorf("%w: %w", errFormat, r.Err())
		}
		w.match(c)
		if c.err != nil {
			errs = append(errs, c.err)
		}
		list = append(list, c)
	}
	return list, errors.Join(errs...)
}

// match finds our class and procedures.
func (w *World) match(c *remoteClass) {
	for _, own := range w.classes {
		if own.name == c.name {
			c.local = own
		}
	}
	if c.local == nil {
		return // we have no such class: its actors aren't shown
	}
	if err := c.units.Match(c.local.layout); err != nil {
		c.err = fmt.Errorf("%w: class %s: %w", ErrSchema, c.name, err)
		c.local = nil
		return
	}
	for i := range c.rpcs {
		remote := &c.rpcs[i]
		for j := range c.local.rpcs {
			own := &c.local.rpcs[j]
			if own.name != remote.name {
				continue
			}
			d := own.definition()
			if d.wireKind() != remote.kind || d.params.Hash() != remote.hash {
				c.err = errors.Join(c.err, fmt.Errorf("%w: class %s: procedure %s has another kind or other parameters", ErrSchema, c.name, remote.name))
				continue
			}
			remote.local = j
		}
	}
}

// maxRefusal bounds the text of a refusal, in bytes.
const maxRefusal = 4096

// A client's answer to the schema is
//
//	IntPacked  classes    a bit each: it has the class, and takes the server's    text: what it can't take, or ""
func writeAnswer(w *bitio.Writer, list []*remoteClass, text string) {
	w.WriteIntPacked(uint32(len(list)))
	for _, c := range list {
		w.WriteBool(c.local != nil)
	}
	layout.WriteText(w, text[:min(len(text), maxRefusal)])
}

// readAnswer reads it: the classes that the client lacks, by their number, and its words.
func readAnswer(r *bitio.Reader, classes int) (lacks []bool, text string, err error) {
	if n := r.ReadIntPacked(); r.Err() != nil || uint64(n) != uint64(classes) {
		return nil, "", fmt.Errorf("%w: an answer to another schema", errFormat)
	}
	lacks = make([]bool, classes)
	for i := range lacks {
		lacks[i] = !r.ReadBool()
	}
	text = layout.ReadText(r, maxRefusal)
	return lacks, text, r.Err()
}

// missing names the classes of a server's that aren't registered here.
func missing(list []*remoteClass) (errs []error) {
	for _, c := range list {
		if c.local == nil && c.err == nil {
			errs = append(errs, fmt.Errorf("%w: %q", ErrNoClass, c.name))
		}
	}
	return errs
}
