package travel

import (
	"errors"
	"fmt"
	"time"

	"github.com/bunchnet/bunchnet/actorrep"
)

// ErrHurry is given to the world's Config.Failed, once, when the server changes the level so often that load isn't called
// at once for each.
var ErrHurry = errors.New("travel: the server changes the level more than once a second")

// Client is the client's part. It belongs to its world's goroutine.
type Client struct {
	// Delayed counts levels for which load wasn't called at once, or not at all because a newer one came. After the first
	// four in a row load is called once a second at most.
	Delayed uint64

	world *actorrep.World
	load  func(m string)
	level *Level
	// loading is the number of the level that load was last called for, loaded the one that the game is ready for, said the one that the
	// server was told of.
	loading, loaded, said uint32
	told                  string // its name
	stepped               bool
	at, owed              time.Duration // of the last Step; the time in which the last loads were called for is this much too short
	waits                 uint32        // number of the level that was counted in Delayed
}

const (
	// loadEvery is how often load may be called for long, and mostOwed how far ahead of that it may be.
	loadEvery = time.Second
	mostOwed  = 4 * loadEvery
)

// NewClient returns the client's part. Step calls load with the name of each new level; load starts loading it.
// NewClient registers the class of Level. Errors wrap ErrConfig.
func NewClient(w *actorrep.World, load func(m string)) (*Client, error) {
	switch {
	case w.IsServer():
		return nil, fmt.Errorf("%w: NewClient needs a client's world", ErrConfig)
	case load == nil:
		return nil, fmt.Errorf("%w: load is needed", ErrConfig)
	}
	c := &Client{world: w, load: load}
	watch(w, func() bool { return !c.stepped && c.find() }, errNoStep)
	return c, register(w)
}

// find finds the Level.
func (c *Client) find() bool {
	if c.level != nil && c.level.World() == c.world {
		return true
	}
	c.level = nil
	for a := range c.world.All {
		if l, ok := a.(*Level); ok {
			c.level = l
			break
		}
	}
	return c.level != nil
}

// mayLoad reports whether load may be called now for a level.
func (c *Client) mayLoad(number uint32) bool {
	if c.owed > mostOwed-loadEvery {
		if c.waits != number {
			c.waits = number
			if c.Delayed++; c.Delayed == 1 {
				report(c.world, ErrHurry)
			}
		}
		return false
	}
	c.owed += loadEvery
	return true
}

// Step checks for a new level. Call it each tick after World.Step.
func (c *Client) Step() {
	c.stepped = true
	now := c.world.Now()
	c.owed = max(c.owed-max(now-c.at, 0), 0)
	if c.at = now; !c.find() {
		return
	}
	if l := c.level; l.Number != c.loading && l.whole() && c.mayLoad(l.Number) {
		c.loading, c.told = l.Number, l.Map
		c.load(c.told)
	}
	if c.loaded == c.loading && c.said != c.loaded && ready.Call(c.level, c.loaded) == nil {
		c.said = c.loaded
	}
}

// Ready says that a level is loaded; m is the name that load got. The next Step tells the server. When load was called with
// another name since, Ready is ignored.
func (c *Client) Ready(m string) {
	if c.loading != 0 && m == c.told {
		c.loaded = c.loading
	}
}

// Map is the name that load last got, and whether Ready was called for that level; "" and false before the first.
func (c *Client) Map() (m string, ready bool) {
	return c.told, c.loaded == c.loading && c.loading != 0
}
