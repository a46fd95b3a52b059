package netconn

import "github.com/bunchnet/bunchnet/channel"

// outlet is a Conn as its channels see it: what they ask of it besides channel.Conn. Its methods stand where
// what they do is decided.
type outlet Conn

func (o *outlet) conn() *Conn { return (*Conn)(o) }

var (
	_ channel.Conn   = (*Conn)(nil)
	_ channel.Outlet = (*outlet)(nil)
)
