package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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

// TestListen: a program of which nothing is heard hangs, and one that takes long and says so doesn't.
func TestListen(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	out, hangs, err := listen(t.TempDir(), 10*time.Millisecond, "sleep", "1000")
	require.True(t, hangs)
	require.Error(t, err)
	require.Empty(t, out)
	out, hangs, err = listen(t.TempDir(), time.Minute, "sh", "-c", "echo one; echo two >&2; exit 3")
	require.False(t, hangs)
	require.Error(t, err)
	require.Equal(t, "one\ntwo\n", string(out))

	said := &lastSaid{limit: time.Hour, timer: time.AfterFunc(time.Hour, func() {})}
	require.True(t, said.timer.Stop())
	_, err = said.Write([]byte("x"))
	require.NoError(t, err)
	require.True(t, said.timer.Stop(), "it is wound up again")
}
