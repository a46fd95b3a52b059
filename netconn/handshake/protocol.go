package handshake

import (
	"errors"
	"fmt"

	"github.com/bunchnet/bunchnet/bunch/bitio"
)

// The versions of the handshake (Unreal's EHandshakeVersion).
const (
	Original            uint8 = iota // 4.26 to 5.0
	Randomized                       // version, type and random bytes
	NetCLVersion                     // network version
	SessionClientID                  // session and client ids; 5.1. Not compatible with those before
	NetCLUpgradeMessage              // VersionUpgrade; 5.3 and later
)

// ErrConfig: a setting is out of range. The errors that wrap it say which.
var ErrConfig = errors.New("handshake: impossible setting")

// Protocol holds what differs between versions. Both ends must have the same, except for Version and MinVersion. The zero value is version 0.
type Protocol struct {
	// Version is the newest version of the handshake that this end speaks, 0 to 4.
	Version uint8
	// MinVersion is the lowest version that this end speaks. It is sent to the peer. A peer that sends a lower one is refused. Unreal 5.3 sends 3;
	// a known peer of 5.1 sends 1.
	MinVersion uint8
	// NetworkVersion is the checksum of the game's network version (version 2 and later). The Hello of package control compares it, not the
	// handshake.
	NetworkVersion uint32
	// Features says that packets have 16 bits of runtime features (5.3 and later; recorded packets of 5.1 don't). It needs version 3.
	Features bool
	// RuntimeFeatures is the value of those bits.
	RuntimeFeatures uint16
	// Magic holds the MagicBits bits before every packet, at most 32, low bits first (net.MagicHeader). Both are 0 for none.
	Magic     uint32
	MagicBits int
	// OriginalReplies makes a client accept two kinds of packets in the form of version 0, without IDs: restart requests and repeated Acks. A
	// known server of version 3 sends them.
	OriginalReplies bool
}

// Unreal427 returns version 0, of engine 4.26 to 5.0.
func Unreal427() Protocol { return Protocol{} }

// Unreal51 returns version 3 without runtime features, as recorded from a 5.1.1 peer. MinVersion is 1, because such peers send that.
func Unreal51() Protocol {
	return Protocol{Version: SessionClientID, MinVersion: Randomized, OriginalReplies: true}
}

// Unreal53 returns version 4 with runtime features, of engine 5.3 and later.
func Unreal53() Protocol {
	return Protocol{Version: NetCLUpgradeMessage, MinVersion: SessionClientID, Features: true}
}

// Validate returns an error that wraps ErrConfig if a field is out of range.
func (p *Protocol) Validate() error {
	switch {
	case p.Version > NetCLUpgradeMessage:
		return fmt.Errorf("%w: Version %d; the versions are 0 to 4", ErrConfig, p.Version)
	case p.MinVersion > p.Version:
		return fmt.Errorf("%w: MinVersion %d above Version %d", ErrConfig, p.MinVersion, p.Version)
	case p.Features && p.Version < SessionClientID:
		return fmt.Errorf("%w: Features with Version %d; they came after 3", ErrConfig, p.Version)
	case p.MagicBits < 0 || p.MagicBits > 32:
		return fmt.Errorf("%w: MagicBits %d; it is 0 to 32", ErrConfig, p.MagicBits)
	case uint64(p.Magic)>>p.MagicBits != 0:
		return fmt.Errorf("%w: Magic %#x in %d MagicBits", ErrConfig, p.Magic, p.MagicBits)
	}
	return nil
}

func (p *Protocol) hasIDs() bool { return p.Version >= SessionClientID }

func (p *Protocol) hasFeatures(pk *Packet) bool {
	return p.Features && pk.CurVersion >= SessionClientID
}

// fits reports whether the packet's sender speaks a version that we speak: its minimum is not
// below ours nor above what we know. Versions with ids and without don't mix.
func (p *Protocol) fits(pk *Packet) bool {
	if p.Version == Original {
		return true
	}
	return pk.MinVersion <= pk.CurVersion && pk.MinVersion >= p.MinVersion && pk.MinVersion <= p.Version &&
		pk.CurVersion >= Randomized && (pk.CurVersion >= SessionClientID) == p.hasIDs()
}

const (
	sessionBits = 2
	clientBits  = 3
	minPadding  = 8
	maxPadding  = 16
)

func (p *Protocol) writePrefix(w *bitio.Writer, session, client uint8, handshake bool) {
	w.WriteBits(uint64(p.Magic), p.MagicBits)
	if p.hasIDs() {
		w.WriteBits(uint64(session), sessionBits)
		w.WriteBits(uint64(client), clientBits)
	}
	w.WriteBool(handshake)
}

func (p *Protocol) readPrefix(r *bitio.Reader) (session, client uint8, handshake bool, err error) {
	if uint32(r.ReadBits(p.MagicBits)) != p.Magic {
		return 0, 0, false, ErrMagic
	}
	if p.hasIDs() {
		session, client = uint8(r.ReadBits(sessionBits)), uint8(r.ReadBits(clientBits))
	}
	handshake = r.ReadBool()
	if r.Err() != nil {
		err = ErrShort
	}
	return session, client, handshake, err
}

// IsHandshake reports whether a datagram is a handshake packet of this protocol. It returns false for a datagram without the prefix.
func (p *Protocol) IsHandshake(b []byte) bool {
	var r bitio.Reader
	r.Reset(b, len(b)*8)
	_, _, handshake, err := p.readPrefix(&r)
	if err == nil && handshake {
		return true
	}
	_, ok := p.readOriginalReply(b)
	return ok
}
