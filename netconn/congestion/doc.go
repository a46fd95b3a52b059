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
// # What it reaches, and what it can't
//
// On simulated links, over 40 seeds, with games that send at each tick of 60 Hz and peers that ack
// as often: 256 kbit/s with a buffer of 1 s: 97 % used, a median queue of 13 ms; 20 Mbit/s with
// 2 % random loss: 94 %, 10 ms; 10 Mbit/s that fall to 1 and come back: 92 %, 11 ms, and 3 to
// 5 s until all of it is found again; two flows on 10 Mbit/s: 97 %, 9 ms, fairness index
// 0.98. Ticks of 30 Hz make it 22 to 25 ms, most of it the burst's own; at 20 Hz it is above 30.
// With acks every 200 ms the falling link is used to 90 %.
//
// It yields to flows that fill queues on purpose until their queue has been there for
// seconds, when it takes the queue for the path. Flows whose ticks hide the queue from them
// differently share unevenly for a while: the fairness index over a minute was 0.75 or more
// in all tests, but 0.74 once with 30 Hz and acks every 200 ms together. Packets that arrive
// late count as lost; reordering above the tolerance lowers the rate once.
package congestion
