package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// cookie is where a browser keeps a token: whatever its bytes are, and beside those of other inspectors on the same machine, whose
// cookies a browser doesn't tell apart by their ports.
func cookie(token string) *http.Cookie {
	sum := sha256.Sum256([]byte(token))
	return &http.Cookie{Name: "bunchnet-inspect-" + hex.EncodeToString(sum[:4]), Value: base64.RawURLEncoding.EncodeToString([]byte(token))}
}

// allowed reports whether a request may see the driver. Config.Allow decides, or the token, where one is set. Without both a request must come
// from this machine and call it by a name of the loopback. That keeps out pages of other sites that have their own name lead here (DNS
// rebinding), foreign pages, which could take all the viewers' places though not read what they get, and who comes through a proxy
// on this machine that says so. A proxy that doesn't say so is why a token is asked of this machine's own requests too.
func (i *Inspector) allowed(r *http.Request) bool {
	switch {
	case i.cfg.Allow != nil:
		return i.cfg.Allow(r)
	case i.cfg.Token != "":
		return i.hasToken(r)
	}
	return fromLoopback(r) && isLoopback(hostname(r.Host)) && !fromElsewhere(r)
}

// refusal says whom the inspector answers, to those whom it doesn't.
func (i *Inspector) refusal() string {
	switch {
	case i.cfg.Allow != nil:
		return "inspect: not for you: Config.Allow refused the request"
	case i.cfg.Token != "":
		return "inspect: not for you: the request needs the token of Config.Token"
	}
	return "inspect: not for you: only this machine's own requests to localhost are answered; others need Config.Token"
}

// fromElsewhere reports a request that a browser makes for another site's page, and one that a proxy has passed on. Links to the page that somebody
// follows are none; a browser says the same of windows that the other page opens, and of what it loads in advance, so events and films aren't had by
// links. Browsers that don't tell the site still tell the page's origin.
func fromElsewhere(r *http.Request) bool {
	h := r.Header
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via"} {
		if h.Get(name) != "" {
			return true
		}
	}
	if o := h.Get("Origin"); o != "" && o != "http://"+r.Host && o != "https://"+r.Host {
		return true
	}
	switch h.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return h.Get("Sec-Fetch-Mode") != "navigate" || h.Get("Sec-Fetch-Dest") != "document" || !strings.HasSuffix(r.URL.Path, "/")
	}
	return false
}

func (i *Inspector) hasToken(r *http.Request) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && same(bearer, i.cfg.Token) || same(r.URL.Query().Get("token"), i.cfg.Token) {
		return true
	}
	want := cookie(i.cfg.Token)
	c, err := r.Cookie(want.Name)
	return err == nil && same(c.Value, want.Value)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// keepToken moves a token from the address of the page into a cookie, and reports whether it did. The answer is a page that goes on to the address
// without the token, and not a redirection: of a link on another site's page, such as a chat's, a browser follows that without a cookie that is SameSite=Strict.
func (i *Inspector) keepToken(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	if i.cfg.Token == "" || !same(q.Get("token"), i.cfg.Token) { // who is let in without it isn't told
		return false
	}
	path := r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1]
	c := cookie(i.cfg.Token)
	c.Path, c.HttpOnly, c.SameSite, c.Secure = path, true, http.SameSiteStrictMode, r.TLS != nil
	http.SetCookie(w, c)
	q.Del("token")
	to := "./"
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	w.Header().Set("Refresh", "0; url="+to)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html>\n<title>%s</title>\n<a href=\"%s\">Go on</a>\n", html.EscapeString(i.cfg.Title), html.EscapeString(to))
	return true
}

func fromLoopback(r *http.Request) bool {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// hostname is a Host header without its port.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
