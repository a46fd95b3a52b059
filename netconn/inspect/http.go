package inspect

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/flight"
)

//go:embed static
var static embed.FS

// askTimeout is how long a request waits for the driver.
const askTimeout = 2 * time.Second

// files is what of static is served, and as what.
var files = map[string]string{
	"page.html": "text/html; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
	"uPlot.iife.min.js": "text/javascript; charset=utf-8", "uPlot.min.css": "text/css; charset=utf-8", "uPlot.LICENSE": "text/plain; charset=utf-8",
}

// ServeHTTP serves the page and its data. The last element of the path selects which, so the handler can be mounted at any path.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(i.answer)) // not every server has one; events and films have theirs
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "inspect: only GET", http.StatusMethodNotAllowed)
		return
	}
	if !i.allowed(r) {
		http.Error(w, i.refusal(), http.StatusForbidden)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case name == "" && strings.Contains(r.Header.Get("Accept"), "text/html"):
		if !i.keepToken(w, r) {
			serveFile(w, "page.html")
		}
	case name == "" || name == "text":
		i.serveView(w, r, "text/plain; charset=utf-8", func(k *look) ([]byte, error) { return k.view.AppendText(nil), nil })
	case name == "json":
		i.serveView(w, r, "application/json", (*look).encoded)
	case name == "export":
		h.Set("Content-Disposition", `attachment; filename="inspect.json"`)
		i.serveView(w, r, "application/json", func(k *look) ([]byte, error) { return json.MarshalIndent(k.view, "", " ") })
	case name == "past" && i.cfg.Past != nil:
		i.servePast(w, r)
	case name == "events":
		i.serveEvents(w, r)
	case files[name] != "":
		serveFile(w, name)
	default:
		http.NotFound(w, r)
	}
}

func serveFile(w http.ResponseWriter, name string) {
	b, err := static.ReadFile("static/" + name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", files[name])
	_, _ = w.Write(b) // a viewer who has left
}

// query is what a request asks for: ?conn=3&also=4,5&conns=bob&sort=-rtt&connsfrom=64&actors=ship&from=256.
func query(r *http.Request) (q Query, err error) {
	number := func(s string) uint32 {
		n, e := strconv.ParseUint(s, 10, 32)
		err = errors.Join(err, e)
		return uint32(n)
	}
	v := r.URL.Query()
	if s := v.Get("conn"); s != "" {
		q.Conn = number(s)
	}
	if s := v.Get("also"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			if len(q.Also) > maxAlso {
				break
			}
			q.Also = append(q.Also, number(part))
		}
	}
	if s := v.Get("from"); s != "" {
		q.Actors.From = int(min(number(s), maxFrom))
	}
	if s := v.Get("connsfrom"); s != "" {
		q.Conns.From = int(min(number(s), maxFrom))
	}
	q.Conns.Match, q.Actors.Match = v.Get("conns"), v.Get("actors")
	q.Conns.Sort, q.Conns.Down = strings.CutPrefix(v.Get("sort"), "-")
	q.Export = strings.HasSuffix(r.URL.Path, "/export")
	return q, errors.Join(err, q.check())
}

func (i *Inspector) ask(r *http.Request, q Query) (*look, error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	return i.get(ctx, q)
}

func (i *Inspector) serveView(w http.ResponseWriter, r *http.Request, typ string, encode func(*look) ([]byte, error)) {
	q, err := query(r)
	if err != nil {
		http.Error(w, badQuery, http.StatusBadRequest)
		return
	}
	k, err := i.ask(r, q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	b, err := encode(k)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", typ)
	_, _ = w.Write(b)
}

// servePast sends what the flight recorder keeps, as a page of its own. One is made at a time.
func (i *Inspector) servePast(w http.ResponseWriter, r *http.Request) {
	q, err := query(r)
	if err != nil {
		http.Error(w, badQuery, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	select {
	case i.films <- struct{}{}:
		defer func() { <-i.films }()
	default:
		http.Error(w, "inspect: somebody else looks back; ask again in some seconds", http.StatusServiceUnavailable)
		return
	}
	v := flight.View{Title: i.cfg.Title, Names: map[uint32]string{}}
	if q.Conn != 0 {
		v.Conns = append(append(v.Conns, q.Conn), q.Also...)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	var film *flight.Film
	if err := i.source.do(ctx, func() {
		film = i.cfg.Past.Take()
		for c := range i.source.driver.Conns {
			v.Names[c.ID()] = i.source.nameOf(c)
		}
	}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // the page has the rest within it
	to := &watched{w: w, rc: http.NewResponseController(w), patience: i.patience, end: time.Now().Add(i.answer)}
	if err := film.WriteHTML(to, v); err != nil && !to.begun { // otherwise the viewer has left
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// watched is an answer to a viewer that has to take each part of it within patience, and all of it by end: one that doesn't read keeps others from
// films no longer.
type watched struct {
	w        io.Writer
	rc       *http.ResponseController
	patience time.Duration
	end      time.Time
	begun    bool // something was written
}

// watchedPart is how many bytes a viewer has to take within patience.
const watchedPart = 64 << 10

func (w *watched) Write(b []byte) (n int, err error) {
	w.begun = true
	for n < len(b) && err == nil {
		by := time.Now().Add(w.patience)
		if w.end.Before(by) {
			by = w.end
		}
		_ = w.rc.SetWriteDeadline(by) // not every server has one
		var part int
		part, err = w.w.Write(b[n:min(len(b), n+watchedPart)])
		n += part
	}
	return n, err
}

// answerTimeout is how long a viewer may take to receive an answer, such as a film, with its making. One that isn't read keeps its bytes, and over HTTP/2,
// where a viewer may let a byte through, a goroutine, whatever it asked for.
const answerTimeout = time.Minute

var badQuery = fmt.Sprintf("inspect: conn is a connection's id, also up to %d of them with commas, conns and actors texts of at most %d bytes, sort a column of the page, with - before it the largest first, from and connsfrom numbers", maxAlso, maxMatch)

// eventTimeout is how long a viewer may take to receive an event; one that doesn't read is a viewer less.
const eventTimeout = 5 * time.Second

// serveEvents sends a view every interval until the viewer leaves.
func (i *Inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	q, err := query(r)
	if err != nil {
		http.Error(w, badQuery, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would pass events on when it has a buffer full
	if r.Method == http.MethodHead {
		return // nothing would ever be written, so no deadline would end it
	}
	if !i.source.lives() {
		http.Error(w, ErrNotTicked.Error(), http.StatusServiceUnavailable) // a browser doesn't ask for the events again
		return
	}
	select {
	case i.viewers <- struct{}{}:
		defer func() { <-i.viewers }()
	default:
		http.Error(w, "inspect: too many viewers", http.StatusServiceUnavailable)
		return
	}
	rc := http.NewResponseController(w)
	tick := time.NewTicker(i.cfg.Interval)
	defer tick.Stop()
	for {
		k, err := i.ask(r, q)
		_ = rc.SetWriteDeadline(time.Now().Add(i.patience)) // instead of the server's for the whole; not every server has one
		if err := writeEvent(w, k, err); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Time{}) // over HTTP/2 it would end the stream although nothing waits to be written
		select {
		case <-r.Context().Done():
			return
		case <-i.source.driver.Done(): // nothing will come; http.Server.Shutdown waits for the stream
			return
		case <-tick.C:
		}
	}
}

func writeEvent(w http.ResponseWriter, k *look, err error) error {
	if err != nil {
		for _, e := range []error{ErrBusy, ErrNotTicked} {
			if errors.Is(err, e) {
				_, err = fmt.Fprintf(w, "event: stalled\ndata: %q\n\n", strings.TrimPrefix(e.Error(), "inspect: "))
				return err
			}
		}
		return err
	}
	b, err := k.encoded() // ends in a newline
	for _, part := range [][]byte{[]byte("data: "), b, []byte("\n")} {
		if err == nil {
			_, err = w.Write(part)
		}
	}
	return err
}
