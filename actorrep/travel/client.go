package travel

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Client is the client's part. It belongs to its world's goroutine.
type Client struct {
	world *actorrep.World
	load  func(m string)
	level *Level
	// loading is the number of the level that load was last called for, loaded the one that the game is ready for, said the one that the
	// server was told of.
	loading, loaded, said uint32
	told                  string // its name
}

// NewClient returns the client's part. Step calls load with the name of each new level; load starts loading it.
// NewClient registers the class of Level.
func NewClient(w *actorrep.World, load func(m string)) (*Client, error) {
	switch {
	case w.IsServer():
		return nil, fmt.Errorf("%w: NewClient needs a client's world", ErrConfig)
	case load == nil:
		return nil, fmt.Errorf("%w: load is needed", ErrConfig)
	}
	return &Client{world: w, load: load}, register(w)
}

// Step checks for a new level. Call it each tick after World.Step.
func (c *Client) Step() {
	if c.level == nil || c.level.World() != c.world {
		c.level = nil
		for a := range c.world.All {
			if l, ok := a.(*Level); ok {
				c.level = l
				break
			}
		}
		if c.level == nil {
			return
		}
	}
	if l := c.level; l.Number != c.loading && l.whole() {
		c.loading, c.told = l.Number, l.Map
		c.load(c.told)
	}
	if c.loaded == c.loading && c.said != c.loaded && ready.Call(c.level, c.loaded) == nil {
		c.said = c.loaded
	}
}

// Ready says that a level is loaded; m is the name that load was given. Step tells the server, if the level is still the
// newest: when load was called with another name since, Ready for the old one is ignored.
func (c *Client) Ready(m string) {
	if c.loading != 0 && m == c.told {
		c.loaded = c.loading
	}
}

// Map is the name that load was last given, and whether the game is ready for that level.
func (c *Client) Map() (m string, ready bool) {
	return c.told, c.loaded == c.loading && c.loading != 0
}
