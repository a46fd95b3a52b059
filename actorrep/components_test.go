package actorrep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAdopt: components of components end, whatever a server says of parents.
func TestAdopt(t *testing.T) {
	a, b, c := &Base{}, &Base{}, &Base{}
	a.adopt(a)
	require.Nil(t, a.parent, "its own")
	b.adopt(a)
	c.adopt(b)
	a.adopt(c)
	require.Nil(t, a.parent, "its grandchild's")
	require.Equal(t, []*Base{b}, a.children)
	require.Nil(t, c.Owner(), "looks up to the end")
	for range 2 * maxDepth {
		next := &Base{}
		next.adopt(c)
		c = next
	}
	require.Nil(t, c.parent, "too deep")
}

// TestTold: a view remembers all that was ever sent.
func TestTold(t *testing.T) {
	v := &view{dirty: 7, peer: &Peer{}}
	v.tell(3)
	v.changed(8)
	v.tell(8)
	require.EqualValues(t, 4, v.dirty)
	require.EqualValues(t, 11, v.told)
}

// TestManyComponentsGo: of an actor with thousands of components all go, in any order, without a copy of the list for each.
func TestManyComponentsGo(t *testing.T) {
	const n = 8000
	rng := rand.New(rand.NewPCG(1, 1))
	for order, pick := range map[string]func(left int) int{
		"first":  func(int) int { return 0 },
		"last":   func(left int) int { return left - 1 },
		"random": rng.IntN,
	} {
		p := &Base{}
		var all []*Base
		for range n {
			c := &Base{}
			p.addChild(c)
			all = append(all, c)
		}
		copies, list := 0, &p.children[0]
		for len(all) > 0 {
			i := pick(len(all))
			p.dropChild(all[i])
			all[i].parent = nil
			if all = slices.Delete(all, i, i+1); len(all)%1000 == 1 {
				require.Equal(t, all, slices.Collect(p.components), order)
			}
			if len(all) > 0 && &p.children[0] != list {
				copies, list = copies+1, &p.children[0]
			}
		}
		require.Empty(t, p.children)
		require.Less(t, copies, 16, order)
	}
}
