#!/bin/sh
# Builds the command of the current commit twice, from two folders, the second time with nothing
# that was compiled before, and fails where the two differ by a byte.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

build() { # build FOLDER PROGRAM
	mkdir -p "$1"
	git archive HEAD | tar -x -C "$1"
	(cd "$1" && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$2" ./cmd/palimpsest)
}

build "$scratch/first" "$scratch/1"
export GOCACHE="$scratch/cache"
build "$scratch/second/in-a-deeper-folder" "$scratch/2"
cmp "$scratch/1" "$scratch/2"
printf 'twice the same: %s, %s\n' "$(cksum <"$scratch/1")" "$(go version)"
