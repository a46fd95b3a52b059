package hostile

import (
	"github.com/bunchnet/bunchnet/actorrep/internal/wire"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// Client is a client that lies: it calls.
type Client struct {
	d       *Dice
	classes []*class
}

// NewClient returns one that lies as the dice fall.
func NewClient(d *Dice, classes ...Class) (*Client, error) {
	list, err := build(classes)
	return &Client{d, list}, err
}

// Calls is a bunch on the channel of an actor of a class, by its place among the liar's: calls, or what a client may not send.
func (c *Client) Calls(class int) (data []byte, bits int) {
	w := bitio.NewWriter(make([]byte, 8<<10))
	for range 1 + c.d.N(3) {
		w.WriteBits(uint64(Mostly(c.d, wire.Call, wire.Props, wire.Role, wire.TornOff)), wire.KindBits)
		Mostly(c.d, c.classes[class], c.classes[c.d.N(len(c.classes))]).call(w, c.d)
	}
	return spoil(c.d, w)
}
