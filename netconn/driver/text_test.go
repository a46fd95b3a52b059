package driver_test

import "github.com/bunchnet/bunchnet/bunch/bitio"

// fstring is a text as a bunch's payload.
func fstring(s string) []byte {
	w := bitio.NewWriter(make([]byte, 2*len(s)+8))
	w.WriteString(s)
	return w.Bytes()
}
