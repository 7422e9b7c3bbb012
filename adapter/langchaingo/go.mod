module github.com/palimpsest-ai/palimpsest/adapter/langchaingo

go 1.26.0

require (
	github.com/palimpsest-ai/palimpsest v0.0.0
	github.com/tmc/langchaingo v0.1.14
	pgregory.net/rapid v1.3.0
)

require (
	github.com/blevesearch/snowballstem v0.9.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.7.0 // indirect
	github.com/dlclark/regexp2 v1.10.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkoukk/tiktoken-go v0.1.6 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)

replace github.com/palimpsest-ai/palimpsest => ../..
