package inspect

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// askTimeout is how long a request waits for the driver.
const askTimeout = 2 * time.Second

// files is what of static is served, and as what.
var files = map[string]string{
	"page.html": "text/html; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8",
	"uPlot.iife.min.js": "text/javascript; charset=utf-8", "uPlot.min.css": "text/css; charset=utf-8", "uPlot.LICENSE": "text/plain; charset=utf-8",
}

// ServeHTTP serves the page and what it needs; the last element of the path says what, so that it
// may be mounted anywhere.
func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'self'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "inspect: only GET", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case name == "" && strings.Contains(r.Header.Get("Accept"), "text/html"):
		serveFile(w, "page.html")
	case name == "" || name == "text":
		i.serveView(w, r, "text/plain; charset=utf-8", func(v View) ([]byte, error) { return v.AppendText(nil), nil })
	case name == "json":
		i.serveView(w, r, "application/json", func(v View) ([]byte, error) { return json.Marshal(v) })
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

// conn is the connection asked for; 0 none in particular.
func conn(r *http.Request) (uint32, error) {
	s := r.URL.Query().Get("conn")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

func (i *Inspector) ask(r *http.Request, conn uint32) (View, error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	return i.View(ctx, conn)
}

func (i *Inspector) serveView(w http.ResponseWriter, r *http.Request, typ string, encode func(View) ([]byte, error)) {
	id, err := conn(r)
	if err != nil {
		http.Error(w, "inspect: conn is a connection's id", http.StatusBadRequest)
		return
	}
	v, err := i.ask(r, id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	b, err := encode(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", typ)
	_, _ = w.Write(b)
}

// serveEvents sends a view every interval until the viewer leaves.
func (i *Inspector) serveEvents(w http.ResponseWriter, r *http.Request) {
	id, err := conn(r)
	if err != nil {
		http.Error(w, "inspect: conn is a connection's id", http.StatusBadRequest)
		return
	}
	select {
	case i.viewers <- struct{}{}:
		defer func() { <-i.viewers }()
	default:
		http.Error(w, "inspect: too many viewers", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{}) // a server's timeout isn't for streams; not every server has one
	tick := time.NewTicker(i.cfg.Interval)
	defer tick.Stop()
	for {
		v, err := i.ask(r, id)
		if err := writeEvent(w, v, err); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func writeEvent(w http.ResponseWriter, v View, err error) error {
	if err != nil {
		if errors.Is(err, ErrBusy) || errors.Is(err, ErrNotTicked) {
			_, err = fmt.Fprintf(w, "event: stalled\ndata: %q\n\n", "the driver isn't ticked")
		}
		return err
	}
	var b bytes.Buffer
	b.WriteString("data: ")
	if err := json.NewEncoder(&b).Encode(v); err != nil { // ends in a newline
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}
