package redirects

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheck: a redirect stays at its host, however that is written, and at its port, unless it goes to https.
func TestCheck(t *testing.T) {
	request := func(to string) *http.Request {
		u, err := url.Parse(to)
		require.NoError(t, err)
		return &http.Request{URL: u}
	}
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"http://example.com/a", "http://example.com/b", true},
		{"http://example.com/a", "http://EXAMPLE.com./b", true},
		{"http://example.com/a", "http://example.com:80/b", true},
		{"http://example.com/a", "https://example.com/b", true},
		{"https://example.com/a", "https://example.com:8443/b", true},
		{"http://example.com:8080/a", "http://example.com:8080/b", true},
		{"http://[::1]:8080/a", "http://[::1]:8080/b", true},
		{"http://example.com/a", "http://example.com:8080/b", false},
		{"https://example.com/a", "http://example.com/b", false},
		{"http://example.com/a", "http://www.example.com/b", false},
		{"http://example.com/a", "http://example.com@127.0.0.1/b", false},
		{"http://example.com/a", "http://localhost/b", false},
		{"http://[::1]/a", "http://[::2]/b", false},
	} {
		err := Check(request(c.to), []*http.Request{request(c.from)})
		require.Equal(t, c.ok, err == nil, "%s to %s: %v", c.from, c.to, err)
	}
	r := request("http://example.com/")
	via := make([]*http.Request, Most)
	for i := range via {
		via[i] = r
	}
	require.NoError(t, Check(r, via[1:]))
	require.Error(t, Check(r, via))
	own := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	require.Equal(t, http.ErrUseLastResponse, Bounded(own).CheckRedirect(r, via))
	require.Error(t, Bounded(nil).CheckRedirect(r, via))
	require.Nil(t, http.DefaultClient.CheckRedirect, "it is left alone")
}
