package actorrep

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestLines checks that what every change touches of a view and of an actor is in one cache line each, and that slabs of views keep
// them so. A field more in front costs a fifth of a tick with many changes.
func TestLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("for machines of 64 bits")
	}
	const line = 64
	var v view
	require.EqualValues(t, line-8, unsafe.Offsetof(v.told), "a slab begins with 8 bytes of the allocator")
	require.LessOrEqual(t, int(unsafe.Offsetof(v.acked)), 2*line-8-2)
	require.Zero(t, unsafe.Sizeof(v)%line)
	var r replicated
	require.EqualValues(t, line, unsafe.Offsetof(r.lastFrame))
	require.EqualValues(t, 2*line, unsafe.Sizeof(r))
}

// TestViewIsSmall: there may be two thousand of them for each connection.
func TestViewIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("for machines of 64 bits")
	}
	require.LessOrEqual(t, int(unsafe.Sizeof(view{})), 192)
}
