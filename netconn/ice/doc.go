// Package ice connects two players of whom one hosts the game, though both may be behind routers: it finds a path between them by ICE (RFC 8445, with
// pion's libraries), and is the socket of their drivers. The package is a module of its own, because of its dependencies.
//
//	    guest                                              host
//	ice.Dial, driver.Dial                            ice.Listen, driver.Listen
//	      |                                                 |
//	      |<------------ Signal: addresses, Message ------->|     a rendezvous, see netconn/ice/rendezvous
//	      |                                                 |
//	      |<------------------- direct -------------------->|     one network, or both on the internet
//	      |<------- router ------------------ router ------>|     each opens its router for the other
//	      |<----------------- TURN relay ------------------>|     when nothing else works; over UDP, TCP or TLS
//
// A host lets guests in, one by one, over one UDP port:
//
//	host, err := ice.Listen(ice.HostConfig{Config: ice.Config{Servers: servers}})
//	srv, err := driver.Listen("", driver.Config{Socket: host, Link: driver.Netcode{Key: key}, Channels: channels})
//	host.Tell(srv)                // a guest whose paths all failed goes at once
//	go host.Join(ctx, signal)     // for each guest
//
// A guest:
//
//	socket, err := ice.Dial(ctx, signal, ice.Config{Servers: servers})
//	err = socket.Connected(ctx)
//	cl, err := driver.Dial(ice.HostAddr().String(), driver.Config{Socket: socket, Link: driver.Netcode{Token: token}, Channels: channels})
//
// The token names [HostAddr] as the server, whatever the path. To let players in by UDP as well, join the sockets with udp.Join and list all addresses in
// driver.Netcode.Addrs. The host signs tokens with a key that it made for this match, and gives them to its guests; rendezvous does that.
//
// An inspector (netconn/inspect) shows each guest's path, and the counters, with
//
//	inspect.Config{
//		Name:    func(c *driver.Conn) string { path, at := host.Path(c.RemoteAddr()); return fmt.Sprintf("%s, %s at %v", name(c), path, at) },
//		Figures: func() []inspect.Figure { n := host.Counters(); return []inspect.Figure{{"path changes", n.PathChanges}, {"guests lost", n.Lost}} },
//	}
//
// # Paths
//
// Both ends gather candidates: addresses of their network interfaces, their address outside of the router, as STUN servers see it, and one at a relay. They
// tell each other through the Signal as they find them, and check all pairs. The best that answers is used: direct, then through routers, then a relay
// ([Path]). Host.Path, Client.Path and [Counters] say which it was. For other than direct paths Config.Servers are needed.
//
// The machine's addresses are looked at every second, and STUN servers asked every 15 s, and when the machine's addresses change: those of another network are
// told as long as the Signal carries messages. A relay that sees this end elsewhere than when it gave its address is asked for another one; what STUN servers
// say isn't enough, as one may lie.
// Each relay is asked every 15 s whether it knows this end, and when nothing comes from it for 2 s though something was sent. One that has forgotten this end, since it
// was started again or this machine slept for too long, is asked for another address: one that says so within 3 s, one that is silent within 8 s.
//
// Each path that answered is checked once a second. When the one in use hasn't answered for 2.5 s, and another one has, the guest changes to that, and so
// does the host. When a better one answers later, both change too. The driver's session isn't disturbed: a guest's address for the driver stays. When
// nothing has answered for 30 s, no more is sent (RFC 7675) and the session ends with [ErrLost]; dial again then, as driver/session's Redialer does.
//
// # Another network
//
// A player may go to another network amid the game, so that the other one knows none of its addresses. When nothing has answered for 3.5 s, or the machine's
// addresses have changed, the guest calls Config.Redial for another Signal, and the host's end of that goes to [Host.Rejoin]. Both restart ICE (RFC 8445, section
// 9): they gather candidates anew, make new passwords, and look for a path as at first. The old session goes on until there is one. The driver's connection stays
// the same, if it waits for so long: Counters.Restarts. rendezvous does all this. In network namespaces with routers on both sides the game went on 3.7 s after
// the host had moved, 0.4 to 1.1 s after the guest had, and 2.3 to 2.7 s after both had (five times go run ./nat -only masq in examples/lobby, on a shared two-core virtual machine).
//
// # What others see
//
// Checks are signed by the two players' passwords, which go through the Signal. Datagrams aren't changed or sealed by this package: driver.Netcode seals
// them. To relays only datagrams go that have the form of netcode's, so that with another Link nothing is relayed (Counters.Unsealed). A relay sees who talks to
// whom, when and how much. The other player and the Signal see the candidates, among them addresses of the local network; with Config.RelayOnly only the relay's.
//
// # The wire of the signal
//
// Messages are JSON, at most 2048 bytes. The first one of each end has its name and password for checks, later ones more candidates:
//
//	guest -> host  {"ufrag":"XkWp...","password":"...","candidates":["host 192.168.1.7:50000"]}
//	host -> guest  {"ufrag":"QmTz...","password":"...","candidates":["host 10.0.0.5:40000","reflexive 203.0.113.5:40000"]}
//	guest -> host  {"candidates":["reflexive 198.51.100.2:61012"]}
//	guest -> host  {"candidates":["relayed 192.0.2.44:49170"]}
//
//	ufrag       4 to 32 letters, digits, + and /
//	password    22 to 64 of these
//	again       in the first message of a guest that restarts: the host's password of the session so far
//	candidates  16 in all; "host", "reflexive" or "relayed", and an address with a port from 1024 on, of one machine
//
// # Bounds and defaults
//
//	guests                                     HostConfig.MaxGuests 64, MaxConnecting 16; then ErrFull
//	a path                                     ConnectTime, 20 s; then ErrNoWay, with what was tried. In a restart 8 s, and 3 s for Config.Redial
//	restarts                                   one at a time of a guest, 0.5 s apart, or up to 30 s while a path answers, 5 s after one that found a path;
//	                                           they count as connecting, and not as further guests. Without the password of a session: ErrUnknown (Unknown)
//	a guest that the driver hasn't answered    HalfOpen, 10 s; one whose connection has ended: Idle, 15 s
//	candidates of one player                   16; more are ignored (TooManyAddrs). Bad ones are ignored (BadCandidates)
//	addresses that one player's checks come from  48, with the candidates, and signed ones only (TooManyAddrs, Forged)
//	a player's checks                          30 a second from each address that it is known at, and 100 from others, are looked at (TooFast), 32 wait
//	checks to one address, unanswered          30 a session
//	checks to addresses that haven't answered  to one IPv4 address or IPv6 /64 20 a second and 60 at once, a /56 4 times, a /48 16 times, an IPv4 /24
//	                                           32 times, 1000 a second in all sessions (Held). A check has about 130 bytes
//	what waits to be read                      4096 datagrams, 256 of one guest, ReceiveBuffer 4 MiB; the newest are lost (Unread)
//	what waits for a relay                     512 datagrams, SendBuffer 64 KiB; the oldest are lost
//	addresses that one relay lets in           1024; one that nothing was sent to for 30 s makes room
//	an address of a relay                      it must last 10 s at least; a relay whose messages can't be read, or that by TCP reads nothing for 5 s, is lost
//	what comes from a relay                    datagrams of up to 1500 bytes; longer ones are ignored. So is what others send to the port (Strangers)
//
// Servers may be what a rendezvous says: one whose address is of this machine, link-local or of many machines isn't asked. A candidate that is the broadcast
// address of a network of this machine is bad.
//
// So a player that lies about its addresses can't have a stranger flooded by others: a machine that doesn't answer gets 2.6 kB a second of each host, whatever
// its guests say. A relay gives away addresses in the host's name; it should refuse those of its own network. A player gets only what comes from addresses
// that answered checks signed by its password, so naming another guest's address takes nothing from that.
//
// # What isn't there
//
// Relays have IPv4 addresses only, and TURN's channels aren't used: a datagram to a relay has 36 to 39 bytes more. There is no mDNS, so addresses of the
// local network are told as they are. ICE over TCP between players isn't tried. A socket whose Config.Addr names
// one address stays at that. In browsers (GOOS=js) there are no UDP sockets; players in browsers need a server,
// see netconn/web.
package ice
