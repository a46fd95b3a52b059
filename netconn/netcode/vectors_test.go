package netcode

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/bunchnet/bunchnet/history/replay"
)

type num uint64

func (n *num) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 0, 64)
	*n = num(v)
	return err
}

type vectors struct {
	ProtocolID num `json:"protocol_id"`
	Create     num
	Expire     num
	ClientID   num   `json:"client_id"`
	Timeout    int32 `json:"timeout_seconds"`
	Servers    []string
	PrivateKey string `json:"private_key"`
	C2S        string `json:"client_to_server_key"`
	S2C        string `json:"server_to_client_key"`
	ChKey      string `json:"challenge_key"`
	Nonce      string `json:"token_nonce"`
	UserData   string `json:"user_data"`
	Plain      string `json:"private_token_plain"`
	Sealed     string `json:"private_token_encrypted"`
	Token      string `json:"connect_token"`
	ChPlain    string `json:"challenge_plain"`
	ChSeq      num    `json:"challenge_sequence"`
	ChSealed   string `json:"challenge_encrypted"`
	Request    string `json:"request_packet"`
	Packets    []struct {
		Type     packetType
		Sequence num
		Hex      string
	}
	Addresses []struct {
		In   string
		OK   bool
		Type int
		Port uint16
		Text string `json:"string"`
	}
	Replay []struct {
		Sequence num
		Accepted bool
	}
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestNetcodeVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/netcode102.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(b, &v))
	key := Key(unhex(t, v.PrivateKey))
	var servers []netip.AddrPort
	for _, s := range v.Servers {
		servers = append(servers, netip.MustParseAddrPort(s))
	}
	checked := 0
	same := func(want string, got []byte) {
		t.Helper()
		require.Equal(t, want, hex.EncodeToString(got))
		checked++
	}

	priv := private{clientID: uint64(v.ClientID), timeout: v.Timeout, servers: servers, c2s: Key(unhex(t, v.C2S)), s2c: Key(unhex(t, v.S2C)), userData: [UserDataBytes]byte(unhex(t, v.UserData))}
	var plain [privateBytes]byte
	require.NoError(t, priv.write(plain[:]))
	same(v.Plain, plain[:])
	pub := public{protocolID: uint64(v.ProtocolID), create: uint64(v.Create), expire: uint64(v.Expire), nonce: [tokenNonceBytes]byte(unhex(t, v.Nonce)),
		timeout: v.Timeout, servers: servers, c2s: priv.c2s, s2c: priv.s2c}
	require.NoError(t, sealPrivate(pub.sealed[:], plain[:], pub.protocolID, pub.expire, &pub.nonce, &key))
	same(v.Sealed, pub.sealed[:])
	token, err := pub.append(nil)
	require.NoError(t, err)
	same(v.Token, token)
	var read public
	require.NoError(t, read.read(token))
	require.Equal(t, pub, read)
	x, err := chacha20poly1305.NewX(key[:])
	require.NoError(t, err)
	opened, err := openPrivate(x, unhex(t, v.Sealed), pub.nonce[:], appendPrivateAD(nil, pub.protocolID, pub.expire))
	require.NoError(t, err)
	var got private
	require.NoError(t, got.read(opened))
	require.Equal(t, priv, got)
	same(v.Request, appendRequest(nil, &pub))

	a, err := chacha20poly1305.New(unhex(t, v.ChKey))
	require.NoError(t, err)
	ch := challenge{clientID: uint64(v.ClientID), userData: priv.userData}
	sealed := make([]byte, challengeBytes)
	ch.seal(a, uint64(v.ChSeq), sealed)
	same(v.ChSealed, sealed)
	var back challenge
	require.NoError(t, back.open(a, uint64(v.ChSeq), sealed))
	require.Equal(t, ch, back)

	s := newSealer(&priv.s2c, pub.protocolID)
	for i, p := range v.Packets {
		want := unhex(t, p.Hex)
		kind, seq, body, err := header(bytes.Clone(want))
		require.NoError(t, err, "packet %d", i)
		require.Equal(t, p.Type, kind)
		require.EqualValues(t, p.Sequence, seq)
		plain, err := s.open(want[0], seq, body)
		require.NoError(t, err, "packet %d", i)
		buf := append(make([]byte, Headroom, Headroom+len(plain)+Tailroom), plain...)
		same(p.Hex, s.seal(kind, seq, buf))
		for bit := range 8 * len(want) { // every flipped bit is refused
			if bit > 200 {
				break
			}
			bad := bytes.Clone(want)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, seq, body, err := header(bad); err == nil {
				_, err = s.open(bad[0], seq, body)
				require.Error(t, err, "packet %d, bit %d", i, bit)
			}
		}
	}

	var w replay.Window
	last := uint64(0)
	for i, r := range v.Replay {
		ok := w.Check(uint64(r.Sequence))
		if uint64(r.Sequence) == 1<<64-1 && last == 1<<64-1 {
			require.False(t, ok, "the reference takes the highest sequence twice; we don't")
		} else {
			require.Equal(t, r.Accepted, ok, "replay step %d: %d", i, uint64(r.Sequence))
		}
		if ok {
			w.Accept(uint64(r.Sequence))
		}
		last = uint64(r.Sequence)
		checked++
	}
	for _, a := range v.Addresses {
		ap, err := ParseAddr(a.In)
		require.Equal(t, a.OK, err == nil, "%q", a.In)
		if a.OK {
			require.Equal(t, a.Type == v4, ap.Addr().Is4(), a.In)
			require.Equal(t, a.Port, ap.Port(), a.In)
			text := ap.String()
			if ap.Port() == 0 {
				text = ap.Addr().String()
			}
			require.Equal(t, a.Text, text)
		}
		checked++
	}
	fmt.Printf("vectors netcode102.json: %d checked\n", checked)
}

func TestTokenErrors(t *testing.T) {
	b, err := os.ReadFile("testdata/netcode102.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(b, &v))
	token := unhex(t, v.Token)
	for n := range token {
		var p public
		require.Error(t, p.read(token[:n]), "cut to %d bytes", n)
	}
	bad := bytes.Clone(token)
	bad[3] ^= 1
	var p public
	require.ErrorIs(t, p.read(bad), ErrToken)
	_, err = GenerateConnectToken(TokenConfig{Timeout: 5})
	require.Error(t, err)
}

func FuzzReaders(f *testing.F) {
	f.Add(make([]byte, ConnectTokenBytes))
	f.Add([]byte{0x11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p public
		_ = p.read(b)
		if len(b) >= privateBytes-macBytes {
			var priv private
			_ = priv.read(b[:privateBytes-macBytes])
		}
		if _, seq, body, err := header(b); err == nil {
			_, _ = newSealer(&Key{}, 1).open(b[0], seq, body)
		}
	})
}

func TestAllocsSeal(t *testing.T) {
	s := newSealer(&Key{1}, 7)
	buf := make([]byte, Headroom+1000, Headroom+1000+Tailroom)
	seq := uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		seq++
		p := s.seal(typePayload, seq, buf[:Headroom+1000])
		_, n, body, err := header(p)
		if err == nil {
			_, err = s.open(p[0], n, body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
}

func BenchmarkSealOpen(b *testing.B) {
	for _, size := range []int{100, 1200} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			s := newSealer(&Key{1}, 7)
			buf := make([]byte, Headroom+size, Headroom+size+Tailroom)
			b.ReportAllocs()
			for i := range b.N {
				p := s.seal(typePayload, uint64(i), buf[:Headroom+size])
				_, n, body, _ := header(p)
				if _, err := s.open(p[0], n, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
