#!/bin/sh
# Installs the program of a release for this user, without root:
#
#   curl -fsSL https://github.com/palimpsest-ai/palimpsest/releases/latest/download/install.sh | sh
#
# PALIMPSEST_VERSION=v0.1.0 takes that release, PALIMPSEST_DIR=DIR another folder than ~/.local/bin,
# and PALIMPSEST_RELEASES=URL another place with the same files.
set -eu

fail() {
	printf 'palimpsest: %s\n' "$*" >&2
	exit 1
}

fetch() { # fetch URL FILE
	if command -v curl >/dev/null; then
		curl -fsSL -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1"
	else
		fail 'this needs curl or wget'
	fi || fail "$1 cannot be read; nothing was changed"
}

sum() { # sum FILE: its SHA-256
	if command -v sha256sum >/dev/null; then
		sha256sum "$1"
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1"
	else
		fail 'this needs sha256sum or shasum, to check what it has read'
	fi | cut -d ' ' -f 1
}

# The work is a function, so that a script that came only in part does nothing.
main() {
	system=$(uname -s | tr '[:upper:]' '[:lower:]')
	case $system in
	linux | darwin) ;;
	*) fail "there is no program for $system here; for Windows take the .zip of the release" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) machine=amd64 ;;
	aarch64 | arm64) machine=arm64 ;;
	*) fail "there is no program for $(uname -m); build it: go install github.com/palimpsest-ai/palimpsest/cmd/palimpsest@latest" ;;
	esac
	releases=${PALIMPSEST_RELEASES:-https://github.com/palimpsest-ai/palimpsest/releases}
	from=$releases/latest/download
	[ -z "${PALIMPSEST_VERSION:-}" ] || from=$releases/download/$PALIMPSEST_VERSION
	dir=${PALIMPSEST_DIR:-$HOME/.local/bin}

	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	fetch "$from/checksums.txt" "$scratch/checksums.txt"
	archive=$(awk -v end="_${system}_$machine.tar.gz" '
		index($2, "palimpsest_") == 1 && substr($2, length($2) - length(end) + 1) == end { print $2 }' "$scratch/checksums.txt")
	[ -n "$archive" ] || fail "$from has no program for $system on $machine"
	fetch "$from/$archive" "$scratch/archive"
	want=$(awk -v name="$archive" '$2 == name { print $1 }' "$scratch/checksums.txt")
	have=$(sum "$scratch/archive")
	[ "$want" = "$have" ] || fail "$archive is not what checksums.txt says ($have, and not $want); nothing was changed"

	tar -xzf "$scratch/archive" -C "$scratch" palimpsest
	mkdir -p "$dir"
	old=
	[ ! -x "$dir/palimpsest" ] || old=$("$dir/palimpsest" version 2>/dev/null | head -n 1 || true)
	# Renamed into its place: a running program keeps its own file.
	cp "$scratch/palimpsest" "$dir/.palimpsest.new"
	chmod 755 "$dir/.palimpsest.new"
	mv -f "$dir/.palimpsest.new" "$dir/palimpsest"
	printf '%s/palimpsest: %s, from %s, checked by its SHA-256\n' "$dir" "$("$dir/palimpsest" version | head -n 1)" "$archive"
	[ -z "$old" ] || printf 'It replaces %s.\n' "$old"
	case :$PATH: in
	*:"$dir":*) printf 'Next: palimpsest shows your sessions, palimpsest install connects your agents.\n' ;;
	*) printf '%s is not on your PATH. Add it in the settings of your shell: export PATH="%s:$PATH"\n' "$dir" "$dir" ;;
	esac
	printf 'To take it out: palimpsest uninstall, then rm %s/palimpsest. Nothing else was changed.\n' "$dir"
}

main
