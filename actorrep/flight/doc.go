// Package flight is a flight recorder: it keeps the last minute of a server or of a client, to look back at what the server had, what a client
// had and showed, and why they differed.
//
//	past, err := flight.New(world, srv, flight.Config{})
//	http.Handle("/net/", inspect.New(srv, inspect.Config{Past: past}))
//
// Give World.Step the driver's Time: a film whose values have other times than its packets has a note that says so.
// The inspector's page then has a link Look back, and the key S saves it. With Config.Save the recorder saves films to a folder: when a prediction
// was corrected by much, when a connection was lost, when the game calls Save, and when it panics:
//
//	cfg := flight.Config{Save: flight.Saving{Dir: "films", Correction: 50, Left: true}}
//	...
//	defer past.SavePanic()   // on the goroutine that ticks
//	...
//	err := past.Save("the checker: " + failure)
//	...
//	err = past.Close()       // at the end: it saves a film that is still due
//
// With Save.Capture these films include the run that package netconn/driver/capture records, up to the film's end. bench/capture2test makes
// a Go test of such a film, which replays the run. A program that is booted for a replay must have no Save.Dir, or the replay saves films too.
//
// Without a folder, on the driver's goroutine:
//
//	film := past.Take()                         // what is kept now; it copies nothing
//	err := film.WriteHTML(file, flight.View{})  // on any goroutine
//
// The file is a page with all that it shows within it: it needs no server and no game. It has a time line, the world from above, and for
// an actor and a field the values over time with the way of each change to the connection that is chosen: when it was set, in which packet
// it was sent, whether that packet was lost or acked, and what the change waited for. Below are the calls of procedures, with the same. It
// plays, also slowly, and goes by single Steps. Its address is a link to the moment, the connection, the actor and the field that it shows. A film that the recorder has saved opens at
// the event that it was saved for; another one at its end. When the connection that it shows has ended by then, as with one that timed out, it opens when a packet last came from it.
//
// # A client
//
// A client has a recorder of its own. Its game calls Look in each frame:
//
//	past, err := flight.New(world, cli, flight.Config{})
//	...
//	past.Look(cli.Time(now))  // after World.Step, and after what predicts and interpolates
//
// Its film has what the client showed, predicted and interpolated values too, the calls that came and that it made, and how far each
// correction moved its prediction. Add the file to the page of the server's film, by the button at the top right: the page finds out by
// the packets which connection it is of and how far the clocks of both ends are apart, also when some packets have wrong times, and tells the time by the client's clock
// too. It shows the server's values, what had arrived by the
// acks, and what the client showed, side by side. In one process View.Clients does the same.
// A red row has another value than the server, and nothing that is on its way mends it; an orange one is on its way; a violet one is kept back by the field's condition.
// With a client's film Why says of each packet whether it came, when its values were set at the client, and whether the client's own code has set
// something else since. An actor that was sent and isn't at the client is red.
//
// # What is kept
//
// The world in each Step, by package actorrep/replay; the packets of all connections with their fate; which units of which actors, and which
// calls, were in which packet, in records and in reliable bunches; why an actor's channel was closed; where each connection looks from, ten times a second while that moves, and that its view target was destroyed; when connections began and
// ended, and why; the calls that came, and why one didn't run; corrections of predictions, with the numbers that were off; and what Note says. A client's
// recorder keeps which packets came, and which values they set. Without its film, what a client had is worked out: it had a value from about the
// middle between the sending of its packet and the ack on. What it showed, such as a prediction, only its own film has. Calls' parameters aren't
// kept.
//
// The recorder also looks for what the game has set and the world isn't told of, such as a field of a sleeping actor without FlushDormancy,
// and notes that: nobody gets such a value, and the film doesn't show it either. The field's row is red from then until the world is told. The page also notes a change of a field with the
// condition initial while a connection has the actor, which isn't told of it.
//
// Why a connection lacks an actor or some of its values is kept too, as World.Explain says it: not relevant and why, held back, no room, starved, dormant, a class that the client
// lacks, a value that doesn't fit, a field that is switched off, a reference to what isn't there. The recorder finds that by looking at 256 pairs of a connection and an actor in each
// Step, in turn, so with 100 players and 200 actors within 2 s at 60 Steps a second. The page has the reason above the actor's fields, with the time at which it was found; its numbers are
// of that time. A wait for bandwidth is kept from 6 Steps on. What is shorter, and got to a packet, has its reason with the packet.
//
// A film has values that only their owners may see. Show it only to people who may see all of them.
//
// # Making a page
//
// WriteHTML plays the recording with actors of the game's types. Of the game it calls their Init and Location, if they have these, on its
// own goroutine; no notifies, and no procedures.
//
// # Bounds
//
//	a capture        64 MiB, with Save.Capture
//	memory           Config.MaxBytes, 64 MiB, for what is kept. The oldest is dropped first. Each film in use holds what it shows, up to
//	                 as much again
//	more memory      outside Config.MaxBytes: the buffers of a replay.Recorder, and its list of checkpoints, 1.5 MiB at most; of a client, the
//	                 values that are shown now, of 4096 actors at most
//	reasons          16,384 at once, 1.5 MB for 10,000, outside Config.MaxBytes too; of more, the film says that there were. 16 are noted in a Step, and each again after 10 s
//	work             for each record that is sent or set, packet, call and ack some bytes in a log; and as for any recording, the actors that changed. A Step
//	                 looks at 32 actors for values that nobody is told, and at 256 pairs for reasons. A checkpoint, each 5 s, copies at most 512 actors a Step
//	a client's Look  the actors that it owns, and 256 others in turn. A field that is neither a number nor a string is formatted, which
//	                 allocates
//	actors shown     4096; those that appeared first
//	values shown     1,000,000 changes of a field or a part of one; of more, the film begins later
//	packets shown    500,000 with records, acks and notes: of the connection that the film was saved for, or else of the first that is there, then the newest of the others. With 100
//	                 players who see each other that is a minute of one of them and some tenths of a second of the others; View.Conns chooses which
//	films saved      Save.Most, 10; one is written at a time, on a goroutine of its own
//	texts            200 bytes of a note, 80 characters of a value
//
// On a server with 100 players the recorder took 1.0, 1.2, 1.2 and 1.6 % of a core in four runs (the median of 15 s, by the CPU time of the server's frames with and without it), alone on a
// virtual machine of two cores (AMD EPYC) with a load of 2 to 7. Without it the frames took 18 to 22 % of a core. It kept 0.89 MB a second, so that a minute takes 54 MB and 64 MiB hold 75 s,
// and 1.5 MB besides. The players are predicted, corrected once a second, and see each other move in each of 60 Steps a second; twice a second each calls an unreliable procedure that all
// see; 100 other actors are kept from all, which makes 10,000 reasons; Correction and Left of [Saving] were set. A client's recorder took 0.4 % of a core and 0.23 MB a second. A page of
// all connections in the last 18 s took 1.2 s of another core to make, and allocated 65 MB. Before corrections had names and reasons were kept, two runs beside a load of 45 to 68 had
// 2.8 % beside frames of 27 %, and 5.0 % beside 38 %.
//
// In Chromium the page of 30 s of 100 players was open after 0.9 s, and then took 23 to 30 ms at the median to show another moment: by a link, by a
// Step, and while it was dragged. With
//
//	go test ./actorrep/flight -run '^$' -bench Cost -benchtime 1x
//	cd netconn/inspect/browser && CI=1 go test . -run Hundred -v
package flight
