module example.com/shipq

go 1.22
