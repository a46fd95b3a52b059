package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/web/webtest"
)

// client is the game's client for browsers, as it is served.
type client struct {
	wasm, zipped, support []byte // support is Go's wasm_exec.js
	built                 time.Time
}

// build compiles the player for browsers, with the go command.
func build(ctx context.Context) (c *client, err error) {
	c = &client{built: time.Now()}
	var support string
	if c.wasm, support, err = webtest.Build(ctx, "github.com/bunchnet/bunchnet/examples/browser/player"); err != nil {
		return nil, err
	}
	if c.support, err = os.ReadFile(filepath.Join(support, "wasm_exec.js")); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(c.wasm); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	c.zipped = b.Bytes()
	return c, nil
}

// serveWASM sends the client, compressed to who takes that.
func (c *client) serveWASM(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/wasm")
	w.Header().Set("Cache-Control", "no-cache")
	data := c.wasm
	if w.Header().Set("Vary", "Accept-Encoding"); strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		data = c.zipped
	}
	http.ServeContent(w, r, "", c.built, bytes.NewReader(data))
}

// serveSupport sends Go's part of the page.
func (c *client) serveSupport(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript")
	http.ServeContent(w, r, "", c.built, bytes.NewReader(c.support))
}
