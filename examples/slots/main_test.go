package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStories(t *testing.T) {
	for seed := range uint64(5) {
		for _, loss := range []float64{0, 5, 20} {
			var out bytes.Buffer
			good, err := tell(&out, true, seed, loss)
			require.NoError(t, err)
			require.True(t, good, "seed %d, loss %v\n%s", seed, loss, &out)
		}
	}
}

func TestSameSeedSameStory(t *testing.T) {
	var a, b bytes.Buffer
	_, errA := tell(&a, true, 3, 10)
	_, errB := tell(&b, true, 3, 10)
	require.NoError(t, errors.Join(errA, errB))
	require.Equal(t, a.String(), b.String())
}
