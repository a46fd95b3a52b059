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
