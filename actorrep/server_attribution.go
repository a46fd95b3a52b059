package actorrep

// overhead is the bits of replication that aren't values.
type overhead struct {
	schema  uint64
	opens   uint64 // heads of opening bunches
	records uint64 // heads of records
}

// callCount is how often a procedure was called over a connection.
type callCount struct{ sent, received, refused uint64 }

// accountCall counts a call that was written, and its bits.
func (p *Peer) accountCall(c *class, rpc, bits int) {
	p.rowBits[c.firstRow+len(c.layout.Units)+rpc] += uint64(bits)
	p.calls[c.firstCall+rpc].sent++
}

// Cost is a row of Peer.Attribution: what bits were spent on, and how many, resends included.
type Cost struct {
	Class, Name string // a field's part, or a procedure; with Class "", Name is other overhead
	Bits        uint64
	// Sent is how often a procedure's call was written; resends of unreliable records don't count. Received is how often
	// the client called it. Refused is how many of those didn't run, because the client didn't own the actor or called
	// too often.
	Sent, Received, Refused uint64
}

// Attribution says what a connection's bits were spent on. There is a row for each replicated value and procedure of
// each class, then rows for replication's own overhead. total is the number of bytes that the connection's socket sent;
// when it isn't 0, a last row has the rest: headers, acks, other channels and resends. The rows then add up to total.
func (p *Peer) Attribution(total uint64) []Cost {
	var rows []Cost
	sum := uint64(0)
	add := func(class, name string, bits uint64) {
		sum += bits
		rows = append(rows, Cost{Class: class, Name: name, Bits: bits})
	}
	for _, c := range p.world.classes {
		for i := range c.layout.Units {
			add(c.name, c.layout.Units[i].Path, p.rowBits[c.firstRow+i])
		}
		for i := range c.rpcs {
			add(c.name, c.rpcs[i].name+"()", p.rowBits[c.firstRow+len(c.layout.Units)+i])
			n, row := p.calls[c.firstCall+i], &rows[len(rows)-1]
			row.Sent, row.Received, row.Refused = n.sent, n.received, n.refused
		}
	}
	add("", "schema", p.overhead.schema)
	add("", "opening heads", p.overhead.opens)
	add("", "record heads", p.overhead.records)
	if total*8 > sum {
		rows = append(rows, Cost{Name: "packets, bunches, acks and resends", Bits: total*8 - sum})
	}
	return rows
}
