-- Code generated from the description of packets and bunches; DO NOT EDIT.

local bunchnet = Proto("bunchnet", "Bunchnet")

bunchnet.prefs.server_port = Pref.uint("UDP port of the server", 7777)
bunchnet.prefs.handlers = Pref.bool("Packets have a prefix and a second end mark", false)
bunchnet.prefs.ids = Pref.bool("The prefix has session and client id", true)
bunchnet.prefs.magic_bits = Pref.uint("Bits of magic in the prefix", 0)
bunchnet.prefs.max_packet = Pref.uint("Bytes of a packet at most", 1024)
bunchnet.prefs.custom_exports_final = Pref.bool("Partial bunches have PartialCustomExportsFinal", false)
bunchnet.prefs.sequence_bits = Pref.uint("Bits of a ChSequence: 14 with netconn.Bunchnet, 10 with Unreal", 14)

local fields = {}
fields["magic"] = ProtoField.uint32("bunchnet.magic", "Magic", base.DEC)
fields["session"] = ProtoField.uint32("bunchnet.session", "SessionID", base.DEC)
fields["client"] = ProtoField.uint32("bunchnet.client", "ClientID", base.DEC)
fields["handshake"] = ProtoField.bool("bunchnet.handshake", "Handshake packet")
fields["history_words"] = ProtoField.uint32("bunchnet.history_words", "History words less 1", base.DEC)
fields["acked_seq"] = ProtoField.uint32("bunchnet.acked_seq", "AckedSeq", base.DEC)
fields["seq"] = ProtoField.uint32("bunchnet.seq", "Seq", base.DEC)
fields["history"] = ProtoField.uint32("bunchnet.history", "History", base.HEX)
fields["has_packet_info"] = ProtoField.bool("bunchnet.has_packet_info", "HasPacketInfo")
fields["jitter_clock"] = ProtoField.uint32("bunchnet.jitter_clock", "Jitter clock (ms)", base.DEC)
fields["has_server_frame_time"] = ProtoField.bool("bunchnet.has_server_frame_time", "HasServerFrameTime")
fields["frame_time"] = ProtoField.uint32("bunchnet.frame_time", "Frame time (ms)", base.DEC)
fields["bunch.control"] = ProtoField.bool("bunchnet.bunch.control", "Control")
fields["bunch.open"] = ProtoField.bool("bunchnet.bunch.open", "Open")
fields["bunch.close"] = ProtoField.bool("bunchnet.bunch.close", "Close")
fields["bunch.close_reason"] = ProtoField.uint32("bunchnet.bunch.close_reason", "CloseReason", base.DEC, { [0] = "Destroyed", [1] = "Dormancy", [2] = "LevelUnloaded", [3] = "Relevancy", [4] = "TearOff" })
fields["bunch.paused"] = ProtoField.bool("bunchnet.bunch.paused", "ReplicationPaused")
fields["bunch.reliable"] = ProtoField.bool("bunchnet.bunch.reliable", "Reliable")
fields["bunch.ch_index"] = ProtoField.uint32("bunchnet.bunch.ch_index", "ChIndex", base.DEC)
fields["bunch.exports"] = ProtoField.bool("bunchnet.bunch.exports", "HasPackageMapExports")
fields["bunch.must_be_mapped"] = ProtoField.bool("bunchnet.bunch.must_be_mapped", "HasMustBeMappedGUIDs")
fields["bunch.partial"] = ProtoField.bool("bunchnet.bunch.partial", "Partial")
fields["bunch.ch_sequence"] = ProtoField.uint32("bunchnet.bunch.ch_sequence", "ChSequence", base.DEC)
fields["bunch.partial_initial"] = ProtoField.bool("bunchnet.bunch.partial_initial", "PartialInitial")
fields["bunch.partial_exports_final"] = ProtoField.bool("bunchnet.bunch.partial_exports_final", "PartialCustomExportsFinal")
fields["bunch.partial_final"] = ProtoField.bool("bunchnet.bunch.partial_final", "PartialFinal")
fields["bunch.hardcoded"] = ProtoField.bool("bunchnet.bunch.hardcoded", "Hardcoded name")
fields["bunch.name_index"] = ProtoField.uint32("bunchnet.bunch.name_index", "Name", base.DEC, { [102] = "Actor", [255] = "Control", [256] = "Voice" })
fields["bunch.name"] = ProtoField.string("bunchnet.bunch.name", "Name")
fields["bunch.name_number"] = ProtoField.int32("bunchnet.bunch.name_number", "Name number", base.DEC)
fields["bunch.bits"] = ProtoField.uint32("bunchnet.bunch.bits", "Payload bits", base.DEC)
fields["bunch.payload"] = ProtoField.bytes("bunchnet.bunch.payload", "Payload")
fields["bunch"] = ProtoField.none("bunchnet.bunch", "Bunch")
fields["bunches"] = ProtoField.uint32("bunchnet.bunches", "Bunches", base.DEC)
fields["hello"] = ProtoField.bool("bunchnet.hello", "Hello: understands coding, and the peer's was received")
fields["coding.symbols"] = ProtoField.uint32("bunchnet.coding.symbols", "Repair symbols", base.DEC)
fields["coding.size"] = ProtoField.uint32("bunchnet.coding.size", "Bytes of a symbol", base.DEC)
fields["coding.covers"] = ProtoField.uint32("bunchnet.coding.covers", "Packets covered (lowest bit: the one before)", base.HEX)
fields["coding.repaired"] = ProtoField.uint32("bunchnet.coding.repaired", "Packets repaired (lowest bit: AckedSeq)", base.HEX)
fields["malformed"] = ProtoField.string("bunchnet.malformed", "Malformed")
local all = {}
for _, f in pairs(fields) do
	all[#all + 1] = f
end
bunchnet.fields = all

local max_bunches = 4096

-- A reader of bits: pos and limit count bits of the bytes in data, low bits first.
local function overflow()
	error({ malformed = "cut" })
end

local function bits(r, n)
	if r.pos + n > r.limit then
		overflow()
	end
	local v, done = 0, 0
	while done < n do
		local shift = r.pos % 8
		local take = math.min(8 - shift, n - done)
		local byte = r.data:get_index((r.pos - shift) / 8)
		v = v + (math.floor(byte / 2 ^ shift) % 2 ^ take) * 2 ^ done
		r.pos, done = r.pos + take, done + take
	end
	return math.floor(v)
end

local function bool(r)
	return bits(r, 1) == 1
end

local function int(r, limit)
	local v, mask = 0, 1
	while v + mask < limit do
		if bits(r, 1) == 1 then
			v = v + mask
		end
		mask = mask * 2
	end
	return v
end

local function packed(r)
	local v, scale = 0, 1
	for _ = 1, 5 do
		local more = bits(r, 1)
		v = v + bits(r, 7) * scale
		scale = scale * 128
		if more == 0 then
			return v % 2 ^ 32
		end
	end
	error({ malformed = "a packed number of more than 5 bytes" })
end

local function signed(r)
	local v = bits(r, 32)
	if v >= 2 ^ 31 then
		v = v - 2 ^ 32
	end
	return math.floor(v)
end

local function text(r)
	local n, width = signed(r), 8
	if n < 0 then
		n, width = -n, 16
	end
	if n > 65 then
		error({ malformed = "a name of more than 64 characters" })
	end
	local s = {}
	for i = 1, n do
		local c = bits(r, width)
		if i < n then
			s[i] = c < 128 and string.char(c) or "?"
		end
	end
	return table.concat(s)
end

-- A payload's bits, shifted so that they begin at a byte.
local function payload(r, n)
	if r.pos + n > r.limit then
		overflow()
	end
	local bytes = ByteArray.new()
	bytes:set_size(math.floor((n + 7) / 8))
	for i = 0, bytes:len() - 1 do
		bytes:set_index(i, bits(r, math.min(8, n - 8 * i)))
	end
	return bytes
end

local function read(r, tree, v, key, name, decode, size)
	local first = math.floor(r.pos / 8)
	local value = decode(r, size)
	v[name] = value
	local last = math.max(first, math.floor((r.pos - 1) / 8))
	local range = r.tvb(first, math.min(last, r.tvb:len() - 1) - first + 1)
	if decode == payload then
		if value:len() > 0 then
			tree:add(fields[key], value:tvb("Payload")())
		end
	else
		tree:add(fields[key], range, value)
	end
end

-- The bits in front of an end mark: the highest 1 of the last byte.
local function strip(r)
	repeat
		if r.limit <= r.pos then
			error({ malformed = "no end mark" })
		end
		r.limit = r.limit - 1
		local shift = r.limit % 8
	until math.floor(r.data:get_index((r.limit - shift) / 8) / 2 ^ shift) % 2 == 1
end

-- What coding puts behind a packet, and its hellos; see netconn/handler/coding. They end with a zero byte. true for a hello.
local function coding(r, tree, pinfo)
	local n = r.tvb:len()
	if bunchnet.prefs.handlers or r.data:get_index(n - 1) ~= 0 then
		return false
	end
	if n == 4 and r.data:get_index(0) == 3 and r.data:get_index(2) == 0 then
		tree:add(fields["hello"], r.tvb(0, n), r.data:get_index(1) == 1)
		pinfo.cols.info = "Hello"
		return true
	end
	local function take()
		n = n - 1
		if n < 1 then
			error({ malformed = "a broken trailer" })
		end
		return r.data:get_index(n)
	end
	take()
	local meta = take()
	local told = math.floor(meta / 64)
	if told > 0 then
		local repaired = 0
		for _ = 1, told do
			repaired = repaired * 256 + take()
		end
		tree:add(fields["coding.repaired"], r.tvb(n, told), repaired)
	end
	local symbols = math.floor(meta / 16) % 4
	if symbols > 0 then
		local last, size, covers = n, take(), 2 ^ (meta % 16 + 1) - 1
		if size >= 128 then
			local high = take()
			size = size - 128 + high % 128 * 128
			if high >= 128 then
				covers = take() * 256
				covers = covers + take()
			end
		end
		if symbols * size >= n then
			error({ malformed = "a broken trailer" })
		end
		tree:add(fields["coding.symbols"], r.tvb(n - symbols * size, symbols * size), symbols)
		tree:add(fields["coding.size"], r.tvb(n, last - n), size)
		tree:add(fields["coding.covers"], r.tvb(n, last - n), covers)
		n = n - symbols * size
	end
	r.limit = n * 8
	return false
end

local dissect_packet, dissect_bunch -- defined at the end

local function bunches(r, tree)
	local n = 0
	while r.pos < r.limit do
		n = n + 1
		if n > max_bunches then
			error({ malformed = "too many bunches" })
		end
		local b, v, first = tree:add(fields["bunch"], r.tvb()), {}, math.floor(r.pos / 8)
		dissect_bunch(r, b, v)
		b:set_len(math.min(r.tvb:len(), math.floor((r.pos + 7) / 8)))
		b:append_text(string.format(" of channel %d, %s, %d bits, from byte %d", v.ch_index, v.reliable and "reliable " .. v.ch_sequence or "unreliable", v.bits, first))
	end
	return n
end

local function dissect(r, tree, pinfo)
	local v = { from_server = pinfo.src_port == bunchnet.prefs.server_port }
	if coding(r, tree, pinfo) then
		return
	end
	strip(r)
	dissect_packet(r, tree, v)
	if v.handshake then
		pinfo.cols.info = "Handshake"
		return
	end
	if bunchnet.prefs.handlers then
		strip(r)
	end
	local n = bunches(r, tree)
	tree:add(fields["bunches"], n)
	pinfo.cols.info = string.format("Seq %d, Ack %d, %d bunches", v.seq, v.acked_seq, n)
end

function bunchnet.dissector(tvb, pinfo, root)
	if tvb:len() == 0 then
		return 0
	end
	pinfo.cols.protocol = "Bunchnet"
	local tree = root:add(bunchnet, tvb())
	local r = { tvb = tvb, data = tvb:bytes(), pos = 0, limit = tvb:len() * 8 }
	local ok, err = pcall(dissect, r, tree, pinfo)
	if not ok then
		local what = type(err) == "table" and err.malformed or tostring(err)
		tree:add(fields["malformed"], what)
		pinfo.cols.info = "Malformed: " .. what
	end
	return tvb:len()
end

local ports, port = DissectorTable.get("udp.port"), 0
local function listen()
	if port ~= 0 then
		ports:remove(port, bunchnet)
	end
	port = bunchnet.prefs.server_port
	if port ~= 0 then
		ports:add(port, bunchnet)
	end
end
bunchnet.prefs_changed = listen
listen()

local function packet_fields(r, tree, v)
	if bunchnet.prefs.handlers then
		read(r, tree, v, "magic", "magic", bits, bunchnet.prefs.magic_bits)
	end
	if bunchnet.prefs.handlers and bunchnet.prefs.ids then
		read(r, tree, v, "session", "session", bits, 2)
	end
	if bunchnet.prefs.handlers and bunchnet.prefs.ids then
		read(r, tree, v, "client", "client", bits, 3)
	end
	if bunchnet.prefs.handlers then
		read(r, tree, v, "handshake", "handshake", bool)
	end
	if not v.handshake then
		read(r, tree, v, "history_words", "history_words", bits, 4)
	end
	if not v.handshake then
		read(r, tree, v, "acked_seq", "acked_seq", bits, 14)
	end
	if not v.handshake then
		read(r, tree, v, "seq", "seq", bits, 14)
	end
	if not v.handshake then
		for _ = 0, v["history_words"] do
			read(r, tree, v, "history", "history", bits, 32)
		end
	end
	if not v.handshake then
		read(r, tree, v, "has_packet_info", "has_packet_info", bool)
	end
	if v.has_packet_info then
		read(r, tree, v, "jitter_clock", "jitter_clock", int, 1024)
	end
	if v.has_packet_info then
		read(r, tree, v, "has_server_frame_time", "has_server_frame_time", bool)
	end
	if v.has_server_frame_time and v.from_server then
		read(r, tree, v, "frame_time", "frame_time", bits, 8)
	end
end

local function bunch_fields(r, tree, v)
	read(r, tree, v, "bunch.control", "control", bool)
	if v.control then
		read(r, tree, v, "bunch.open", "open", bool)
	end
	if v.control then
		read(r, tree, v, "bunch.close", "close", bool)
	end
	if v.close then
		read(r, tree, v, "bunch.close_reason", "close_reason", int, 15)
	end
	read(r, tree, v, "bunch.paused", "paused", bool)
	read(r, tree, v, "bunch.reliable", "reliable", bool)
	read(r, tree, v, "bunch.ch_index", "ch_index", packed)
	read(r, tree, v, "bunch.exports", "exports", bool)
	read(r, tree, v, "bunch.must_be_mapped", "must_be_mapped", bool)
	read(r, tree, v, "bunch.partial", "partial", bool)
	if v.reliable then
		read(r, tree, v, "bunch.ch_sequence", "ch_sequence", bits, bunchnet.prefs.sequence_bits)
	end
	if v.partial then
		read(r, tree, v, "bunch.partial_initial", "partial_initial", bool)
	end
	if v.partial and bunchnet.prefs.custom_exports_final then
		read(r, tree, v, "bunch.partial_exports_final", "partial_exports_final", bool)
	end
	if v.partial then
		read(r, tree, v, "bunch.partial_final", "partial_final", bool)
	end
	if (v.reliable or v.open) then
		read(r, tree, v, "bunch.hardcoded", "hardcoded", bool)
	end
	if v.hardcoded and (v.reliable or v.open) then
		read(r, tree, v, "bunch.name_index", "name_index", packed)
	end
	if not v.hardcoded and (v.reliable or v.open) then
		read(r, tree, v, "bunch.name", "name", text)
	end
	if not v.hardcoded and (v.reliable or v.open) then
		read(r, tree, v, "bunch.name_number", "name_number", signed)
	end
	read(r, tree, v, "bunch.bits", "bits", int, 8 * bunchnet.prefs.max_packet)
	read(r, tree, v, "bunch.payload", "payload", payload, v.bits)
end
dissect_packet, dissect_bunch = packet_fields, bunch_fields
