package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/driver"
	"github.com/bunchnet/bunchnet/netconn/driver/capture"
	"github.com/bunchnet/bunchnet/netconn/udp"
)

// lobby is a server that counts its ticks while it is open.
type lobby struct {
	d     *driver.Driver
	open  bool
	ticks int
}

func (l *lobby) Tick(now time.Time) error {
	l.d.TickDispatch(now)
	if l.open {
		l.ticks++
	}
	l.d.TickFlush(now)
	return l.d.Err()
}

func (l *lobby) Call(data []byte) error { l.open = string(data) == "open"; return nil }
func (l *lobby) State(w io.Writer)      { fmt.Fprint(w, l.ticks) }

// bootLobby makes a lobby of what is outside, which is all it gets.
func bootLobby(o capture.Outside) (capture.Program, error) {
	d, err := driver.Listen("", o.Config(driver.Config{Link: driver.PlainSalted{}}))
	return &lobby{d: d}, err
}

// A server is recorded and replayed.
func Example() {
	socket, _ := udp.Pair(netip.MustParseAddrPort("127.0.0.1:7777"), netip.MustParseAddrPort("127.0.0.1:9"))
	var file bytes.Buffer
	rec, err := capture.Record(&file, capture.Outside{Socket: socket}, capture.Config{}, bootLobby)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 10 {
		if i == 4 {
			_ = rec.Call([]byte("open"))
		}
		_ = rec.Tick(time.Now())
	}
	fmt.Println(rec.Close())

	result, err := capture.Replay(&file, bootLobby)
	fmt.Println(result.Ticks, result.Program.(*lobby).ticks, err)
	// Output:
	// <nil>
	// 10 6 <nil>
}
