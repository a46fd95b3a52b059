// Slots tells five short stories of a server with two slots (netconn/salted), over a
// simulated network in virtual time: a full server, a timeout, a client that comes back before its
// old connection has timed out, a clean goodbye on a bad network, and a flood of requests with
// false sources.
//
//	go run ./examples/slots
//	go run ./examples/slots -seed 7 -loss 20
//	go run ./examples/slots -tell                # what happens in each, line by line
//
// Times are in seconds. The exit code is 1 if a story didn't end as it should.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bunchnet/bunchnet/netconn/salted"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of the network and of all salts")
	loss := flag.Float64("loss", 5, "percentage of packets lost, 0 to 40")
	aloud := flag.Bool("tell", false, "print what happens, with the time")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%q isn't a flag; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	if *loss < 0 || *loss > 40 {
		fmt.Fprintln(os.Stderr, "-loss must be from 0 to 40")
		os.Exit(2)
	}
	good, err := tell(os.Stdout, *aloud, *seed, *loss)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !good || err != nil {
		os.Exit(1)
	}
}

// story is a title and what happens. It ends with an error, or well.
type story struct {
	title string
	run   func(w *world) error
}

var stories = []story{
	{"a full server", full},
	{"a timeout", timeout},
	{"back before the old connection timed out", reconnect},
	{"a clean goodbye while half of the packets get lost", goodbye},
	{"a flood of requests and responses with false sources", flood},
}

// tell runs the stories, each in a world of its own, and gives the verdict. What happens in them is printed when it is told aloud.
func tell(out io.Writer, aloud bool, seed uint64, loss float64) (all bool, err error) {
	good := 0
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "story\ttook\tended")
	for i, s := range stories {
		lines := io.Discard
		if aloud {
			lines = out
		}
		fmt.Fprintf(lines, "%d. %s\n\n", i+1, s.title)
		w := newWorld(lines, seed+uint64(i), loss)
		ended := "as it should"
		if err := s.run(w); err != nil {
			ended = err.Error()
		} else {
			good++
		}
		fmt.Fprintln(lines)
		fmt.Fprintf(t, "%s\t%.2f s\t%s\n", s.title, w.now.Seconds(), ended)
	}
	t.Flush()
	verdict := "PASS"
	if good < len(stories) {
		verdict = "FAIL"
	}
	_, err = fmt.Fprintf(out, "%s\n%s: %d of %d stories ended as they should\n", &table, verdict, good, len(stories))
	return good == len(stories), err
}

// arrive lets ada and bob connect.
func arrive(w *world) (ada, bob *player, err error) {
	ada, bob = w.player("ada"), w.player("bob")
	if err := w.connect(ada, 0); err != nil {
		return nil, nil, err
	}
	return ada, bob, w.connect(bob, 1)
}

func full(w *world) error {
	_, bob, err := arrive(w)
	if err != nil {
		return err
	}
	eve := w.player("eve")
	eve.connect()
	if err := w.until(2*time.Second, "eve is denied", func() bool { return eve.client.State() == salted.Denied }); err != nil {
		return err
	}
	if eve.client.Reason() != salted.Full {
		return fmt.Errorf("eve was told %q", eve.client.Reason())
	}
	bob.leave()
	if err := w.until(time.Second, "bob's slot is free", func() bool { return w.server.Clients() == 1 }); err != nil {
		return err
	}
	return w.connect(eve, 1)
}

func timeout(w *world) error {
	_, bob, err := arrive(w)
	if err != nil {
		return err
	}
	w.say("world", "bob's cable is pulled")
	pulled := w.now
	bob.unplug(true)
	both := func() bool { return bob.client.State() == salted.ConnectionTimedOut && w.server.Clients() == 1 }
	if err := w.until(6*time.Second, "both ends notice", both); err != nil {
		return err
	}
	if took := w.now - pulled; took < 4900*time.Millisecond {
		return fmt.Errorf("a timeout of 5 s took %v", took)
	}
	w.say("world", "the cable is back")
	bob.unplug(false)
	return w.connect(bob, 1)
}

func reconnect(w *world) error {
	ada, _, err := arrive(w)
	if err != nil {
		return err
	}
	w.say("ada", "crashes, without a word")
	crashed := w.now
	ada.restart()
	w.run(400 * time.Millisecond)
	w.say("ada", "starts again, from the same port")
	if err := w.connect(ada, 0); err != nil {
		return err
	}
	if took := w.now - crashed; took > 4*time.Second {
		return fmt.Errorf("it took %v", took)
	}
	if w.server.Clients() != 2 || w.server.Counters.Replaced != 1 {
		return errors.New("ada holds two slots, or none")
	}
	return nil
}

func goodbye(w *world) error {
	ada, _, err := arrive(w)
	if err != nil {
		return err
	}
	w.setLoss(50)
	ada.leave()
	if err := w.until(time.Second, "ada's slot is free", func() bool { return w.server.Clients() == 1 }); err != nil {
		return err
	}
	w.say("world", "one of ten goodbyes was enough")
	return nil
}

func flood(w *world) error {
	ada, _, err := arrive(w)
	if err != nil {
		return err
	}
	ada.leave()
	if err := w.until(time.Second, "ada's slot is free", func() bool { return w.server.Clients() == 1 }); err != nil {
		return err
	}
	const packets = 20_000
	before := w.server.Counters
	w.flood(packets)
	after := w.server.Counters
	w.say("server", "got %d packets from strangers, sent %d challenges, gave away %d slots",
		packets, after.Requests-before.Requests, after.Connected-before.Connected)
	if after.Connected != before.Connected {
		return errors.New("a false source took a slot")
	}
	if w.answered >= w.asked {
		return fmt.Errorf("%d bytes were answered with %d", w.asked, w.answered)
	}
	w.say("server", "answered %d kB with %d kB", w.asked/1000, w.answered/1000)
	return w.connect(ada, 0)
}
