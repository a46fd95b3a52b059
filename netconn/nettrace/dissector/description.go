package dissector

// Encoding is how a field's bits make its value. Bits come low first, and low ones
// of a value first.
type Encoding uint8

// The encodings.
const (
	Bool    Encoding = iota
	Bits             // Field.Size bits
	Int              // a number below Field.Size; a bit is left out when setting it would reach that
	Packed           // groups of 8: "more follows", then 7 bits of the value, at most 5 groups
	Text             // i32 count with the final NUL, then bytes; negative: UTF-16
	Signed           // 32 bits, two's complement
	Payload          // as many bits as the field before says
)

// MaxPacketBits as a Field's Size is eight times the preference max_packet.
const MaxPacketBits = -1

// Field is one value on the wire.
type Field struct {
	// Key is its name in filters, behind "bunchnet." or "bunchnet.bunch."; Label is for people.
	Key, Label string
	Encoding   Encoding
	Size       int
	// Repeat names a field: this one comes that often, and once more.
	Repeat string
	// All and Any are conditions on fields before it and on preferences, which are named with "pref." in
	// front, and on "from_server": the field is there when all of All hold, and one of Any, if
	// there are any. "!" negates.
	All, Any []string
	// Values names numbers.
	Values map[uint32]string
}

// Packet is a datagram's fields up to its bunches.
var Packet = []Field{
	{Key: "magic", Label: "Magic", Encoding: Bits, Size: MagicBits, All: []string{"pref.handlers"}},
	{Key: "session", Label: "SessionID", Encoding: Bits, Size: 2, All: []string{"pref.handlers", "pref.ids"}},
	{Key: "client", Label: "ClientID", Encoding: Bits, Size: 3, All: []string{"pref.handlers", "pref.ids"}},
	{Key: "handshake", Label: "Handshake packet", Encoding: Bool, All: []string{"pref.handlers"}},
	{Key: "history_words", Label: "History words less 1", Encoding: Bits, Size: 4, All: game},
	{Key: "acked_seq", Label: "AckedSeq", Encoding: Bits, Size: 14, All: game},
	{Key: "seq", Label: "Seq", Encoding: Bits, Size: 14, All: game},
	{Key: "history", Label: "History", Encoding: Bits, Size: 32, Repeat: "history_words", All: game},
	{Key: "has_packet_info", Label: "HasPacketInfo", Encoding: Bool, All: game},
	{Key: "jitter_clock", Label: "Jitter clock (ms)", Encoding: Int, Size: 1024, All: []string{"has_packet_info"}},
	{Key: "has_server_frame_time", Label: "HasServerFrameTime", Encoding: Bool, All: []string{"has_packet_info"}},
	{Key: "frame_time", Label: "Frame time (ms)", Encoding: Bits, Size: 8, All: []string{"has_server_frame_time", "from_server"}},
}

// MagicBits and SequenceBits as a Field's Size are the preferences magic_bits and sequence_bits.
const (
	MagicBits    = -2
	SequenceBits = -3
)

var game = []string{"!handshake"}

// Bunch is a bunch's fields. Bunches follow each other until the packet's end marks.
var Bunch = []Field{
	{Key: "control", Label: "Control", Encoding: Bool},
	{Key: "open", Label: "Open", Encoding: Bool, All: []string{"control"}},
	{Key: "close", Label: "Close", Encoding: Bool, All: []string{"control"}},
	{Key: "close_reason", Label: "CloseReason", Encoding: Int, Size: 15, All: []string{"close"},
		Values: map[uint32]string{0: "Destroyed", 1: "Dormancy", 2: "LevelUnloaded", 3: "Relevancy", 4: "TearOff"}},
	{Key: "paused", Label: "ReplicationPaused", Encoding: Bool},
	{Key: "reliable", Label: "Reliable", Encoding: Bool},
	{Key: "ch_index", Label: "ChIndex", Encoding: Packed},
	{Key: "exports", Label: "HasPackageMapExports", Encoding: Bool},
	{Key: "must_be_mapped", Label: "HasMustBeMappedGUIDs", Encoding: Bool},
	{Key: "partial", Label: "Partial", Encoding: Bool},
	{Key: "ch_sequence", Label: "ChSequence", Encoding: Bits, Size: SequenceBits, All: []string{"reliable"}},
	{Key: "partial_initial", Label: "PartialInitial", Encoding: Bool, All: []string{"partial"}},
	{Key: "partial_exports_final", Label: "PartialCustomExportsFinal", Encoding: Bool, All: []string{"partial", "pref.custom_exports_final"}},
	{Key: "partial_final", Label: "PartialFinal", Encoding: Bool, All: []string{"partial"}},
	{Key: "hardcoded", Label: "Hardcoded name", Encoding: Bool, Any: []string{"reliable", "open"}},
	{Key: "name_index", Label: "Name", Encoding: Packed, All: []string{"hardcoded"}, Any: []string{"reliable", "open"},
		Values: map[uint32]string{102: "Actor", 255: "Control", 256: "Voice"}},
	{Key: "name", Label: "Name", Encoding: Text, All: []string{"!hardcoded"}, Any: []string{"reliable", "open"}},
	{Key: "name_number", Label: "Name number", Encoding: Signed, All: []string{"!hardcoded"}, Any: []string{"reliable", "open"}},
	{Key: "bits", Label: "Payload bits", Encoding: Int, Size: MaxPacketBits},
	{Key: "payload", Label: "Payload", Encoding: Payload},
}

// Preference is a setting of the dissector, for what isn't on the wire.
type Preference struct {
	Key, Label string
	Number     bool // else true or false
	Default    uint32
}

// Preferences is all of them.
var Preferences = []Preference{
	{Key: "server_port", Label: "UDP port of the server", Number: true, Default: 7777},
	{Key: "handlers", Label: "Packets have a prefix and a second end mark"},
	{Key: "ids", Label: "The prefix has session and client id", Default: 1},
	{Key: "magic_bits", Label: "Bits of magic in the prefix", Number: true},
	{Key: "max_packet", Label: "Bytes of a packet at most", Number: true, Default: 1024},
	{Key: "custom_exports_final", Label: "Partial bunches have PartialCustomExportsFinal"},
	{Key: "sequence_bits", Label: "Bits of a ChSequence: 14 with netconn.Bunchnet, 10 with Unreal", Number: true, Default: 14},
}
