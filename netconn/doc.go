// Package netconn is one end of a connection: Unreal's UNetConnection without a
// socket. It takes bytes and the current time, and returns bytes and its next deadline. To listen
// or dial, see netconn/driver, which owns the socket and the clock.
//
// A [Conn] fills a SendBuffer with bunches of its channels, sends it as a packet
// when it is full or at the end of a tick, learns from the peer's packets which of
// its own arrived, and passes that on to the channels.
//
// # The caller's loop
//
//	for each datagram {                 // TickDispatch
//		conn.ReceivedPacket(now, p)  // bunches to channels, acks and naks
//	}
//	conn.PostTickDispatch(now)          // packets held back for their order
//	...                                 // the game sends on its channels
//	conn.Tick(now)                      // TickFlush: sends through Config.LowLevelSend
//	wake at conn.NextDeadline()
//
// # A packet
//
// Unreal 4.27 to 5.8; low bits first.
//
//	bits      field
//	...       prefix of the packet handlers (magic, session and client ids, handshake bit 0)
//	32        Seq 14 << 18 | AckedSeq 14 << 4 | (HistoryWords-1) 4
//	32 x n    ack history, n = HistoryWords, 1 to 8
//	1         HasPacketInfo
//	 10       jitter clock in ms, 1023 none     when HasPacketInfo
//	 1        HasServerFrameTime                when HasPacketInfo
//	 8        frame time in ms                  when that, and a server sent the packet
//	...       bunches (package bunch)
//	1         end mark of the connection
//	1         end mark of the packet handlers, when there are any
//	0..7      zeros
//
// A packet without bunches is an ack, or keeps the connection alive. With Config.Coding at both ends, repair symbols may stand behind a
// packet; see netconn/handler/coding.
//
// # Bounds
//
//	packets in flight               Protocol.PacketWindow less 4: 252, or 6140 with Bunchnet. See "A full window"
//	bytes sent                      the Controller's rate, for reliable bunches and for everything that is sent again. Acks, keep-alives,
//	                                the close and unreliable bunches don't wait for it: ask IsNetReady before you send unreliable
//	                                bunches. When these use up the rate, reliable bunches may use a quarter of the rate in addition
//	size of a packet                Protocol.Bunch.MaxPacket at first, at most Config.LargestPacket. See "Larger packets"
//	bytes held for the peer         Config.MaxMemory: one half for what the peer sent, one half for what it hasn't acked
//	unused buffers                  Config.Pool's bound: an eighth of MaxMemory, or 12 MiB for all connections of a driver
//	packets held for their order    Config.OrderCache, 32 or 256, for ReorderWindow; then they are processed without the late packet
//	packets held for a repair       within OrderCache, for the usual time between two repair symbols, at most 50 ms
//	bytes kept for repairs          75 kB with packets of 1024 bytes, part of MaxMemory (netconn/handler/coding); none before the first loss
//	records of bunches in flight    an eighth of MaxMemory, in addition to it. Above that the window counts as full
//	lost packets in a row           1024, reported over at least 10 s and 64 round trips: all packets, or all with reliable bunches of channels that the
//	                                peer has. The connection then ends with PeerBroke; with PathNarrow when packets of the
//	                                same size without reliable bunches are lost too
//	time for a close                LingerTimeout, 2 s; the CloseResult lists what isn't acked by then
//
// # A full window
//
// When as many packets are in flight as the window allows, reliable bunches wait, and SendBunch returns channel.ErrNotSent for unreliable ones. An
// ack is overdue after a second and two round trips, at most 3 s. While one is overdue, the window of Bunchnet is 1020 packets. With a
// window of 256 or less, empty packets count as well until an ack is overdue.
//
// With a full window acks and keep-alives are still sent: the newest empty packet is sent again, with the current acks, each KeepAlive and
// when a packet of the peer arrives. After a silence of s a new empty packet is sent every s/256, with Bunchnet every s/64. The peer reads
// the acks of a packet that it already has. So after any outage both ends have caught up within two KeepAlives (of the end
// whose KeepAlive is longer) and a few round trips.
//
// While bunches wait for their fate, a KeepAlive above a second is a second. An end whose acks were lost sends them again when it hears its peer, once an ack is
// overdue. So also with a long KeepAlive bunches arrive within four seconds and a few round trips of the end of an outage, when nothing is lost behind it
// and the rate allows it.
//
// # Larger packets
//
// With Config.LargestPacket the connection probes sizes above Protocol.Bunch.MaxPacket, at most twelve. It sends one probe at a time, after at least
// 16 full packets, and gives a size up after 10 lost probes, or after 3 where less than a tenth of the packets is lost. It tries again after 10
// minutes; when larger packets that had worked got lost, after 1 s, and twice as long each further time. It tries the size before first then, as a
// burst of losses or a darkness looks like a narrower path. Every end accepts packets of 1500 bytes.
//
// # Time
//
// All times that a Conn is given are of one clock, the one of New's now; the driver's Time is one. A time before an earlier one counts as that earlier
// one. So one far ahead, by mistake of another clock, ends the connection by its Timeout, or without one makes its clock stand until then.
//
// All methods of a Conn belong to the goroutine that ticks it.
package netconn
