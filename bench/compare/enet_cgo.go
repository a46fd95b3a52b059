//go:build enet

package main

/*
#cgo pkg-config: libenet
#include <enet/enet.h>
#include <stdlib.h>

static int compare_send(ENetPeer *peer, void *data, size_t n, int reliable) {
	ENetPacket *p = enet_packet_create(data, n, reliable ? ENET_PACKET_FLAG_RELIABLE : 0);
	if (p == NULL) return -1;
	int r = enet_peer_send(peer, 0, p);
	if (r < 0) enet_packet_destroy(p);
	return r;
}
static void compare_buffer(ENetHost *host, int n) {
	enet_socket_set_option(host->socket, ENET_SOCKOPT_RCVBUF, n);
	enet_socket_set_option(host->socket, ENET_SOCKOPT_SNDBUF, n);
}
static size_t compare_queued(ENetPeer *peer) {
	return enet_list_size(&peer->outgoingCommands) + enet_list_size(&peer->sentReliableCommands);
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"
	"unsafe"
)

// enetPeer is ENet in C. A goroutine serves each host; what others want sent goes through its queue.
func enetPeer() *Peer {
	p := &Peer{Name: "enet", Note: "Debian's libenet through cgo, one channel", Reliable: true, Unreliable: true, MaxConns: 4000}
	p.Listen = func(o Options, h Handler) (Server, error) {
		host, err := newEnetHost(o, h, true)
		if err != nil {
			return nil, err
		}
		go host.run()
		return listener{host.addr(), host.stop}, nil
	}
	p.Dial = func(addr string, o Options, h Handler) (Conn, error) {
		host, err := newEnetHost(o, h, false)
		if err != nil {
			return nil, err
		}
		return host.dial(addr)
	}
	return p
}

type enetHost struct {
	c        *C.ENetHost
	h        Handler
	reliable C.int
	peers    map[*C.ENetPeer]*enetConn
	first    *enetConn // of a client
	joined   chan error
	done     chan struct{}
	ended    chan struct{}
	wait     C.enet_uint32
	together bool // run sends what answers messages that came together
	gather   bool // a packet of ENet's carries as many waiting messages as fit into gatherBytes

	mu    sync.Mutex
	room  sync.Cond
	queue []byte // framed messages of a client
	spare []byte
}

var enetInit = sync.OnceValue(func() C.int { return C.enet_initialize() })

func newEnetHost(o Options, h Handler, server bool) (*enetHost, error) {
	if enetInit() != 0 {
		return nil, errors.New("enet: not initialized")
	}
	peers := C.size_t(1)
	var bind *C.ENetAddress
	if server {
		peers = 4000
		a := C.ENetAddress{}
		ip := netip.MustParseAddrPort(o.addr()).Addr().As4()
		a.host = C.enet_uint32(binary.NativeEndian.Uint32(ip[:]))
		bind = &a
	}
	c := C.enet_host_create(bind, peers, 1, 0, 0)
	if c == nil {
		return nil, errors.New("enet: no host")
	}
	C.compare_buffer(c, C.int(o.buffer()))
	e := &enetHost{c: c, h: h, peers: map[*C.ENetPeer]*enetConn{}, joined: make(chan error, 1), done: make(chan struct{}), ended: make(chan struct{}), wait: 1, together: o.Batch || o.Together, gather: o.Rate == 0}
	e.room.L = &e.mu
	if !o.Unreliable {
		e.reliable = 1
	}
	return e, nil
}

func (e *enetHost) addr() string {
	var a C.ENetAddress
	C.enet_socket_get_address(e.c.socket, &a)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(a.port)))
}

func (e *enetHost) dial(addr string) (Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	ip := to.Addr().As4()
	a := C.ENetAddress{host: C.enet_uint32(binary.NativeEndian.Uint32(ip[:])), port: C.enet_uint16(to.Port())}
	peer := C.enet_host_connect(e.c, &a, 1, 0)
	if peer == nil {
		return nil, errDial
	}
	e.first = &enetConn{e: e, peer: peer, client: true}
	e.peers[peer] = e.first
	go e.run()
	select {
	case <-e.joined:
		return e.first, nil
	case <-time.After(dialTimeout):
		return nil, errors.Join(errDial, e.stop())
	}
}

func (e *enetHost) stop() error {
	select {
	case <-e.done:
	default:
		close(e.done)
	}
	<-e.ended
	return nil
}

// run serves the host until stop.
func (e *enetHost) run() {
	defer close(e.ended)
	defer C.enet_host_destroy(e.c)
	var ev C.ENetEvent
	for {
		select {
		case <-e.done:
			return
		default:
		}
		e.drain()
		for r := C.enet_host_service(e.c, &ev, e.wait); r > 0; r = C.enet_host_service(e.c, &ev, 0) {
			e.event(&ev)
		}
	}
}

func (e *enetHost) event(ev *C.ENetEvent) {
	switch ev._type {
	case C.ENET_EVENT_TYPE_CONNECT:
		if e.first != nil {
			e.joined <- nil
		} else {
			e.peers[ev.peer] = &enetConn{e: e, peer: ev.peer}
		}
	case C.ENET_EVENT_TYPE_DISCONNECT:
		delete(e.peers, ev.peer)
	case C.ENET_EVENT_TYPE_RECEIVE:
		if c := e.peers[ev.peer]; c != nil {
			e.receive(c, unsafe.Slice((*byte)(unsafe.Pointer(ev.packet.data)), int(ev.packet.dataLength)))
		}
		C.enet_packet_destroy(ev.packet)
	}
}

// receive takes a packet apart, if it carries several messages.
func (e *enetHost) receive(c *enetConn, p []byte) {
	if !e.gather {
		e.h(c, p)
		return
	}
	for msg, rest, ok := cutFrame(p); ok; msg, rest, ok = cutFrame(rest) {
		e.h(c, msg)
	}
}

// enetQueue bounds the commands that wait in ENet and the bytes before it.
const enetQueue = 4096

// drain hands a client's queue to ENet.
func (e *enetHost) drain() {
	if e.first == nil || C.compare_queued(e.first.peer) > enetQueue {
		return
	}
	e.mu.Lock()
	e.queue, e.spare = e.spare[:0], e.queue
	e.room.Broadcast()
	e.mu.Unlock()
	for q := e.spare; len(q) > 0; {
		if e.gather {
			n := gathered(q)
			e.first.send(q[:n])
			q = q[n:]
			continue
		}
		var msg []byte
		msg, q, _ = cutFrame(q)
		e.first.send(msg)
	}
	if len(e.spare) > 0 {
		C.enet_host_flush(e.c)
	}
}

type enetConn struct {
	e      *enetHost
	peer   *C.ENetPeer
	client bool
}

func (c *enetConn) send(msg []byte) {
	C.compare_send(c.peer, unsafe.Pointer(&msg[0]), C.size_t(len(msg)), c.e.reliable)
}

func (c *enetConn) Send(msg []byte) error {
	if !c.client {
		c.send(msg)
		return nil
	}
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > outboxBytes {
		e.room.Wait()
	}
	e.queue = appendFrame(e.queue, msg)
	return nil
}

func (c *enetConn) Flush() error {
	if !c.client && !c.e.together {
		C.enet_host_flush(c.e.c)
	}
	return nil
}

func (c *enetConn) Close() error {
	if !c.client {
		return nil
	}
	return c.e.stop()
}
