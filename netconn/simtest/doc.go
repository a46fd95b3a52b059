// Package simtest runs whole games in one goroutine: servers, clients, their worlds and a bad network
// between them, in virtual time and from one seed. The same seed gives the same bytes, so a failure is
// found once and replayed as often as it takes; a minute of the game takes a second or so.
//
// # Your own game in it
//
// What runs on a host is a [Program]; a [Game] boots one on each host, after a crash again. Programs are
// what you have anyway, a driver.Driver and a world, but for three fields of driver.Config:
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
//		p.world.Step(p.driver.Since(now))
//		p.driver.TickFlush(now)
//		return p.driver.Err()
//	}
//
//	result := simtest.Play(simtest.Draw(seed, simtest.Profile{}), func(w *simtest.Simulation) simtest.Game { ... })
//
// Use nothing from outside in it: no clock but [Host.Time], no randomness but [Host.Rand] and
// [Host.Secrets], no goroutines, and no ranging over maps where the order shows.
//
// # A run
//
//	0 ........ Script.Run ............... + Script.Settle
//	| faults as scripted | Game.Calm; the network heals, crashed hosts boot
//	|                    | ends when Game.Pending says ""; a failure when it doesn't in time
//
// Checkers call [Simulation.Failf], which ends the run. Ready-made are [Stream] (each [Delivery] as promised: everything, at most once, or
// what doesn't arrive is told), [Values] (only values that were set are seen, whole, none older than the last, and those that were set
// before a call when it runs) and [Fates] (every packet acked or lost exactly once). A panic is a failure, too.
//
// # Scripts
//
// A [Script] is a text of verbs, which [Draw] makes of a seed, [Parse] reads, and [Shrink] makes shorter while
// it still fails:
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
// Package netconn/simtest/exercise is the game that this module tests itself with; go run ./bench/swarm plays
// it.
package simtest
