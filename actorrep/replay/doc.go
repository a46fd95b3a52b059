// Package replay records the world of a server into an io.Writer, and plays the file into a client's world: at any speed, from any time.
//
//	rec, err := replay.Record(world, file, replay.Config{})       // on the server; at the end rec.Close()
//
//	r, err := replay.Open(file, size)                             // later, perhaps in another build
//	err = r.Play(client)                                          // classes are matched as at a connect
//	err = r.Seek(5 * time.Minute)
//	each tick: r.Step(now)                                        // instead of client.Step
//
// A recorder is a connection that loses nothing, sees everything and has a pace of its own. Every so often it copies all actors, a few
// in each frame, so that no Step is longer for it; a seek begins with the last such checkpoint. What a seek shows is what playing from
// the beginning would, but that actors torn off before are gone. The file is drawn in file.go.
package replay
