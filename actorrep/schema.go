package actorrep

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// describe encodes a class's description, once.
func (w *World) describe(c *class) error {
	bw := bitio.NewWriter(make([]byte, classBytes))
	layout.WriteText(bw, c.name)
	c.layout.WriteSchema(bw)
	bw.WriteIntPacked(uint32(len(c.rpcs)))
	for i := range c.rpcs {
		d := c.rpcs[i].definition()
		layout.WriteText(bw, c.rpcs[i].name)
		bw.WriteBits(uint64(d.wireKind()), 3)
		bw.WriteUint32(d.params.Hash())
	}
	n, paths := (bw.Len()+7)/8, 0
	names := []string{c.name}
	for i := range c.rpcs {
		names = append(names, c.rpcs[i].name)
	}
	for u := range c.layout.Leaves {
		paths += len(u.Path)
		names = append(names, u.Path)
	}
	for _, name := range names {
		if len(name) > layout.MaxPath {
			return fmt.Errorf("%w: %.32q... has %d bytes", ErrLongName, name, len(name))
		}
	}
	if bw.Err() != nil || len(w.classes) >= maxClasses || len(c.rpcs) > maxProcedures || w.described+n > maxSchema-classBytes || w.paths+paths > maxPaths {
		return ErrManyNames
	}
	w.described += n
	w.paths += paths
	c.description, c.descriptionBits = slices.Clone(bw.Bytes()), bw.Len()
	return nil
}

// writeSchema writes the descriptions of the classes from first to last-1.
func (w *World) writeSchema(bw *bitio.Writer, first, last int) {
	bw.WriteBits(wire.Schema, wire.KindBits)
	bw.WriteIntPacked(uint32(len(w.classes)))
	bw.WriteIntPacked(uint32(first))
	bw.WriteIntPacked(uint32(last - first))
	for _, c := range w.classes[first:last] {
		bw.WriteBitsFrom(c.description, 0, c.descriptionBits)
	}
}

// encodeSchema encodes all descriptions as one message, for a recording.
func (w *World) encodeSchema() (data []byte, bits int) {
	bw := bitio.NewWriter(make([]byte, w.described+64))
	w.writeSchema(bw, 0, len(w.classes))
	return bw.Bytes(), bw.Len()
}

// schemaHead is an upper bound of the bytes before the classes.
const schemaHead = 16

// schemaPart returns the end (exclusive) of the classes from first on that one bunch of about most bytes describes.
func (w *World) schemaPart(first, most int) (last int) {
	n := 0
	for last = first; last < len(w.classes); last++ {
		if n += len(w.classes[last].description); n > min(most, classBytes) && last > first {
			break
		}
	}
	return last
}

// remoteClass is a class as the other end has it.
type remoteClass struct {
	id    int
	name  string
	units *layout.Remote
	rpcs  []remoteRPC
	local *class // ours of that name; nil when there is none or it can't be used
	err   error  // why ours can't be used

	last  layout.Mask // mask of its last record in chunk
	chunk uint32
}

// lastOf points to the mask of the class's last record in a chunk.
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
	local int  // ours, or -1
	told  bool // it was reported that we lack it
}

// Errors of schemas.
var (
	// ErrSchema: both ends have the class, with fields or procedures that aren't compatible. The text names them.
	ErrSchema = errors.New("actorrep: the two ends have different classes")
	// ErrNoClass: the client lacks a class of the server and sees no actors of it.
	ErrNoClass = errors.New("actorrep: the client has no such class; register it there under the same name")
	// ErrNoAnswer: the client has the connection and never answers the description of the server's classes.
	ErrNoAnswer = errors.New("actorrep: the client doesn't answer; give World.ChannelTypes() to the connections of both ends")
	// ErrNoChannelTypes: World.ChannelTypes was never called.
	ErrNoChannelTypes = errors.New("actorrep: give World.ChannelTypes() to the connection's config (driver.Config.Channels)")
	// ErrNoClasses: a client's World was stepped for 30 seconds behind ChannelTypes, and no server has described its classes to it. Config.Failed
	// gets it once.
	ErrNoClasses = errors.New("actorrep: no server has described its classes for 30 s; is there a connection, and does the server call World.AddConn for it, and Step?")
	errFormat    = errors.New("actorrep: malformed bunch")
)

// Bounds of a schema.
const (
	maxClasses    = 4096
	maxProcedures = 256
	classBytes    = 16 << 10 // of the description of a class, or of several in a bunch
	maxSchema     = 1 << 20  // bytes of all
	maxPaths      = 4 << 20  // bytes of the names of values
)

// ErrManyNames: there are more classes, procedures or names than can be described to a client.
var ErrManyNames = fmt.Errorf("actorrep: more than %d classes, %d procedures of a class, %d bytes of names of a class or %d of all", maxClasses, maxProcedures, classBytes, maxSchema)

// ErrLongName: the name of a class, of a procedure or of a field, those around it included, is too long.
var ErrLongName = fmt.Errorf("actorrep: a name may have %d bytes", layout.MaxPath)

// schemaReader decodes the other end's classes and matches ours with them.
type schemaReader struct {
	list  []*remoteClass // not nil once the first message arrived
	names map[string]bool
	errs  []error // classes and fields that can't be used; the others can
	total int
	bytes int // of all descriptions
	paths int // bytes of the names of their values, which the message abbreviates
	bad   bool
}

// readSchema decodes a description of all classes in one message.
func (w *World) readSchema(r *bitio.Reader) (list []*remoteClass, err error) {
	s := &schemaReader{}
	done, err := s.read(w, r)
	if err != nil || !done {
		return nil, errors.Join(errFormat, err)
	}
	return s.list, errors.Join(s.errs...)
}

// read decodes one message, and reports whether it was the last. After an error all further messages are errors.
func (s *schemaReader) read(w *World, r *bitio.Reader) (done bool, err error) {
	if s.bad {
		return false, fmt.Errorf("%w: the classes are described again", errFormat)
	}
	if err := s.readPart(w, r); err != nil {
		*s = schemaReader{bad: true}
		return false, err
	}
	s.bad = len(s.list) == s.total
	return s.bad, nil
}

func (s *schemaReader) readPart(w *World, r *bitio.Reader) error {
	from := r.Pos()
	total, first, n := r.ReadIntPacked(), r.ReadIntPacked(), r.ReadIntPacked()
	switch {
	case r.Err() != nil || total > maxClasses || n > total || n == 0 && total > 0:
		return errFormat
	case s.list == nil:
		s.list, s.names, s.total = []*remoteClass{}, map[string]bool{}, int(total)
	case s.total != int(total):
		return fmt.Errorf("%w: %d classes, then %d", errFormat, s.total, total)
	}
	if int(first) != len(s.list) || int(n) > s.total-len(s.list) {
		return fmt.Errorf("%w: class %d is described instead of %d", errFormat, first, len(s.list))
	}
	for range n {
		c := &remoteClass{id: len(s.list), name: layout.ReadText(r, layout.MaxPath), units: layout.ReadSchema(r)}
		rpcs := r.ReadIntPacked()
		if r.Err() != nil || rpcs > maxProcedures || s.names[c.name] {
			return fmt.Errorf("%w: class %q: %w", errFormat, c.name, errors.Join(r.Err()))
		}
		s.names[c.name] = true
		for range rpcs {
			c.rpcs = append(c.rpcs, remoteRPC{name: layout.ReadText(r, layout.MaxPath), kind: uint8(r.ReadBits(3)), hash: r.ReadUint32(), local: -1})
		}
		if r.Err() != nil {
			return fmt.Errorf("%w: %w", errFormat, r.Err())
		}
		if s.bytes += (r.Pos() - from + 7) / 8; s.bytes > maxSchema {
			return fmt.Errorf("%w: classes with over %d bytes of names", errFormat, maxSchema)
		}
		if s.paths += c.units.Size(); s.paths > maxPaths {
			return fmt.Errorf("%w: classes with over %d bytes of names", errFormat, maxPaths)
		}
		from = r.Pos()
		w.match(c)
		if c.err != nil {
			s.errs = append(s.errs, c.err)
		}
		s.list = append(s.list, c)
	}
	return nil
}

// match finds our class and procedures with the same names.
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
				remote.told = true
				continue
			}
			remote.local = j
		}
	}
}

// maxRefusal bounds the text of a refusal, in bytes.
const maxRefusal = 8 << 10

// refusal is the text of errors: the whole lines that fit, and the number of those that don't.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if len(text) <= maxRefusal {
		return text
	}
	cut := strings.LastIndexByte(text[:maxRefusal-64], '\n') + 1
	return fmt.Sprintf("%s(%d lines more; the client's Config.Failed has all)", text[:cut], 1+strings.Count(text[cut:], "\n"))
}

// A client's answer to the schema is
//
//	IntPacked  classes    a bit each: it has the class, and takes the server's    text: what it can't take, or ""
func writeAnswer(w *bitio.Writer, list []*remoteClass, text string) {
	w.WriteIntPacked(uint32(len(list)))
	for _, c := range list {
		w.WriteBool(c.local != nil)
	}
	layout.WriteText(w, text)
}

// readAnswer decodes it: which classes the client lacks, by number, and its text.
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

// missing returns an ErrNoClass for each of the server's classes that isn't registered here.
func missing(list []*remoteClass) (errs []error) {
	for _, c := range list {
		if c.local == nil && c.err == nil {
			errs = append(errs, fmt.Errorf("%w: %q", ErrNoClass, c.name))
		}
	}
	return errs
}

// lacking names the procedures that the server calls and that we lack, or nil. The client's game is told when one is called.
func lacking(list []*remoteClass) error {
	var errs []error
	for _, c := range list {
		for i := range c.rpcs {
			if p := &c.rpcs[i]; c.local != nil && p.local < 0 && !p.told && !p.ofServer() {
				errs = append(errs, fmt.Errorf("class %s: the client has no procedure %s, which the server calls", c.name, p.name))
			}
		}
	}
	return errors.Join(errs...)
}

// called reports whether the class has a procedure of this number that clients call.
func (c *remoteClass) called(procedure uint32) bool {
	return uint64(procedure) < uint64(len(c.rpcs)) && c.rpcs[procedure].ofServer()
}

// ofServer reports whether clients call the procedure.
func (p *remoteRPC) ofServer() bool {
	k := rpcKind(p.kind >> 1)
	return k == serverRPC || k == anyServerRPC
}
