// Package session keeps a player when its connection ends. A client whose program crashed or whose network changed dials again and gets
// the same player back.
//
// # On a server
//
// A player is a value of the game's own type P, for example with a score and an avatar. Players turns the driver's events about
// connections into events about players:
//
//	connection                      player
//	joined, unknown ID         -->  New
//	timed out, replaced, ...   -->  Away      the player is kept for Config.Keep
//	joined, known ID           -->  Rejoin    the player has a connection again
//	left, was kicked           -->  Gone      also when Keep is over
//
//	players, err := session.NewPlayers(session.Config[*Player]{New: ..., Rejoin: ..., Away: ..., Gone: ...})
//	srv, err := driver.Listen(":7777", driver.Config{Link: driver.Netcode{TakeOver: true},
//		Joined: players.Joined, Closed: players.Closed})
//	each tick: players.Tick(srv.Time(now))
//
// The ID must be proven, because whoever has it gets the player. The client ID in a token of the Netcode link is proven. So is a ticket
// that Authorize has checked. A client with only the key in the environment has another random ID at each dial, so it is a new player each
// time: give it a token with its ID, as below. Without Netcode.TakeOver the Netcode link refuses a client until its former connection has timed out. Other
// links don't know clients: there Players closes the former connection when the new one joins.
//
// # On a client
//
// A Redialer ticks a client's driver. When nothing arrives for RedialConfig.Silence, it dials again with a fresh token while it keeps the
// old connection. The game goes on with whichever connection answers first. A connection that replicates actors needs a World of its own, so
// the Dial function makes one for each dial:
//
//	ends := map[*driver.Driver]*end{} // the game's: a World and what belongs to it
//	client, err := session.NewRedialer(session.RedialConfig{Dial: func() (d *driver.Driver, err error) {
//		for d := range ends {
//			select {
//			case <-d.Done(): // a dial that the Redialer has ended before anybody answered: Closed wasn't called
//				delete(ends, d)
//			default:
//			}
//		}
//		e := newEnd()
//		d, err = driver.Dial(addr, driver.Config{Link: driver.Netcode{Token: token(id)}, Channels: e.world.ChannelTypes(),
//			Closed: func(*driver.Conn, netconn.CloseResult) { delete(ends, d) }})
//		if err == nil {
//			ends[d] = e
//		}
//		return d, err
//	}})
//	each tick:
//		client.TickDispatch(now)
//		if e := ends[client.Driver()]; e != nil {
//			e.step(client.Driver().Time(now))
//		}
//		client.TickFlush(now)
//		if err := client.Err(); err != nil { ... } // no more dials: tell the player why
//
// The token comes from a service (netconn/netcode/tokenserver). For development a client that has the server's key makes one:
//
//	key, err := netcode.ParseKey(os.Getenv(driver.KeyEnv))
//	token, err := netcode.GenerateConnectToken(netcode.TokenConfig{ClientID: id, Create: unix, Expire: unix + 30, Timeout: 5,
//		Servers: []netip.AddrPort{addr}, PrivateKey: key})
package session
