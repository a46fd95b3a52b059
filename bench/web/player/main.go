//go:build js

// Player is the client of bench/web in a page.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/bench/web/echo"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/web"
)

// config is what the page says.
type config struct {
	URL, Hash, Server, Key string
	WebSocket              bool
	Seconds                int
}

func main() {
	took, err := run()
	result := map[string]any{"Took": took}
	if err != nil {
		result["Err"] = err.Error()
	}
	text, err := json.Marshal(result)
	if err != nil {
		text = []byte(`{"Err": "the result can't be told"}`)
	}
	js.Global().Set("result", string(text))
	select {} // the page stays
}

func run() ([]float64, error) {
	var c config
	if err := json.Unmarshal([]byte(js.Global().Get("config").String()), &c); err != nil {
		return nil, err
	}
	key, err := netcode.ParseKey(c.Key)
	if err != nil {
		return nil, err
	}
	dial := web.DialConfig{Way: web.WebTransport}
	if c.WebSocket {
		dial.Way = web.WebSocket
	} else {
		hash, err := hex.DecodeString(c.Hash)
		if err != nil {
			return nil, err
		}
		dial.CertificateHash = [sha256.Size]byte(hash)
	}
	socket, err := web.Dial(context.Background(), c.URL, dial)
	if err != nil {
		return nil, err
	}
	return echo.Run(context.Background(), socket, c.Server, key, time.Duration(c.Seconds)*time.Second)
}
