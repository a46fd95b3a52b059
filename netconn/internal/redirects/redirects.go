// Package redirects bounds how often a server sends a request for a WebSocket elsewhere. net/http has that bound, but package websocket takes it away.
package redirects

import (
	"fmt"
	"net/http"
)

// Most is the number of requests in all; net/http has the same.
const Most = 10

// Check is an http.Client's CheckRedirect.
func Check(_ *http.Request, via []*http.Request) error {
	if len(via) >= Most {
		return fmt.Errorf("the server sent the request elsewhere %d times", Most)
	}
	return nil
}
