//go:build !js

package web

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestMovesAmidDarkness: whichever direction of WebTransport's path goes dark, also while a player joins or leaves, the connection goes on, by WebSocket if there is one, and what was said
// last is heard.
func TestMovesAmidDarkness(t *testing.T) {
	if os.Getenv("CI") == "" {
		t.Skip("it takes ten seconds")
	}
	lost, clean := netsim.Settings{Loss: 100}, netsim.Settings{}
	for name, dark := range map[string][2]netsim.Settings{"up": {lost, clean}, "down": {clean, lost}, "both": {lost, lost}} {
		for _, c := range []struct {
			when string
			only bool // WebTransport
			long time.Duration
		}{{"playing", false, time.Second}, {"playing", true, 4 * time.Second}, {"joining", true, time.Second}, {"leaving", true, time.Second}} {
			t.Run(fmt.Sprintf("%s for %v, %s", name, c.long, c.when), func(t *testing.T) {
				t.Parallel()
				m := newMovingFor(t, ServerConfig{HalfOpen: 20 * time.Second}) // all of these run at once, and are in darkness before they are answered
				m.cfg.Ways = []Way{WebTransport, WebSocket}
				if c.only {
					m.cfg.Ways = []Way{WebTransport}
				}
				darken := func() {
					require.NoError(t, m.quic.Set(dark[0], dark[1]))
					for end := time.Now().Add(c.long); time.Now().Before(end); {
						m.tick()
					}
					m.darken(0)
				}
				if c.when == "joining" {
					m.cfg.Token, m.cfg.Dial.CertificateHash = m.token(7), m.door.hash
					l, err := DialBest(t.Context(), m.cfg)
					require.NoError(t, err)
					p := m.dialOver(l, driver.Config{Link: driver.Netcode{Token: m.cfg.Token}})
					m.until("it has begun", func() bool { return m.door.Len() == 1 })
					darken()
					m.until("it plays", func() bool { return p.conn != nil && p.own() != nil })
					m.echoed(p, func() {})
					require.Empty(t, m.ended)
					return
				}
				p, l, _ := m.join(7)
				if c.when == "playing" {
					m.echoed(p, darken)
					require.Empty(t, m.ended)
					return
				}
				m.echoed(p, func() {})
				p.conn.CloseWithReason("bye")
				darken()
				m.until("it is heard", func() bool { return len(m.ended) == 1 && p.end != nil })
				require.Equal(t, "bye", m.ended[0].Reason, "%v", l)
			})
		}
	}
}
