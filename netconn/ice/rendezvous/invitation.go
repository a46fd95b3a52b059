package rendezvous

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// words are those of room codes: short, and hard to confuse when they are said.
var words = strings.Fields(`ACORN AMBER APPLE APRON ARROW BADGE BAGEL BANJO BEACH BERRY BISON BLAZE BLOOM BRICK BROOM BUGLE CABIN CAMEL CANDY CANOE CARGO CEDAR CHALK CHESS
CIDER CLOUD CLOVE COBRA COMET CORAL CRANE CROWN DAISY DANCE DINGO DRAKE DREAM DRIFT DUCKY EAGLE EARTH EMBER FABLE FAIRY FERRY FJORD FLAME FLUTE FROST GECKO GHOST GIANT GLOBE
GRAPE GUAVA HAZEL HERON HONEY HOTEL IGLOO IVORY JELLY JEWEL JUICE KAYAK KOALA LEMON LILAC LLAMA LOTUS LUNAR MANGO MAPLE MEDAL MELON MOOSE MOUSE NACHO NINJA NORTH OASIS OCEAN
OLIVE OPERA OTTER PANDA PEACH PEARL PIANO PILOT PIXEL PLAZA POLAR PRISM PUPPY QUACK QUAIL QUILT RADIO RAVEN RIVER ROBIN ROBOT SALSA SCOUT SHARK SHEEP SNAIL SOLAR SPARK STORM
SUGAR SUNNY SWIFT TANGO TIGER TOAST TOPAZ TORCH TULIP VIOLA WAGON WHALE YACHT ZEBRA`)

// guessing is how many codes there are for each room, of each length: so many guesses find one.
const guessing = 100_000

// codeDigits is how many digits the next room's code has: the fewest with which guesses aren't too good. So codes are short while there are few rooms. s.mu is held.
func (s *Service) codeDigits() int {
	digits, codes := 1, 10*len(words)
	for ; (s.digits[digits]+1)*guessing > codes; digits++ {
		codes *= 10
	}
	return digits
}

// newCode returns a code like QUACK-42, with so many digits.
func newCode(digits int) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	n, numbers := binary.LittleEndian.Uint64(b[:]), uint64(1)
	for range digits {
		numbers *= 10
	}
	return fmt.Sprintf("%s-%0*d", words[n%uint64(len(words))], digits, n/uint64(len(words))%numbers)
}

func digitsOf(code string) int { return len(code) - 1 - strings.IndexByte(code, '-') }

// maxCode is the length of the longest code.
const maxCode = 16

// ErrCode is wrapped by the error for what is neither a room code nor a link.
var ErrCode = errors.New("rendezvous: that is no room code like QUACK-42, and no link")

// Invitation says which game to join.
type Invitation struct {
	// URL is that of the service; "" in a bare code.
	URL string
	// Code is the room's, such as QUACK-42.
	Code string
	// Host is the fingerprint of the host's key, from a link; "" in a bare code. With it a guest notices a rendezvous that pretends to be the host.
	Host string
	// Pass is what the rendezvous knows a guest with the link by; "" in a bare code.
	Pass string
}

// cutLink parts what a link has behind its #, and what a guest shows of it: the pass, which a guest that joined by the code has none of, and the fingerprint.
func cutLink(text string) (pass, host string) {
	at := max(0, len(text)-base64.RawURLEncoding.EncodedLen(fingerprintBytes))
	return text[:at], text[at:]
}

// passBytes is how much chance a link's pass has.
const passBytes = 8

// ParseInvitation reads a code, in small letters and with spaces around it too, or a link of Room.Link.
func ParseInvitation(text string) (i Invitation, err error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		i.Code = strings.ToUpper(text)
		return i, checkCode(i.Code)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return i, ErrCode
	}
	base, code, ok := strings.Cut(u.Path, joinPath)
	if !ok {
		return i, ErrCode
	}
	i = Invitation{Code: strings.ToUpper(code)}
	i.Pass, i.Host = cutLink(u.Fragment)
	sum, err := base64.RawURLEncoding.DecodeString(i.Host)
	pass, err2 := base64.RawURLEncoding.DecodeString(i.Pass)
	if err != nil || err2 != nil || u.Fragment != "" && (len(sum) != fingerprintBytes || len(pass) != passBytes) {
		return i, fmt.Errorf("%w: the part behind # is damaged; copy the whole link", ErrCode)
	}
	u.Path, u.Fragment, u.RawQuery = base, "", ""
	i.URL = u.String()
	return i, checkCode(i.Code)
}

func checkCode(code string) error {
	word, number, ok := strings.Cut(code, "-")
	if !ok || len(code) > maxCode || word == "" || number == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.Trim(number, "0123456789") != "" {
		return ErrCode
	}
	return nil
}
