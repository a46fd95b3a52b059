package rendezvous

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/netconn/ice"
)

// TestGuestsAtOnce: however many guests come within a second, each with a letter that its host must answer, the host says no more than it may: its room stays open.
func TestGuestsAtOnce(t *testing.T) {
	r := newRig(t, Config{TotalRate: 1e6})
	room, _ := r.party(RoomConfig{})
	key, err := newKey()
	require.NoError(t, err)
	var all sync.WaitGroup
	for address := range 16 {
		all.Go(func() {
			for range 40 {
				header := map[string][]string{"From": {fmt.Sprintf("192.0.2.%d", address)}}
				c, _, err := websocket.Dial(context.Background(), r.url+joinPath+room.Code, &websocket.DialOptions{HTTPClient: r.client, HTTPHeader: header})
				if err != nil {
					continue // too many
				}
				if _, err = receive(context.Background(), c); err == nil {
					_ = send(context.Background(), c, note{Key: key.PublicKey().Bytes()})
					_ = send(context.Background(), c, note{Sealed: make([]byte, 100)})
					drained(c)
				}
				_ = c.CloseNow()
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, r.Len())
	eventually(t, "a guest joins", func() bool {
		_, err := r.join(room.Code, "Bob")
		return err == nil
	})
}

// TestSilentHostOfGuest: a host that takes a code and says nothing costs a guest its ConnectTime, and the error says that nobody answered.
func TestSilentHostOfGuest(t *testing.T) {
	r := newRig(t, Config{})
	room, err := Open(t.Context(), RoomConfig{URL: r.url, HTTP: r.client})
	require.NoError(t, err)
	defer room.Close()
	cfg := local()
	cfg.ConnectTime = time.Second
	_, err = Join(t.Context(), JoinConfig{Invitation: room.Code, URL: r.url, ICE: cfg, HTTP: r.client})
	require.ErrorIs(t, err, ice.ErrNoWay)
	require.ErrorContains(t, err, "has said nothing")
}
