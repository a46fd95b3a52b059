package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLargeSeeds: seeds of largeSetting that have failed don't any more.
func TestLargeSeeds(t *testing.T) {
	for _, seed := range []uint64{
		0x47c905835d96d5bc, // a peer with room for one payload got 300 bytes a second of it
	} {
		text, err := largeSetting(seed)
		require.NoError(t, err, text)
	}
}

// TestAnySeeds: the same of anySetting.
func TestAnySeeds(t *testing.T) {
	for _, seed := range []uint64{
		0xa6313464d627ca1f, // the client said something before its control channel had come
	} {
		text, err := anySetting(seed)
		require.NoError(t, err, text)
	}
}
