package handler_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
	"github.com/bunchnet/bunchnet/netconn/handler"
)

// game marks packets with three bits.
type game struct{}

func (game) ReservedBits() int           { return 3 }
func (game) WritePrefix(w *bitio.Writer) { w.WriteBits(5, 3) }
func (game) ReadPrefix(r *bitio.Reader) error {
	if r.ReadBits(3) != 5 {
		return fmt.Errorf("another game's packet")
	}
	return nil
}

func Example() {
	chain := handler.NewChain(game{})
	w := bitio.NewWriter(make([]byte, 64))
	chain.Begin(w)
	w.WriteUint16(4711)
	handler.WriteTerminator(w)
	chain.End(w)

	var r bitio.Reader
	err := chain.Incoming(&r, w.Bytes())
	r.StripTerminator()
	fmt.Println(r.ReadUint16(), r.Remaining(), err)
	// Output: 4711 0 <nil>
}
