// Package tokenserver hands out connect tokens of netcode 1.02 over HTTP: the part of a game's back end that
// decides who may play where.
//
//	client                          token service                    game server
//	  | POST /token, with a login  -->  |                                |
//	  |                             asks Config.Authenticate             |
//	  |  <-- 2048 bytes, a connect token|                                |
//	  | request with the token  ---------------------------------------> | opens it with the key
//
// A token says who the player is, which servers it is valid for and for how long. It holds the two keys of
// the connection. The service and the game servers share one key and never talk to each other. Serve tokens
// over HTTPS only: whoever reads a token can use its connection.
//
//	service, err := tokenserver.New(tokenserver.Config{
//		Key: key, ProtocolID: 7, Servers: servers,
//		Authenticate: func(r *http.Request) (tokenserver.Player, error) { ... },
//	})
//	mux.Handle("/token", service)
//
// A client fetches a token with [Fetch] and sets it as driver.Netcode.Token.
//
// # Browsers
//
// Pages of the service's own origin may request tokens. List pages of other origins in Config.Origins. Requests of all other pages get a 403,
// so that no page of somebody else's spends a player's rate, login and place (CSRF). A browser that doesn't send Sec-Fetch-Site is told by its Origin and Host
// headers; a proxy before the service has to pass on both. A client with GOOS=js uses [Fetch] like any other.
//
// # Changing the key
//
// A service and a server each use one key as long as they run. A new key therefore needs new or restarted servers, and a new
// Service:
//
//	start the new servers with the new key, beside the old ones
//	replace the old Service by one with the new Key and the new Servers
//	wait for Config.Life, after which no token of the old key is valid; then shut the old servers down
//
// Until they expire, tokens of the old key stay valid at servers that have the old key. A server with another key doesn't answer
// them and counts bad_token. The client gets driver.ErrNoAnswer after Config.Timeout for each server in its token, and fetches
// another. Connected players notice nothing, since a connection has its own keys. If a key was stolen, don't wait: end the
// servers that have it.
//
// # Bounds
//
//	requests of one address or network   Config.Rate and Burst, before the login is looked at: an IPv4 address and an IPv6
//	                                     /64 once, a /56 4 times, a /48 16 times, an IPv4 /24 32 times; then 429
//	requests of one player (Player.ID)   Config.Rate and Burst, wherever they come from; then 429
//	requests with a login, in all        Config.TotalRate; then 429
//	bytes of a body                      Config.MaxBody, 64 KiB; then reading fails, and 413
//	addresses and networks remembered    Config.MaxAddrs, 65536, and as many players; the one unheard for longest goes
//
// An IPv4 address within an IPv6 address (::ffff:0:0/96 and 64:ff9b::/96) is limited as the IPv4 address. Set ReadTimeout and
// IdleTimeout of your http.Server, against clients that send slowly on purpose. The log has the reasons of refusals. It has no
// tokens, no keys, and no errors of Authenticate.
package tokenserver
