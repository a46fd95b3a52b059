// Package dissector describes packets and bunches as data, and makes of that a dissector for
// Wireshark and tshark, bunchnet.lua, which is checked in beside it:
//
//	tshark -X lua_script:bunchnet.lua -r capture.pcapng -Y bunchnet -T fields -e bunchnet.seq -e bunchnet.bunch.bits
//
// In Wireshark, put the file into the folder of personal Lua plugins (Help, About, Folders).
//
// It reads packets in the clear: captures of the plain links, and those that the module
// netconn/nettrace/pcapng writes, which are decrypted. Its preferences say what isn't
// on the wire:
//
//	bunchnet.server_port            packets from it are a server's; packets to and from it are dissected. 7777
//	bunchnet.handlers               true: a link of Unreal's, whose packets have a prefix and a second end mark
//	bunchnet.ids                    true: the prefix has session and client id (5.1 and later)
//	bunchnet.magic_bits             bits of the prefix before that
//	bunchnet.max_packet             bytes of a packet at most, the same as in the protocol; 1024
//	bunchnet.sequence_bits          bits of a ChSequence, as in the protocol: 14 with netconn.Bunchnet; 10 with Unreal's
//	bunchnet.custom_exports_final   true: partial bunches have that bit (network version 36 and later)
//
// What netconn.Coding puts behind a packet has the fields bunchnet.coding.symbols, size, covers and repaired; its hellos are bunchnet.hello.
//
// [Packet], [Bunch] and the values they consist of are the description. A test decodes recorded and random packets with
// it and with the engine, and compares; another that bunchnet.lua is what the description
// makes. Bounds: a packet's bunches at most 4096; what is cut or broken is marked as malformed.
package dissector
