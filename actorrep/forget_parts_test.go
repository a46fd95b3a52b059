package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrowdedForgets: openings in several bunches that are over are kept by nothing, not even behind the list's end. One that isn't all sent counts as the most that
// may be in flight.
func TestCrowdedForgets(t *testing.T) {
	p := &Peer{}
	over, going := &view{peer: p, state: ended}, &view{peer: p, state: opening, flags: inParts, total: openingsBytes * 8}
	p.inParts = []*view{over, going, over}
	require.True(t, p.crowded())
	require.Equal(t, []*view{going, nil, nil}, p.inParts[:3])
	going.total--
	require.False(t, p.crowded())
	going.flags |= unfinished
	require.True(t, p.crowded())
	going.state = open
	require.False(t, p.crowded())
	require.Equal(t, make([]*view, 3), p.inParts[:3])
}
