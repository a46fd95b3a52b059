package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimits: the first situation of each topic can be played, and the same seed has the same figure.
func TestLimits(t *testing.T) {
	topic := ""
	for i, l := range limits(nil) {
		if l.topic == topic {
			continue
		}
		topic = l.topic
		first, err := playLimit(i, 1)
		require.NoError(t, err)
		again, err := playLimit(i, 1)
		require.NoError(t, err)
		require.Equal(t, first, again, l.situation)
	}
	require.NotEmpty(t, topic)
}
