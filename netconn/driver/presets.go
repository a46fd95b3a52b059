package driver

import (
	"fmt"

	"github.com/bunchnet/bunchnet/netconn"
)

// Unreal427 returns c with the Link and Protocol of Unreal 4.27 and 5.0.
//
// With this and the other releases only one end may open channels, usually the server: both would take the same index, and the
// connection would end. A channel whose reliable buffer is full ends the connection too; see Channel.Room.
func Unreal427(c Config) Config {
	c.Link, c.Protocol = PlainUnreal427(), netconn.Unreal427()
	return c
}

// Unreal51 returns c with the Link and Protocol of Unreal 5.1.
func Unreal51(c Config) Config {
	c.Link, c.Protocol = PlainUnreal51(), netconn.Unreal51()
	return c
}

// Unreal53 returns c with the Link and Protocol of Unreal 5.3 and later. See netconn.Unreal53 for customExportsFinal.
func Unreal53(customExportsFinal bool, c Config) Config {
	c.Link, c.Protocol = PlainUnreal53(), netconn.Unreal53(customExportsFinal)
	return c
}

// ErrPreset is returned by Listen and Dial when Config.Link and Config.Protocol are of different releases of Unreal, or when Protocol is
// one of Unreal's and Link isn't set. No build of Unreal speaks both. Unreal427, Unreal51 and Unreal53 set a pair that fits.
var ErrPreset = fmt.Errorf("%w: Link and Protocol aren't of the same release of Unreal", netconn.ErrConfig)

// checkPresets returns ErrPreset for presets of different releases. A handshake made by hand isn't a preset and goes
// with any.
func (c *Config) checkPresets() error {
	release := ""
	switch l := c.Link.(type) {
	case nil:
		if c.Protocol.Unreal {
			return fmt.Errorf("%w: Protocol is %s's and Link isn't set; driver.Unreal51 and those beside it set both", ErrPreset, c.Protocol.Name)
		}
	case PlainUnreal:
		release = l.release
	case *PlainUnreal:
		release = l.release
	}
	if release != "" && c.Protocol.Unreal && c.Protocol.Name != release {
		return fmt.Errorf("%w: Link is %s's, Protocol %s's; driver.Unreal51 and those beside it set both", ErrPreset, release, c.Protocol.Name)
	}
	return nil
}
