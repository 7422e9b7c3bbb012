#!/bin/sh
# Builds the command of the current commit twice, from two folders and with two caches, and fails
# where the two differ by a byte.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
for one in first second/in-a-deeper-folder; do
	mkdir -p "$scratch/$one"
	git archive HEAD | tar -x -C "$scratch/$one"
	(
		cd "$scratch/$one"
		GOCACHE="$scratch/cache-${one%%/*}" GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 \
			go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$scratch/${one%%/*}.program" ./cmd/palimpsest
	)
done
cmp "$scratch/first.program" "$scratch/second.program"
printf 'twice the same: %s, %s\n' "$(cksum <"$scratch/first.program")" "$(go version)"
