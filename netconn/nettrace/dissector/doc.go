// Package dissector describes packets and bunches as data. From this description it generates a dissector for
// Wireshark and tshark, the file bunchnet.lua in this folder:
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
// [Packet], [Bunch] and the values that they consist of are the description. One test decodes recorded and random packets both with
// it and with the engine, and compares. Another checks that bunchnet.lua is up to date. Bounds: at most 4096 bunches of a packet are
// shown. What is cut short or damaged is marked as malformed.
package dissector
