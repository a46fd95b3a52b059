package main

import (
	"fmt"
	"time"
)

// Peer is a protocol under test.
type Peer struct {
	Name string
	// Note is what its settings are.
	Note string
	// Reliable says that messages arrive once and in order; Unreliable that there is a mode without.
	Reliable, Unreliable bool
	// TCP is not carried by the UDP proxy but by the tunnel of IP packets.
	TCP bool
	// Ticks says that Options.Batch is minded by the peer itself.
	Ticks bool
	// LatencyOnly keeps it to W1: elsewhere it is as another of ours.
	LatencyOnly bool
	// MaxConns bounds W3; 0 for no bound.
	MaxConns int
	// Listen starts a server, Dial a client that is connected when Dial returns.
	Listen func(o Options, h Handler) (Server, error)
	Dial   func(addr string, o Options, h Handler) (Conn, error)
	// Missing is why the peer can't be had here.
	Missing string
}

// Options is what a workload asks of a peer.
type Options struct {
	// Addr is where a server listens or a client comes from; only its IP matters. Default 127.0.0.1.
	Addr string
	// Unreliable asks for messages that may be lost.
	Unreliable bool
	// Rate is the messages a second that are to be expected; 0 for as many as possible.
	Rate int
	// Batch asks a client to send at ticks, batchRate of them a second, and a server to answer what came together together.
	Batch bool
	// Together says that messages are written ten at a moment: they may share packets, and a server answers together what came together. It has the
	// settings that a user has who set none.
	Together bool
	// Many is set when one process has many clients: their buffers should be small, and their Conns may be ticked.
	Many bool
	// Shards is how many drivers a server of ours has at its address; 0 is one.
	Shards int
}

func (o Options) addr() string {
	if o.Addr != "" {
		return o.Addr + ":0"
	}
	return "127.0.0.1:0"
}

// Handler gets each message that arrives, on the peer's goroutine. msg is valid until it returns.
type Handler func(c Conn, msg []byte)

// Conn is one end of a connection.
type Conn interface {
	// Send queues a message, and waits for room unless it is called by a Handler.
	Send(msg []byte) error
	// Flush sees to it that what was queued goes out now.
	Flush() error
	Close() error
}

// ticked is a Conn that does nothing by itself: Tick takes in what has come, and Flush also does what time asks
// for. One goroutine at a time calls its methods, all of them every now and then.
type ticked interface{ Tick(now time.Time) }

// Server is what Listen gives.
type Server interface {
	Addr() string
	Close() error
}

// echo is the Handler of a server that answers each message with itself.
func echo(c Conn, msg []byte) {
	if c.Send(msg) == nil {
		_ = c.Flush() // the client will miss the message
	}
}

const dialTimeout = 20 * time.Second

var errDial = fmt.Errorf("no connection within %v", dialTimeout)

// peers is all there are, in the order of the tables.
func peers() []*Peer {
	var all []*Peer
	all = append(all, ourPeers()...)
	all = append(all, kcpPeers()...)
	all = append(all, quicPeers()...)
	all = append(all, sctpPeer(), enetPeer(), tcpPeer(), rawPeer())
	return all
}
