package driver

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/channel/control"
	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/netcode"
	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// TestLongWords: what a peer says as it leaves is a bounded part of a line of the log, whatever it says; the game gets all of it.
func TestLongWords(t *testing.T) {
	for name, link := range links() {
		for _, words := range []string{strings.Repeat("x", 4000), strings.Repeat("\x01", 1300), strings.Repeat("日", 1300), strings.Repeat("\n", 4000)} {
			var log bytes.Buffer
			var ends []netconn.CloseResult
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Closed: func(_ *Conn, r netconn.CloseResult) { ends = append(ends, r) }})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined })
			c.Server().CloseWithReason(words)
			w.until("ended", func() bool { return len(ends) == 1 })
			require.Equal(t, words, ends[0].Reason, name)
			w.now = w.now.Add(2 * time.Second)
			w.step()
			for line := range strings.Lines(log.String()) {
				require.Less(t, len(line), 2000, name)
			}
			require.Contains(t, log.String(), "connection closed")
		}
	}
}

// TestWordsTooLongAreTold: a reason that is too long for its message, of a refusal or an end, is told to the Logger of the end that gave it, and the peer learns that
// there was one. The lines name the client of the token.
func TestWordsTooLongAreTold(t *testing.T) {
	long := errors.New(strings.Repeat("x", 5000))
	for _, refused := range []bool{true, false} {
		var log bytes.Buffer
		w := newTown(t, 1, netsim.Settings{}, Config{Link: Netcode{Key: netcode.Key{1}}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Server: control.ServerConfig{Authorize: func(*control.Login) error {
			if refused {
				return long
			}
			return nil
		}}})
		c := w.dial(Config{Link: Netcode{Token: townToken(t, w, 77, nil)}})
		if !refused {
			w.until("joined", func() bool { return c.joined && w.server.conns[0].Joined() })
			w.server.conns[0].CloseWithError(long)
		}
		w.until("ended", func() bool { return c.result != nil })
		require.Equal(t, "the words were too many to send", c.result.Reason)
		require.Regexp(t, `level=WARN msg="a text was too long for the peer, which gets a shorter one" addr=\S+ conn=1 client=77 why=`, log.String())
	}
}

// TestWordsArePrintable: errors and results have nothing in them that a terminal obeys, whatever the peer said. The game gets its words as they were.
func TestWordsArePrintable(t *testing.T) {
	const evil = "no\x1b]0;you\a\n\u202eadmin joined"
	printable := func(what string, texts ...string) {
		for _, text := range texts {
			require.Contains(t, text, "admin joined", what)
			for _, r := range text {
				require.True(t, unicode.IsPrint(r), "%s: %q", what, text)
			}
		}
	}
	for name, link := range links() {
		for _, why := range []error{errors.New(evil), fmt.Errorf("%w: %s", ErrBanned, evil)} {
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link, Server: control.ServerConfig{Authorize: func(*control.Login) error { return why }}})
			c := w.dial(Config{Link: link})
			w.until("refused", func() bool { return c.result != nil })
			require.Equal(t, control.Text(why), c.result.Reason)
			printable(name+", refused", c.result.String(), c.result.Err.Error(), c.Err().Error())
		}
		for _, why := range []error{errors.New(evil), fmt.Errorf("%w: %s", ErrKicked, evil)} {
			w := newTown(t, 1, netsim.Settings{}, Config{Link: link})
			c := w.dial(Config{Link: link})
			w.until("joined", func() bool { return c.joined && w.server.Len() == 1 && w.server.conns[0].Joined() })
			w.server.conns[0].CloseWithError(why)
			w.until("closed", func() bool { return c.result != nil })
			require.Equal(t, control.Text(why), c.result.Reason)
			printable(name+", closed", c.result.String())
		}
		early := newTown(t, 1, netsim.Settings{}, Config{Link: link, Accepted: func(c *Conn) { c.CloseWithReason(evil) }})
		c := early.dial(Config{Link: link})
		early.until("turned away", func() bool { return c.result != nil })
		printable(name+", turned away", c.result.String(), c.Err().Error())
	}
}
