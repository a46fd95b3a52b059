// Package rendezvous lets players meet who want to play with each other: one hosts and gets a room code such as QUACK-42, the others join with the code or a
// link, and a list shows public games. It carries what netconn/ice needs to find a path between them, and connect tokens. The game's packets don't go through it.
//
// The service, beside a token service or by itself:
//
//	meet, err := rendezvous.New(rendezvous.Config{Servers: stun, Relays: relays, TURNSecret: secret})
//	mux.Handle("/meet/", http.StripPrefix("/meet", meet))
//
// A host opens a room, and lets guests in to its ice.Host:
//
//	room, err := rendezvous.Open(ctx, rendezvous.RoomConfig{URL: "https://play.example.com/meet", Name: "Ann's game", Public: true})
//	socket, err := ice.Listen(ice.HostConfig{Config: ice.Config{Servers: room.Servers}})
//	srv, err := driver.Listen("", driver.Config{Socket: socket, Link: driver.Netcode{Key: room.Key()}, Channels: channels})
//	go room.Serve(ctx, socket)
//	fmt.Println(room.Code, room.Link())
//
// A guest:
//
//	g, err := rendezvous.Join(ctx, rendezvous.JoinConfig{Invitation: code, URL: "https://play.example.com/meet", Name: "Bob"})
//	cl, err := driver.Dial(ice.HostAddr().String(), driver.Config{Socket: g.Socket, Link: driver.Netcode{Token: g.Token}, Channels: channels})
//
// # The wire
//
// Both connect by WebSocket, and send JSON in text messages of at most 8 KiB. Bytes are base64.
//
//	guest                               service                                host
//	                                       |  <- GET /host, WebSocket             |
//	                                       |  <- {"key":K,"pass":P,               |   K: X25519, made for this room
//	                                       |      "about":{"name":..}}            |   P: 8 random bytes, for its link
//	                                       |  {"code":"QUACK-42","again":A,       |   A: 16 bytes, to come back with
//	                                       |   "servers":[..]}                 ->
//	  | GET /join/QUACK-42, WebSocket: with|                                      |
//	  |   "Authorization: Bearer PF", that |                                      |
//	  |   is behind the link's #       ->  |                                      |   F: the fingerprint of K
//	  | <- {"key":K,"servers":[..]}        |                                      |
//	  | {"key":G}                      ->  |  {"guest":7,"key":G}               ->    G: X25519, made for this guest
//	  | {"sealed":..}                  ->  |  {"guest":7,"sealed":..}           ->
//	  | <- {"sealed":..}                   |  <- {"guest":7,"sealed":..}          |
//	                                       |  <- {"guest":7,"gone":true}, either way
//	                                       |  <- {"about":..}, every 20 s and when it changes
//	                                       |  <- {"gone":true}: the room closes
//	                                       |  <- GET /host/QUACK-42, WebSocket: by another connection,
//	                                       |     with "Authorization: Bearer A" and the same first message
//
//	GET /games    [{"code":"QUACK-42","name":"Ann's game","players":2,"max":4}, ..], at most 100
//
// Sealed is a letter under ChaCha20-Poly1305. The keys of the two directions are HKDF-SHA256 of the X25519 secret, with "bunchnet rendezvous 1: ", "host " or
// "guest ", K and G as the info; the nonce is 4 zero bytes and the number of the letter, 8 bytes, little-endian. A letter is one of:
//
//	{"name":"Bob"}         the guest's first
//	{"again":true}         instead, of one that has joined and looks for another path; see ice.Host.Rejoin
//	{"ice":{..}}           of both: netconn/ice's Message
//	{"token":..}           of the host: the connect token, once there is a path
//	{"refused":"why"}      of the host
//
// # Who can see what
//
// The host signs its guests' tokens with a key that it made for the match. The service never has this key. It sees the names and codes of rooms, the
// players' addresses, the two public keys, and how much they say. It can refuse or interrupt. Players who only use the code trust the service: it could pretend
// to be the host to the guest, and the guest to the host, and so read and play in the guest's place. With the link that can't be: behind its # there is the fingerprint
// of the host's key (16 bytes of its SHA-256), and Join returns [ErrImpostor] when the key is another one. A link can be passed on:
// anybody who has it may join, unless RoomConfig.Admit says otherwise.
//
// A code can be guessed. So its number has as many digits as it takes that one guess finds a room with a chance of at most 1 in 100,000, however full the
// service is: 3 for the only room, 6 when there are 1000. Of wrong codes 10 are looked at of one address at once, then one each 30 s, and 10 a second of all.
// Who has one address needs 35 days for 100,000 guesses; who has many needs 2 h 46 min, and until it stops codes of others aren't looked at either: they get 429.
// A right code costs nothing, and guests with a link always come in: Join shows the service the part behind #, by which a service that lies knows whom it
// can't deceive. Who comes by a code needn't be a friend: RoomConfig.Admit may refuse a name, and the game may close the connection of a player whom nobody knows.
//
// The code of a public game is known to all, so strangers from 16 networks may take all places of those who are joining it. They don't keep out who has the link: it has
// 8 random bytes more than who joins by the code hears of.
//
// # Who may use the relays
//
// Everybody who may open a room or join one. Relays' passwords are made for a room and a time (the TURN REST API), under a name that says nothing of its code; all players of the
// room have the same. A relay sees what netconn/ice says. So a stranger may have it carry what has nothing to do with the game, for CredentialLife after opening a room. Where that matters:
//
//	at the relay     refuse peers of its own machine and of private networks, or strangers reach what is behind the firewall. Bound the allocations of a name to somewhat more
//	                 than a room has players, those of all, and the bytes a second of each; let it relay UDP only. In coturn's file: no-multicast-peers, denied-peer-ip, user-quota,
//	                 total-quota, max-bps, no-tcp-relay, and use-auth-secret with static-auth-secret for TURNSecret
//	at the service   CredentialLife somewhat longer than a game, as a relay lets nobody go on after it. Players with accounts: serve /host and /join behind a
//	                 handler that knows them, and RoomConfig.HTTP and JoinConfig.HTTP bring what it asks for
//
// Passwords in Config.Servers are everybody's and don't expire: use them for STUN servers, which have none, and for tests.
//
// # Bounds and defaults
//
//	requests of one address or network   Rate 1 a second and Burst 10, as in netcode/tokenserver, TotalRate 500; then 429
//	rooms, and hosts that have none yet  MaxRooms 1000, MaxRoomsPerAddr 4 of an address, wider networks a multiple as with Rate; then 503
//	guests that are joining              MaxGuests 16 of a room, and twice that, 16 at least, in a second, of which a quarter is for links; MaxGuestsPerAddr 8 of an
//	                                     address, wider networks a multiple. Then 503, unless another one goes: for one with the link the oldest without, for others the
//	                                     oldest of an IPv4 /24, IPv6 /48 or address that has two more of the room than that of the one that comes
//	a token                              what it has a dial wait for is a minute at most, or the guest doesn't take it
//	a code that is wrong, or was used    404; 10 of an address, then one each 30 s, 10 a second of all; then 429, also for a right one without a link
//	a room                               Life 12 h, Idle 1 min without a word or a connection of its host; a guest's connection GuestTime 1 min
//	a host's silence                     15 s without a message or a ping; then it is away, as one whose connection is lost
//	a message                            8 KiB, 20 a second of a guest and 320 of a host, pings too; then the connection ends
//	letters of a guest, and to it        16 KiB each; then the guest's connection ends. Joining takes about 5
//	letters of guests that wait          64 for one host, and 128 KiB; then the guest's connection ends
//	memory                               1.5 MB of a room with 16 guests, all of whom send the largest letters and read nothing; so 1.5 GB of 1000 rooms. Half of it is of the
//	                                     connections: a room without guests takes 45 KB. The addresses of Rate and of wrong codes take 40 MB
//	messages to one that doesn't read    64 to a guest, 320 to a host, or one for 5 s; then the connection ends
//	a name                               40 printable characters
//
// Each reason for refusal has a counter in [Counters], the player gets a text with what to do, and Config.Logger gets at most one line a second. A host
// checks its connection every 5 s, and when its addresses change. When that is lost the host comes back to its room, if the service has not ended it, and after a pause, of up to
// 10 s, when it was lost within 10 s; guests
// that were joining are told to try again, and those that come meanwhile get 503 (HostAway). Its room keeps its place among MaxRooms meanwhile. Otherwise the room is closed: players who have joined play on, and
// the host opens another one for more. Serve it over HTTPS, and set
// ReadTimeout and IdleTimeout of the http.Server.
package rendezvous
