// Package congestion decides how fast a connection may send. All controllers share one
// interface, [Controller], which sees packets leave, arrive and get lost, and answers
// with a budget in bytes. They have no clock and no randomness.
//
// # The caller's loop
//
//	for each packet the peer reports {
//		c.OnAck(now, id, bytes, rtt)      // or c.OnLost(now, id, bytes)
//	}
//	c.Tick(now)                               // once each tick of the game
//	for c.Budget(now) > 0 && something to send {
//		c.OnSent(now, id, bytes)
//	}
//	wake at c.NextDeadline(now), if that comes before the next tick
//
// # Which one
//
//	TokenBucket  Unreal's NetSpeed. A fixed rate that both ends agreed on: servers with known
//	             lines, and peers that expect Unreal's behaviour. It fills the queue of any
//	             slower link to the brim and uses nothing beyond its rate.
//	GoodBad      30 or 10 packets a second. For games whose packets are small and all
//	             alike; it finds no bandwidth.
//	Adaptive     finds the bandwidth of a path and keeps its queue short: the choice for
//	             the internet, for blocks and for anything whose demand varies.
//
// # How Adaptive works
//
// It works on a rate in bytes a second, judged once each round trip:
//
//	rate
//	  ^        startup          cruise                      beyond the known capacity
//	  |           /\                                       ___/
//	  |          /  | drain    __--\        __--\     __--
//	  |         /   |      __--    |    __--    |  _--          capacity, as delivered
//	  |       _/     \__--         \__--        \__             0.87 of it
//	  |     _/
//	  +--------------------------------------------------------------> time
//
// The first sign of congestion is the queue: the lowest round trip time of the round,
// averaged over four rounds, against the lowest average of the last 20 to 30 s. It is
// told only to the grain of a game's bursts, so the threshold is TargetDelay and 5/4 of the
// time between bursts. Loss beyond LossTolerance is the other sign, for links that
// hardly queue. Loss that stays when the rate is cut is the path's own, and tolerated.
//
// On congestion the capacity is what the link delivered over at least 150 ms and 12000
// bytes; the queue is drained at 0.3 to 0.8 of that, then the rate goes on at 0.87 of it.
// It grows by 30*sqrt(rate) bytes a second each second, at most 5 %, and three times as fast below
// 0.95 of the capacity: relative to its rate a small flow grows faster, so flows
// that share a link draw level. Beyond 1.05 of the capacity growth doubles each round, up to a
// quarter of the rate, as long as the link delivers what is asked.
//
// Rounds begin and end at feedback, so acks that come late and in heaps measure right. A
// round in which the application left a tenth of the credit unused raises nothing,
// and lowers nothing unless the link delivered less than was sent. Bytes in flight are bounded
// by one and a half round trips. After a second, or three round trips, without any feedback the
// rate halves, and a single packet goes out now and then until the path is back.
//
// # What it can't do
//
// It yields to flows that fill queues on purpose until their queue has been there for
// seconds, when it takes the queue for the path. Flows whose clocks hide the queue from them
// differently share unevenly for a while: two flows at 10 Mbit/s have a fairness index above 0.95
// on average and above 0.75 always, in the package's tests. Packets that arrive late count as
// lost; reordering above the tolerance lowers the rate once.
package congestion
