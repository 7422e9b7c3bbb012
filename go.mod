module github.com/palimpsest-ai/palimpsest

go 1.26
