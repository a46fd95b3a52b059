package flight_test

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/actorrep"
	"github.com/bunchnet/bunchnet/actorrep/flight"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netsim"
	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// saves is what Saved was told.
type saves struct {
	files chan string
	errs  chan error
}

func newSaves() *saves { return &saves{make(chan string, 100), make(chan error, 100)} }

func (s *saves) saved(file string, err error) {
	if err != nil {
		s.errs <- err
	} else {
		s.files <- file
	}
}

func text(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// TestSaveCorrections: a correction over the bound saves a film, at both ends, that has the correction and what followed; there are no more than may be.
func TestSaveCorrections(t *testing.T) {
	for _, size := range []float64{100, 1000} {
		dir, told := t.TempDir(), newSaves()
		view := func() flight.View { return flight.View{Title: "a race"} }
		g := run(t, 14, flight.Config{Save: flight.Saving{Dir: dir, Correction: size, Most: 2, View: view, Saved: told.saved}}, netsim.Settings{Lag: 30 * time.Millisecond}, "Ann")
		for at := time.Second; at <= 40*time.Second; at += time.Second { // two pushes in 14 s
			g.until(t, at)
		}
		if size == 1000 {
			require.Empty(t, told.files, "300 times the tolerance isn't over 1000")
			continue
		}
		at := 40 * time.Second
		for begin := time.Now(); len(told.files) < 2; time.Sleep(time.Millisecond) { // a film waits for the one before it
			require.Less(t, time.Since(begin), time.Minute)
			at += time.Second / 60
			g.until(t, at)
		}
		for range 2 {
			file := <-told.files
			page := text(t, file)
			require.Contains(t, page, "<h1 id=\"title\">a race, actor 1: a correction of ")
			d := readPage(t, page)
			i := slices.IndexFunc(d.Notes, func(n note) bool { return n.Actor >= 0 && correctedBy300.MatchString(n.Text) })
			require.GreaterOrEqual(t, i, 0)
			require.Greater(t, d.Steps[len(d.Steps)-1], d.Notes[i].At+900, "what followed")
			require.True(t, slices.ContainsFunc(d.Notes, func(n note) bool {
				return math.Abs(n.At-d.Cause[0]) < 1 && n.Conn == uint32(d.Cause[1]) && n.Actor == int(d.Cause[2]) && correctedBy300.MatchString(n.Text)
			}), "a film is opened at what had it saved")
		}
		g.until(t, at+time.Second)
		require.Empty(t, told.errs)
		require.ErrorIs(t, g.clients["Ann"].rec.Save("a key"), flight.ErrMost)
	}
}

// TestSave: a key, a connection that was lost, and errors.
func TestSave(t *testing.T) {
	dir, told := t.TempDir(), newSaves()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "film-001.html"), []byte("mine"), 0o600))
	w := actorrep.NewServer(actorrep.Config{})
	rec, err := flight.New(w, nil, flight.Config{Save: flight.Saving{Dir: dir, Left: true, Most: 3, After: 100 * time.Millisecond, Saved: told.saved}})
	require.NoError(t, err)
	now := time.Duration(0)
	step := func(n int) {
		for range n {
			now += time.Second / 60
			w.Step(now)
		}
	}
	written := func() { // a film waits for the one before it, until Saved has returned
		for d := time.Now(); len(told.files)+len(told.errs) == 0; time.Sleep(time.Millisecond) {
			require.Less(t, time.Since(d), time.Minute)
			step(1)
		}
	}
	step(60)
	require.NoError(t, rec.Save("<b>a key"))
	step(5)
	require.Empty(t, told.files, "not yet")
	require.NoError(t, rec.Save("another"), "one is due: it is for both")
	step(5)
	file := <-told.files
	require.Equal(t, filepath.Join(dir, "film-002.html"), file, "the first name is taken")
	require.Equal(t, "mine", text(t, filepath.Join(dir, "film-001.html")))
	require.Contains(t, text(t, file), `<h1 id="title">&lt;b&gt;a key</h1>`)
	d := readPage(t, text(t, file))
	require.Len(t, d.Notes, 2)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "only its owner reads it")

	for _, code := range []netconn.CloseCode{netconn.ClosedByPeer, netconn.ClosedByUs} {
		rec.Trace(&nettrace.Event{Kind: nettrace.ConnClosed, At: now, Conn: 7, A: uint64(code)})
		step(20)
	}
	rec.Trace(&nettrace.Event{Kind: nettrace.ConnClosed, At: now, Conn: 7, A: uint64(netconn.TimedOut)})
	written()
	require.Contains(t, text(t, <-told.files), "connection 7: timed out</h1>")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, rec.Save("nowhere"))
	written()
	require.ErrorIs(t, <-told.errs, os.ErrNotExist)
	require.ErrorIs(t, rec.Save("too many"), flight.ErrMost)
	require.Empty(t, told.files)

	// What package capture has recorded so far goes along.
	dir = t.TempDir()
	capture := filepath.Join(dir, "run.capture")
	require.NoError(t, os.WriteFile(capture, []byte("so far"), 0o600))
	rec, err = flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{Save: flight.Saving{Dir: dir, Capture: capture, Saved: func(file string, err error) {
		told.files <- file
		told.errs <- err
	}}})
	require.NoError(t, err)
	panics := func() {
		defer func() { require.Equal(t, 7, recover()) }()
		defer rec.SavePanic()
		panic(7)
	}
	panics()
	require.NoError(t, <-told.errs)
	m := regexp.MustCompile(`class="capture">([^<]*)</script>\n<script>`).FindStringSubmatch(text(t, <-told.files))
	require.NotNil(t, m)
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[1])))
	require.NoError(t, err)
	within, err := io.ReadAll(zip)
	require.NoError(t, err)
	require.Equal(t, "so far", string(within))
	require.NoError(t, os.Truncate(capture, 64<<20+1))
	panics()
	require.ErrorIs(t, <-told.errs, flight.ErrCapture)
	require.NotContains(t, text(t, <-told.files), `class="capture"`)

	rec, err = flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, rec.Save("no folder"), flight.ErrNoDir)
	for _, s := range []flight.Saving{{Correction: -1}, {After: -1}, {Most: -1}} {
		_, err := flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{Save: s})
		require.ErrorIs(t, err, flight.ErrConfig)
	}
}

// Bomb panics when it is looked at.
type Bomb struct {
	actorrep.Base
	N   int32 `net:""`
	lit bool
}

// Location panics when it is lit.
func (b *Bomb) Location() (x, y, z float64) {
	if b.lit {
		panic(errBoom)
	}
	return 1, 2, 3
}

var errBoom = errors.New("boom")

// TestSavePanic: a panic, in the game or in the middle of a Step, saves a film, and goes on as it was.
func TestSavePanic(t *testing.T) {
	for _, within := range []bool{false, true} {
		dir, told := t.TempDir(), newSaves()
		w := actorrep.NewServer(actorrep.Config{})
		require.NoError(t, w.Register("Bomb", (*Bomb)(nil)))
		rec, err := flight.New(w, nil, flight.Config{Save: flight.Saving{Dir: dir, Saved: told.saved}})
		require.NoError(t, err)
		b := &Bomb{}
		require.NoError(t, w.Spawn(b))
		frame := func(now time.Duration, do func()) (p any) {
			defer func() { p = recover() }()
			defer rec.SavePanic()
			b.N++
			w.Step(now)
			do()
			return nil
		}
		for n := range time.Duration(60) {
			require.Nil(t, frame(n*time.Second/60, func() {}))
		}
		require.Empty(t, told.files)
		do := func() { panic(errBoom) }
		if within {
			do = func() {
				fresh := &Bomb{lit: true}
				require.NoError(t, w.Spawn(fresh))
				w.Step(2 * time.Second)
				fresh.Location()
			}
		}
		require.Equal(t, errBoom, frame(time.Second, do))
		require.Empty(t, told.errs)
		d := readPage(t, text(t, <-told.files))
		require.Equal(t, "panic: boom", d.Notes[len(d.Notes)-1].Text)
		require.EqualValues(t, 61, d.at(0, "N", len(d.Steps)-1))
	}
}

// TestSaveLeft: a client that falls silent saves a film at both ends, and another one's client saves none.
func TestSaveLeft(t *testing.T) {
	told := newSaves()
	g := run(t, 15, flight.Config{Save: flight.Saving{Dir: t.TempDir(), Left: true, Saved: told.saved}}, netsim.Settings{Lag: 20 * time.Millisecond}, "Ann", "Bob")
	g.until(t, 2*time.Second)
	dark := netsim.Settings{Loss: 100}
	require.NoError(t, g.sim.Host("Ann").SetNet(dark, dark))
	g.until(t, 70*time.Second)
	ends := map[bool]int{} // by whether it is a client's
	for range 2 {
		page := text(t, <-told.files)
		require.Regexp(t, `<h1 id="title">connection \d+: timed out</h1>`, page)
		d := readPage(t, page)
		require.Len(t, d.Cause, 3)
		c := d.Conns[slices.IndexFunc(d.Conns, func(c *conn) bool { return c.ID == uint32(d.Cause[1]) })]
		require.Equal(t, "timed out", c.Why)
		require.Equal(t, c.Ended, d.Cause[0])
		require.InDelta(t, 2000, c.Heard, 40, "when it fell silent")
		require.True(t, slices.ContainsFunc(d.Notes, func(n note) bool {
			return n.Text == fmt.Sprintf("the connection ends: timed out; a packet last came at %.3f", c.Heard/1000)
		}))
		require.InDelta(t, 0, c.Began, 300)
		require.Positive(t, c.Began)
		require.EqualValues(t, -1, d.Cause[2])
		ends[d.Client]++
	}
	require.Equal(t, map[bool]int{false: 1, true: 1}, ends)
	require.Empty(t, told.errs)
	require.Empty(t, told.files)
}

// TestSavedAtClose: what was to be saved when the recorder is closed is saved by then, also behind a film that is still being written, and who asks later is told.
func TestSavedAtClose(t *testing.T) {
	for _, writing := range []bool{false, true} {
		dir, told, hold := t.TempDir(), newSaves(), make(chan bool)
		saved := func(file string, err error) {
			if writing && strings.HasSuffix(file, "film-001.html") {
				<-hold
			}
			told.saved(file, err)
		}
		w := actorrep.NewServer(actorrep.Config{})
		rec, err := flight.New(w, nil, flight.Config{Save: flight.Saving{Dir: dir, Left: true, After: time.Second, Saved: saved}})
		require.NoError(t, err)
		now := time.Duration(0)
		step := func(n int) {
			for range n {
				now += time.Second / 60
				w.Step(now)
			}
		}
		step(10)
		if writing {
			require.NoError(t, rec.Save("the first"))
			step(70)
			time.AfterFunc(50*time.Millisecond, func() { close(hold) })
		}
		rec.Trace(&nettrace.Event{Kind: nettrace.ConnClosed, At: now, Conn: 7, A: uint64(netconn.TimedOut)})
		step(3) // the server ends when nobody is left
		require.Empty(t, told.files)
		require.NoError(t, rec.Close())
		if writing {
			require.Len(t, told.files, 2)
			require.Contains(t, text(t, <-told.files), "the first</h1>")
		}
		require.Len(t, told.files, 1)
		d := readPage(t, text(t, <-told.files))
		require.Equal(t, "connection 7: timed out", strings.TrimPrefix(d.Title, "bunchnet, "))
		require.ErrorIs(t, rec.Save("later"), flight.ErrEnded)
		require.NoError(t, rec.Close())
		require.Empty(t, told.files)
		require.Empty(t, told.errs)
	}
}

// TestSaveWhereNoFolderIs: films that could never be saved are an error of New, since nobody may be told of it later.
func TestSaveWhereNoFolderIs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, at := range []string{filepath.Join(dir, "films"), file} {
		_, err := flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{Save: flight.Saving{Dir: at}})
		require.ErrorIs(t, err, flight.ErrConfig)
		require.ErrorContains(t, err, at)
	}
	_, err := flight.New(actorrep.NewServer(actorrep.Config{}), nil, flight.Config{Save: flight.Saving{Correction: math.NaN()}})
	require.ErrorIs(t, err, flight.ErrConfig)
}
