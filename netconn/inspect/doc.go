// Package inspect is a window into a running driver: a live page with connections, channels, packets and
// actors, the same as text for terminals and as JSON, mounted in one line:
//
//	http.Handle("/net/", inspect.New(srv, inspect.Config{}))
//
// It works in release builds and costs little when nobody looks: a few dozen nanoseconds an event and a row of
// figures four times a second. All it serves is in the binary; the page loads nothing from elsewhere.
//
//	/net/           the page; text for whoever doesn't ask for HTML (curl), ?conn=3 for one connection
//	/net/text       text always
//	/net/json       the same as one JSON object
//	/net/events     that object four times a second, as server-sent events
//
// On the page a connection is chosen by clicking it; its curves, channels with OutRec and InRec, packets with
// their bunches (acked, lost, sent again), actors and bits per property follow.
//
// # What plugs in
//
// Config.Name says who a connection is; Config.Actors and Config.Properties what it replicates and why. They are
// functions, so that inspect knows nothing of worlds, and are called on the driver's goroutine while somebody
// looks at that connection.
//
// # Whom to show it
//
// It shows addresses, names and sizes, never payloads, keys or what was said at the login. It
// authenticates nobody: mount it where only operators reach it, or behind a handler of your own.
//
// # How it gets at the driver
//
// A [Source] has the driver's own goroutine take a [Snapshot] in its next TickDispatch, so there are no locks in
// the game. While the driver isn't ticked requests time out with 503. [Var] is a Source for
// expvar; the module netconn/inspect/prom is one for Prometheus.
//
// # Bounds
//
//	requests that wait for the driver    8, more get 503
//	streams of events                    Config.Viewers, 8; more get 503
//	samples, packets a connection        Config.Samples, 240; Config.Packets, 128 each way
//	connections with history             512; more have none until others end
//	connections shown after their end    16
//	channels, actors, properties shown   256 each, and how many there are
package inspect
