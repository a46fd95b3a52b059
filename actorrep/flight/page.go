package flight

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bunchnet/bunchnet/actorrep/netguid"
	"github.com/bunchnet/bunchnet/channel"
	"github.com/bunchnet/bunchnet/netconn"
)

var (
	//go:embed static/page.html
	pageHTML string
	//go:embed static/page.css
	style string
	//go:embed static/page.js
	script string
)

// The page's documents, of the film and of each of View.Clients, are lines of JSON: a shownFilm, its actors, its connections.
type shownFilm struct {
	Title   string
	Client  bool
	Cut     string
	Cause   []float64 `json:",omitempty"` // [time, connection or 0, index of an actor or -1]: what had it saved
	Steps   []float64
	Classes []shownClass
	Notes   []shownNote
	Unsaid  list // [index of the actor, or -1 for all, "units", time]: all that the game has set and nobody is told of, from then on
	Waits   list // as a connection's, of what holds for all
	Actors  int  // how many lines are actors
}

// shownConn is a connection's packets, and the records that they carried. They are kept as the elements of JSON's lists.
//
//	Sent     [packet, time, bytes], oldest first
//	Fates    [packet, 1 acked or 2 lost, time]
//	Got      [packet, time]: received, in a client's film
//	Records  [packet, index of the actor, "units", kind, time, "what they waited for"]: the units of an actor that a packet carried
//	Set      [index of the actor, "units", time]: the units of an actor that the client's world set to values that came, in a client's film
//
//	Calls    [packet, index of the actor, "name", flags, time, "why it doesn't run"]: flags 1 reliable, 2 it came from the client
//
//	Waits    [index of the actor, 1 if it is about some units only, "units", when it was found, time, "reason"]: why the connection lacks an actor or units of
//	         it, from then on; "" is that it doesn't any more. No units are the whole actor
//	From     from when on all of it is there, 0 for always
//	Began    when it began and Ended, 0 for not in this film, Heard when a packet last came before that, and Why it ended
//	Views    [time, 0 none, 1 a place or 2 an actor's, index of the actor, [x, y, z]]: where it looks from, from then on
//
// Of a record's kind 1, the opening of the actor's channel, the values are those of the time, also when it is sent again. Kind 2 is another
// reliable bunch of its channel: calls, with the values that must come before them, or values too large for a record; these too are of the time. Kind 3 is the one that
// closes it, with the reason as its text. A reliable bunch's record ends in its number in its channel, which is the same when it is sent again.
type shownConn struct {
	ID      uint32
	Name    string
	Sent    list
	Fates   list
	Got     list
	Records list
	Set     list
	Calls   list
	Views   list
	Waits   list
	From    float64 `json:",omitempty"`
	Began   float64 `json:",omitempty"`
	Ended   float64 `json:",omitempty"`
	Heard   float64 `json:",omitempty"`
	Why     string  `json:",omitempty"`
}

// The kinds of records.
const (
	ofValues = iota
	ofOpening
	ofReliable
	ofClose
)

// shownNote is one of the time line. Actor is the index of one that it is about, or -1, and Field the first of its parts or fields that it names.
type shownNote struct {
	At    float64
	Conn  uint32
	Text  string
	Actor int
	Field string `json:",omitempty"`
}

// opening is an actor whose channel was opened.
type opening struct {
	id    netguid.GUID
	units uint64
	at    float64
}

// carried is what the log says of a reliable bunch: the units whose values it has, or why it closes its channel.
type carried struct {
	at   time.Duration
	what uint64
}

// A bunch's packet may be ahead of what the log then says of it, by less than soon: their clocks may differ by a tick. It is sent again for less than long:
// later, its number may be another bunch's.
const (
	soon = 50 * time.Millisecond
	long = 10 * time.Second
)

// carriedAt is the newest in a list as of a bunch's packet.
func carriedAt(list []carried, at time.Duration) (c carried, ok bool) {
	for _, next := range slices.Backward(list) {
		if next.at <= at+soon {
			return next, next.at > at-long
		}
	}
	return carried{}, false
}

// builder makes the log's part of the document.
type builder struct {
	view     View
	names    []procedure
	client   bool
	scene    *scene
	conns    map[uint32]*shownConn
	channels map[[2]uint64]opening   // by connection and channel
	values   map[[3]uint64][]carried // by connection, channel and number
	closings map[[2]uint64][]carried // by connection and channel
	byID     map[netguid.GUID][]int
	unsaid   list
	waits    list                // of all connections
	waited   map[waited]waitText // the last of each
	notes    []shownNote
}

// waited is what a reason is about, and waitText the reason.
type (
	waited struct {
		conn  uint32
		actor int
		some  bool
	}
	waitText struct {
		units uint64
		text  string
	}
)

func (b *builder) shows(e *entry) bool {
	if e.kind >= kindLook && e.kind <= kindValue {
		return false // of the scene
	}
	return len(b.view.Conns) == 0 || slices.Contains(b.view.Conns, e.conn) || e.conn == 0
}

// add adds an entry of the log.
func (b *builder) add(e *entry) {
	at := ms(e.at)
	if e.kind == kindNote {
		b.notes = append(b.notes, shownNote{At: at, Conn: e.conn, Text: strings.ToValidUTF8(string(e.text), ""), Actor: b.actor(netguid.GUID(e.a), at)})
		return
	}
	if e.kind == kindCorrected {
		b.corrected(e, at)
		return
	}
	if e.kind == kindEnded {
		why, heard := netconn.CloseCode(e.packet).String(), 0.0
		text := "the connection ends: " + why
		if e.a > 0 {
			heard = ms(e.at - time.Duration(e.a-1)*time.Microsecond)
			text += fmt.Sprintf("; a packet last came at %.3f", heard/1000)
		}
		b.notes = append(b.notes, shownNote{At: at, Conn: e.conn, Text: text, Actor: -1})
		if c := b.conns[e.conn]; c != nil {
			c.Ended, c.Heard, c.Why = at, heard, why
		}
		return
	}
	switch e.kind {
	case kindCarried, kindClosing: // of their bunches
		return
	case kindWaits:
		b.wait(e, at)
		return
	case kindUnsaid:
		if i := b.actor(netguid.GUID(e.a), at); i >= 0 || e.a == 0 {
			b.unsaid = fmt.Appendf(b.unsaid, "[%d,\"%x\",%v],", i, e.b, at)
		}
		return
	}
	c := b.connOf(e)
	if e.kind == kindBegan {
		c.Began = at
		b.notes = append(b.notes, shownNote{At: at, Conn: e.conn, Text: "the connection begins", Actor: -1})
		return
	}
	place := [2]uint64{uint64(e.conn), e.a} // of a bunch's channel
	switch e.kind {
	case kindSent:
		c.Sent = fmt.Appendf(c.Sent, "[%d,%v,%d],", e.packet, at, e.a)
	case kindAcked:
		c.Fates = fmt.Appendf(c.Fates, "[%d,1,%v],", e.packet, at)
	case kindReceived:
		c.Got = fmt.Appendf(c.Got, "[%d,%v],", e.packet, at)
	case kindLost:
		c.Fates = fmt.Appendf(c.Fates, "[%d,2,%v],", e.packet, at)
	case kindView:
		i := -1
		if e.packet == viewActor {
			i = b.actor(netguid.GUID(e.a), at)
		}
		c.Views = fmt.Appendf(c.Views, "[%v,%d,%d,%s],", at, e.packet, i, e.text)
	case kindOpening:
		b.channels[[2]uint64{uint64(e.conn), uint64(e.packet)}] = opening{netguid.GUID(e.a), e.b, at}
	case kindBunch:
		o, ok := b.channels[place]
		switch {
		case ok && e.b&1 != 0:
			b.record(c, e, o.id, o.units, ofOpening, o.at)
		case ok && e.b&2 != 0:
			if why, known := carriedAt(b.closings[place], e.at); known {
				e.text = []byte(channel.CloseReason(why.what).String())
			}
			b.record(c, e, o.id, 0, ofClose, at)
		case ok:
			if v, known := carriedAt(b.values[[3]uint64{place[0], place[1], e.b >> 2}], e.at); known {
				b.record(c, e, o.id, v.what, ofReliable, ms(v.at))
				return
			}
			b.record(c, e, o.id, 0, ofReliable, at)
		}
	case kindCall:
		if i := b.actor(netguid.GUID(e.a), at); i >= 0 {
			name, _ := json.Marshal(b.names[e.b>>callName].name) // a text has JSON
			c.Calls = fmt.Appendf(c.Calls, "[%d,%d,%s,%d,%v,%q],", e.packet, i, name, e.b&(1<<callName-1), at, e.text)
		}
	case kindRecord:
		if b.client {
			b.set(c, e)
			return
		}
		b.record(c, e, netguid.GUID(e.a), e.b, ofValues, at)
	}
}

// connOf is the connection of an entry.
func (b *builder) connOf(e *entry) *shownConn {
	c := b.conns[e.conn]
	if c == nil {
		c = &shownConn{ID: e.conn, Name: b.view.Names[e.conn]}
		b.conns[e.conn] = c
	}
	return c
}

// wait adds a reason, unless it is noted once more.
func (b *builder) wait(e *entry, at float64) {
	about := waited{e.conn, b.actor(netguid.GUID(e.a), at), e.packet&1 != 0}
	if about.actor < 0 {
		return
	}
	last, now := b.waited[about], waitText{e.b, strings.ToValidUTF8(string(e.text), "")}
	found, list := at, &b.waits
	if e.packet > 1 {
		found = ms(e.at - time.Duration(e.packet>>1-1)*time.Microsecond)
	}
	if now == last && (now.text == "" || found < at) {
		return
	}
	if b.waited[about] = now; e.conn != 0 {
		list = &b.connOf(e).Waits
	}
	some := 0
	if about.some {
		some = 1
	}
	text, _ := json.Marshal(now.text) // a text has JSON
	*list = fmt.Appendf(*list, "[%d,%d,\"%x\",%v,%v,%s],", about.actor, some, e.b, found, at, text)
}

// corrected adds a note of a correction.
func (b *builder) corrected(e *entry, at float64) {
	n := shownNote{At: at, Conn: e.conn, Text: netguid.GUID(e.a).String(), Actor: b.actor(netguid.GUID(e.a), at)}
	if n.Actor >= 0 {
		n.Text = b.scene.classes[b.scene.actors[n.Actor].Class].Name + " " + n.Text
	}
	off := strings.ToValidUTF8(string(e.text), "")
	n.Text += ": its prediction was corrected: "
	switch {
	case e.b == 0 && b.client:
		n.Text += "what it showed was right"
	case e.b == 0 && off == "":
		n.Text += "an input hadn't come in time, or its state was sent anew"
	case e.b == 0:
		n.Text += "the game had set " + off
	case e.b == maxSize:
		n.Text += off + ", of which a number that must be exact was off"
	default:
		n.Text += fmt.Sprintf("%s was off by %.4g times the tolerance", cmp.Or(off, "it"), float64(e.b)/1000)
	}
	n.Field, _, _ = strings.Cut(off, ",")
	b.notes = append(b.notes, n)
}

// actor is the index of the actor that had an id at a time, or -1: ids come again.
func (b *builder) actor(id netguid.GUID, at float64) int {
	steps := b.scene.steps
	for _, i := range b.byID[id] {
		if a := b.scene.actors[i]; steps[a.From] <= at+1 && (a.To < 0 || at <= steps[a.To]+1) {
			return i
		}
	}
	return -1
}

// record adds a record.
func (b *builder) record(c *shownConn, e *entry, id netguid.GUID, units uint64, kind int, of float64) {
	i := b.actor(id, ms(e.at))
	if i < 0 {
		return
	}
	r := strconv.AppendInt(append(c.Records, '['), e.packet, 10)
	r = strconv.AppendInt(append(r, ','), int64(i), 10)
	r = append(strconv.AppendUint(append(r, `,"`...), units, 16), '"')
	if kind != ofValues || len(e.text) > 0 {
		r = fmt.Appendf(r, ",%d,%v,%q", kind, of, e.text)
	}
	if kind != ofValues {
		r = strconv.AppendUint(append(r, ','), e.b>>2, 10)
	}
	c.Records = append(r, "],"...)
}

// set adds that a client's world has set values. The first Look after it is the one that finds a new actor.
func (b *builder) set(c *shownConn, e *entry) {
	at, steps := ms(e.at), b.scene.steps
	look, _ := slices.BinarySearch(steps, at)
	if look == len(steps) {
		return
	}
	if i := b.actor(netguid.GUID(e.a), steps[look]); i >= 0 {
		c.Set = fmt.Appendf(c.Set, "[%d,\"%x\",%v],", i, e.b, at)
	}
}

// WriteHTML writes a page that shows the film. It has all that it needs within it, and loads nothing. An error is w's, or one of the
// recording, of which then nothing was written.
func (f *Film) WriteHTML(w io.Writer, v View) error {
	b, cut, err := f.build(v)
	if err != nil {
		return err
	}
	title := cmp.Or(v.Title, "bunchnet")
	before, after, _ := strings.Cut(pageHTML, "{{film}}")
	fill := strings.NewReplacer("{{policy}}", policy, "{{title}}", html.EscapeString(title), "{{style}}", style, "{{script}}", script)
	if _, err := fill.WriteString(w, before); err != nil {
		return err
	}
	head := shownFilm{Title: title, Client: f.shown != nil, Cut: cut}
	if c := f.cause; c != nil {
		head.Cause = []float64{ms(c.at), float64(c.conn), float64(b.actor(c.id, ms(c.at)))}
	}
	if err := b.write(w, head); err != nil {
		return err
	}
	for _, c := range v.Clients {
		b, cut, err := c.build(View{})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, nextFilm); err != nil {
			return err
		}
		if err := b.write(w, shownFilm{Client: true, Cut: cut}); err != nil {
			return err
		}
	}
	if v.Capture != nil {
		if err := writeCapture(w, v.Capture); err != nil {
			return err
		}
	}
	_, err = fill.WriteString(w, after)
	return err
}

func writeCapture(w io.Writer, capture []byte) error {
	if _, err := io.WriteString(w, "</script>\n<script type=\"application/octet-stream\" class=\"capture\">"); err != nil {
		return err
	}
	to := base64.NewEncoder(base64.StdEncoding, w)
	zip := gzip.NewWriter(to)
	_, err := zip.Write(capture)
	return cmp.Or(err, zip.Close(), to.Close())
}

// nextFilm is between a film and a client's.
const nextFilm = `</script>
<script type="application/octet-stream" class="client">`

// build makes what a document has, and says what isn't there.
func (f *Film) build(v View) (b *builder, cut string, err error) {
	s, err := f.decode()
	if err != nil {
		return nil, "", fmt.Errorf("flight: %w", err)
	}
	b = &builder{view: v, names: f.names, client: f.shown != nil, scene: s, conns: map[uint32]*shownConn{}, channels: map[[2]uint64]opening{}, byID: map[netguid.GUID][]int{}, waited: map[waited]waitText{}}
	for i, a := range s.actors {
		b.byID[a.guid] = append(b.byID[a.guid], i)
		if a.To < 0 {
			a.Seen = f.culls[a.guid]
		}
	}
	// What is about the connection that the page opens with, or about none, has room first: the others of a large game have much more than there is room for.
	var room, skip [2]int
	opens := f.opens(b)
	first := func(e *entry) int {
		if e.conn == 0 || e.conn == opens {
			return 0
		}
		return 1
	}
	entries(f.log, func(e *entry) {
		if b.shows(e) {
			skip[first(e)]++
		}
	})
	room[0] = min(skip[0], f.entries)
	room[1] = min(skip[1], f.entries-room[0])
	skip[0] -= room[0]
	skip[1] -= room[1]
	// each goes through what the document may have; old is what it leaves out.
	each := func(do func(e *entry, old bool)) {
		var n [2]int
		entries(f.log, func(e *entry) {
			if b.shows(e) {
				n[first(e)]++
				do(e, n[first(e)] <= skip[first(e)])
			}
		})
	}
	cut = s.cut
	if n := skip[0] + skip[1]; n > 0 {
		cut = strings.TrimPrefix(fmt.Sprintf("%s; the oldest %d packets and records aren't shown: choose a connection", cut, n), "; ")
	}
	if f.refused >= 0 && (len(f.log) == 0 || f.refused >= f.log[0].first) {
		cut = strings.TrimPrefix(fmt.Sprintf("%s; why connections lacked more than %d actors at once isn't kept", cut, maxWaits), "; ")
	}
	b.values, b.closings = map[[3]uint64][]carried{}, map[[2]uint64][]carried{}
	each(func(e *entry, old bool) {
		place := [2]uint64{uint64(e.conn), uint64(e.packet)}
		switch {
		case old:
		case e.kind == kindCarried:
			key := [3]uint64{place[0], place[1], e.a}
			b.values[key] = append(b.values[key], carried{e.at, e.b})
		case e.kind == kindClosing:
			b.closings[place] = append(b.closings[place], carried{e.at, e.b})
		}
	})
	from := [2]float64{-1, -1}
	each(func(e *entry, old bool) {
		if !old || e.kind == kindOpening { // what comes later may be about it
			b.add(e)
		}
		if g := first(e); !old && from[g] < 0 {
			from[g] = ms(e.at)
		}
	})
	for id, c := range b.conns {
		if g := first(&entry{conn: id}); (skip[g] > 0 || f.dropped) && !(c.Began > from[g]) {
			c.From = max(from[g], 0)
		}
	}
	return b, cut, nil
}

// opens is the connection that the page opens with: the one that had the film saved, or else the first that hasn't ended; 0 for none.
func (f *Film) opens(b *builder) (conn uint32) {
	if f.cause != nil && f.cause.conn != 0 {
		return f.cause.conn
	}
	lives := map[uint32]bool{}
	entries(f.log, func(e *entry) {
		if b.shows(e) && e.conn != 0 && e.kind != kindNote {
			lives[e.conn] = e.kind != kindEnded && (lives[e.conn] || e.kind == kindRecord || e.kind == kindBunch)
		}
	})
	for id, lives := range lives {
		if lives && (conn == 0 || id < conn) {
			conn = id
		}
	}
	return conn
}

// write writes a document.
func (b *builder) write(w io.Writer, head shownFilm) error {
	s := b.scene
	head.Steps, head.Classes, head.Notes, head.Actors, head.Unsaid, head.Waits = s.steps, s.classes, b.notes, len(s.actors), b.unsaid, b.waits
	to := base64.NewEncoder(base64.StdEncoding, w)
	zip := gzip.NewWriter(to)
	lines := json.NewEncoder(zip)
	err := lines.Encode(head)
	for _, a := range s.actors {
		err = cmp.Or(err, lines.Encode(a))
	}
	for _, id := range slices.Sorted(maps.Keys(b.conns)) {
		err = cmp.Or(err, lines.Encode(b.conns[id]))
	}
	return cmp.Or(err, zip.Close(), to.Close())
}

// policy is the Content-Security-Policy of the page: it runs its own script only, and loads nothing.
var policy = "default-src 'none'; style-src 'sha256-" + hash(style) + "'; script-src 'sha256-" + hash(script) + "'; base-uri 'none'; form-action 'none'"

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}
