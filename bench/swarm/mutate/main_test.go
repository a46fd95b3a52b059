package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMutationsApply: every mutation still finds its text.
func TestMutationsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations {
		require.False(t, names[m.name], "%s is there twice", m.name)
		names[m.name] = true
		b, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(m.file)))
		require.NoError(t, err)
		text, err := m.apply(string(b))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		require.NotEqual(t, string(b), text, m.name)
	}
	require.GreaterOrEqual(t, len(mutations), 20)
}

func TestTextMustOccurOnce(t *testing.T) {
	m := mutation{old: "a", new: "b"}
	for _, text := range []string{"", "a a"} {
		_, err := m.apply(text)
		require.ErrorIs(t, err, errText)
	}
	text, err := m.apply("cat")
	require.NoError(t, err)
	require.Equal(t, "cbt", text)
}
