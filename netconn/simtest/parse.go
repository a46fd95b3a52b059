package simtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/netconn/netsim"
)

// ErrScript: a script is wrong. The errors that wrap it name the line.
var ErrScript = errors.New("simtest: script")

// Parse reads a script. Empty lines and lines that begin with # are skipped.
func Parse(text string) (Script, error) {
	var s Script
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := s.parseLine(strings.Fields(line)); err != nil {
			return s, fmt.Errorf("%w: line %d: %w", ErrScript, i+1, err)
		}
	}
	s = s.filled()
	return s, s.Validate()
}

// maxHosts and maxScript bound what a script may ask for.
const (
	maxHosts  = 250
	maxScript = 24 * time.Hour
)

// Validate returns an error that wraps ErrScript if the script can't be played.
func (s *Script) Validate() error {
	all := s.filled()
	switch {
	case s.Run <= 0 || s.Run > maxScript || s.Settle < 0 || s.Settle > maxScript:
		return fmt.Errorf("%w: run must be above 0 and, as settle, at most %v", ErrScript, maxScript)
	case s.Servers < 0 || s.Clients < 0 || all.Servers+all.Clients > maxHosts:
		return fmt.Errorf("%w: servers and clients must be 1 to %d together, or 0, which is one", ErrScript, maxHosts)
	}
	if err := s.Net.Validate(); err != nil {
		return fmt.Errorf("%w: net: %w", ErrScript, err)
	}
	for _, f := range s.Faults {
		if err := f.validate(&all); err != nil {
			return fmt.Errorf("%w: %v: %w", ErrScript, f, err)
		}
	}
	return nil
}

func (f *Fault) validate(s *Script) error {
	known := false
	for _, k := range Kinds {
		known = known || k == f.Kind
	}
	switch {
	case !known:
		return fmt.Errorf("no fault is called %q", f.Kind)
	case f.At < 0 || f.For < 0 || f.At > maxScript || f.For > maxScript:
		return errors.New("times must be from 0 to 24h")
	case !s.hasHost(f.Host) || f.takesOther() && !s.hasHost(f.Other):
		return errors.New("hosts are server1 to serverM and client1 to clientN")
	case f.takesNet() && strings.HasPrefix(f.Host, "server"):
		return errors.New("only clients have a link of their own")
	case f.PPM < -100_000 || f.PPM > 100_000:
		return errors.New("ppm must be within 100000")
	}
	return f.Net.Validate()
}

func (s *Script) hasHost(name string) bool {
	for _, k := range []struct {
		prefix string
		n      int
	}{{"server", s.Servers}, {"client", s.Clients}} {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok {
			i, err := strconv.Atoi(rest)
			return err == nil && i >= 1 && i <= k.n && rest == strconv.Itoa(i)
		}
	}
	return false
}

func (s *Script) parseLine(f []string) (err error) {
	one := func() string {
		if len(f) != 2 {
			err = fmt.Errorf("%s takes one value", f[0])
			return ""
		}
		return f[1]
	}
	number := func(to *int) {
		if v := one(); err == nil {
			*to, err = strconv.Atoi(v)
		}
	}
	duration := func(to *time.Duration) {
		if v := one(); err == nil {
			*to, err = time.ParseDuration(v)
		}
	}
	switch f[0] {
	case "seed":
		if v := one(); err == nil {
			s.Seed, err = strconv.ParseUint(v, 10, 64)
		}
	case "run":
		duration(&s.Run)
	case "settle":
		duration(&s.Settle)
	case "servers":
		number(&s.Servers)
	case "clients":
		number(&s.Clients)
	case "option":
		if len(f) != 3 {
			return errors.New("option takes a key and a value")
		}
		s.Set(f[1], f[2])
	case "net":
		s.Net, err = parseNet(f[1:])
	case "at":
		err = s.parseFault(f[1:])
	default:
		err = fmt.Errorf("no verb is called %q", f[0])
	}
	return err
}

func (s *Script) parseFault(words []string) (err error) {
	if len(words) < 3 {
		return errors.New("at takes a time, a verb and a host")
	}
	f := Fault{Kind: Kind(words[1]), Host: words[2]}
	if f.At, err = time.ParseDuration(words[0]); err != nil {
		return err
	}
	words = words[3:]
	if f.takesOther() && len(words) > 0 {
		f.Other, words = words[0], words[1:]
	}
	if len(words) >= 2 && words[0] == "for" {
		if f.For, err = time.ParseDuration(words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	if f.Kind == Skew && len(words) == 1 {
		v, _ := strings.CutPrefix(words[0], "ppm=")
		f.PPM, err = strconv.Atoi(v)
		words = nil
	}
	if err == nil {
		f.Net, err = parseNet(words)
	}
	s.Faults = append(s.Faults, f)
	return err
}

// netFields is the names of a link's settings in scripts.
func netFields(s *netsim.Settings) []struct {
	name string
	at   any
} {
	return []struct {
		name string
		at   any
	}{
		{"lag", &s.Lag}, {"variance", &s.LagVariance}, {"lagmin", &s.LagMin}, {"lagmax", &s.LagMax}, {"jitter", &s.Jitter},
		{"loss", &s.Loss}, {"minsize", &s.LossMinSize}, {"maxsize", &s.LossMaxSize}, {"burst", &s.BurstLoss}, {"burstlen", &s.BurstLength},
		{"dup", &s.Dup}, {"order", &s.Order}, {"orderdelay", &s.OrderDelay}, {"corrupt", &s.Corrupt},
		{"bandwidth", &s.Bandwidth}, {"queue", &s.QueueDelay}, {"mtu", &s.MTU}, {"packets", &s.MaxPackets}, {"bytes", &s.MaxBytes},
	}
}

func netText(s netsim.Settings) string {
	var b strings.Builder
	for _, f := range netFields(&s) {
		switch v := f.at.(type) {
		case *time.Duration:
			if *v != 0 {
				fmt.Fprintf(&b, " %s=%v", f.name, *v)
			}
		case *float64:
			if *v != 0 {
				fmt.Fprintf(&b, " %s=%s", f.name, strconv.FormatFloat(*v, 'g', -1, 64))
			}
		case *int:
			if *v != 0 {
				fmt.Fprintf(&b, " %s=%d", f.name, *v)
			}
		}
	}
	return b.String()
}

func parseNet(words []string) (s netsim.Settings, err error) {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return s, fmt.Errorf("%q isn't a setting like loss=5", w)
		}
		found := false
		for _, f := range netFields(&s) {
			if f.name != key {
				continue
			}
			found = true
			switch v := f.at.(type) {
			case *time.Duration:
				*v, err = time.ParseDuration(value)
			case *float64:
				*v, err = strconv.ParseFloat(value, 64)
			case *int:
				*v, err = strconv.Atoi(value)
			}
		}
		if !found {
			err = fmt.Errorf("a link has no %q", key)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}
