#!/bin/sh
# Writes what a release ships beside the program: completions, manual pages, and the licences of
# what is in it. It fails where one of them is not known.
set -eu
cd "$(dirname "$0")/.."
rm -rf completions man
mkdir -p completions
program=$(mktemp)
trap 'rm -f "$program"' EXIT
CGO_ENABLED=0 GOWORK=off go build -trimpath -o "$program" ./cmd/palimpsest # as the release does, which finds it built
for shell in bash zsh fish; do
	"$program" completion "$shell" >"completions/palimpsest.$shell"
done
"$program" man man
CGO_ENABLED=0 go run ./lab/licences THIRD_PARTY_LICENSES
