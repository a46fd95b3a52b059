module github.com/bunchnet/bunchnet/channel/message/protomsg

go 1.26.0

require (
	github.com/bunchnet/bunchnet v0.0.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/protobuf v1.36.12
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/bunchnet/bunchnet => ../../..
