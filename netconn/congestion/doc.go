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
//	TokenBucket  Unreal's NetSpeed: a fixed rate that both ends agreed on. For servers with known
//	             lines, and peers that expect Unreal's behaviour. On a slower link it fills the
//	             whole queue; on a faster one it leaves the rest unused.
//	GoodBad      30 or 10 packets a second. For games whose packets are small and of
//	             equal size; it doesn't measure bandwidth.
//	Adaptive     finds the bandwidth of a path and keeps its queue short. The choice for
//	             the internet, for blocks and for anything whose demand varies.
//
// # How Adaptive works
//
// Adaptive keeps a rate in bytes a second. It judges the rate once each round trip, or each
// 200 ms where a round trip is longer.
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
// The first sign of congestion is the queue. Adaptive averages the lowest round trip time of each round over
// four rounds, and compares that with the base: the lowest such average, of three rounds at least, in the last
// 20 to 30 s. Where less than MinRate was sent for eight rounds whose lowest round trip times are about the same, the lowest of these is the base if it is longer: so little makes no queue. A game sends in bursts, so a queue shorter than the time between bursts can't be told. The
// threshold is therefore TargetDelay plus that time. Three batches of acks that are all above twice the threshold
// count at once.
//
// On a path with jitter the delay goes up and down from round to round by itself. Four times that change, beyond
// what bursts explain, is added to the threshold for the next 20 to 30 s, 40 ms at most, and rounds of fewer than
// eight packets are put together. A queue above twice the threshold halves the addition. A base that comes from
// the first few packets of such a path is measured again after the first drain.
//
// What the peer sends may wait in a queue too, on the way back, and its acks with it: [Returner] tells how long. That isn't our queue, so it is taken off the round trip times of
// the first sign, down to the base, and added to the base where feedback is awaited. A peer whose clock says so in vain has its own path's queue filled, and more offered than passes.
//
// The second sign is loss beyond LossTolerance, for links that hardly queue. The loss must last: packets are
// counted in slots of 100 ms, and the slot with the most losses doesn't count. After a slot without loss the next
// one begins at the first loss. After a cut for loss alone a likelihood test compares the loss with that before
// the cut. Loss that stays is the path's own: the cut is taken back, and that much loss is tolerated. Whether the
// loss has gone is judged from all slots. An application that uses less than the rate isn't slowed down for loss
// of up to 40 %, and what was lost meanwhile doesn't count once it uses all of it.
//
// On congestion the capacity is what the link delivered over at least 150 ms and 12000 bytes. Where loss is the only sign, what was
// lost doesn't count as delivered, though as much was tolerated before: only a rate that the link surely carries tells whose loss it was. The queue is drained
// at 0.3 to 0.8 of that. Then the rate goes on at 0.89 of it and grows by 31*sqrt(rate) bytes a second each
// second, which is held between 2 and 6 % of the rate. For the first 0.6 s it grows five times as fast. A small
// flow grows faster relative to its rate, so flows that share a link become equal.
// Congestion in startup, before anything is known of what the link delivers, takes half of the rate for the capacity; after that drain
// startup goes on.
//
// A round trip of startup has few packets, so chance looks like congestion there. Loss that was there at 0.6 of the rate
// or less as well is the path's own, and tolerated: a link that is full now lost little then. A delay that ends startup is
// put to the test by the packets in flight. They left at the rate that made the queue, so they wait in it as long, or
// longer. If of four or more one waits a quarter less, and less than the threshold plus TargetDelay, there is no queue:
// startup goes on at its rate, and the delay counts as jitter.
//
// Above 1.05 of the capacity, or after 0.5 to 2.2 s without congestion, Adaptive probes for more, as long as the
// link delivers what is asked. Growth then doubles every 115 ms, but at most twice in a round trip. The rate
// itself at most doubles in that time. Growth doubles a third as often while the delay may be the queue of one
// tick's burst. Once 1.3 of the known capacity is delivered that no longer holds, and a round trip may bring a
// little more than two doublings. Until 1.15 of the known capacity is delivered, the rate stays below that
// capacity plus 600*sqrt(capacity) bytes a second (at least 0.3 of the capacity, at most 1.5), since what doesn't
// get through is lost. The time without congestion before a probe grows with the fourth root of the rate. So the
// smallest of the flows that share a link probes first, and its queue keeps the others from probing. They become
// equal within seconds, whatever share a late one began with.
//
// A delay that a drain doesn't shorten, while nothing is lost, isn't this flow's queue: the path has become longer,
// and the earlier rate holds again. That takes two drains; one is enough where the round trip time rose from one
// packet to the next by more than bursts explain. A flow that gets less than three quarters of what it had lately
// (half where the delay rose at once) doesn't conclude this, since others may have taken the link.
//
// Rounds begin and end at feedback. So acks that come late and many at once measure right, and a rate of less
// than a packet a round trip is measured like any other.
//
// A round in which the application left a tenth of its credit unused doesn't raise the rate. What is delivered then
// shows the application's demand, not the capacity, unless the credit was left only because the peer has no room for more ([PeerWaiter]). So a cut lowers the rate by the share that was lost, if the loss
// is congestion, and by how much longer the packets took to arrive than to be sent; with neither the rate stays.
// If all packets waited in a queue that grew by 8 %, less where there are more than 60 bursts a second, or that lost a twentieth, what was delivered counts as the capacity
// as usual. The queue of such an application is measured over at least three packets, since the ack of one may be
// lost. On a path with jitter, whether the link delivers what is asked is measured over a longer time.
//
// Bytes in flight are bounded by what the rate sends in one and a half round trips. Beyond that only single packets
// go out, at MinRate. The rate halves when no feedback comes for a round trip plus 0.4 s, or plus twice the time
// between the peer's acks where that is more. This wait is at most 4 s, and 4 s before the first feedback. The rate
// halves down to InitialRate. A single packet goes out now and then until the path is back; then Adaptive starts anew.
//
// Feedback that had to wait says nothing of the path and is ignored:
//
//   - on packets in flight while the path or this process stood still;
//   - acks found by a process that didn't run for three average ticks plus 10 ms;
//   - acks that come later than expected, by six times the time between acks plus 10 ms: they waited in the peer's
//     process, or for a path that stood still. The acks after them count, however late.
//
// There is always a budget for a packet within 2 s, so a reliable bunch that was lost is never starved.
//
// # What it reaches, and what it can't
//
// The paths are simulated, with bandwidths of 1 to 100 Mbit/s. The table of paths is
// [github.com/bunchnet/bunchnet/netconn/simtest/paths]; go run ./examples/congestion -paths prints it.
//
// With round trip times of 5 to 150 ms, and games and peers that tick at 30 to 60 Hz, Adaptive uses 90 % of the link.
// The median queue stays under 30 ms at 60 Hz and under 60 ms at 30 Hz. With 10 and 20 % random loss, and with bursts
// of loss, it uses 80 %, mostly over 90 %. With a round trip time of 400 ms, or ticks of 10 and 20 Hz, it uses over
// 70 %, mostly 90 %. At 10 Hz the queue is the game's own burst.
//
// With round trip times up to 400 ms, ticks of 10 to 60 Hz and up to 20 % loss it uses 90 % of the link again
// within 5 s after any of these:
//
//   - steps up and down by a factor of 10 or 100, and half a minute of 64 kbit/s;
//   - a path that froze, or lost everything, for 1 to 10 s;
//   - a process at either end that was suspended for as long;
//   - a round trip time that is 80 or 280 ms longer for 15 s.
//
// The mean is 1.2 s. It is 3 s at 400 ms and 10 Hz, where a round trip with its ticks takes half a second. A flow of
// 10 Mbit/s that shares its link with an earlier one has a fairness index of 0.95 and more.
//
// All that held in all runs of the table's 640 paths with eight seeds, except for one with bursts of loss, whose share
// is 0.796 instead of 0.8, and one with eight flows. With twenty seeds four of the 1,920 runs in which the path
// becomes longer took 5.1 to 5.7 s. Three of them have round trips of 400 ms. One has 40 ms and 20 Hz: ticks of 50 ms
// show a rise of 80 ms as 50 or 100, which may be a burst's. Where eight flows with ticks of 10 or 20 Hz fill the
// link's queue, a flow's own cut changes little, so its loss may look like the path's: then the queue stays full. With
// 30 Hz, in one run of 24, it is 67 ms at the median.
//
// Where each packet's delay varies by 20 ms, up and down, independently, Adaptive uses 80 % of the link, mostly over
// 90 %, with every seed, and recovers within the same 5 s. Where packets are also lost, single changes take longer.
// With 30 ms, or with 20 ms and a peer that acks five times a second, it mostly uses over 80 %, in single runs a fifth.
//
// The fairness index of two, four and eight flows is 0.7 or more, mostly above 0.85, 60 s after the last one began. At
// 400 ms and 10 Hz it can be as low as 0.4.
//
// A process that comes 100 to 300 ms late about once a second loses that time, a sixth, and little more: it uses 77 to
// 83 % of the link at 60 Hz. Where both processes do, the share is 67 to 78 %. While a connection starts, one such
// delay of either process costs up to a second and a half. Where it is the peer's, it cost up to 3 s in 25 of 864
// simulated starts (TestLatePeerAtTheStart).
//
// Where processes get a CPU for 200 ms at a time, and then none for 50 to 500 ms, a connection finds its rate as well,
// from its start on: in 432 runs it has at least a 25th of a link of 10 or 100 Mbit/s. Where that happens to both ends,
// each on its own, 4 of 144 runs stay below, at 37 to 330 kB/s (TestStarved).
//
// Small senders were tried on a path of 10 Mbit/s that loses 5, 10 or 20 % of packets and acks (TestLossHoldsUpNoSmallSender
// prints these). The application sends 2 to 200 kB/s, some with 21 kB more at once each second. With round trip times of
// 20 and 100 ms it waits at most 150 ms for the rate once it has run for 5 s. With 60 other seeds, at 50 ms, 6 of 1,080 runs
// had a wait of over 300 ms, up to 1.5 s. All of them send 2 kB/s with such bursts, so that their rate had hardly been found.
// Where each packet's delay also varies by 10 ms, 4 of 216 runs waited longer than 600 ms: the delays and
// losses of the few packets at the start look like a queue. At a round trip time of 300 ms bursts of 21 kB take up to
// 0.5 s, as no higher rate was ever tried.
//
// Adaptive yields to flows that fill queues on purpose. When their queue has been there for seconds, it takes the queue
// for the path. Packets that arrive late count as lost, so reordering above LossTolerance lowers the rate once.
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
