// Package bunch is the unit that channels exchange: a header and payload bits. It reads and writes headers, splits a payload that is too
// large for one packet into partial bunches and joins them again. Package channel decides when a bunch is sent, resent and delivered.
//
// # Header
//
// Low bits first, as in Unreal 4.27 to 5.8:
//
//	bits       field                      there when
//	1          Control                    always; Open or Close
//	1          Open                       Control
//	1          Close                      Control
//	Int(15)    CloseReason                Close
//	1          ReplicationPaused          always
//	1          Reliable                   always
//	IntPacked  ChIndex                    always
//	1          HasPackageMapExports       always
//	1          HasMustBeMappedGUIDs       always
//	1          Partial                    always
//	10         ChSequence                 Reliable; the low bits of the channel's counter, 14 of them in bunchnet's own protocol
//	1          PartialInitial             Partial
//	1          PartialCustomExportsFinal  Partial, and Protocol.CustomExportsFinal (newer than 5.1)
//	1          PartialFinal               Partial
//	Name       channel name               Reliable or Open
//	Int(8*MaxPacket)  payload bits        always; 13 bits with MaxPacket 1024
//	...        payload
//
// A Name is one bit "hardcoded", then either an IntPacked index into the
// engine's table of names (Control 255, Voice 256, Actor 102) or an FString and
// an i32 number.
//
// # Partial bunches
//
// A payload larger than [Protocol.MaxSingleBits] is split. All parts but the last are whole bytes:
//
//	[Initial, Open?] [ ] [ ] ... [Final, Close?]
//
// Reliable parts have consecutive ChSequences. Unreliable parts are in one packet or in consecutive packets. A joined payload has at most
// [MaxPayload] bytes.
package bunch
