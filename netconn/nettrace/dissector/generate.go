package dissector

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:generate go run ./gen bunchnet.lua

// Lua is bunchnet.lua, the dissector.
//
//go:embed bunchnet.lua
var Lua string

//go:embed runtime.lua
var runtime string

// Generate makes the dissector from the description.
func Generate() string {
	var b strings.Builder
	b.WriteString("-- Code generated from the description of packets and bunches; DO NOT EDIT.\n\n")
	b.WriteString("local bunchnet = Proto(\"bunchnet\", \"Bunchnet\")\n\n")
	for _, p := range Preferences {
		if p.Number {
			fmt.Fprintf(&b, "bunchnet.prefs.%s = Pref.uint(%q, %d)\n", p.Key, p.Label, p.Default)
		} else {
			fmt.Fprintf(&b, "bunchnet.prefs.%s = Pref.bool(%q, %v)\n", p.Key, p.Label, p.Default != 0)
		}
	}
	b.WriteString("\nlocal fields = {}\n")
	declare(&b, "", Packet)
	declare(&b, "bunch.", Bunch)
	b.WriteString(runtime)
	function(&b, "packet_fields", "", Packet)
	function(&b, "bunch_fields", "bunch.", Bunch)
	b.WriteString("dissect_packet, dissect_bunch = packet_fields, bunch_fields\n")
	return b.String()
}

// declare writes the fields as Wireshark's.
func declare(b *strings.Builder, prefix string, fields []Field) {
	for _, f := range fields {
		kind, extra := "uint32", ", base.DEC"
		switch f.Encoding {
		case Bool:
			kind, extra = "bool", ""
		case Text:
			kind, extra = "string", ""
		case Signed:
			kind = "int32"
		case Payload:
			kind, extra = "bytes", ""
		case Bits, Int, Packed:
			if f.Repeat != "" {
				extra = ", base.HEX"
			}
		}
		if f.Values != nil {
			extra += ", " + values(f.Values)
		}
		key := prefix + f.Key
		fmt.Fprintf(b, "fields[%q] = ProtoField.%s(\"bunchnet.%s\", %q%s)\n", key, kind, key, f.Label, extra)
	}
}

func values(m map[uint32]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("[%d] = %q", k, m[k]))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// function writes the fields as a Lua function that reads them in order into the table v.
func function(b *strings.Builder, name, prefix string, fields []Field) {
	fmt.Fprintf(b, "\nlocal function %s(r, tree, v)\n", name)
	for _, f := range fields {
		indent := "\t"
		if c := condition(f); c != "" {
			fmt.Fprintf(b, "\tif %s then\n", c)
			indent = "\t\t"
		}
		if f.Repeat != "" {
			fmt.Fprintf(b, "%sfor _ = 0, v[%q] do\n%s\tread(r, tree, v, %q, %q, %s)\n%send\n", indent, f.Repeat, indent, prefix+f.Key, f.Key, reader(f), indent)
		} else {
			fmt.Fprintf(b, "%sread(r, tree, v, %q, %q, %s)\n", indent, prefix+f.Key, f.Key, reader(f))
		}
		if indent != "\t" {
			b.WriteString("\tend\n")
		}
	}
	b.WriteString("end\n")
}

// reader is the runtime's function for an encoding, and its argument.
func reader(f Field) string {
	size := fmt.Sprint(f.Size)
	switch f.Size {
	case MaxPacketBits:
		size = "8 * bunchnet.prefs.max_packet"
	case MagicBits:
		size = "bunchnet.prefs.magic_bits"
	case SequenceBits:
		size = "bunchnet.prefs.sequence_bits"
	}
	switch f.Encoding {
	case Bool:
		return "bool"
	case Bits:
		return "bits, " + size
	case Int:
		return "int, " + size
	case Packed:
		return "packed"
	case Text:
		return "text"
	case Signed:
		return "signed"
	case Payload:
		return "payload, v.bits"
	}
	panic(fmt.Sprintf("dissector: field %s has encoding %d", f.Key, f.Encoding))
}

func condition(f Field) string {
	var all, any []string
	for _, c := range f.All {
		all = append(all, term(c))
	}
	for _, c := range f.Any {
		any = append(any, term(c))
	}
	if len(any) > 0 {
		all = append(all, "("+strings.Join(any, " or ")+")")
	}
	return strings.Join(all, " and ")
}

func term(c string) string {
	not := ""
	if rest, ok := strings.CutPrefix(c, "!"); ok {
		not, c = "not ", rest
	}
	if key, ok := strings.CutPrefix(c, "pref."); ok {
		return not + "bunchnet.prefs." + key
	}
	return not + "v." + c
}
