// Package inspect is a window into a running driver: a live page with connections, channels, packets and
// actors, the same as text for terminals and as JSON, mounted in one line:
//
//	http.Handle("/net/", inspect.New(srv, inspect.Config{}))
//	go http.ListenAndServe("127.0.0.1:8080", nil)
//
// It works in release builds and costs little when nobody looks: a few dozen nanoseconds an event and a row of
// figures four times a second. All it serves is in the binary; the page loads nothing from elsewhere.
//
//	/net/           the page; text for whoever doesn't ask for HTML (curl)
//	/net/text       text always
//	/net/json       the same as one JSON object
//	/net/export     the same as a file, with all packets that are kept
//	/net/events     that object four times a second, as server-sent events
//	/net/past       with Config.Past: the last minute of the world and its packets, as a page that can be saved (package actorrep/flight); on the page the key S saves it;
//	                ?conn=3 of that connection only
//
//	?conn=3         the connection seen closely
//	?also=4,5       connections whose packets are shown on the same time axis, up to 7
//	?conns=bob      connections with this in their id, address, name or state; &connsfrom=64 from the 64th on
//	?sort=-rtt      connections by a column of the page (id, address, name, state, rtt, jitter, lossout, lossin, receives, sends,
//	                inflight, reliable, channels); with - the largest first
//	?actors=ship    actors with this in their class or id; &from=256 from the 256th on
//
// The page shows the driver's ticks, the garbage collector's pauses and what was refused, by reason; connections, sorted by
// the column that is clicked and filtered by a text; and of the connection that is clicked its curves, channels with OutRec and
// InRec, packets with their bunches (acked, lost, sent again), bits per property and procedure, and actors.
//
// # What plugs in
//
// Config.Name says who a connection is; Config.Actors and Config.Properties what it replicates and why; Config.Figures
// what the game counts. They are functions, so that inspect knows nothing of worlds, and are called on the driver's
// goroutine while somebody looks. The functions [Actors], [Properties] and [Figures] make them for an actorrep.World. They need to know which of the
// world's Peers a connection is: what World.AddConn returned for it, or nil.
//
//	peer := func(c *driver.Conn) *actorrep.Peer { return game.peers[c] }
//	inspect.Config{Actors: inspect.Actors(world, peer), Properties: inspect.Properties(peer), Figures: inspect.Figures(world)}
//
// # Whom to show it
//
// It shows addresses, names and sizes, never payloads, keys or what was said at the login; with Config.Past also all values of actors,
// those of owners too. By default it answers this machine only, and only under names of the loopback, so that no other site's page can read
// it through a browser here, or take the viewers' places without a window that shows it. Links on other sites lead to the page only. Behind a
// reverse proxy on this machine every request seems to come from this machine. Requests with a header such as X-Forwarded-For are
// refused; with proxies that set none, as nginx by default, set Config.Token or Config.Allow. With Config.Token only requests with the token
// are answered, from anywhere and under any name; this machine's own need it too. Config.Allow is a check of your own instead of all these rules.
//
// # How it gets at the driver
//
// A [Source] has the driver's own goroutine take a [Snapshot] in its next TickDispatch, so there are no locks in
// the game. While the driver isn't ticked requests time out with 503. [Var] is a Source for
// expvar; the module netconn/inspect/prom is one for Prometheus.
//
// # Bounds
//
//	looks at the driver                  16 of different things in 3/4 of an interval; viewers of the same share one. More get 503
//	a tick's time for looks              1 ms and one look, of 0.2 to 1 ms with 20,000 actors; the others wait for the next ticks
//	streams of events                    Config.Viewers, 8; more get 503, and the page says so and asks again after 5 s. A viewer that takes no
//	                                     event for 5 s is dropped; first the system's buffers take events, of a small game those of some
//	                                     40 s. They end when the driver closes. The page asks again when events are 10 s overdue
//	other answers                        a viewer that hasn't taken one in a minute is dropped
//	samples, packets a connection        Config.Samples, 240; Config.Packets, 128 each way
//	connections with history             512, of 56 kB each by default; more have none until others end, and are said to have none
//	snapshots of a Source                one an interval of 100 ms, for all who ask
//	a connection's name                  64 characters
//	connections shown                    64 at a time, 1.2 kB of JSON each, 4096 in an export, and how many there are; sums are over all. With
//	                                     5000 a look takes the driver's goroutine 1 to 4 ms, once an interval for all viewers
//	connections shown after their end    16
//	channels, actors, properties shown   256 each, and how many there are
//	channels, actors looked at           4096 each; of actors the 65536th is the last that a look may begin at
package inspect
