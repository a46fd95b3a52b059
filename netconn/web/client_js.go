package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/netconn/internal/mailbox"
)

const (
	dialTime = 10 * time.Second
	// maxBuffered is the bytes that may wait in the browser, where nothing makes room for what is newer: about what an uplink of 1 Mbit/s takes in 130 ms.
	maxBuffered = 16 << 10
	// maxPending is the writes to a WebTransport session that may be under way.
	maxPending = 64
)

// page is the session's objects in the browser. All belongs to its one thread.
type page struct {
	ctx     context.Context
	object  js.Value // WebSocket or WebTransport
	writer  js.Value // of datagrams
	open    bool
	ended   bool
	pending int
	// taken and refused are called when a write has ended.
	taken, refused js.Func
	timer          *time.Timer
	stop           func() bool
	funcs          []js.Func
}

var (
	array  = js.Global().Get("Uint8Array")
	errOld = errors.New("this browser has none; take another way, or a newer browser")
)

// function is one that the browser calls, released at the end.
func (c *Client) function(f func(args []js.Value)) js.Func {
	fn := js.FuncOf(func(_ js.Value, args []js.Value) any {
		if !c.ended {
			f(args)
		}
		return nil
	})
	c.funcs = append(c.funcs, fn)
	return fn
}

func (c *Client) dial(ctx context.Context, to *url.URL, cfg DialConfig) {
	c.ctx = ctx
	c.timer = time.AfterFunc(dialTime, func() {
		if !c.open {
			c.broke("nothing answered in time")
		}
	})
	c.stop = context.AfterFunc(ctx, func() { c.broke("it was given up") })
	if js.Global().Get(map[Way]string{WebSocket: "WebSocket", WebTransport: "WebTransport"}[cfg.Way]).IsUndefined() {
		c.broke(errOld.Error())
		return
	}
	defer func() { // the browser throws at addresses that it doesn't like
		if e := recover(); e != nil {
			c.broke(fmt.Sprint(e))
		}
	}()
	if cfg.Way == WebSocket {
		c.dialSocket(to)
	} else {
		c.dialSession(to, cfg.CertificateHash)
	}
}

func (c *Client) dialSocket(to *url.URL) {
	with := *to
	with.Scheme = map[string]string{"https": "wss", "http": "ws"}[to.Scheme]
	c.object = js.Global().Get("WebSocket").New(with.String())
	c.object.Set("binaryType", "arraybuffer")
	c.object.Set("onopen", c.function(func([]js.Value) { c.ready() }))
	c.object.Set("onmessage", c.function(func(args []js.Value) {
		data := args[0].Get("data")
		if data.Type() == js.TypeString {
			c.broke("the server sent a text message: it isn't a web.Server")
			return
		}
		c.take(array.New(data))
	}))
	c.object.Set("onclose", c.function(func(args []js.Value) {
		why := args[0].Get("reason").String()
		if why == "" {
			why = fmt.Sprintf("code %d; the console of the browser may say more", args[0].Get("code").Int())
		}
		c.broke(why)
	}))
}

func (c *Client) dialSession(to *url.URL, hash [sha256.Size]byte) {
	options := js.Global().Get("Object").New()
	options.Set("requireUnreliable", true)
	if hash != ([sha256.Size]byte{}) {
		value := array.New(len(hash))
		js.CopyBytesToJS(value, hash[:])
		options.Set("serverCertificateHashes", []any{map[string]any{"algorithm": "sha-256", "value": value}})
	}
	c.object = js.Global().Get("WebTransport").New(to.String(), options)
	c.taken = c.function(func([]js.Value) { c.pending-- })
	c.refused = c.function(func([]js.Value) { // too large, or the session has ended
		c.pending--
		c.n.tooLarge.Add(1)
	})
	broke := c.function(func(args []js.Value) { c.broke(reason(args)) })
	c.object.Get("closed").Call("then", broke, broke)
	c.object.Get("ready").Call("then", c.function(func([]js.Value) {
		datagrams := c.object.Get("datagrams")
		if datagrams.Get("createWritable").Type() == js.TypeFunction {
			c.writer = datagrams.Call("createWritable").Call("getWriter")
		} else {
			c.writer = datagrams.Get("writable").Call("getWriter")
		}
		reader := datagrams.Get("readable").Call("getReader")
		var next func()
		then := c.function(func(args []js.Value) {
			if args[0].Get("done").Bool() {
				return // closed says why
			}
			c.take(args[0].Get("value"))
			next()
		})
		next = func() { reader.Call("read").Call("then", then, broke) }
		next()
		c.ready()
	}), broke)
}

// reason is what a promise was rejected for.
func reason(args []js.Value) string {
	if len(args) == 0 || args[0].IsUndefined() || args[0].IsNull() {
		return "no reason was given"
	}
	for _, name := range []string{"message", "reason"} {
		if args[0].Type() == js.TypeObject {
			if v := args[0].Get(name); v.Type() == js.TypeString && v.String() != "" {
				return v.String()
			}
		}
	}
	return "closed"
}

// take copies a datagram out of the browser.
func (c *Client) take(data js.Value) {
	n := data.Get("byteLength").Int()
	if n == 0 {
		return
	}
	if n > mailbox.MaxDatagram {
		c.broke(fmt.Sprintf("the server sent a message of %d bytes: it isn't a web.Server", n))
		return
	}
	p := c.in.Buffer()[:n]
	js.CopyBytesToGo(p, data)
	c.came(p)
}

func (c *Client) ready() {
	c.open = true
	c.begun()
	c.wrote()
}

// wrote gives the browser what it takes. What it doesn't waits here, where the oldest make room for the newest, until the next write.
func (c *Client) wrote() {
	if c.open && !c.ended {
		c.pass(false)
	}
}

// pass gives the browser what it takes, or all.
func (c *Client) pass(all bool) {
	var room []byte
	for all || c.takesMore() {
		p := c.out.Pop(room)
		if p == nil {
			return
		}
		room = p
		data := array.New(len(p))
		js.CopyBytesToJS(data, p)
		if c.way == WebSocket {
			c.object.Call("send", data)
		} else {
			c.pending++
			c.writer.Call("write", data).Call("then", c.taken, c.refused)
		}
		c.n.sent.Add(1)
	}
}

// takesMore reports whether little waits in the browser.
func (c *Client) takesMore() bool {
	if c.way == WebSocket {
		return c.object.Get("readyState").Int() == 1 && c.object.Get("bufferedAmount").Int() < maxBuffered
	}
	return c.pending < maxPending
}

// broke ends the session, or says why there was none.
func (c *Client) broke(why string) {
	err := ErrEnded
	if !c.open {
		err = ErrNoSession
	}
	if c.broken(fmt.Errorf("%w by %v: %s", err, c.way, why)) {
		c.close()
	}
}

func (c *Client) close() {
	if c.ended {
		return
	}
	if c.open && errors.Is(c.in.Failed(), net.ErrClosed) { // by Close: what waits is sent
		c.pass(true)
	}
	c.ended = true
	c.timer.Stop()
	c.stop()
	c.cancel()
	if !c.object.IsUndefined() {
		if c.way == WebSocket { // the program may have exited when its end is told
			for _, event := range []string{"onopen", "onmessage", "onclose"} {
				c.object.Set(event, js.Null())
			}
		}
		if c.way == WebTransport && c.open { // its end would overtake the last datagrams; the program may have exited then
			js.Global().Call("setTimeout", c.object.Get("close").Call("bind", c.object), lingerTime.Milliseconds())
		} else {
			c.object.Call("close") // a WebSocket sends what it has before
		}
	}
	time.AfterFunc(dialTime, func() { // promises that are under way call them yet
		for _, f := range c.funcs {
			f.Release()
		}
	})
}
