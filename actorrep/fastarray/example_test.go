package fastarray_test

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/fastarray"
	"github.com/bunchnet/bunchnet/bunch/bitio"
)

type Item struct {
	Name  string
	Count uint16 `net:"max=999"`
}

type Chest struct {
	actorrep.Base
	Items fastarray.List[Item] `net:""`
}

// Changing a list: on a server, worlds see to the rest.
func ExampleList() {
	var chest Chest
	arrows, _ := chest.Items.Add(Item{"arrows", 20})
	rope, _ := chest.Items.Add(Item{"rope", 1})
	known := chest.Items.NetKey()

	_ = chest.Items.Set(arrows, Item{"arrows", 19})
	_ = chest.Items.Remove(rope)
	for id, v := range chest.Items.All {
		fmt.Println(id, v.Name, v.Count)
	}

	w := bitio.NewWriter(make([]byte, 1024))
	chest.Items.NetWrite(w, known)
	fmt.Println("what a client that knew both is told:", len(w.Bytes()), "bytes")
	// Output:
	// 1 arrows 19
	// what a client that knew both is told: 8 bytes
}
