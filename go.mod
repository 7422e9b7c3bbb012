module github.com/palimpsest-ai/palimpsest

go 1.26

require (
	github.com/google/go-cmp v0.7.0
	github.com/tiktoken-go/tokenizer v0.10.0
	pgregory.net/rapid v1.3.0
)

require github.com/dlclark/regexp2/v2 v2.5.1 // indirect
