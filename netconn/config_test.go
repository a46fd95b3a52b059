package netconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/handler"
	"github.com/bunchnet/bunchnet/packetnotify"
)

// TestDefaults: what the zero value of each setting stands for.
func TestDefaults(t *testing.T) {
	c := Config{}.filled()
	require.Equal(t, "bunchnet", c.Protocol.Name)
	require.Equal(t, 6144, c.Protocol.PacketWindow)
	require.Equal(t, 8191, c.Protocol.Notify.AckRecords)
	require.Equal(t, []time.Duration{200 * time.Millisecond, time.Minute, 2 * time.Second}, []time.Duration{c.KeepAlive, c.Timeout, c.LingerTimeout})
	require.Equal(t, []int{256, 100_000, 28, 8192, 64 << 20}, []int{c.OrderCache, c.NetSpeed, c.PacketOverhead, c.Redundancy.MaxBits, c.MaxMemory})
	require.Equal(t, 8<<20, Config{Server: true}.filled().MaxMemory)

	c = Config{Protocol: Unreal51(), Secret: 5}.filled()
	require.Equal(t, []int{256, 32}, []int{c.Protocol.PacketWindow, c.OrderCache})
	require.Zero(t, c.Protocol.Notify.AckRecords, "the history tells of as many")
	require.Zero(t, c.Secret)
	require.EqualValues(t, 5, Config{Secret: 5}.filled().Secret)
	c = Config{Protocol: Protocol{Name: "flush", Notify: packetnotify.Config{WaitForFlush: true}}}.filled()
	require.Equal(t, 8191, c.Protocol.Notify.AckRecords)
	c = Config{Protocol: Protocol{Name: "own", PacketWindow: 257, Notify: packetnotify.Config{AckRecords: 300}}}.filled()
	require.Equal(t, 300, c.Protocol.Notify.AckRecords)
	c = Config{Protocol: Protocol{Name: "wide", PacketWindow: 257}}.filled()
	require.Equal(t, 8191, c.Protocol.Notify.AckRecords)
	c = Config{Handlers: &handler.Chain{}}.filled()
	require.Equal(t, c.Handlers.ReservedBits(), c.Protocol.Bunch.HandlerBits)
}

// TestPresetsHaveNames: each its own, so that a message says which wire it is about.
func TestPresetsHaveNames(t *testing.T) {
	for name, p := range map[string]Protocol{"Unreal 5.1": Unreal51(), "Unreal 4.27": Unreal427(), "Unreal 5.3": Unreal53(false), "bunchnet": Bunchnet()} {
		require.Equal(t, name, p.Name)
	}
}

// TestConfigLimits: the values at each limit and one beyond.
func TestConfigLimits(t *testing.T) {
	for _, v := range []struct {
		name string
		edit func(c *Config)
		fine bool
	}{
		{"nothing", func(*Config) {}, true},
		{"no LowLevelSend", func(c *Config) { c.LowLevelSend = nil }, false},
		{"OrderCache 24", func(c *Config) { c.OrderCache = 24 }, false},
		{"OrderCache 256", func(c *Config) { c.OrderCache = 256 }, true},
		{"OrderCache 512", func(c *Config) { c.OrderCache = 512 }, false},
		{"OrderCache -3", func(c *Config) { c.OrderCache = -3 }, true},
		{"PacketWindow 15", func(c *Config) { c.Protocol.PacketWindow = 15 }, false},
		{"PacketWindow 16", func(c *Config) { c.Protocol.PacketWindow = 16 }, true},
		{"PacketWindow 6144", func(c *Config) { c.Protocol.PacketWindow = 6144 }, true},
		{"PacketWindow 6145", func(c *Config) { c.Protocol.PacketWindow = 6145 }, false},
		{"KeepAlive", func(c *Config) { c.KeepAlive = time.Millisecond }, true},
		{"short KeepAlive", func(c *Config) { c.KeepAlive = time.Millisecond - 1 }, false},
		{"LingerTimeout", func(c *Config) { c.LingerTimeout = -1 }, false},
		{"AckDelay", func(c *Config) { c.AckDelay = -1 }, false},
		{"PacketOverhead", func(c *Config) { c.PacketOverhead = -1 }, false},
		{"NetSpeed", func(c *Config) { c.NetSpeed = -1 }, false},
		{"MaxBits", func(c *Config) { c.Redundancy.MaxBits = -1 }, false},
		{"Headroom", func(c *Config) { c.Headroom = -1 }, false},
		{"Tailroom", func(c *Config) { c.Tailroom = -1 }, false},
		{"MaxPacket 255", func(c *Config) { c.Protocol.Bunch.MaxPacket = 255 }, false},
		{"MaxPacket 256", func(c *Config) { c.Protocol.Bunch.MaxPacket = 256 }, true},
		{"MaxPacket 8192", func(c *Config) { c.Protocol.Bunch.MaxPacket = 8192 }, true},
		{"MaxPacket 8193", func(c *Config) { c.Protocol.Bunch.MaxPacket = 8193 }, false},
		{"Copies -1", func(c *Config) { c.Redundancy.Copies = -1 }, false},
		{"Copies 16", func(c *Config) { c.Redundancy.Copies = 16 }, true},
		{"Copies 17", func(c *Config) { c.Redundancy.Copies = 17 }, false},
		{"MaxMemory", func(c *Config) { c.MaxMemory = 1 }, false},
		{"few AckRecords", func(c *Config) { c.Protocol.Notify.AckRecords = 1 }, true},
		{"few AckRecords with WaitForFlush", func(c *Config) { c.Protocol = Unreal53(false); c.Protocol.Notify.AckRecords = 8190 }, false},
		{"all AckRecords with WaitForFlush", func(c *Config) { c.Protocol = Unreal53(false); c.Protocol.Notify.AckRecords = 8191 }, true},
		{"default AckRecords with WaitForFlush", func(c *Config) { c.Protocol = Unreal53(false); c.Protocol.Notify.AckRecords = 0 }, true},
	} {
		c := Config{Protocol: Bunchnet(), LowLevelSend: func([]byte) {}}
		v.edit(&c)
		_, err := New(c, 0, 1, 1)
		require.Equal(t, v.fine, err == nil, "%s: %v", v.name, err)
	}
}
