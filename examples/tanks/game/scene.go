package game

import "time"

// Kind is what a thing is.
type Kind uint8

// What there is to draw.
const (
	Own Kind = iota
	Other
	Enemy
	Box
	Shot
)

// Thing is what is drawn at a place, facing Heading degrees.
type Thing struct {
	Kind    Kind
	Pos     Vec
	Heading float64
	Name    string
}

// Scene is everything as this client draws it now: its own tank predicted and smoothed, others and drones interpolated, its shells from the
// key on.
func (c *Client) Scene(yield func(Thing) bool) {
	more := true
	show := func(t Thing) { more = more && yield(t) }
	fly := func(s *Shell) {
		if age := c.now - s.born; age < shellLife {
			show(Thing{Kind: Shot, Pos: s.From.Plus(s.Vel.Times(age.Seconds()))})
		}
	}
	var tank Tank
	for a := range c.world.All {
		switch a := a.(type) {
		case *Tank:
			if a == c.own {
				by := c.tanks.Offset(a, c.now)
				show(Thing{Own, a.Pos.Plus(Vec{by[0], by[1]}), a.Heading, a.Name})
				continue
			}
			c.drawnTanks.At(a, &tank)
			show(Thing{Other, tank.Pos, tank.Heading, a.Name})
		case *Crate:
			if !a.Taken {
				show(Thing{Kind: Box, Pos: a.Pos})
			}
		case *Shell:
			fly(a)
		}
	}
	for at := range c.drones() {
		show(Thing{Kind: Enemy, Pos: at})
	}
	for _, s := range c.shells.All {
		fly(s)
	}
}

// Board is the score board, best first come, and the player's ammunition.
func (c *Client) Board() (rows []Row, ammo int) {
	if c.board != nil {
		for _, row := range c.board.Rows.All {
			row.Name = printable(row.Name)
			rows = append(rows, row)
		}
	}
	if c.own != nil {
		ammo = int(c.own.Ammo)
	}
	return rows, ammo
}

// RTT is that of the connection.
func (c *Client) RTT() time.Duration {
	if c.Driver == nil || c.Driver.Server() == nil {
		return 0
	}
	return c.Driver.Server().Stats().RTT
}
