// Package replay records a server's world to an io.Writer, and plays the file in a client's world, at any speed and from any time.
//
//	rec, err := replay.Record(world, file, replay.Config{})       // on the server; at the end rec.Close()
//
//	r, err := replay.Open(file, size)                             // later, perhaps in another build
//	err = r.Play(client)                                          // classes are matched as for a connection
//	err = r.Seek(5 * time.Minute)
//	each tick: r.Step(now)                                        // instead of client.Step
//
// A recorder is a connection that loses nothing, sees everything and has its own rate. Regularly it copies all actors into a checkpoint, a few in
// each frame so that no Step takes much longer. A seek begins at the last checkpoint before its time. It shows what playing from the beginning
// would, except that actors torn off before are gone. The file format is in file.go.
package replay
