package tokenserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netcode/tokenserver"
)

// A service that knows one player, and a client that asks it.
func Example() {
	service, err := tokenserver.New(tokenserver.Config{
		Key: netcode.Key{1, 2, 3}, ProtocolID: 7, Servers: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:7777")},
		Authenticate: func(r *http.Request) (tokenserver.Player, error) {
			if name, password, _ := r.BasicAuth(); name != "ann" || password != "secret" {
				return tokenserver.Player{}, errors.New("no such player")
			}
			return tokenserver.Player{ID: 99}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(service) // in production over HTTPS
	defer web.Close()
	for _, password := range []string{"guess", "secret"} {
		req, err := http.NewRequest(http.MethodPost, web.URL, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		req.SetBasicAuth("ann", password)
		token, err := tokenserver.Fetch(web.Client(), req)
		var refused *tokenserver.Error
		fmt.Println(len(token), errors.As(err, &refused))
	}
	// Output:
	// 0 true
	// 2048 false
}
