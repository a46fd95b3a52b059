module github.com/bunchnet/bunchnet/netconn/fleet

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/bunchnet/bunchnet => ../..
