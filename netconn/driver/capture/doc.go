// Package capture records a run of a driver and of the game on it, and replays it: the same datagrams at the same times, the same
// random bytes, the same calls of users, through the same code, to the same state. A bug that was seen once is seen as often as it takes, in a
// debugger, in virtual time and without a network.
//
// Recorded is what comes from outside, not what the game does: so a replay needs the same build, or one that differs in nothing that
// matters up to the bug. Where it does differ, the replay says so, with the tick. For recordings of what players saw, which other builds can play,
// see actorrep.World.Record.
//
// # The program
//
// A game that can be captured takes its socket, clock and randomness from an [Outside], and is ticked and called from there:
//
//	func boot(o capture.Outside) (capture.Program, error) {
//		g := &game{world: ...}
//		d, err := driver.Listen("", o.Config(driver.Config{Channels: g.world.ChannelTypes(), Link: driver.Netcode{Key: key}}))
//		...
//	}
//
//	func (g *game) Tick(now time.Time) error  // TickDispatch, the game's step, World.Step, TickFlush
//	func (g *game) Call(data []byte) error    // what else comes from outside: a console command, a setting, a player at the keyboard
//	func (g *game) State(w io.Writer)         // what is to be the same: positions, scores
//
// Nothing else from outside may reach it: no time.Now, no shared randomness, no goroutines, no maps ranged over. A Netcode link needs a
// Key of its own, since one from the environment or made for development isn't in the file.
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
// What a tick took in is written at its end, also when it panics; so a crash is in the file with all that led to it, and the replay crashes
// as well. go run ./bench/capture2test makes a Go test of a file.
//
// # The file
//
//	19 bytes   "bunchnet capture 1\n"
//	bytes      local address                                  packed length first, as all bytes
//	packed     batch size of the socket
//	packed     time, nanoseconds since 1970, zigzag
//	events
//	  1        a clock was read: packed, zigzag, since the time before
//	  2        random bytes were read: bytes
//	  3        datagrams were read: packed number | of each: address bytes, bytes | error 8
//	  4        a write that failed: packed number that went out | error 8
//	  5        a tick begins: packed, zigzag, since the time before
//	  6        a call: bytes
//	  7        a tick or a call is done: hash 64 of all datagrams sent | bytes, the error's text
//	  8        hash 64 of the state
//	  9        the end
//
// # Bounds
//
// A call is up to 64 KiB, a file up to Config.MaxBytes: beyond that, as when writing fails, the game goes on without being recorded, and
// Recorder.Err says why. A reader of a file that isn't one, or is damaged, gets ErrFormat.
//
// A file holds the random bytes that secrets are made of: who has it can read the connections in it. Keep it as you keep keys.
package capture
