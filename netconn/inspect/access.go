package inspect

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// cookieName is where a browser keeps the token.
const cookieName = "bunchnet-inspect"

// allowed reports whether a request may see the driver: what Config.Allow says, or who has the token, or who is on this
// machine and calls it by a name of the loopback. The last keeps out pages of other sites that have their own name
// lead here (DNS rebinding), foreign pages, which could take all the viewers' places though not read what they get, and who comes
// through a proxy on this machine that says so.
func (i *Inspector) allowed(r *http.Request) bool {
	if i.cfg.Allow != nil {
		return i.cfg.Allow(r)
	}
	return i.hasToken(r) || fromLoopback(r) && isLoopback(hostname(r.Host)) && !fromElsewhere(r.Header)
}

// fromElsewhere reports a request that a browser makes for another site's page, but for links that somebody follows, and one that a
// proxy has passed on.
func fromElsewhere(h http.Header) bool {
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "Via"} {
		if h.Get(name) != "" {
			return true
		}
	}
	switch h.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return h.Get("Sec-Fetch-Mode") != "navigate" || h.Get("Sec-Fetch-Dest") != "document"
	}
	return false
}

func (i *Inspector) hasToken(r *http.Request) bool {
	if i.cfg.Token == "" {
		return false
	}
	is := func(s string) bool { return subtle.ConstantTimeCompare([]byte(s), []byte(i.cfg.Token)) == 1 }
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok && is(bearer) || is(r.URL.Query().Get("token")) {
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && is(c.Value)
}

// keepToken moves a token from the address of the page into a cookie, and reports whether it did.
func (i *Inspector) keepToken(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	if !q.Has("token") || i.cfg.Token == "" {
		return false
	}
	path := r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1]
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: i.cfg.Token, Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	q.Del("token")
	to := "./"
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
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
