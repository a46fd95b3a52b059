//go:build !js

package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// below is the connection below a WebSocket, once its request was answered. It is for the end: the library's own close waits for the rest of a message that the
// peer has begun, without a limit, and CloseNow waits for that close.
type below struct{ conn atomic.Pointer[net.Conn] }

// cut has all reads and writes fail from now on.
func (b *below) cut() {
	if c := b.conn.Load(); c != nil {
		_ = (*c).SetDeadline(time.Unix(1, 0)) // it may have ended
	}
}

// writer returns a ResponseWriter for a server's answer.
func (b *below) writer(w http.ResponseWriter) http.ResponseWriter { return hijacker{w, b} }

// trace returns a context for a client's request.
func (b *below) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { b.conn.Store(&i.Conn) }})
}

type hijacker struct {
	http.ResponseWriter
	below *below
}

// Hijack implements http.Hijacker.
func (w hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.below.conn.Store(&c)
	}
	return c, rw, err
}
