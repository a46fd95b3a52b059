// Package redirects bounds how often, and where, a server sends a request elsewhere. net/http has the first bound, but package websocket takes it away. Browsers follow none for a WebSocket.
package redirects

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Most is the number of requests in all; net/http has the same.
const Most = 10

// Check is an http.Client's CheckRedirect. A server can't have this machine ask itself, or another one of its network.
func Check(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= Most:
		return fmt.Errorf("the server sent the request elsewhere %d times", Most)
	case host(r.URL) != host(via[0].URL), r.URL.Scheme != "https" && port(r.URL) != port(via[0].URL): // at another port its name may stand for this machine, which has no certificate
		return fmt.Errorf("the server sent the request elsewhere, to another host: %s", r.URL.Host)
	}
	return nil
}

func host(u *url.URL) string { return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) }

func port(u *url.URL) string {
	if p := u.Port(); p != "" || u.Scheme == "https" {
		return cmp.Or(p, "443")
	}
	return "80"
}

// Bounded returns a client, http.DefaultClient if it is nil, with Check, unless it has a CheckRedirect of its own.
func Bounded(client *http.Client) *http.Client {
	bounded := *cmp.Or(client, http.DefaultClient)
	if bounded.CheckRedirect == nil {
		bounded.CheckRedirect = Check
	}
	return &bounded
}
