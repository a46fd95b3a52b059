package driver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// KeyEnv is the environment variable with the key of a Netcode link without a Key: 64 hex digits, the same for game
// servers and the token service.
const KeyEnv = "BUNCHNET_KEY"

// ErrNoToken is returned by Dial with the Netcode link when there is neither a token nor a key to make one.
var ErrNoToken = errors.New("driver: the Netcode link needs a Token from your token service; for development set " + KeyEnv +
	" to the server's key, or choose a link that isn't encrypted by its name")

// development is the key of servers without a configured key. It lives as long as the process.
var development struct {
	sync.Mutex
	key    netcode.Key
	warned bool
}

// developmentKey returns that key, or zero when there is none. With create it makes one.
func developmentKey(source io.Reader, create bool) (netcode.Key, error) {
	development.Lock()
	defer development.Unlock()
	if !development.key.IsZero() || !create {
		return development.key, nil
	}
	k, err := netcode.GenerateKey(source)
	if err == nil {
		development.key = k
	}
	return k, err
}

// warnOnce warns that the key is for development only. Without a Logger slog.Default gets it, once a process, unless the
// socket is on the loopback: a client in another process of this machine then gets ErrNoToken.
func warnOnce(l *slog.Logger, given, loopback bool) {
	development.Lock()
	defer development.Unlock()
	if !given {
		if development.warned || loopback {
			return
		}
		l, development.warned = slog.Default(), true
	}
	l.Warn("no key given: made one for development; only clients in this process can connect", "set", KeyEnv)
}

// environmentKey is the key in the environment; zero when there is none.
func environmentKey() (netcode.Key, error) {
	text, ok := os.LookupEnv(KeyEnv)
	if !ok || text == "" {
		return netcode.Key{}, nil
	}
	k, err := netcode.ParseKey(text)
	if err != nil {
		return k, fmt.Errorf("driver: %s: %w", KeyEnv, err)
	}
	return k, nil
}

// key is the link's key: its own, the environment's, or that for development.
func (l *Netcode) key(create bool) (k netcode.Key, made bool, err error) {
	if !l.Key.IsZero() {
		return l.Key, false, nil
	}
	if k, err = environmentKey(); err != nil || !k.IsZero() {
		return k, false, err
	}
	k, err = developmentKey(rand.Reader, create)
	return k, true, err
}

// spent is hashes of the tokens dialed with last. Reusing a token, even with another server, reuses nonces and breaks
// the encryption.
var spent struct {
	sync.Mutex
	sums [1024][sha256.Size]byte
	n    int
}

// spend notes a token, and reports whether it wasn't dialed with before.
func spend(token netcode.Token) bool {
	if len(token) != netcode.ConnectTokenBytes {
		return true // it is refused anyway
	}
	sum := sha256.Sum256(token)
	spent.Lock()
	defer spent.Unlock()
	if slices.Contains(spent.sums[:min(spent.n, len(spent.sums))], sum) {
		return false
	}
	spent.sums[spent.n%len(spent.sums)] = sum
	spent.n++
	return true
}

const (
	ownTokenLife    = 30 // seconds
	ownTokenTimeout = 5  // seconds
)

// ownToken makes a token for a client that knows the server's key.
func (l *Netcode) ownToken(d *Driver, to netip.AddrPort) (netcode.Token, error) {
	key, _, err := l.key(false)
	if err != nil {
		return nil, err
	}
	if key.IsZero() {
		return nil, ErrNoToken
	}
	var id [8]byte
	if _, err := io.ReadFull(d.cfg.Rand, id[:]); err != nil {
		return nil, fmt.Errorf("driver: %w", err)
	}
	now := uint64(d.cfg.Clock().Unix())
	return netcode.GenerateConnectToken(netcode.TokenConfig{ProtocolID: l.ProtocolID, ClientID: binary.LittleEndian.Uint64(id[:]), Create: now,
		Expire: now + ownTokenLife, Timeout: ownTokenTimeout, Servers: []netip.AddrPort{to}, PrivateKey: key, Rand: d.cfg.Rand})
}
