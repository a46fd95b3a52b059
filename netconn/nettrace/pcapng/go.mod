module github.com/bunchnet/bunchnet/netconn/nettrace/pcapng

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	github.com/gopacket/gopacket v1.7.7
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	github.com/klauspost/reedsolomon v1.14.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../../..
