// Package stream offers a reliable channel as a [net.Conn], for code that knows nothing of ticks:
// bufio, encoding/gob, net/http, and whatever else reads and writes bytes.
//
// Both ends list a channel type of the same name. The end that accepts streams has a [Listener] and
// its Type; an end that only opens them has [Type]. [Dial] opens a stream from any goroutine, [Open]
// from the one that ticks the driver:
//
//	name := bunch.Name{Text: "lobby"} // the same at both ends
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
// Choose it for traffic beside the game: a lobby's RPCs, an admin page, a chat log. Streams use the bandwidth of the connection that
// the game leaves (driver.Conn.SendSpare): the game's own bunches of a tick go first. Where the game takes all of it, streams get
// one byte of each 16 that the connection sends. The streams of a connection share what they get. For the game's own messages
// use bunches or channel/message.
//
// # The two sides of a Conn
//
// Any goroutine may read, write and set deadlines: these calls use two bounded buffers under a lock. The
// goroutine that ticks the driver moves bytes between the buffers and the channel. So nothing moves unless
// the driver is ticked, by Run or by the game's loop. The goroutine that ticks it must not block in Read or Write.
//
// # The end of a connection
//
// When a connection ends, Read and Write of its streams return [ErrLost] at both ends. A reader whose end of data had arrived gets io.EOF.
//
// An end may close the connection in order (driver.Conn.CloseWithReason, driver.Driver.Shutdown). It then still sends what was
// written to its streams, while further calls of Write return ErrLost. The peer reads all of that. After it the peer gets io.EOF where
// Close or CloseWrite was called before, and ErrLost elsewhere.
//
// What doesn't arrive within driver.Config.LingerTimeout is lost, because the path or the reader is too slow. Then the reader gets
// ErrLost, and the CloseResult lists the channel. What the peer has written and not sent yet is lost too. To lose nothing, let both
// ends of each stream call CloseWrite and read to io.EOF first.
//
// driver.Driver.Close ends streams at once, and so does the end of Run: call Shutdown first. When a server shuts down while its client
// is out of reach, the server's streams end after LingerTimeout, and the client's after its Timeout.
//
// # On the wire
//
// A stream is a channel of reliable bunches. Each holds whole segments. Fields are whole bytes; their sizes are in bits, and the low byte comes first:
//
//	8   kind: 0 data      16 length, 1 to 65535; then so many bytes
//	          1 credit    64 how many bytes, since the beginning, the peer may send
//	          2 fin       no more data comes from this end
//	          3 stop      this end reads no more; answered with fin
//	          4 refused   8 reason, a Refusal; a stop and a fin follow
//
// An end may send [InitialCredit] bytes before it has received a credit. The end that opens sends a credit as its first
// segment. When both ends have sent fin, the one that opened closes the channel.
//
// # Bounds
//
//	bytes written, not sent yet       Config.Buffer, 64 KiB; then Write waits
//	bytes received, not read yet      Config.Window, 256 KiB; the peer's credit ends there
//	bytes sent, not acked             the channel's reliable buffer of bunches of 900 bytes, 255 with Unreal's protocols and 8190 with
//	                                  Bunchnet; and all streams of a connection half of what its MaxMemory has for that
//	streams of a Listener at a time   Config.MaxStreams, 256, until its program or the peer has closed them; more are refused
//	of these, of one connection       Config.MaxPerConn, 16, until the program has closed them and their channels are gone; more are refused
//	of these, not accepted yet        Config.Backlog, 64; more are refused
//
// A closed stream keeps what was written to it until the peer gives credit for it, or the connection ends: of the streams that a Listener accepted,
// MaxPerConn times Buffer at most. An end that opens streams to a peer that it doesn't trust bounds by itself how many it opens: the peer decides how
// long each of them, and its channel, is there.
//
// The opener of a stream that is refused gets a [Refusal] from Read and Write, which says which bound it was.
package stream
