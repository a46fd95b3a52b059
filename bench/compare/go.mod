module github.com/bunchnet/bunchnet/bench/compare

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	github.com/pion/logging v0.2.4
	github.com/pion/sctp v1.9.5
	github.com/pion/transport/v4 v4.0.1
	github.com/quic-go/quic-go v0.64.1
	github.com/xtaci/kcp-go/v5 v5.6.72
	golang.org/x/net v0.56.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/klauspost/reedsolomon v1.14.2 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/tjfoc/gmsm v1.4.1 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../..
