package flight

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/netconn"
)

// Saving says where films are saved, and which events save one, besides a call of Recorder.Save. The zero value saves nothing. A film is
// saved within World.Step, or by Recorder.Close.
type Saving struct {
	// Dir is the folder for the films, which must exist. Their names are film-001.html to film-999.html; existing files are never overwritten.
	// Default: no film is saved, whatever the other fields are.
	Dir string
	// View returns what a film shows. It is called on the driver's goroutine. Default: the zero View.
	View func() View
	// Correction saves a film when a correction moved a prediction by more than Correction times the field's tolerance, the number in its
	// predict tag. Default 0: no correction saves a film.
	Correction float64
	// Left saves a film when a connection ends without Close at either end: it timed out, or broke a rule.
	Left bool
	// After is how long the recording goes on after the event before the film is saved, so that the film shows what followed. After a panic
	// the film is saved at once. Default 1 s, which 0 is too; 1 ns saves in the next Step.
	After time.Duration
	// Most is the largest number of films that the recorder saves. Those that fail, such as on a full disk, count too; films of a panic don't.
	// Default 10, which 0 is too.
	Most int
	// Capture is the file to which package netconn/driver/capture records the run. Films include it as View.Capture. When it is larger than 64
	// MiB, films are saved without it, and Saved gets ErrCapture. Default: none.
	Capture string
	// Saved is called with the name of each saved file, or with the reason why a film couldn't be saved, such as a full disk. It is called on a
	// goroutine of its own; after a panic on the one that panics. Close waits for it, so it must not wait for the goroutine that ticks.
	// Default nil: nobody is told.
	Saved func(file string, err error)
}

// check returns an ErrConfig for settings that can't save.
func (s *Saving) check() error {
	if !(s.Correction >= 0) || s.After < 0 || s.Most < 0 {
		return fmt.Errorf("%w: Save has Correction %v, After %v and Most %d; none may be negative", ErrConfig, s.Correction, s.After, s.Most)
	}
	if s.Dir == "" {
		return nil
	}
	info, err := os.Stat(s.Dir)
	if err != nil {
		return fmt.Errorf("%w: Save.Dir: %w", ErrConfig, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: Save.Dir: %s is no folder", ErrConfig, s.Dir)
	}
	return nil
}

// Errors of Save.
var (
	// ErrNoDir: Config.Save.Dir isn't set.
	ErrNoDir = errors.New("flight: no folder for films; set Config.Save.Dir")
	// ErrMost: Config.Save.Most films were saved already.
	ErrMost = errors.New("flight: as many films are saved as Config.Save.Most allows")
	// ErrEnded: the recorder is closed.
	ErrEnded = errors.New("flight: the recorder is closed")
	// ErrCapture: Config.Save.Capture is larger than 64 MiB. The film was saved without it.
	ErrCapture = errors.New("flight: the capture is larger than 64 MiB; the film is without it")
)

// saver is the saving that goes on.
type saver struct {
	cfg   Saving
	films int
	due   time.Duration // when a film is to be saved; 0 is never
	why   string
	cause cause
	busy  chan struct{} // has room while no film is being written
}

func newSaver(cfg Saving) saver {
	if cfg.After == 0 {
		cfg.After = time.Second
	}
	if cfg.Most == 0 {
		cfg.Most = 10
	}
	if cfg.View == nil {
		cfg.View = func() View { return View{} }
	}
	if cfg.Saved == nil {
		cfg.Saved = func(string, error) {}
	}
	return saver{cfg: cfg, busy: make(chan struct{}, 1)}
}

// Save adds why to the time line as a note, and has a film saved Config.Save.After later. Call it for a key, or for a checker that failed.
// While a film is due, a further call adds only its note, which that film shows. An error says that no film will be saved: ErrNoDir, ErrMost or,
// after Close, ErrEnded. Config.Save.Saved gets the file's name, or an error of writing it.
func (r *Recorder) Save(why string) error {
	r.Note(0, why)
	return r.trigger(why, 0, 0)
}

// cause is what had a film saved: when, and the connection and the actor that it is about, which may be 0.
type cause struct {
	at   time.Duration
	conn uint32
	id   netguid.GUID
}

// trigger has a film saved soon.
func (r *Recorder) trigger(why string, conn uint32, about netguid.GUID) error {
	s := &r.saver
	switch {
	case s.cfg.Dir == "":
		return ErrNoDir
	case r.ended:
		return ErrEnded
	case s.due != 0:
		return nil
	case s.films == s.cfg.Most:
		return ErrMost
	}
	s.films++
	s.due, s.why, s.cause = r.world.Now()+s.cfg.After, why, cause{r.world.Now(), conn, about}
	return nil
}

// saveDue saves the film that is due, unless one is being written: then it is later.
func (r *Recorder) saveDue(now time.Duration) {
	s := &r.saver
	if s.due == 0 || now < s.due {
		return
	}
	select {
	case s.busy <- struct{}{}:
		r.save()
	default:
	}
}

// save saves the film that is due, on a goroutine of its own. It is busy until then.
func (r *Recorder) save() {
	s := &r.saver
	s.due = 0
	film, view, why := r.Take(), s.view(), s.cause
	film.cause = &why
	go func() {
		s.cfg.Saved(s.write(film, view))
		<-s.busy
	}()
}

// saveRest saves the film that is due at once, and waits until all are written.
func (r *Recorder) saveRest() {
	s := &r.saver
	s.busy <- struct{}{}
	if s.due != 0 {
		r.save()
		s.busy <- struct{}{}
	}
	<-s.busy
}

// SavePanic saves a film of a panic, and panics on. It is for the goroutine that ticks:
//
//	defer past.SavePanic()
//
// The film ends with the panic. It is saved although as many are saved as Config.Save.Most allows.
func (r *Recorder) SavePanic() {
	p := recover()
	if p == nil {
		return
	}
	if r.saver.cfg.Dir != "" {
		r.saver.cfg.Saved(r.savePanic(p))
	}
	panic(p)
}

// savePanic saves it. What the panic has left undone may make the film fail.
func (r *Recorder) savePanic(p any) (file string, err error) {
	defer func() {
		if again := recover(); again != nil {
			err = fmt.Errorf("flight: no film of a panic: %v\n%s", again, debug.Stack())
		}
	}()
	s := &r.saver
	s.why = fmt.Sprint("panic: ", p)
	s.why = s.why[:min(len(s.why), maxText)]
	r.Note(0, s.why)
	film := r.Take()
	film.cause = &cause{at: r.world.Now()}
	return s.write(film, s.view())
}

// view is that of a film. Its title says why it was saved.
func (s *saver) view() View {
	v := s.cfg.View()
	if v.Title != "" {
		v.Title += ", "
	}
	v.Title += s.why
	return v
}

// write writes a film to a file that isn't there yet, which gets its name when it is whole.
func (s *saver) write(f *Film, v View) (string, error) {
	capture, without := s.capture()
	if v.Capture == nil {
		v.Capture = capture
	}
	name, file, err := s.create()
	if err != nil {
		return "", err
	}
	w := bufio.NewWriter(file)
	if err := errors.Join(f.tryHTML(w, v), w.Flush(), file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return name, without
}

// tryHTML is WriteHTML. A film calls the game's Init and Location, on a goroutine where their panic would end the game.
func (f *Film) tryHTML(w io.Writer, v View) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("flight: no film: %v\n%s", p, debug.Stack())
		}
	}()
	return f.WriteHTML(w, v)
}

// part ends the name of a film that isn't whole.
const part = ".part"

// create makes the file for a film of a free name. Whoever made the film's part, and found no film of that name then, is the only one to make it.
func (s *saver) create() (name string, file *os.File, err error) {
	for n := 1; n < 1000; n++ {
		name = filepath.Join(s.cfg.Dir, fmt.Sprintf("film-%03d.html", n))
		file, err = os.OpenFile(name+part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // it has what only owners may have
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		_, err = os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			return name, file, nil
		}
		if err := errors.Join(err, file.Close(), os.Remove(file.Name())); err != nil {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("flight: %s has 999 films", s.cfg.Dir)
}

// maxCapture bounds a capture in a film, in bytes.
const maxCapture = 64 << 20

// capture is the run's so far, or why there is none. It may end amid an event, as after a crash.
func (s *saver) capture() ([]byte, error) {
	if s.cfg.Capture == "" {
		return nil, nil
	}
	info, err := os.Stat(s.cfg.Capture)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCapture {
		return nil, ErrCapture
	}
	return os.ReadFile(s.cfg.Capture)
}

// left reports whether a connection ended in another way than by Close.
func left(code netconn.CloseCode) bool {
	return code != netconn.ClosedByUs && code != netconn.ClosedByPeer
}
