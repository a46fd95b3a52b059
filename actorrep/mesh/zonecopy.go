package mesh

import (
	"fmt"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/internal/bridge"
	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/channel"
)

var (
	addConnByHand = bridge.AddConnByHand.(func(w *actorrep.World, conn channel.Conn) *actorrep.Peer)
	classes       = bridge.Classes.(func(w *actorrep.World) []bridge.Class)
	idsOf         = bridge.IDs.(func(w *actorrep.World) netguid.Share)
	baseOf        = bridge.BaseOf.(func(a actorrep.Actor) *actorrep.Base)
	report        = bridge.Report.(func(w *actorrep.World, err error))
)

// copier copies the replicated values of actors.
type copier struct {
	layouts map[string]*layout.Layout // by class
	w       bitio.Writer
	r       bitio.Reader
	buf     []byte
}

// maxCopied bounds an actor's values.
const maxCopied = 1 << 20

func (c *copier) init(w *actorrep.World) {
	c.layouts = map[string]*layout.Layout{}
	for _, k := range classes(w) {
		c.layouts[k.Name] = k.Layout
	}
}

// check says why actors of a class can't be copied.
func (c *copier) check(class string) error {
	switch l := c.layouts[class]; {
	case l == nil:
		return fmt.Errorf("%w: class %q was registered after NewZone", ErrConfig, class)
	case !l.Copies():
		return fmt.Errorf("%w: class %q has a fast array without NetCopy, which can't be mirrored", ErrConfig, class)
	}
	return nil
}

// copy copies the values of one actor to another of its class. It reports whether it can.
func (c *copier) copy(to, from Actor) bool {
	if reflect.TypeOf(to) != reflect.TypeOf(from) {
		return false
	}
	l := c.layouts[to.body().ClassName()]
	for {
		c.w.Reset(c.buf)
		l.WriteUnits(&c.w, reflect.ValueOf(from).UnsafePointer(), l.All()&^l.Fasts)
		if c.w.Err() == nil {
			break
		}
		if len(c.buf) >= maxCopied {
			return false
		}
		c.buf = make([]byte, max(1024, 2*len(c.buf)))
	}
	c.r.Reset(c.buf, c.w.Len())
	l.ReadUnits(&c.r, reflect.ValueOf(to).UnsafePointer(), l.All()&^l.Fasts)
	err := l.CopyFasts(reflect.ValueOf(to).UnsafePointer(), reflect.ValueOf(from).UnsafePointer())
	to.body().MarkDirty()
	return c.r.Err() == nil && err == nil
}
