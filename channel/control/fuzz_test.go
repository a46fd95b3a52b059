package control

import (
	"bytes"
	"testing"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// FuzzMachines gives both ends of a login arbitrary bunches, three in turn. Nobody is in without having said all of it.
func FuzzMachines(f *testing.F) {
	all := samples()
	for i := range all {
		var seed [3][]byte
		for j := range seed {
			seed[j], _ = Encode(all[(i+j)%len(all)], true)
		}
		f.Add(seed[0], seed[1], seed[2])
	}
	var login [3][]byte
	for i, m := range []Message{&Hello{LittleEndian: true}, &Login{URL: "?Name=Ann"}, &Join{}} {
		login[i], _ = Encode(m, true)
	}
	f.Add(login[0], login[1], login[2])
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		said := 0
		send := func(Message) error { said++; return nil }
		s, c := NewServer(ServerConfig{Features: true}, send), NewClient(ClientConfig{Features: true}, send)
		for _, p := range [][]byte{one, two, three} {
			for _, receive := range []func(*bitio.Reader) error{s.Receive, c.Receive} {
				_ = receive(bitio.NewReader(bytes.Clone(p), len(p)*8)) // an error ends the connection; here the next comes all the same
			}
		}
		if s.Joined() && (s.Login() == nil || said == 0) {
			t.Fatal("in without a login, or without being asked for it")
		}
		if n := 8 * (len(one) + len(two) + len(three)); said > n {
			t.Fatalf("%d answers to %d bits", said, n)
		}
	})
}
