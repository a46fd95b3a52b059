package rendezvous

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipes is a listener of connections in memory, which hold nothing that isn't read.
type pipes struct {
	all  chan net.Conn
	done chan struct{}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.all:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p.done)
	return nil
}

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// upgrade connects by hand, and keeps as little as it can.
func (p pipes) upgrade(t testing.TB, path, from string) net.Conn {
	ours, theirs := net.Pipe()
	p.all <- theirs
	_, err := fmt.Fprintf(ours, "GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nFrom: %s\r\n\r\n", path, from)
	require.NoError(t, err)
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, one[0]) {
		_, err := ours.Read(one)
		require.NoError(t, err)
	}
	require.Contains(t, string(head), " 101 ")
	return ours
}

// say writes a message, and hear reads one.
func say(t testing.TB, c net.Conn, n note) {
	text, err := json.Marshal(n)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxMessage)
	_, err = c.Write(frame(text))
	require.NoError(t, err)
}

// frame is a message of a client, masked with zeros.
func frame(text []byte) []byte {
	head := binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(text)))
	return append(append(head, 0, 0, 0, 0), text...)
}

func hear(t testing.TB, c net.Conn) (n note) {
	var head [2]byte
	_, err := io.ReadFull(c, head[:])
	require.NoError(t, err)
	size := int(head[1])
	if size == 126 {
		var long [2]byte
		_, err := io.ReadFull(c, long[:])
		require.NoError(t, err)
		size = int(binary.BigEndian.Uint16(long[:]))
	}
	text := make([]byte, size)
	_, err = io.ReadFull(c, text)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &n))
	return n
}

// maxMemory is a room's, as the doc says, with the connections of MaxGuests.
const maxMemory = 1_500_000

// TestMemory: a service of which all places are taken by hosts and guests who send the largest letters, and read nothing, keeps to the bound in its doc.
func TestMemory(t *testing.T) {
	rooms, most := 20, maxMemory+maxMemory/10 // few share more, and the race detector takes some
	if os.Getenv("CI") != "" && !testing.Short() {
		rooms, most = 1000, maxMemory
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Rate: 1e9, Burst: 1e9, TotalRate: 1e9, MaxRooms: rooms, ClientAddr: func(r *http.Request) (netip.Addr, error) { return netip.ParseAddr(r.Header.Get("From")) }})
		require.NoError(t, err)
		l := pipes{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: s}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		before := inUse()
		var all, guests []net.Conn
		key, letter := make([]byte, keyBytes), make([]byte, (maxMessage-100)/4*3)
		for i := range rooms {
			host := l.upgrade(t, hostPath, fmt.Sprintf("192.%d.%d.1", i>>8, i&255))
			say(t, host, note{Key: key, About: &about{Name: "Ann"}})
			code := hear(t, host).Code
			var joining []net.Conn
			for g := range s.cfg.MaxGuests {
				guest := l.upgrade(t, joinPath+code, fmt.Sprintf("10.%d.%d.%d", g, i>>8, i&255))
				joining = append(joining, guest)
				hear(t, guest)
				say(t, guest, note{Key: key})
				for range maxJoining / len(letter) {
					say(t, host, note{Guest: g + 1, Sealed: letter})
				}
			}
			for n := 0; n <= maxLetters/maxMessage; n++ {
				say(t, joining[n%len(joining)], note{Sealed: letter})
			}
			all, guests = append(all, host), append(guests, joining...)
		}
		all = append(all, guests...)
		text, err := json.Marshal(note{Sealed: letter})
		require.NoError(t, err)
		more, end := frame(text)[:len(text)], frame(text)[len(text):]
		for _, c := range all { // of one more each, all but the end
			_, err := c.Write(more)
			require.NoError(t, err)
		}
		bounded := func() {
			synctest.Wait()
			used := inUse() - before
			t.Logf("%d bytes, %d a room", used, used/rooms)
			assert.LessOrEqual(t, used/rooms, most)
			assert.Equal(t, rooms, s.Len())
			for _, p := range s.open {
				assert.LessOrEqual(t, p.host.bytes.Load(), int64(maxLetters+maxMessage+maxControl*100))
				for _, g := range p.guests {
					assert.LessOrEqual(t, g.bytes.Load(), int64(maxJoining*4/3+1000))
				}
			}
		}
		bounded()
		for _, c := range guests { // the end, and with it more than may wait
			_, err := c.Write(end)
			require.NoError(t, err)
		}
		bounded()
		for _, c := range all {
			_ = c.Close()
		}
		require.NoError(t, s.Close())
		require.NoError(t, srv.Close())
		<-served
	})
}

// inUse is the memory of the heap and of stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
