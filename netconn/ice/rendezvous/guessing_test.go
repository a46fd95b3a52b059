package rendezvous

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCodesGrow: of each length there are at least 100,000 codes for each room, and codes are short when there are few rooms.
func TestCodesGrow(t *testing.T) {
	s, err := New(Config{})
	require.NoError(t, err)
	for range 3 {
		var all []*place
		rooms := map[int]int{}
		for i := range s.cfg.MaxRooms {
			p := s.openRoom(newLine(1), &note{About: &about{}}, func() {})
			require.NoError(t, checkCode(p.code))
			all = append(all, p)
			digits := digitsOf(p.code)
			rooms[digits]++
			require.LessOrEqual(t, float64(rooms[digits])*100_000, float64(len(words))*math.Pow10(digits))
			require.LessOrEqual(t, digits, map[bool]int{true: 3, false: 6}[i == 0])
			if i >= 100 && i%2 == 0 { // rooms come and go
				rooms[digitsOf(all[i/2].code)]--
				s.closeRoom(all[i/2])
				p = s.openRoom(newLine(1), &note{About: &about{}}, func() {})
				rooms[digitsOf(p.code)]++
				all[i/2] = p
			}
		}
		require.Len(t, s.open, s.cfg.MaxRooms)
		for _, p := range all {
			s.closeRoom(p)
		}
		require.Zero(t, s.digits)
	}
}

// TestGuesses: wrong codes are looked at as often as the doc says, however many addresses they come from. Guests with the right code aren't disturbed by who guesses from
// elsewhere, and those with a link by nobody.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{})
		require.NoError(t, err)
		p := s.openRoom(newLine(1), &note{About: &about{}, Key: make([]byte, keyBytes)}, func() {})
		defer s.closeRoom(p)
		ask := func(code, from, link string) int { return knock(s, code, from, link) }
		const in = http.StatusUpgradeRequired // it would get a connection if this was one
		link := fingerprint(p.key)
		for range time.Hour / time.Second {
			ask("NOBODY-1", "192.0.2.1", "")
			time.Sleep(time.Second)
		}
		looked := s.Counters().NoRoom
		require.InDelta(t, 10+3600/30, looked, 1)
		require.EqualValues(t, 3600-looked, s.Counters().Guessed)
		require.Equal(t, http.StatusTooManyRequests, ask(p.code, "192.0.2.1", ""), "its guesses may be right")
		require.Equal(t, in, ask(p.code, "192.0.2.1", link))
		require.Equal(t, in, ask(p.code, "192.0.2.2", ""))
		for range 20 { // a right code costs nothing
			time.Sleep(time.Second)
			require.Equal(t, in, ask(p.code, "192.0.2.3", ""))
		}
		require.Equal(t, http.StatusNotFound, ask(p.code, "192.0.2.3", fingerprint([]byte("another host's"))), "the code is another room's by now")

		before := s.Counters().NoRoom
		for second := range 60 {
			for i := range 400 {
				ask("NOBODY-1", fmt.Sprintf("%d.%d.%d.1", 11+i/256, i%256, second), "")
			}
			from := fmt.Sprintf("203.0.113.%d", second)
			require.Equal(t, http.StatusTooManyRequests, ask(p.code, from, ""))
			require.Equal(t, in, ask(p.code, from, link))
			time.Sleep(time.Second)
		}
		require.InDelta(t, 60*10, s.Counters().NoRoom-before, 11)
		require.Equal(t, in, ask(p.code, "192.0.2.4", ""), "once it is over")
	})
}
