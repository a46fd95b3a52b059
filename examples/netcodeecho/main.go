// Netcodeecho tests whether two implementations of netcode 1.02 understand each other. Its server echoes the payloads that clients send. Its client sends
// numbered payloads, and sends each again until its echo has come back. Either end may be another implementation; a game that uses bunchnet at both ends
// doesn't need this program.
//
// Run both in two terminals, with the same key of 64 hex digits (openssl rand -hex 32) and the same protocol id:
//
//	go run ./examples/netcodeecho server --addr 127.0.0.1:40000 --key HEX64 --protocol 7 --clients 1
//	go run ./examples/netcodeecho client --server 127.0.0.1:40000 --key HEX64 --protocol 7 --client-id 1 --packets 100 --payload 200
//
// The other implementation must send and expect these bytes. Payload number n begins with n as 8 bytes, little-endian; byte i from 8 on is (i*31+n)&255.
// Byte i of the user data in the token is i.
//
// The exit code is 0 when every echo was right, and 2 for wrong flags. Otherwise the last line says how far the connection got, and so does the code:
//
//	 1 a socket or file failed      13 response timed out     20 out of time before connected
//	 3 the server saw an error      14 connection timed out   21 out of time when connected
//	10 disconnected too early       15 invalid token          22 an echo was wrong
//	11 denied                       16 token expired
//	12 request timed out
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

// exit is an error with its exit code.
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

func fail(code int, format string, args ...any) error {
	return &exit{code, fmt.Sprintf(format, args...)}
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == "server":
		err = serverMain(args[1:])
	case len(args) > 0 && args[0] == "client":
		err = clientMain(args[1:])
	default:
		err = fail(2, "usage: netcodeecho server --addr A --key HEX64 --protocol P [flags], or netcodeecho client --server A --key HEX64 --protocol P [flags]; -h lists them")
	}
	return verdictCode(err)
}

// verdictCode prints what went wrong, and is its exit code.
func verdictCode(err error) int {
	var e *exit
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &e):
		fmt.Println("FAIL:", e.text)
		return e.code
	}
	fmt.Fprintln(os.Stderr, "FAIL:", err)
	return 1
}

// list is a flag that may come several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// secrets is the two flags of both ends.
type secrets struct {
	text     string
	key      netcode.Key
	protocol uint64
}

// parse parses all flags. The key isn't parsed as a flag: it would be shown when it is wrong.
func (s *secrets) parse(f *flag.FlagSet, args []string) (err error) {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q isn't a flag; see -h", f.Arg(0))
	}
	if s.text != "" {
		if s.key, err = netcode.ParseKey(s.text); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
	}
	return nil
}

func (s *secrets) flags(f *flag.FlagSet) {
	f.StringVar(&s.text, "key", s.text, "the private key, 64 hex digits")
	f.Uint64Var(&s.protocol, "protocol", s.protocol, "the protocol id")
}

// payload writes payload number n into b, at least 8 bytes.
func payload(b []byte, n uint64) {
	for i := range b {
		if i < 8 {
			b[i] = byte(n >> (8 * i))
		} else {
			b[i] = byte(uint64(i)*31 + n)
		}
	}
}

// number is which payload b is; false when it is none.
func number(b []byte) (n uint64, ok bool) {
	if len(b) < 8 {
		return 0, false
	}
	for i := range 8 {
		n |= uint64(b[i]) << (8 * i)
	}
	for i := 8; i < len(b); i++ {
		if b[i] != byte(uint64(i)*31+n) {
			return n, false
		}
	}
	return n, true
}

func userData() (d [netcode.UserDataBytes]byte) {
	for i := range d {
		d[i] = byte(i)
	}
	return d
}
