// Package tokenserver hands out connect tokens of netcode 1.02 over HTTP: the part of a game's back end that
// decides who may play where.
//
//	client                          token service                    game server
//	  | POST /token, with a login  -->  |                                |
//	  |                             asks Config.Authenticate             |
//	  |  <-- 2048 bytes, a connect token|                                |
//	  | request with the token  ---------------------------------------> | opens it with the key
//
// A token says who the player is, which servers it is good for and for how long, and holds the two keys of
// the connection. The service and the game servers share one key; they never talk. Serve it over HTTPS
// only: who reads a token has its connection.
//
//	service, err := tokenserver.New(tokenserver.Config{
//		Key: key, ProtocolID: 7, Servers: servers,
//		Authenticate: func(r *http.Request) (tokenserver.Player, error) { ... },
//	})
//	mux.Handle("/token", service)
//
// A client fetches with [Fetch] and gives the bytes to driver.Netcode's Token.
//
// # Bounds
//
// Requests are limited by address, with a burst, and in all. The table of addresses holds MaxAddrs of them;
// when it is full the one unheard for longest goes. Nothing of a request's body is read; give
// your http.Server a ReadTimeout and an IdleTimeout, for clients that send slowly on purpose. Tokens,
// keys and what Authenticate returns as an error aren't written to the log; reasons are.
package tokenserver
