package inspect

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn"
	"github.com/bunchnet/bunchnet/netconn/driver"
)

// crowd is a snapshot of n connections, whose RTTs repeat and aren't in the order of their ids.
func crowd(n int) Snapshot {
	s := Snapshot{}
	for id := range n {
		s.Conns = append(s.Conns, Conn{ID: uint32(id + 1), Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(id >> 8), byte(id)}), 7777), Name: fmt.Sprint("player ", id%100), Joined: id%10 != 0,
			Stats: netconn.Stats{RTT: time.Duration(id*7919%500) * time.Millisecond, PacketsInFlight: 2, QueuedReliable: 3, Channels: 4, Rates: netconn.Rates{InBytes: 1000, OutBytes: 2000}}})
	}
	return s
}

// TestRowsBounded: an event has the same size with 100 connections and with 5000, counts and sums are over all of them, and a page
// looks for, sorts and goes on as it is asked to.
func TestRowsBounded(t *testing.T) {
	busy(t, Config{Interval: time.Hour}, func(t *testing.T, i *Inspector) {
		size := func(n int, path string) int {
			done := make(chan bool)
			i.source.driver.Do(func() {
				i.snapshot, i.shown = crowd(n), true
				i.snapshot.At = i.source.driver.Time(time.Now())
				close(done)
			})
			<-done
			return get(i, path, "*/*").Body.Len()
		}
		few, many := size(100, "/json?conn=1"), size(5000, "/json?conn=1&connsfrom=64")
		require.InDelta(t, few, many, 4000, "numbers have more digits")
		require.Less(t, many, 200_000)
		require.Less(t, size(5000, "/text?connsfrom=128"), 30_000)

		v := view(t, i, "/json?sort=-rtt&conns=PLAYER+7&connsfrom=5")
		require.Equal(t, []int{5000, 550, maxRows, 5 + maxRows}, []int{v.ConnCount, v.ConnMatches, len(v.Conns), v.ConnNext})
		require.Equal(t, Totals{Joined: 4500, InRate: 5e6, OutRate: 10e6, PacketsInFlight: 10_000, QueuedReliable: 15_000, Channels: 20_000}, v.Totals)
		for n := range v.Conns {
			require.True(t, strings.HasPrefix(v.Conns[n].Name, "player 7"))
			require.True(t, n == 0 || v.Conns[n-1].Stats.RTT >= v.Conns[n].Stats.RTT)
		}
		require.Contains(t, strings.ReplaceAll(get(i, "/text?conns=10.0.1.", "*/*").Body.String(), "\n  ", " "), "5000 connections, 4500 joined, receive 5000.0 kB/s, send 10000.0 kB/s, 10000 packets in flight, "+
			"15000 reliable bunches unacked, 20000 channels; 64 of 256 shown")
		require.Len(t, view(t, i, "/export?conns=").Conns, maxExportRows)
		require.Empty(t, view(t, i, "/json?connsfrom=9999").Conns, "they have gone meanwhile")
		for _, bad := range []string{"/json?sort=why", "/json?connsfrom=-1", "/json?connsfrom=x", "/events?conns=" + strings.Repeat("a", maxMatch+1)} {
			require.Equal(t, http.StatusBadRequest, get(i, bad, "*/*").Code, bad)
		}
	})
}

// TestPages: the pages of every order have every connection once, in that order or the opposite, and the shared snapshot stays as it was.
func TestPages(t *testing.T) {
	all := crowd(500)
	for name, order := range orders {
		for _, down := range []bool{false, true} {
			seen := map[uint32]bool{}
			var last *Conn
			for q := (ConnQuery{Sort: name, Down: down}); ; {
				v := View{Snapshot: all}
				v.rows(q, maxRows)
				for n := range v.Conns {
					c := &v.Conns[n]
					require.False(t, seen[c.ID])
					seen[c.ID] = true
					if last != nil && down {
						require.GreaterOrEqual(t, order(last, c), 0, name)
					} else if last != nil {
						require.LessOrEqual(t, order(last, c), 0, name)
					}
					last = c
				}
				if q.From = v.ConnNext; q.From == 0 {
					break
				}
			}
			require.Len(t, seen, 500, name)
		}
	}
	require.Equal(t, crowd(500), all)
}

// TestViewersShareASample: whatever viewers sort by, the driver's figures are taken once an interval.
func TestViewersShareASample(t *testing.T) {
	named := 0
	busy(t, Config{Interval: time.Hour, Name: func(*driver.Conn) string { named++; return "Ann" }}, func(t *testing.T, i *Inspector) {
		view(t, i, "/json")
		before := named
		for _, q := range []string{"?sort=rtt", "?sort=-rtt", "?conns=ann", "?conn=1"} {
			require.Equal(t, "Ann", view(t, i, "/json"+q).Conns[0].Name)
		}
		require.Equal(t, before, named)
	})
}

// TestNoHistory: a connection that has no curves and packets, since as many others as are kept have them, is said to have none, also beside another.
func TestNoHistory(t *testing.T) {
	busy(t, Config{Name: func(*driver.Conn) string { return "Zoe" }}, func(t *testing.T, i *Inspector) {
		v := view(t, i, "/json?also=1")
		require.False(t, v.Detail.NoHistory)
		require.False(t, v.Others[0].NoHistory)
		require.NotEmpty(t, v.Others[0].Sent)
		require.NotContains(t, get(i, "/text?also=1", "*/*").Body.String(), noHistory)

		require.NoError(t, i.source.do(t.Context(), func() {
			i.most = 0
			clear(i.histories)
		}))
		time.Sleep(time.Second)
		v = view(t, i, "/json?also=1")
		require.True(t, v.Detail.NoHistory)
		require.Equal(t, "Zoe", v.Detail.Name)
		require.Empty(t, v.Detail.Samples)
		require.Empty(t, v.Detail.Sent)
		require.Len(t, v.Others, 1)
		require.True(t, v.Others[0].NoHistory)
		require.Equal(t, "Zoe", v.Others[0].Name)
		require.Equal(t, 2, strings.Count(get(i, "/text?also=1", "*/*").Body.String(), noHistory))
	})
}
