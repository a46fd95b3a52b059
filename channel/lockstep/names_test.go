package lockstep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames: every reason, kind and state says what it is.
func TestNames(t *testing.T) {
	for _, names := range [][]string{denyNames[1:], dropNames[1:], eventNames[1:], stateNames} {
		for i, n := range names {
			require.NotEmpty(t, n, "%d of %v", i, names)
		}
	}
	require.Len(t, denyNames, int(DenyOldHost)+1)
	require.Len(t, dropNames, int(DropResumed)+1)
	require.Len(t, eventNames, int(Differs)+1)
	require.Equal(t, "the snapshot is over PeerConfig.MaxSnapshot", DenySnapshot.String())
	require.Equal(t, []string{"mended", "desynced", "loading", "DropReason(0)", "State(9)"},
		[]string{DropMended.String(), Desynced.String(), Loading.String(), DropReason(0).String(), State(9).String()})
}
