// Package nettrace passes events of a connection to a [Sink]: a [Ring] that keeps the
// last ones, a [JSONL] file, the inspector, the hash of a simulated run. It imports no
// other package of this module, so all of them can use it. Without a sink an event costs
// one branch.
//
//	ring := nettrace.NewRing(4096)
//	srv, err := driver.Listen(":7777", driver.Config{Trace: ring})
//	...
//	for e := range ring.All { fmt.Println(e) } // what led up to it
//
// Sinks are called on the goroutine that ticks the connection, in the midst of its work. They must not
// call the connection, and a slow one slows the game.
//
// # Packets
//
// A [PacketSink] gets the packets themselves, decrypted. The module netconn/nettrace/pcapng writes them to a
// file that Wireshark reads, and netconn/nettrace/dissector is the dissector it needs to
// understand them.
//
// # A line of JSONL
//
//	{"at":1.250000,"conn":3,"kind":"BunchSent","packet":17,"ch":5,"seq":2,"bits":96,"a":1}
//
// at is seconds since the driver's start; packet, ch, seq, bits, a and b are left out when zero. What they hold is
// said at the kinds.
//
// # Bounds
//
//	events in a Ring      what NewRing was given; the oldest go
//	bytes JSONL holds     32 KiB, then they are written
package nettrace
