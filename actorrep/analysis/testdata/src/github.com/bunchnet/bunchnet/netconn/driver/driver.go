// Package driver is what the analysers know of the real one.
package driver

import (
	"context"
	"time"
)

type Driver struct{}

func (d *Driver) Run(ctx context.Context, step func(now time.Time)) error { return nil }
func (d *Driver) TickDispatch(now time.Time)                              {}
func (d *Driver) TickFlush(now time.Time)                                 {}
func (d *Driver) Do(f func())                                             {}
func (d *Driver) Server() *Conn                                           { return nil }

type Conn struct{}

func (c *Conn) Joined() bool { return true }
