package actorrep

import (
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
	v := &view{dirty: 7}
	v.tell(3)
	v.changed(8)
	v.tell(8)
	require.EqualValues(t, 4, v.dirty)
	require.EqualValues(t, 11, v.told)
}
