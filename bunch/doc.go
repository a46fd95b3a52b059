// Package bunch is the unit that channels exchange: a header and a run of
// payload bits. It reads and writes headers, splits a payload that is too large
// for one packet into partial bunches and joins them again. When a bunch is sent,
// sent again or released in order is the business of package channel.
//
// # Header
//
// Bit by bit, low bits first (Unreal 4.27 to 5.8; every one of the switches of
// older engine network versions is in its later position):
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
// A payload over [Protocol.MaxSingleBits] goes as parts of whole bytes; the last may
// have odd bits:
//
//	[Initial, Open?] [ ] [ ] ... [Final, Close?]
//
// Reliable parts have consecutive ChSequences. Unreliable parts ride in one packet
// or in consecutive ones. A joined payload has at most [MaxPayload] bytes.
package bunch
