package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStories(t *testing.T) {
	for seed := range uint64(5) {
		for _, loss := range []float64{0, 5, 20} {
			var out bytes.Buffer
			require.True(t, tell(&out, true, seed, loss), "seed %d, loss %v\n%s", seed, loss, &out)
		}
	}
}

func TestSameSeedSameStory(t *testing.T) {
	var a, b bytes.Buffer
	tell(&a, true, 3, 10)
	tell(&b, true, 3, 10)
	require.Equal(t, a.String(), b.String())
}
