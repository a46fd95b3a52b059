package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/inspect"
)

// alone is a server without players, which runs until the test's end.
func alone(t *testing.T) *driver.Driver {
	d, err := driver.Listen("127.0.0.1:0", driver.Config{Link: driver.PlainSalted{}})
	require.NoError(t, err)
	run, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(run, nil) }()
	t.Cleanup(func() { end(); require.NoError(t, <-done) })
	return d
}

// TestLinkFromElsewhere follows a link with a token that is on another site's page, as in a chat, and sees the page live.
func TestLinkFromElsewhere(t *testing.T) {
	i := inspect.New(alone(t), inspect.Config{Token: "sesame"})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "192.0.2.7:1" // so that it takes the token
		i.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a id="link" href="%s/net/?token=sesame">look at this</a>`, web.URL)
	}))
	t.Cleanup(chat.Close)
	ctx := open(t)
	var at, body string
	require.NoError(t, chromedp.Run(ctx, chromedp.Navigate(strings.Replace(chat.URL, "127.0.0.1", "localhost", 1)), chromedp.Click("#link")))
	require.Eventually(t, func() bool { // an error is of a page that is being left
		err := chromedp.Run(ctx, chromedp.Location(&at), chromedp.Evaluate(`document.body.innerText`, &body))
		return err == nil && strings.HasPrefix(at, web.URL) && (strings.Contains(body, "live") || strings.Contains(body, "not for you"))
	}, patience, 50*time.Millisecond)
	require.NotContains(t, body, "not for you")
	require.NotContains(t, at, "sesame", "nobody reads it over a shoulder, or copies it with the address")
}
