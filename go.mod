module github.com/bunchnet/bunchnet

go 1.26.0

require (
	github.com/google/btree v1.1.3
	github.com/klauspost/reedsolomon v1.14.2
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.54.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/klauspost/cpuid/v2 v2.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
