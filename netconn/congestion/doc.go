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
// It works on a rate in bytes a second, judged once each round trip, and each 200 ms of a longer one:
//
//	rate
//	  ^        startup          cruise                      beyond the known capacity
//	  |           /\                                       ___/
//	  |          /  | drain    __--\        __--\     __--
//	  |         /   |      __--    |    __--    |  _--          capacity, as delivered
//	  |       _/     \__--         \__--        \__             0.89 of it
//	  |     _/
//	  +--------------------------------------------------------------> time
//
// The first sign of congestion is the queue: the lowest round trip time of the round,
// averaged over four rounds, against the lowest such average of the last 20 to 30 s, of three rounds at least. It is
// told only to the grain of a game's bursts, so the threshold is TargetDelay and the
// time between bursts; three batches of acks that are all above twice that count at once. Where a path's delay goes up and down from
// round to round by itself, four times what it does so beyond the bursts' grain, up to 40 ms, is added for the next 20 to 30 s, and rounds of
// less than eight packets are put together; a queue above twice the threshold halves that. A base that such a path's first few packets have made is
// found anew after the first drain.
// Loss beyond LossTolerance is the other sign, for links that hardly queue. It has to last: of the slots of 100 ms
// in which packets are counted, a first one from its first loss on, the one with the most doesn't count. After a cut for loss alone a
// test of likelihoods compares what comes with the loss before it: loss that stays is
// the path's own, so the cut is taken back, and that much loss is tolerated; that the loss went away is told from all slots. An application that uses less than
// the rate isn't slowed down for loss of up to 40 %.
//
// On congestion the capacity is what the link delivered over at least 150 ms and 12000
// bytes; the queue is drained at 0.3 to 0.8 of that, then the rate goes on at 0.89 of it.
// It grows by 31*sqrt(rate) bytes a second each second, from 2 to 6 % of the rate, and five times as fast for the first
// 0.6 s: relative to its rate a small flow grows faster, so flows that share a link draw level.
// Beyond 1.05 of the capacity, and after 0.5 to 2.2 s without congestion, growth doubles every 115 ms, or
// twice in a round trip, up to a doubling of the rate in that time, as long as the link delivers what is asked. It doubles
// a third as often while there may be a queue of a tick's burst, until 1.3 of the known capacity is delivered; then a round trip may bring a
// little more than two doublings. Until 1.15 of the known capacity is delivered the rate stays below that plus 600*sqrt(capacity) bytes a second
// (at least 0.3 of it, at most 1.5), as what doesn't get through is lost. That time without congestion is shorter by the fourth root of the rate: of the flows
// that share a link the one that has least looks for more first, and its queue ends the others' calm. So they draw level within
// seconds, whatever share a late one began with.
//
// A delay that a drain didn't shorten, while nothing was lost, isn't our queue: the path is longer, and the rate of before holds again.
// One drain tells when the round trip time had risen from one packet to the next by more than bursts make it; two do otherwise. Who has got less than half
// of what it had lately, or three quarters where the delay didn't rise at once, believes none of that, as others may have the link.
//
// Rounds begin and end at feedback, so acks that come late and in heaps measure right, and
// a rate of less than a packet a round trip is measured like any other.
//
// A round in which the application left a tenth of the credit unused raises nothing. What such an application gets delivered says what it had to send, so
// a cut takes from the rate what got lost, if that is congestion, and as much as the packets' delivery took longer than their sending; without either it
// lowers nothing. Where all packets have waited in a queue that grew, or lost a fifth, the delivered counts as ever. Its queue is told from three packets at
// least, as the ack of one may have been lost. Where delay varies by itself, whether the link follows is looked at for that much longer.
//
// Bytes in flight are bounded
// by one and a half round trips; beyond that only single packets go out, at MinRate. After 0.4 s, or twice the time between a peer's acks, and a round trip without any feedback (4 s for the first, and at most) the rate halves, down to
// InitialRate at the least, and a single packet goes out now and then until the path is back; then it starts anew.
// What was in flight while the path or this process stood still says nothing of the path. Nor do the acks that a process finds which was kept from running
// for three ticks on average and 10 ms more: they had waited for it. Nor do acks that come six times the time between them, and 10 ms, after they should have: they
// had waited for the peer's process, or for a path that stood still. What comes next counts, however late.
// There is always a budget for a packet within 2 s: a reliable bunch that was lost is never starved.
//
// # What it reaches, and what it can't
//
// On simulated paths of 1 to 100 Mbit/s, with round trip times of 5 to 150 ms and games and peers that tick at 30 to
// 60 Hz, it uses 90 % of the link and keeps the median queue under 30 ms (60 Hz) or 60 ms (30 Hz); with 10 and 20 % random
// loss, and with bursts of loss, it uses 80 %, mostly over 90 %. With a round trip time of 400 ms or ticks of 10
// and 20 Hz the share is above 70 %, mostly 90 %. At 10 Hz the queue is the game's own burst.
//
// With round trip times up to 400 ms, ticks of 10 to 60 Hz and up to 20 % loss it uses 90 % of the link again within 5 s
// after any of these: steps up and down by a factor of 10 or 100, half a minute of 64 kbit/s, a path that
// froze or lost everything for 1 to 10 s, a process at either end that was suspended for as long, a round trip time that is 80 or 280 ms longer for
// 15 s. The mean is 1.2 s, and 3 s at 400 ms and 10 Hz: there a round trip with its ticks takes half a second. A flow of 10 Mbit/s that shares its
// link with one that was there before has an index of fairness of 0.95 and more.
//
// That held in all runs of the table's 640 paths with eight seeds, but for one with bursts of loss, whose share is 0.796 instead of 0.8, and one of eight flows.
// With twenty seeds four of the 1,920 runs in which the way becomes longer took 5.1 to 5.7 s, three of them at round trips of 400 ms, one at 40 ms and 20 Hz, where ticks of 50 ms
// make 50 or 100 ms of 80, which may be a burst's. Where eight flows with ticks of 10 or 20 Hz fill the link's queue, each one's loss may
// look like the path's, as its own cut changes little: then the queue stays full; with 30 Hz in one run of 24 it is 67 ms at the median.
//
// Where each packet's delay varies by 20 ms, up and down, on its own, it uses 80 % of the link, mostly over 90 %, whatever chance does, and recovers
// within the same 5 s; where packets are lost besides, single changes take longer. With 30 ms, or with 20 ms and a peer that acks five times a second, it mostly uses over 80 %, and single runs a fifth.
//
// The fairness index of two, four and eight flows is 0.7 or more, mostly above 0.85, 60 s after the last began; at 400 ms
// and 10 Hz as little as 0.4. The table of paths is [github.com/bunchnet/bunchnet/netconn/simtest/paths],
// and go run ./examples/congestion -paths prints it.
//
// A process that comes 100 to 300 ms late about once a second loses that time, a sixth, and little more: it uses 77 to 83 % of the link at 60 Hz. While a connection
// starts such a time, of either process, costs up to a second and a half, and up to 3 s in 26 of 864 simulated starts where it is the peer's (TestLatePeerAtTheStart).
// Where both come 100 to 300 ms late about once a second, the share is 67 to 78 %. Where processes get a CPU 200 ms at a time, and not for 50 to 500 ms in between, a connection
// finds its rate as well, from its start on: in 432 runs it has a 25th of a link of 10 or 100 Mbit/s at least. Where that happens to both ends, each on its own,
// 12 of 144 runs stay below, at 22 to 330 kB/s (TestStarved).
//
// An application of 2 to 200 kB/s, some with 21 kB more at once each second, on a path of 10 Mbit/s that loses 5, 10 or 20 % of packets and acks, with round trip
// times of 20 and 100 ms, waits no longer than 150 ms for the rate once it has run for 5 s; with 60 other seeds at 50 ms 6 of 1,080 runs had a wait of over 300 ms, up to
// 1.5 s, all of 2 kB/s with such bursts, whose rate had hardly been found out. Where each packet's delay varies by 10 ms as well, it
// waited longer than 600 ms in 4 of 216 runs: few packets at the start, whose delays and losses look like a queue (TestLossHoldsUpNoSmallSender prints these). At a
// round trip time of 300 ms bursts of 21 kB take up to 0.5 s, as the rate was never tried beyond.
//
// It yields to flows that fill queues on purpose until their queue has been there for
// seconds, when it takes the queue for the path. Packets that arrive
// late count as lost; reordering above the tolerance lowers the rate once.
//
// # What differs from the articles, and why
//
//	the article says                               here                                     why
//	GoodBad: 30 and 10 packets a second, 250 ms,   the same
//	  penalties of 1 to 60 s
//	GoodBad: nothing about a path without acks     bad until the first ack, and after a     a dead path became good after 4 s
//	                                               second without one
//	GoodBad: the smoothed time starts at 0         at the first sample                      a slow path seemed good for ten acks
//	TokenBucket: NetSpeed, one tick's credit       two ticks' credit at most                a late tick loses no bandwidth
//	"send slower when the network is bad" is a     Adaptive, the default                    two rates neither find a fast path
//	  scheme of two rates                                                                   nor fit a slow one
package congestion
