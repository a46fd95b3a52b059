package origins

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	l := List{"https://play.example", "http://127.0.0.1:8080"}
	require.NoError(t, l.Check())
	require.NoError(t, List{Any}.Check())
	for _, bad := range []string{"", "play.example", "https://play.example/", "https://play.example/x", "https://u@play.example", "https://play.example?", "//x", "null"} {
		require.Error(t, List{bad}.Check(), bad)
	}
	for origin, want := range map[string]bool{"https://play.example": true, "https://PLAY.example": true, "http://127.0.0.1:8080": true, "http://127.0.0.1": false,
		"http://play.example": false, "https://play.example.evil.example": false, "null": false, "": false, Any: false} {
		require.Equal(t, want, l.Allows(origin), origin)
		require.Equal(t, want, l.Named(origin), origin)
		require.False(t, List(nil).Allows(origin), origin)
		require.True(t, List{Any}.Allows(origin), origin)
		require.False(t, List{Any}.Named(origin), origin)
	}
}

func TestOwn(t *testing.T) {
	for origin, want := range map[string]bool{"https://play.example": true, "http://PLAY.example": true, "https://play.example:8443": false, "https://evil.example": false, "null": false, "": false, "://": false} {
		require.Equal(t, want, Own(origin, "play.example"), origin)
	}
}
