package travel

import (
	"fmt"

	"github.com/bunchnet/bunchnet/actorrep"
)

// Client is a client's part. It belongs to the goroutine of its world.
type Client struct {
	world *actorrep.World
	load  func(m string)
	level *Level
	// loading is the number of the level that load was told last, loaded the one that the game is ready for, said the one that the
	// server was told.
	loading, loaded, said uint32
	told                  string // the name of loading
}

// NewClient returns a client's part; load is called in Step when there is another level, and begins to load it. It registers the class
// of Level.
func NewClient(w *actorrep.World, load func(m string)) (*Client, error) {
	switch {
	case w.IsServer():
		return nil, fmt.Errorf("%w: NewClient needs a client's world", ErrConfig)
	case load == nil:
		return nil, fmt.Errorf("%w: load is needed", ErrConfig)
	}
	return &Client{world: w, load: load}, register(w)
}

// Step sees whether there is another level. Call it each tick, behind World.Step.
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

// Ready says that a level is loaded, by the name that load was told. Step tells the server, if it is the newest: when a level that takes long to load is
// done after load was told another one, that counts for nothing.
func (c *Client) Ready(m string) {
	if c.loading != 0 && m == c.told {
		c.loaded = c.loading
	}
}

// Map is the level that load was told last, and whether the game is ready for it.
func (c *Client) Map() (m string, ready bool) {
	return c.told, c.loaded == c.loading && c.loading != 0
}
