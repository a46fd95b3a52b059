package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// foreignPage asks for events in all ways that a page has without its user: as data, as parts of the page, as pages that might be visited, and in windows.
const foreignPage = `<!doctype html>
<title>news</title>
<script>
const url = n => "EVENTS?from=" + n
const tags = ["img", "script", "iframe", "video", "object"]
const body = () => {
	tags.forEach((tag, n) => {
		const e = document.createElement(tag)
		e[tag == "object" ? "data" : "src"] = url(n)
		document.body.append(e)
	})
	for (const rel of ["prefetch", "preload", "prerender", "stylesheet"]) {
		const e = document.createElement("link")
		Object.assign(e, {rel, as: "fetch", href: url(rel.length)})
		document.head.append(e)
	}
	const rules = document.createElement("script")
	rules.type = "speculationrules"
	rules.text = JSON.stringify({prefetch: [{source: "list", eagerness: "immediate", urls: Array.from({length: 10}, (_, n) => url(100 + n))}],
		prerender: [{source: "list", eagerness: "immediate", urls: Array.from({length: 10}, (_, n) => url(200 + n))}]})
	document.head.append(rules)
	for (let n = 0; n < 10; n++) {
		new EventSource(url(300 + n))
		fetch(url(400 + n), {mode: "no-cors"}).catch(() => 0)
		window.open(url(500 + n))
	}
	document.title = "done"
}
window.onload = body
</script>
<body>`

// TestForeignPageTakesNoPlace: a page of another site takes none of the viewers' places, whatever it asks the browser for without its user.
func TestForeignPageTakesNoPlace(t *testing.T) {
	i := inspect.New(alone(t), inspect.Config{})
	var mu sync.Mutex
	asked, answered := 0, []string{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.ServeHTTP(&noted{w, func(code int) {
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasSuffix(r.URL.Path, "/events") {
				return // the icon of a window's page
			}
			if asked++; code != http.StatusForbidden {
				answered = append(answered, fmt.Sprint(r.URL, " ", r.Header))
			}
		}, false}, r)
	}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, strings.ReplaceAll(foreignPage, "EVENTS", web.URL+"/net/events"))
	}))
	t.Cleanup(foreign.Close)
	ctx := open(t)
	var title string
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1)), chromedp.Poll(`document.title == "done" && document.title`, &title)))
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked >= 30
	}, patience, 50*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, answered)
}

// noted tells an answer's status.
type noted struct {
	http.ResponseWriter
	tell func(code int)
	told bool
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noted) WriteHeader(code int) {
	if !n.told {
		n.told = true
		n.tell(code)
	}
	n.ResponseWriter.WriteHeader(code)
}

func (n *noted) Write(p []byte) (int, error) {
	if !n.told {
		n.told = true
		n.tell(http.StatusOK)
	}
	return n.ResponseWriter.Write(p)
}
