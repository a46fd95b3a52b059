package flight_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
)

// Witness calls askedWhere when a film that is made asks where it is.
type Witness struct {
	actorrep.Base
	N int32 `net:""`
}

var askedWhere = func() {}

func (w *Witness) Location() (x, y, z float64) {
	askedWhere()
	return 1, 2, 3
}

func filesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// witnessed is a recorder that has seen a second of a world with a Witness.
func witnessed(t *testing.T, save flight.Saving) *flight.Recorder {
	w := actorrep.NewServer(actorrep.Config{})
	require.NoError(t, w.Register("Witness", (*Witness)(nil)))
	rec, err := flight.New(w, nil, flight.Config{Save: save})
	require.NoError(t, err)
	require.NoError(t, w.Spawn(&Witness{}))
	for n := range time.Duration(60) {
		w.Step(n * time.Second / 60)
	}
	return rec
}

// TestFilmsAreWhole: no file has a film's name before the film is whole, so that a process that is killed meanwhile leaves no cut film. What it
// leaves, and a film that another process writes to the same folder, is never overwritten, and hinders no film.
func TestFilmsAreWhole(t *testing.T) {
	dir, told := t.TempDir(), newSaves()
	for name, text := range map[string]string{"film-001.html.part": "killed amid it", "film-002.html": "another's"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var amid [][]string
	rec := witnessed(t, flight.Saving{Dir: dir, Saved: told.saved})
	askedWhere = func() { amid = append(amid, filesIn(t, dir)) }
	defer func() { askedWhere = func() {} }()
	require.PanicsWithValue(t, errBoom, func() {
		defer rec.SavePanic()
		panic(errBoom)
	})
	require.Empty(t, told.errs)
	film := filepath.Join(dir, "film-003.html")
	require.Equal(t, film, <-told.files)
	require.True(t, strings.HasSuffix(text(t, film), "</html>\n"))
	require.NotEmpty(t, amid)
	for _, names := range amid {
		require.Equal(t, []string{"film-001.html.part", "film-002.html", "film-003.html.part"}, names)
	}
	require.Equal(t, []string{"film-001.html.part", "film-002.html", "film-003.html"}, filesIn(t, dir))
	require.Equal(t, "killed amid it", text(t, filepath.Join(dir, "film-001.html.part")))
	require.Equal(t, "another's", text(t, filepath.Join(dir, "film-002.html")))
}

// TestFilmThatPanics: an actor's Location that panics while a film is made, where the game never calls it, ends no game: Saved is told, and no file is left.
func TestFilmThatPanics(t *testing.T) {
	dir, told := t.TempDir(), newSaves()
	rec := witnessed(t, flight.Saving{Dir: dir, Saved: told.saved})
	askedWhere = func() { panic(errBoom) }
	defer func() { askedWhere = func() {} }()
	require.NoError(t, rec.Save("a key"))
	require.NoError(t, rec.Close())
	require.ErrorContains(t, <-told.errs, errBoom.Error())
	require.Empty(t, filesIn(t, dir))
}
