// Package exercise is the game that this module tests itself with in netconn/simtest: servers and clients that
// use all the stack has at once, with checkers on everything that comes out of it. Its options are drawn from the
// seed, as the script is:
//
//	script := exercise.Draw(seed)
//	result := exercise.Play(script)
//
// # What is checked
//
//	order     reliable bunches, messages, blocks and calls: once, in order, intact; values never older than they were
//	calls     a reliable call of a server finds all values that were set before it, or newer ones
//	whole     what a client sees was set, whole; of a value that doesn't fit, and of a call that never runs, the caller is told
//	liar      liars harm nobody: no memory behind an actor's fields, no actor of another class, and honest ends go on
//	once      unreliable ones: at most once, intact
//	close     nothing after a close; all that was sent before one is there
//	bounds    queues and windows within what is documented
//	fates     every packet acked or lost exactly once; none acked that didn't arrive
//	converge  actors the same on server and clients; nothing that a client mustn't see
//	lockstep  the same state after the same turn on all machines
//	ends      both ends agree on how a connection ended, or it timed out; nobody broke the protocol
//	settle    after the faults everything arrives, and everybody is connected, in time
//	panic     none
//
// # Options
//
//	preset bunchnet, unreal427, unreal51, unreal53   the wire and its policies; bunchnet
//	link unreal427, unreal51, unreal53, salted, netcode
//	window N, buffer N, maxpacket N   PacketWindow, ReliableBuffer and MaxPacket, if not the preset's
//	way udp, websocket, webtransport, ice, mixed     what carries datagrams (simtest.Carrier); mixed: another one for each dial
//	controller bucket, adaptive, goodbad             default the preset's
//	netspeed N         bytes a second of the bucket
//	timeout T          a silent connection ends; 4s
//	copies N, adaptive 1, lazyacks 1, reorder T, keepalive T, checksum 1   as in driver.Config
//	coding N           netconn.Coding.Repairs, with preset bunchnet over salted or netcode; codingadaptive 1: its Adaptive
//	tick T, servertick T                             frames; 16.7 ms
//	bunches N          channels of bunches at a time, churn N: percent a second that one closes
//	messages 1         a queue of each mode, blocks 1, lockstep 1, actors N
//	liars 1            beside the others a client that lies to a server, and a server that lies to a client (package actorrep/hostile)
//	leave N            percent a second that a client leaves and comes back
//	mayhem 1           only bounds and panics count: for links that corrupt what nothing protects
package exercise
