// Package stream is a reliable channel as a [net.Conn], for code that knows nothing of ticks:
// bufio, encoding/gob, net/http, and whatever else reads and writes bytes.
//
// A [Listener] gives the channel type that both ends register, and Accept on the end that
// doesn't open; [Dial] opens a stream from any goroutine, [Open] from the one that ticks the driver:
//
//	l := stream.Listen(name, stream.Config{})
//	srv, err := driver.Listen(":7777", driver.Config{Channels: []channel.Type{l.Type()}})
//	go http.Serve(l, mux) // while srv is ticked
//
//	cl, err := driver.Dial(addr, driver.Config{Channels: []channel.Type{stream.Type(name)}})
//	conn, err := stream.Dial(ctx, cl, name, stream.Config{}) // while cl is ticked
//
// # When to choose it
//
// For side business beside a game: a lobby's RPCs, an admin page, a chat log. What is written takes only what the game
// leaves of the connection's bandwidth (driver.Conn.SendSpare), so the game's own bunches of a tick go first. Where the game takes
// all of it, streams get one byte for each 16 that the connection sends. Streams of a connection share what there is. Games' own
// messages are better off as bunches, or with channel/message.
//
// # The two sides of a Conn
//
// Reads, writes and deadlines come from any goroutine and touch two bounded buffers under a lock. The
// goroutine that ticks the driver moves bytes between the buffers and the channel. So the driver must
// be ticked, by Run or by the game's loop, or nothing moves; and the goroutine that
// ticks it must not block in Read or Write.
//
// # The end of a connection
//
// When a connection ends, its streams end at both ends with [ErrLost], except where the end of data came before.
//
// An end that closes the connection in order (driver.Conn.CloseWithReason, driver.Driver.Shutdown) sends what was written to
// its streams before. From then on Write returns ErrLost. The peer reads all of it, then io.EOF for streams with Close or
// CloseWrite called before, and ErrLost for others. What doesn't arrive within driver.Config.LingerTimeout is lost: the path is too slow or the peer
// reads too slowly. Then the reader gets ErrLost, and the CloseResult lists the channel. What the peer has written and not sent yet
// is lost too. To lose nothing, let both ends of each stream call CloseWrite and read to io.EOF first.
//
// driver.Driver.Close, and so the end of Run, ends streams at once: call Shutdown before. A server that shuts down while its client is
// out of reach ends its streams after LingerTimeout; the client's end after its Timeout.
//
// # On the wire
//
// Reliable bunches of whole segments, byte by byte; low byte first:
//
//	8   kind: 0 data      16 length, 1 to 65535; then so many bytes
//	          1 credit    64 how many bytes, since the beginning, the peer may send
//	          2 fin       no more data comes from this end
//	          3 stop      this end reads no more; answered with fin
//
// An end may send [InitialCredit] bytes before the first credit. The first segment of the end that opens is its
// credit. When both ends have sent fin, the one that opened closes the channel.
//
// # Bounds
//
//	bytes written, not sent yet       Config.Buffer, 64 KiB; then Write waits
//	bytes received, not read yet      Config.Window, 256 KiB; the peer's credit ends there
//	bytes sent, not acked             the channel's reliable buffer of bunches of 900 bytes, 255 with Unreal's protocols and 4095 with
//	                                  Bunchnet; and all streams of a connection half of what its MaxMemory has for that
//	streams of a Listener at a time   Config.MaxStreams, 256, until its program or the peer has closed them; more are closed at once
//	of these, of one connection       Config.MaxPerConn, 16, until their channels are gone; more are closed at once
//	of these, not accepted yet        Config.Backlog, 64; more are closed at once
package stream
