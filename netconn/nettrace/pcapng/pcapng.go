// Package pcapng writes a driver's packets to a file that Wireshark, tshark and tcpdump read. It is a
// module of its own, since gopacket is a dependency.
//
//	w, err := pcapng.NewWriter(file, time.Now())
//	srv, err := driver.Listen(":7777", driver.Config{Packets: w})
//	...
//	err = w.Flush()
//
// The file has packets as connections see them: decrypted, and without the bytes that the link
// adds. So the dissector of netconn/nettrace/dissector reads them with every link. Each has an IP and a UDP header with the
// connection's addresses. Sizes are those of the packet, not of the datagram. Handshakes aren't packets of a connection, and
// aren't in the file.
//
// Whoever has the file can read everything that the players sent. Don't leave it on in production.
package pcapng

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/bunchnet/bunchnet/netconn/nettrace"
)

// Writer is a nettrace.PacketSink. It belongs to the goroutine that ticks the driver.
type Writer struct {
	w       *pcapgo.NgWriter
	start   time.Time
	buf     gopacket.SerializeBuffer
	packets int
	err     error
}

// NewWriter begins a file. start is when the driver started: what its times count from.
func NewWriter(w io.Writer, start time.Time) (*Writer, error) {
	ng, err := pcapgo.NewNgWriterInterface(w, pcapgo.NgInterface{Name: "bunchnet", Comment: "decrypted packets of connections", LinkType: layers.LinkTypeRaw, SnapLength: 65535},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "bunchnet"}})
	if err != nil {
		return nil, fmt.Errorf("pcapng: %w", err)
	}
	return &Writer{w: ng, start: start, buf: gopacket.NewSerializeBuffer()}, nil
}

// TracePacket is nettrace.PacketSink's. After an error nothing more is written.
func (w *Writer) TracePacket(p *nettrace.Packet) {
	if w.err != nil {
		return
	}
	from, to := p.Remote, p.Local
	if p.Sent {
		from, to = to, from
	}
	if w.err = w.datagram(from, to, p.Data); w.err != nil {
		return
	}
	b := w.buf.Bytes()
	w.err = w.w.WritePacket(gopacket.CaptureInfo{Timestamp: w.start.Add(p.At), CaptureLength: len(b), Length: len(b)}, b)
	w.packets++
}

// datagram puts an IP and a UDP header around p.
func (w *Writer) datagram(from, to netip.AddrPort, p []byte) error {
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	v4 := src.Is4() || dst.Is4()
	udp := &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if v4 {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: ip4(src), DstIP: ip4(dst)}
		_ = udp.SetNetworkLayerForChecksum(ip) // fails for other layers only
		return gopacket.SerializeLayers(w.buf, options, ip, udp, gopacket.Payload(p))
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: ip6(src), DstIP: ip6(dst)}
	_ = udp.SetNetworkLayerForChecksum(ip)
	return gopacket.SerializeLayers(w.buf, options, ip, udp, gopacket.Payload(p))
}

// ip4 is an address as four bytes; a socket on all addresses has zeros.
func ip4(a netip.Addr) []byte {
	if !a.Is4() {
		return make([]byte, 4)
	}
	return a.AsSlice()
}

func ip6(a netip.Addr) []byte {
	if !a.IsValid() {
		return make([]byte, 16)
	}
	return a.AsSlice()
}

// Packets is the number of packets written.
func (w *Writer) Packets() int { return w.packets }

// Flush writes what is held back and returns the first error there was.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}
