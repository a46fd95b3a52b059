// Package redirects bounds how often, and where, a server sends a request elsewhere. net/http has the first bound, but package websocket takes it away. Browsers follow none for a WebSocket.
package redirects

import (
	"cmp"
	"fmt"
	"net/http"
)

// Most is the number of requests in all; net/http has the same.
const Most = 10

// Check is an http.Client's CheckRedirect. A server can't have this machine ask itself, or another one of its network.
func Check(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= Most:
		return fmt.Errorf("the server sent the request elsewhere %d times", Most)
	case r.URL.Hostname() != via[0].URL.Hostname():
		return fmt.Errorf("the server sent the request elsewhere, to another host: %s", r.URL.Host)
	}
	return nil
}

// Bounded returns a client, http.DefaultClient if it is nil, with Check, unless it has a CheckRedirect of its own.
func Bounded(client *http.Client) *http.Client {
	bounded := *cmp.Or(client, http.DefaultClient)
	if bounded.CheckRedirect == nil {
		bounded.CheckRedirect = Check
	}
	return &bounded
}
