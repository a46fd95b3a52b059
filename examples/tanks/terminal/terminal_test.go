package terminal

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/examples/tanks/game"
	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/netcode"
)

var control = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// TestPictureFits: the picture fits a terminal of 80 by 24, is drawn again where it was, and has no colors where none are wanted.
func TestPictureFits(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	c, err := game.Dial("127.0.0.1:9", driver.Config{Link: driver.Netcode{Key: netcode.Key{1}}}, "Ann", game.Bot)
	require.NoError(t, err)
	defer c.Driver.Close()
	var out strings.Builder
	s := Screen{Out: &out}
	for range 20 {
		s.Told(strings.Repeat("ü", 200))
	}
	for n := range 2 {
		out.Reset()
		s.Draw(time.Unix(int64(n), 0), c)
		picture := out.String()
		require.Equal(t, n > 0, strings.HasPrefix(picture, "\x1b[23A"), "up to where it began")
		require.NotContains(t, picture, "\x1b[m")
		rows := strings.Split(control.ReplaceAllString(picture, ""), "\n")
		require.Len(t, rows, 24, "the last is the cursor's")
		for _, row := range rows {
			require.LessOrEqual(t, utf8.RuneCountInString(row), 80, row)
		}
	}
	require.NotEqual(t, sign(game.Thing{Kind: game.Own}), sign(game.Thing{Kind: game.Other}), "without colors, too")
}
