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
// # Browsers
//
// A page of the service's own origin may ask. For pages of others list them in Config.Origins; browsers refuse all the rest. The client of GOOS=js uses
// [Fetch] as any other.
//
// # Changing the key
//
// A service makes, and a server opens, tokens of one key for as long as it lives. So a new key is for new servers, or restarted
// ones, and for a service of its own:
//
//	start the new servers with the new key, beside the old ones
//	serve a Service with the new Key and the new Servers in the old one's place
//	after Config.Life no token of the old key is good; then shut the old servers down
//
// Tokens of the old key that are out stay good at servers that have the old key, until they expire. A server of another key doesn't answer
// and counts bad_token; the client has driver.ErrNoAnswer after Config.Timeout for each server in its token, and fetches another. Who plays
// notices nothing, since a connection has keys of its own. When a key was stolen, don't wait: end the servers that have it.
//
// # Bounds
//
//	requests of one address or network   Config.Rate and Burst, before the login is looked at: an IPv4 address and an IPv6
//	                                     /64 once, a /56 4 times, a /48 16 times, an IPv4 /24 32 times; then 429
//	requests with a login, in all        Config.TotalRate; then 429
//	bytes of a body                      Config.MaxBody, 64 KiB; then reading fails, and 413
//	addresses and networks remembered    Config.MaxAddrs, 65536; the one unheard for longest goes
//
// An IPv4 address in an IPv6 address (::ffff:0:0/96 and 64:ff9b::/96) is limited as what it is. Give your http.Server a
// ReadTimeout and an IdleTimeout, for clients that send slowly on purpose. Tokens, keys and what Authenticate returns as
// an error aren't written to the log; reasons are.
package tokenserver
