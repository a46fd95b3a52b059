// Package simtest runs a whole game in one goroutine and in virtual time: servers, clients, their worlds and a bad network. The same seed
// gives the same bytes, so a failure can be replayed as often as you like. A minute of the game takes about a second.
//
// # Your own game in it
//
// A [Game] boots a [Program] on each host at the beginning and after each crash. A program is the driver.Driver, world and game that you have
// anyway. Only three fields of driver.Config come from the host:
//
//	func (g *myGame) Boot(h *simtest.Host) (simtest.Program, error) {
//		s, err := h.Listen(7777)
//		cfg := driver.Config{Socket: s, Clock: h.Time, Rand: h.Secrets(), ...}
//		d, err := driver.Listen("10.0.0.1:7777", cfg)
//		...
//	}
//
//	func (p *myServer) Tick(now time.Time) error { // 60 times a second by default
//		p.driver.TickDispatch(now)
//		p.game.step()
//		p.world.Step(p.driver.Time(now))
//		p.driver.TickFlush(now)
//		return p.driver.Err()
//	}
//
//	result := simtest.Play(simtest.Draw(seed, simtest.Profile{}), func(w *simtest.Simulation, s *simtest.Script) (simtest.Game, error) { ... })
//
// The game may use no other clock than [Host.Time], no other randomness than [Host.Rand] and [Host.Secrets], no goroutines, and no iteration over
// maps whose order has an effect.
//
// # A run
//
//	0 ........ Script.Run ............... + Script.Settle
//	| faults as scripted | Game.Calm; the network heals, crashed hosts boot
//	|                    | ends when Game.Pending returns ""; a failure if it never does
//
// Checkers call [Simulation.Failf], which ends the run. There are three ready-made ones. [Stream] checks that messages arrive as their [Delivery]
// promises. [Values] checks that clients see only values that were set, never an older one after a newer one, and that a call sees what was set
// before it. [Fates] checks that every packet is acked or lost exactly once. A panic is a failure, too.
//
// # Scripts
//
// A [Script] has a text form. [Draw] makes a script from a seed, [Parse] reads one, and [Shrink] makes a failing one shorter:
//
//	seed 42
//	run 6s
//	settle 30s
//	servers 1
//	clients 2
//	option link salted
//	net lag=30ms loss=5
//	at 1.5s net client2 for 2s loss=40 order=10
//	at 2s cut client1 server1 for 800ms
//	at 3s rebind client1
//	at 3.2s pause server1 for 300ms
//	at 4s crash client2 for 1s
//	at 0s skew client1 ppm=300
//
// # Not only UDP
//
// A [Carrier] puts a model of another socket under a world, over the same network and faults: the ordered and lossless stream of a WebSocket, in which what was
// lost holds back what is behind it; WebTransport's datagrams, of which large ones are lost; the changing path of ICE, by a relay and back, and its restart in another network. A server joins them
// with its own socket, so that clients of all kinds are in one world:
//
//	side, err := h.ListenBy(simtest.WebSocket, 7778)                          // on the server
//	cfg.Socket = udp.Join(s, side)
//	cfg.Socket = h.OpenBy(simtest.WebSocket, netip.AddrPortFrom(server, 7778)) // on a client
//
// Package netconn/simtest/exercise is the game that tests this module; go run ./bench/swarm plays it. In its scripts "option way websocket" chooses how clients come, and
// go run ./bench/swarm -way mixed plays seeds with all ways.
package simtest
