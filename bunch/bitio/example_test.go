package bitio_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

func Example() {
	var buf [64]byte
	w := bitio.NewWriter(buf[:])
	w.WriteBool(true)
	w.WriteInt(7, 15) // 3 bits: an eighth would reach 15
	w.WriteIntPacked(300)
	w.WriteString("Arena")
	if err := w.Err(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Len(), "bits")

	r := bitio.NewReader(w.Bytes(), w.Len())
	fmt.Println(r.ReadBool(), r.ReadInt(15), r.ReadIntPacked(), r.ReadString(32))
	fmt.Println(r.Remaining(), "left,", r.Err())
	// Output:
	// 100 bits
	// true 7 300 Arena
	// 0 left, <nil>
}

// What doesn't fit is taken back.
func ExampleWriter_Rollback() {
	w := bitio.NewWriter(make([]byte, 8))
	w.WriteUint32(1)
	mark := w.Mark()
	w.WriteUint64(2) // 96 bits into 64
	if w.Err() != nil {
		fmt.Println(w.Err())
		w.Rollback(mark)
	}
	w.WriteUint32(3)
	fmt.Println(w.Bytes(), w.Err())
	// Output:
	// bitio: write past the end of the buffer; give it a larger one or roll back to a Mark
	// [1 0 0 0 3 0 0 0] <nil>
}
