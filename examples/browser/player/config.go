//go:build js

package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall/js"
	"time"

	"github.com/bunchnet/bunchnet/netconn/web"
)

// config is what the page's server says, and what is in the page's address: name, bot, lag, loss, way.
type config struct {
	Server       string // in the tokens
	Token        string // where they are
	WebTransport string // "" without
	WebSocket    string
	Hash         string // of WebTransport's certificate; "" if the browser trusts it

	Name    string        `json:"-"`
	Bot     bool          `json:"-"`
	Lag     time.Duration `json:"-"`
	Loss    float64       `json:"-"`
	Way     string        `json:"-"`
	Measure bool          `json:"-"`

	hash   [sha256.Size]byte
	secret string // who this player is
}

func readConfig() (c config, err error) {
	if err := json.Unmarshal([]byte(js.Global().Get("bunchnet").String()), &c); err != nil {
		return c, err
	}
	if c.Hash != "" {
		if _, err := hex.Decode(c.hash[:], []byte(c.Hash)); err != nil {
			return c, err
		}
	}
	query, err := url.ParseQuery(strings.TrimPrefix(js.Global().Get("location").Get("search").String(), "?"))
	if err != nil {
		return c, err
	}
	c.Name, c.Bot, c.Way, c.Measure = query.Get("name"), query.Has("bot"), query.Get("way"), query.Has("measure")
	if s := query.Get("lag"); s != "" {
		if c.Lag, err = time.ParseDuration(s); err != nil {
			return c, err
		}
	}
	if s := query.Get("loss"); s != "" {
		if c.Loss, err = strconv.ParseFloat(s, 64); err != nil {
			return c, err
		}
	}
	c.secret = secret()
	return c, nil
}

// ways is what to try: all, or the one that the page's address has.
func (c config) ways() []web.Way {
	all := []web.Way{web.WebTransport, web.WebSocket}
	return slices.DeleteFunc(all, func(w web.Way) bool { return c.Way != "" && c.Way != w.String() })
}

// secret is who the player is: a number that this tab keeps. A game has accounts instead.
func secret() string {
	const key = "bunchnet.player"
	kept := js.Global().Get("sessionStorage")
	if v := kept.Call("getItem", key); v.Type() == js.TypeString {
		return v.String()
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	s := fmt.Sprintf("%x", b)
	kept.Call("setItem", key, s)
	return s
}
