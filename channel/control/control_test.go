package control

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

func samples() []Message {
	return []Message{
		&Hello{true, 0xdeadbeef, "token", 7}, &Welcome{"/maps/yard", "duel", ""}, &Upgrade{5, 1}, &Challenge{"prove it"},
		&Netspeed{10000}, &Login{"r", "?Name=Zoë", []byte{1, 2, 3}, "go"}, &Failure{"full"}, &Join{}, &CloseReason{"bye"}, &Memory{1 << 31},
	}
}

func TestCodec(t *testing.T) {
	for _, features := range []bool{false, true} {
		for _, m := range samples() {
			b, err := Encode(m, true)
			require.NoError(t, err)
			got, err := Read(bitio.NewReader(b, len(b)*8), true)
			require.NoError(t, err)
			require.Equal(t, m, got)
			for n := range len(b) {
				_, err := Read(bitio.NewReader(b[:n], n*8), features)
				if features {
					require.Error(t, err, "%T cut to %d bytes", m, n)
				}
			}
		}
	}
	_, err := Read(bitio.NewReader([]byte{99}, 8), false)
	require.ErrorIs(t, err, ErrUnknown)
	_, err = Encode(&Failure{string(make([]byte, 5000))}, false)
	require.Error(t, err)
}

// line is both ends, and what each of them is sent.
func line(sc ServerConfig, cc ClientConfig) (s *Server, c *Client, toS, toC *[][]byte) {
	toS, toC = new([][]byte), new([][]byte)
	sender := func(q *[][]byte) Sender {
		return func(m Message) error {
			b, err := Encode(m, false)
			*q = append(*q, b)
			return err
		}
	}
	return NewServer(sc, sender(toC)), NewClient(cc, sender(toS)), toS, toC
}

// talk runs a login over an in-memory line and returns both ends and their errors.
func talk(sc ServerConfig, cc ClientConfig) (s *Server, c *Client, serr, cerr error) {
	s, c, toS, toC := line(sc, cc)
	serr, cerr = run(s, c, toS, toC)
	return s, c, serr, cerr
}

func run(s *Server, c *Client, toS, toC *[][]byte) (serr, cerr error) {
	cerr = c.Start()
	for len(*toS)+len(*toC) > 0 {
		for _, b := range *toS {
			serr = errors.Join(serr, s.Receive(bitio.NewReader(b, len(b)*8)))
		}
		*toS = nil
		for _, b := range *toC {
			cerr = errors.Join(cerr, c.Receive(bitio.NewReader(b, len(b)*8)))
		}
		*toC = nil
	}
	return serr, cerr
}

func TestLogin(t *testing.T) {
	speed, welcomed := 0, ""
	s, c, serr, cerr := talk(ServerConfig{Map: "yard", MaxNetSpeed: 5000, NetSpeed: func(n int) { speed = n }},
		ClientConfig{URL: "?Name=Ann", Entered: func(w *Welcome) { welcomed = w.Map }})
	require.NoError(t, serr)
	require.NoError(t, cerr)
	require.True(t, s.Joined() && c.Joined())
	require.Equal(t, 5000, speed)
	require.Equal(t, "yard", welcomed)
	require.Equal(t, "?Name=Ann", s.Login().URL)
}

func TestRefusals(t *testing.T) {
	_, c, serr, cerr := talk(ServerConfig{Authorize: func(*Login) error { return errors.New("banned") }}, ClientConfig{})
	require.ErrorIs(t, serr, ErrRefused)
	require.ErrorIs(t, cerr, ErrRefused)
	require.Equal(t, "banned", c.PeerReason())
	_, _, serr, cerr = talk(ServerConfig{NetworkVersion: 2}, ClientConfig{NetworkVersion: 3})
	require.ErrorIs(t, serr, ErrVersion)
	require.ErrorIs(t, cerr, ErrVersion)
}

func TestOrder(t *testing.T) {
	for _, m := range samples() {
		s := NewServer(ServerConfig{}, func(Message) error { return nil })
		b, err := Encode(m, false)
		require.NoError(t, err)
		err = s.Receive(bitio.NewReader(b, len(b)*8))
		switch m.(type) {
		case *Hello:
			require.NoError(t, err, "%T", m)
		default:
			require.ErrorIs(t, err, ErrOrder, "%T", m)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, m := range samples() {
		b, _ := Encode(m, true)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bitio.NewReader(b, len(b)*8)
		for r.Remaining() > 0 {
			m, err := Read(r, true)
			if err != nil {
				return
			}
			if _, err := Encode(m, true); err != nil {
				t.Fatalf("%T was read but can't be written: %v", m, err)
			}
		}
	})
}

// TestReasonsCrossTheWire: each reason for a refusal is the same error at the client, with the words that came with it.
func TestReasonsCrossTheWire(t *testing.T) {
	for _, c := range []struct {
		err, is error
		text    string
	}{
		{ErrBanned, ErrBanned, "banned"},
		{fmt.Errorf("%w: until May", ErrBanned), ErrBanned, "banned: until May"},
		{fmt.Errorf("the list says: %w", ErrBanned), ErrBanned, "banned: the list says: banned"},
		{ErrFull, ErrFull, "server full"},
		{ErrAlreadyConnected, ErrAlreadyConnected, "already connected"},
		{errors.New("banned forever"), nil, "banned forever"},
		{errors.New("no"), nil, "no"},
		{fmt.Errorf("%w: as a\x00b", ErrBanned), ErrBanned, "banned: as a\uFFFDb"},
		{fmt.Errorf("%w: %s", ErrFull, strings.Repeat("x", 10_000)), ErrFull, "server full: the words were too many to send"},
		{errors.New(strings.Repeat("x", 10_000)), nil, "the words were too many to send"},
	} {
		_, cl, serr, cerr := talk(ServerConfig{Authorize: func(*Login) error { return c.err }}, ClientConfig{})
		require.ErrorIs(t, serr, ErrRefused)
		require.ErrorIs(t, cerr, ErrRefused)
		require.Equal(t, c.text, cl.PeerReason())
		require.Contains(t, cerr.Error(), c.text)
		for _, reason := range reasons {
			require.Equal(t, reason == c.is, errors.Is(cerr, reason), "%v: %v", c.err, reason)
		}
	}
}

// TestMemoryIsExchanged: each end hears what the other may hold, if that tells it, and a peer that mustn't tell it breaks the rules, as does one that does so before Hello.
func TestMemoryIsExchanged(t *testing.T) {
	for _, own := range [][2]int{{0, 0}, {1 << 20, 0}, {0, 3 << 20}, {1 << 20, math.MaxInt32}} {
		var heard [2]uint32
		s, c, toS, toC := line(ServerConfig{}, ClientConfig{})
		s.ExchangeMemory(own[0], func(n uint32) { heard[1] = n })
		c.ExchangeMemory(own[1], func(n uint32) { heard[0] = n })
		serr, cerr := run(s, c, toS, toC)
		require.NoError(t, serr)
		require.NoError(t, cerr)
		require.True(t, s.Joined() && c.Joined())
		require.Equal(t, own, [2]int{int(heard[0]), int(heard[1])})
	}
	s, c, toS, toC := line(ServerConfig{}, ClientConfig{})
	c.ExchangeMemory(1<<20, nil)
	serr, _ := run(s, c, toS, toC)
	require.ErrorIs(t, serr, ErrOrder)
	s, c, toS, toC = line(ServerConfig{}, ClientConfig{})
	s.ExchangeMemory(1<<20, nil)
	_, cerr := run(s, c, toS, toC)
	require.ErrorIs(t, cerr, ErrOrder)
	s, _, _, _ = line(ServerConfig{}, ClientConfig{})
	s.ExchangeMemory(0, func(uint32) {})
	b, err := Encode(&Memory{1}, false)
	require.NoError(t, err)
	require.ErrorIs(t, s.Receive(bitio.NewReader(b, len(b)*8)), ErrOrder)
}
