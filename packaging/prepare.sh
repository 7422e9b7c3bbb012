#!/bin/sh
# Writes what a release ships beside the program: completions and manual pages.
set -eu
cd "$(dirname "$0")/.."
rm -rf completions man
mkdir -p completions
program=$(mktemp)
trap 'rm -f "$program"' EXIT
CGO_ENABLED=0 go build -o "$program" ./cmd/palimpsest
for shell in bash zsh fish; do
	"$program" completion "$shell" >"completions/palimpsest.$shell"
done
"$program" man man
