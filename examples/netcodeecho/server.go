package main

import (
	"flag"
	"fmt"
	"net/netip"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netcode"
)

type serverOptions struct {
	secrets
	addr                                     string
	packets, payload, slots, clients, kickAt int
	seconds                                  float64
}

func serverMain(args []string) error {
	o := serverOptions{addr: "127.0.0.1:40000", slots: 64}
	if err := o.parse(args); err != nil {
		return fail(2, "%v", err)
	}
	s, err := newServer(o)
	if err != nil {
		return err
	}
	return s.run()
}

// parse reads flags over what is set already.
func (o *serverOptions) parse(args []string) error {
	f := flag.NewFlagSet("server", flag.ContinueOnError)
	o.flags(f)
	f.StringVar(&o.addr, "addr", o.addr, "address to listen at; tokens must name it")
	f.IntVar(&o.packets, "packets", o.packets, "different payloads that each client must have sent; 0 any number")
	f.IntVar(&o.payload, "payload", o.payload, "bytes that each payload must have; 0 any")
	f.IntVar(&o.slots, "max-clients", o.slots, "slots")
	f.IntVar(&o.clients, "clients", o.clients, "end after so many clients have come and gone; 0 never")
	f.IntVar(&o.kickAt, "kick-after", o.kickAt, "disconnect a client after so many different payloads; 0 never")
	f.Float64Var(&o.seconds, "seconds", o.seconds, "end after so many seconds; 0 never")
	return o.secrets.parse(f, args)
}

// server echoes. It is the machine's handler.
type server struct {
	*wire
	o     serverOptions
	m     *netcode.Server
	seen  []map[uint64]bool // by slot: the payloads of its client
	came  int
	gone  int
	total int
	kick  []int // slots to free
	wrong string
}

func newServer(o serverOptions) (*server, error) {
	addr, err := netcode.ParseAddr(o.addr)
	if err != nil {
		return nil, fail(2, "--addr %s: %v", o.addr, err)
	}
	w, err := newWire(o.addr)
	if err != nil {
		return nil, err
	}
	if addr.Port() == 0 {
		addr = w.socket.LocalAddr()
	}
	s := &server{wire: w, o: o}
	s.m, err = netcode.NewServer(netcode.ServerConfig{ProtocolID: o.protocol, PrivateKey: o.key, Addrs: []netip.AddrPort{addr}, Slots: o.slots,
		Handler: s, UnixAtZero: uint64(w.epoch.Unix())})
	if err != nil {
		_ = w.socket.Close()
		return nil, fail(2, "%v", err)
	}
	s.seen = make([]map[uint64]bool, s.m.Slots())
	return s, nil
}

func (s *server) run() error {
	fmt.Printf("listening at %v, %d slots\n", s.socket.LocalAddr(), s.m.Slots())
	defer s.socket.Close()
	for !s.done() {
		err := s.receive(5*time.Millisecond, func(from netip.AddrPort, p []byte) { s.m.Receive(s.now(), from, p) })
		if err != nil {
			return err
		}
		for _, slot := range s.kick {
			s.m.Disconnect(s.now(), slot)
		}
		s.kick = s.kick[:0]
		s.m.SetClock(s.now(), uint64(time.Now().Unix()))
		s.m.Tick(s.now())
	}
	for slot := range s.seen {
		s.m.Disconnect(s.now(), slot)
	}
	fmt.Printf("server: %d clients came, %d left, %d payloads echoed\n", s.came, s.gone, s.total)
	for reason, n := range s.m.Counters.Refusals {
		if n > 0 {
			fmt.Printf("  refused %8d  %s\n", n, reason)
		}
	}
	switch {
	case s.wrong != "":
		return fail(3, "%s", s.wrong)
	case s.o.clients > 0 && s.gone < s.o.clients:
		return fail(3, "out of time: %d of %d clients came and left", s.gone, s.o.clients)
	}
	_, err := fmt.Println("PASS")
	return err
}

func (s *server) done() bool {
	return s.wrong != "" || s.o.clients > 0 && s.gone >= s.o.clients || s.o.seconds > 0 && s.now().Seconds() >= s.o.seconds
}

// Connected is the machine's.
func (s *server) Connected(slot int, info netcode.ClientInfo) {
	s.came++
	s.seen[slot] = map[uint64]bool{}
	fmt.Printf("slot %d: client %d from %v\n", slot, info.ID, info.Addr)
	if *info.UserData != userData() {
		s.wrong = fmt.Sprintf("client %d has other user data than 0, 1, 2, ...", info.ID)
	}
}

// Disconnected is the machine's.
func (s *server) Disconnected(slot int, reason netcode.Reason) {
	s.gone++
	n := len(s.seen[slot])
	fmt.Printf("slot %d: %v after %d different payloads\n", slot, reason, n)
	if s.o.packets > 0 && n != s.o.packets && reason != netcode.Kicked {
		s.wrong = fmt.Sprintf("a client left after %d of %d payloads", n, s.o.packets)
	}
}

// Payload is the machine's.
func (s *server) Payload(slot int, p []byte) {
	n, ok := number(p)
	if !ok || s.o.payload > 0 && len(p) != s.o.payload {
		s.wrong = fmt.Sprintf("payload %d of %d bytes isn't what it should be", n, len(p))
		return
	}
	s.seen[slot][n] = true
	if s.m.SendPayload(s.now(), slot, s.room(p)) == nil {
		s.total++
	}
	if s.o.kickAt > 0 && len(s.seen[slot]) == s.o.kickAt {
		s.kick = append(s.kick, slot)
	}
}
