package actorrep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddConnOfClient: who calls AddConn at the wrong end is told what it is for.
func TestAddConnOfClient(t *testing.T) {
	require.PanicsWithValue(t, "actorrep: AddConn is called on a server's world; a client's has its connection from ChannelTypes",
		func() { NewClient(Config{}).AddConn(nil) })
}
