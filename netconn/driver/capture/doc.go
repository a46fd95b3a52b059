// Package capture records a run of a game and its driver, and replays it. The replay gives the same code the same datagrams, times, random
// bytes and user calls, and reaches the same state. So a bug that was seen once can be seen again and again, in a debugger, in virtual
// time and without a network.
//
// The recording holds the inputs of the program, not what the program does with them. A replay therefore needs the same build, or one that behaves the
// same until the bug. If the replay differs from the recorded run, it returns ErrDiverged with the tick. Package actorrep/replay records
// what players see, in files that other builds can play.
//
// # The program
//
// A game that can be captured takes its socket, clock and randomness from an [Outside]. All other inputs reach it through Tick and Call:
//
//	func boot(o capture.Outside) (capture.Program, error) {
//		g := &game{world: ...}
//		d, err := driver.Listen("", o.Config(driver.Config{Channels: g.world.ChannelTypes(), Link: driver.Netcode{Key: key}}))
//		...
//	}
//
//	func (g *game) Tick(now time.Time) error  // TickDispatch, the game's step, World.Step, TickFlush
//	func (g *game) Call(data []byte) error    // any other input: a console command, a setting, a local player's key
//	func (g *game) State(w io.Writer)         // writes what a replay must reproduce: positions, scores
//
// The program must not use other inputs: no time.Now, no global randomness, no goroutines, no iteration over maps. A Netcode link needs its
// Key in the program, because a key from the environment or a development key isn't in the file.
//
// # The caller's loop
//
//	rec, err := capture.Record(file, capture.Outside{Socket: socket}, capture.Config{}, boot)
//	for now := range ticker.C {
//		err = rec.Tick(now)
//	}
//	err = rec.Close()
//
//	result, err := capture.Replay(file, boot)  // later: no error means the same states and the same datagrams
//
// Each input is written before the program gets it. So the file holds all inputs that led to a crash, and the replay crashes too, or hangs,
// also where the process ends at once: by a fatal error, such as a stack that overflows, or by kill -9 in a tick that never ends. So don't
// give Record a buffered writer. go run ./bench/capture2test turns a file into a Go test.
//
// # The file
//
//	19 bytes   "bunchnet capture 1\n"
//	bytes      local address                                  "bytes" is a packed length and that many bytes
//	packed     batch size of the socket; 8192 more if it sends datagrams whole (udp.SendsWhole)
//	packed     time, nanoseconds since 1970, zigzag
//	events
//	  1        the clock was read: packed, zigzag, ns since the previous time
//	  2        random bytes were read: bytes
//	  3        datagrams were read: packed number | for each: address bytes, bytes | error 8
//	  4        a write failed: packed number of writes since the last one that failed | packed number of datagrams sent | error 8
//	  5        a tick begins: packed, zigzag, ns since the previous time
//	  6        a call: bytes
//	  7        the end of a tick or call: 64-bit hash of all datagrams sent | bytes, the error's text
//	  8        64-bit hash of the state
//	  9        the end of the file
//
// # Bounds
//
// A call has at most 64 KiB, a file at most Config.MaxBytes. When the file is full or can't be written, the game goes on without being recorded and
// Recorder.Err returns the reason. Reading a damaged file, or one that isn't a capture, returns ErrFormat.
//
// The program's clock goes on by the monotonic clock from the time of Record. When the machine's clock is set meanwhile, the program isn't told: it
// judges tokens by the time that it would have had.
//
// A file holds the random bytes that secrets are made from. Whoever has the file can decrypt the connections in it. Protect it like a key.
package capture
