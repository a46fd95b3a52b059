package hostile

import (
	"fmt"
	"reflect"

	"github.com/bunchnet/bunchnet/actorrep/layout"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Class is a class as a liar has it.
type Class struct {
	// Actor is a pointer to a struct of the class. It has the values that are sent.
	Actor any
	// Change gives it others; nil leaves it as it is.
	Change func(d *Dice)
	// Procedures make parameters, each of the class's procedures its own, in the order of their names.
	Procedures []func(d *Dice) any
}

// class is one with its layout.
type class struct {
	Class
	layout *layout.Layout
	shadow *layout.Shadow
	params []*layout.Layout
}

func build(list []Class) (classes []*class, err error) {
	for _, given := range list {
		c := &class{Class: given}
		if c.layout, err = layout.Build(reflect.TypeOf(given.Actor).Elem()); err != nil {
			return nil, fmt.Errorf("hostile: %T: %w", given.Actor, err)
		}
		c.shadow = c.layout.NewShadow()
		for i, p := range given.Procedures {
			params, err := layout.BuildValue(reflect.TypeOf(p(&Dice{rare: 16})))
			if err != nil {
				return nil, fmt.Errorf("hostile: procedure %d of %T: %w", i, given.Actor, err)
			}
			c.params = append(c.params, params)
		}
		classes = append(classes, c)
	}
	return classes, nil
}

// change gives the class's actor other values.
func (c *class) change(d *Dice) {
	if c.Change != nil {
		c.Change(d)
	}
	c.layout.Compare(c.shadow, reflect.ValueOf(c.Actor).UnsafePointer(), c.layout.All())
}

// mask is units of the class.
func (c *class) mask(d *Dice) layout.Mask {
	all := c.layout.All()
	return Mostly(d, all, layout.Mask(d.N(256))&all, 0)
}

// values writes units, against a base or not.
func (c *class) values(w *bitio.Writer, m layout.Mask, base *layout.Base) {
	for i := range c.layout.Units {
		if m>>i&1 != 0 {
			c.layout.WriteUnit(w, c.shadow, i, base)
		}
	}
}

// call writes a call of one of the class's procedures.
func (c *class) call(w *bitio.Writer, d *Dice) {
	id := 0
	if n := len(c.params); n > 0 {
		id = d.N(n)
	}
	w.WriteIntPacked(Mostly(d, uint32(id), uint32(len(c.params)), uint32(id+1), 256, 1<<31, 1<<32-1))
	params := bitio.NewWriter(make([]byte, 2048))
	if id < len(c.params) && d.N(4) > 0 {
		v := c.Procedures[id](d)
		at := reflect.New(reflect.TypeOf(v))
		at.Elem().Set(reflect.ValueOf(v))
		c.params[id].WriteValue(params, at.UnsafePointer())
	} else {
		for range d.N(6) {
			params.WriteUint8(uint8(d.N(256)))
		}
	}
	w.WriteIntPacked(Mostly(d, uint32(params.Len()), 0, 7, 1<<18, 1<<31, 1<<32-1))
	w.WriteBitsFrom(params.Bytes(), 0, params.Len())
}
