package netcode

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"

	"golang.org/x/crypto/chacha20poly1305"
)

// Sizes and limits of netcode 1.02.
const (
	KeyBytes          = 32
	UserDataBytes     = 256
	ConnectTokenBytes = 2048
	MaxServers        = 32
	MaxPayload        = 1200
	RequestBytes      = 1 + versionBytes + 8 + 8 + tokenNonceBytes + privateBytes // the packet that a client begins with

	macBytes          = 16
	versionBytes      = 13
	privateBytes      = 1024
	challengeBytes    = 300
	tokenNonceBytes   = 24
	challengePad      = challengeBytes - macBytes - 8 - UserDataBytes
	v4, v6            = 1, 2 // address types
	tokenPrivateStart = versionBytes + 8 + 8 + 8 + tokenNonceBytes
)

const version = "NETCODE 1.02\x00"

// Errors of tokens.
var (
	ErrToken   = errors.New("netcode: not a valid connect token")
	ErrExpired = errors.New("netcode: the token has expired")
	ErrServers = errors.New("netcode: a token needs 1 to 32 valid server addresses, each with a port")
	ErrSealed  = errors.New("netcode: a sealed part doesn't open with this key")
	ErrNoKey   = errors.New("netcode: a PrivateKey is needed, the same at servers and back end; make one with GenerateKey")
)

// TokenConfig is the contents of a connect token.
type TokenConfig struct {
	ProtocolID uint64
	ClientID   uint64
	// Create and Expire are seconds since 1970. Expire isn't before Create.
	Create, Expire uint64
	// Timeout is how many seconds without a packet end a connection or an attempt to connect; negative never. 0 is an error.
	Timeout int32
	// Servers is the addresses that the client dials, in order, 1 to MaxServers. Internal is, for each of them, the address by which that
	// server knows itself, for servers behind a proxy or a NAT: see ServerConfig.Addrs. Default nil: the same as Servers.
	Servers, Internal []netip.AddrPort
	UserData          [UserDataBytes]byte
	// PrivateKey is shared by the back end and the servers.
	PrivateKey Key
	// Rand is the source of the nonce and the two session keys. Default crypto/rand.
	Rand io.Reader
}

// private is the part of a token that only servers can read.
type private struct {
	clientID uint64
	timeout  int32
	servers  []netip.AddrPort
	c2s, s2c Key
	userData [UserDataBytes]byte
}

// public is a connect token as its client sees it.
type public struct {
	protocolID, create, expire uint64
	nonce                      [tokenNonceBytes]byte
	sealed                     [privateBytes]byte
	timeout                    int32
	servers                    []netip.AddrPort
	c2s, s2c                   Key
}

// Token is a connect token. It is a secret of its client: it contains the connection's keys. Printing or logging it shows nothing of it.
type Token []byte

const redactedToken = "netcode.Token(secret)"

// String hides the token.
func (Token) String() string { return redactedToken }

// Format hides the token from every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redactedToken) }

// LogValue hides the token from log/slog.
func (Token) LogValue() slog.Value { return slog.StringValue(redactedToken) }

// MarshalText refuses: encoders must not write tokens by accident.
func (Token) MarshalText() ([]byte, error) {
	return nil, errors.New("netcode: a token isn't for writing as text; use its bytes if you mean it")
}

// GenerateConnectToken makes a token of ConnectTokenBytes for one client. Hand it out over a channel that
// is secret and authentic, such as HTTPS.
func GenerateConnectToken(cfg TokenConfig) (Token, error) {
	if cfg.Internal == nil {
		cfg.Internal = cfg.Servers
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	switch {
	case cfg.PrivateKey.IsZero():
		return nil, ErrNoKey
	case cfg.Timeout == 0:
		return nil, fmt.Errorf("%w: Timeout is 0; give seconds, or -1 for never", ErrToken)
	case cfg.Create > cfg.Expire:
		return nil, fmt.Errorf("%w: Expire %d is before Create %d", ErrToken, cfg.Expire, cfg.Create)
	}
	if _, err := appendServers(nil, cfg.Servers); err != nil {
		return nil, fmt.Errorf("%w: Servers has %d", err, len(cfg.Servers))
	}
	if _, err := appendServers(nil, cfg.Internal); err != nil {
		return nil, fmt.Errorf("%w: Internal has %d", err, len(cfg.Internal))
	}
	if len(cfg.Internal) != len(cfg.Servers) {
		return nil, fmt.Errorf("%w: Internal has %d addresses and Servers %d", ErrServers, len(cfg.Internal), len(cfg.Servers))
	}
	p := public{protocolID: cfg.ProtocolID, create: cfg.Create, expire: cfg.Expire, timeout: cfg.Timeout, servers: cfg.Servers}
	for _, b := range [][]byte{p.nonce[:], p.c2s[:], p.s2c[:]} {
		if _, err := io.ReadFull(cfg.Rand, b); err != nil {
			return nil, err
		}
	}
	priv := private{clientID: cfg.ClientID, timeout: cfg.Timeout, servers: cfg.Internal, c2s: p.c2s, s2c: p.s2c, userData: cfg.UserData}
	var plain [privateBytes]byte
	if err := priv.write(plain[:]); err != nil {
		return nil, err
	}
	if err := sealPrivate(p.sealed[:], plain[:], cfg.ProtocolID, cfg.Expire, &p.nonce, &cfg.PrivateKey); err != nil {
		return nil, err
	}
	return p.append(nil)
}

const privateADBytes = versionBytes + 16

// appendPrivateAD appends the additional data of private tokens.
func appendPrivateAD(ad []byte, protocolID, expire uint64) []byte {
	ad = append(ad, version...)
	ad = binary.LittleEndian.AppendUint64(ad, protocolID)
	return binary.LittleEndian.AppendUint64(ad, expire)
}

// sealPrivate seals the first 1008 bytes of plain into dst.
func sealPrivate(dst, plain []byte, protocolID, expire uint64, nonce *[tokenNonceBytes]byte, key *Key) error {
	a, err := chacha20poly1305.NewX(key[:])
	if err == nil {
		a.Seal(dst[:0], nonce[:], plain[:privateBytes-macBytes], appendPrivateAD(nil, protocolID, expire))
	}
	return err
}

// openPrivate opens sealed in place, with the private key's XChaCha20-Poly1305.
func openPrivate(a cipher.AEAD, sealed, nonce, ad []byte) ([]byte, error) {
	plain, err := a.Open(sealed[:0], nonce, sealed, ad)
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

func (p *private) write(b []byte) error {
	w := b[:0]
	w = binary.LittleEndian.AppendUint64(w, p.clientID)
	w = binary.LittleEndian.AppendUint32(w, uint32(p.timeout))
	w, err := appendServers(w, p.servers)
	if err != nil {
		return err
	}
	w = append(w, p.c2s[:]...)
	w = append(w, p.s2c[:]...)
	copy(b[len(w):], p.userData[:])
	return nil
}

func (p *private) read(b []byte) (err error) {
	p.clientID = binary.LittleEndian.Uint64(b)
	p.timeout = int32(binary.LittleEndian.Uint32(b[8:]))
	if p.servers, b, err = readServers(b[12:]); err != nil {
		return err
	}
	if len(b) < 2*KeyBytes+UserDataBytes {
		return ErrToken
	}
	copy(p.c2s[:], b)
	copy(p.s2c[:], b[KeyBytes:])
	copy(p.userData[:], b[2*KeyBytes:])
	return nil
}

func (p *public) append(b []byte) ([]byte, error) {
	b = append(b, version...)
	b = binary.LittleEndian.AppendUint64(b, p.protocolID)
	b = binary.LittleEndian.AppendUint64(b, p.create)
	b = binary.LittleEndian.AppendUint64(b, p.expire)
	b = append(b, p.nonce[:]...)
	b = append(b, p.sealed[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(p.timeout))
	b, err := appendServers(b, p.servers)
	if err != nil {
		return nil, err
	}
	b = append(b, p.c2s[:]...)
	b = append(b, p.s2c[:]...)
	return append(b, make([]byte, ConnectTokenBytes-len(b))...), nil
}

// read takes a connect token apart, by the rules of a client.
func (p *public) read(b []byte) (err error) {
	if len(b) != ConnectTokenBytes || string(b[:versionBytes]) != version {
		return ErrToken
	}
	p.protocolID = binary.LittleEndian.Uint64(b[versionBytes:])
	p.create = binary.LittleEndian.Uint64(b[versionBytes+8:])
	p.expire = binary.LittleEndian.Uint64(b[versionBytes+16:])
	copy(p.nonce[:], b[versionBytes+24:])
	copy(p.sealed[:], b[tokenPrivateStart:])
	rest := b[tokenPrivateStart+privateBytes:]
	p.timeout = int32(binary.LittleEndian.Uint32(rest))
	if p.create > p.expire {
		return ErrToken
	}
	if p.servers, rest, err = readServers(rest[4:]); err != nil {
		return err
	}
	if len(rest) < 2*KeyBytes {
		return ErrToken
	}
	copy(p.c2s[:], rest)
	copy(p.s2c[:], rest[KeyBytes:])
	return nil
}

func appendServers(b []byte, servers []netip.AddrPort) ([]byte, error) {
	if len(servers) < 1 || len(servers) > MaxServers {
		return nil, ErrServers
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(servers)))
	for _, s := range servers {
		switch a := s.Addr().Unmap(); {
		case s.Port() == 0:
			return nil, ErrServers
		case a.Is4():
			ip := a.As4()
			b = append(append(b, v4), ip[:]...)
		case a.Is6():
			ip := a.As16()
			b = append(b, v6)
			for i := 0; i < 16; i += 2 { // eight numbers, each little-endian
				b = append(b, ip[i+1], ip[i])
			}
		default:
			return nil, ErrServers
		}
		b = binary.LittleEndian.AppendUint16(b, s.Port())
	}
	return b, nil
}

func readServers(b []byte) ([]netip.AddrPort, []byte, error) {
	if len(b) < 4 {
		return nil, nil, ErrToken
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if n < 1 || n > MaxServers {
		return nil, nil, ErrServers
	}
	servers := make([]netip.AddrPort, n)
	for i := range servers {
		var addr netip.Addr
		switch {
		case len(b) >= 7 && b[0] == v4:
			addr, b = netip.AddrFrom4([4]byte(b[1:5])), b[5:]
		case len(b) >= 19 && b[0] == v6:
			var ip [16]byte
			for j := 0; j < 16; j += 2 {
				ip[j], ip[j+1] = b[2+j], b[1+j]
			}
			addr, b = netip.AddrFrom16(ip), b[17:]
		default:
			return nil, nil, ErrServers
		}
		servers[i] = unmap(netip.AddrPortFrom(addr, binary.LittleEndian.Uint16(b)))
		if b = b[2:]; servers[i].Port() == 0 {
			return nil, nil, ErrServers
		}
	}
	return servers, b, nil
}

// NeverExpires is the Expire of a token without end.
const NeverExpires = math.MaxUint64

// Expired reports whether a well-formed token has expired at a time, in seconds since 1970.
func (t Token) Expired(unix uint64) bool {
	return len(t) == ConnectTokenBytes && binary.LittleEndian.Uint64(t[versionBytes+16:]) <= unix
}
