module github.com/bunchnet/bunchnet/netconn/driver/stream/conformance

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	golang.org/x/net v0.57.0
)

require (
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/klauspost/reedsolomon v1.14.2 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../../../..
