package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAuthenticate: a name is an account's in full, or nobody's.
func TestAuthenticate(t *testing.T) {
	for name, id := range map[string]uint64{
		"player1": 1, "player42": 42, "player1 and anything": 0, "player01": 0, "player+1": 0, "player": 0, "player-1": 0, "1": 0,
		"xplayer1": 0, "player1\n": 0, "player99999999999999999999": 0, "player1\x00": 0, "": 0,
	} {
		r, err := http.NewRequest(http.MethodPost, "http://tokens.example/token", nil)
		require.NoError(t, err)
		r.SetBasicAuth(name, "swordfish")
		p, err := authenticate(r)
		if id == 0 {
			require.Error(t, err, "%q", name)
			continue
		}
		require.NoError(t, err, "%q", name)
		require.Equal(t, id, p.ID)
		r.SetBasicAuth(name, "guess")
		_, err = authenticate(r)
		require.Error(t, err)
	}
}
