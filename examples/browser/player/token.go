//go:build js

package main

import (
	"errors"
	"fmt"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

const tokenTime = 5 * time.Second

var errToken = errors.New("no token")

// fetchToken gets a connect token by the browser's own fetch. tokenserver.Fetch does the same with net/http, which would make the client 1 MB larger.
func fetchToken(url, secret string) (netcode.Token, error) {
	type answer struct {
		token netcode.Token
		err   error
	}
	came := make(chan answer, 1)
	tell := func(token netcode.Token, err error) {
		select {
		case came <- answer{token, err}:
		default: // it was too late
		}
	}
	var funcs []js.Func
	function := func(f func(v js.Value)) js.Func {
		fn := js.FuncOf(func(_ js.Value, args []js.Value) any { f(args[0]); return nil })
		funcs = append(funcs, fn)
		return fn
	}
	failed := function(func(v js.Value) { tell(nil, fmt.Errorf("%w: %s", errToken, v.Call("toString").String())) })
	options := map[string]any{"method": "POST", "headers": map[string]any{"Authorization": "Bearer " + secret},
		"signal": js.Global().Get("AbortSignal").Call("timeout", tokenTime.Milliseconds())}
	js.Global().Call("fetch", url, options).Call("then", function(func(resp js.Value) {
		if status := resp.Get("status").Int(); status != 200 {
			tell(nil, fmt.Errorf("%w: the service answered %d", errToken, status))
			return
		}
		resp.Call("arrayBuffer").Call("then", function(func(v js.Value) {
			token := make(netcode.Token, v.Get("byteLength").Int())
			js.CopyBytesToGo(token, js.Global().Get("Uint8Array").New(v))
			if len(token) != netcode.ConnectTokenBytes {
				tell(nil, fmt.Errorf("%w: an answer of %d bytes", errToken, len(token)))
				return
			}
			tell(token, nil)
		}), failed)
	}), failed)
	a := <-came
	for _, f := range funcs {
		f.Release()
	}
	return a.token, a.err
}
