// Package origins says which pages may use a service from a browser.
package origins

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Any is every page.
const Any = "*"

// List is origins such as "https://play.example.com", or Any.
type List []string

// Check returns an error for an entry that no browser would send.
func (l List) Check() error {
	for _, o := range l {
		if o == Any {
			continue
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || o != u.Scheme+"://"+u.Host {
			return fmt.Errorf("the origin %q isn't one like https://play.example.com, or *", o)
		}
	}
	return nil
}

// Own reports whether an origin is that of a page of the host that a request asks.
func Own(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, host)
}

// Named reports whether an origin is in the list by its name.
func (l List) Named(origin string) bool {
	return origin != Any && slices.ContainsFunc(l, func(o string) bool { return strings.EqualFold(o, origin) })
}

// Allows reports whether it is in the list, by its name or with all.
func (l List) Allows(origin string) bool { return slices.Contains(l, Any) || l.Named(origin) }
