#!/usr/bin/env bash
# Keeps two daemons on one PostgreSQL and one on SQLite busy with real transcripts
# while they are killed, stopped and started, and their provider is slow. It fails
# where something is lost or there twice. Not part of CI. Its last figures stand in
# docs/performance.md.
#
#   e2e/soak/run.sh                              half an hour, 1,000 sessions
#   e2e/soak/run.sh -for 10m -sessions 300       as its flags say: -help
#   e2e/soak/run.sh -neighbour -for 2m           how much one tenant slows another
#   e2e/soak/run.sh -stores sqlite -faults 0 -for 40m -memory 1GB
#                                                one daemon, undisturbed: whether its memory goes on growing
#   e2e/soak/run.sh -stores sqlite -scale 1000,3000,10000 -for 1m
#                                                so many live sessions (docs/operations.md); with -stores postgres
#                                                on three daemons
#
# It needs PostgreSQL's programs, as the tests do, and transcripts: those beside the
# project, or a folder of them (-transcripts).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/soak.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$here/../.."
CGO_ENABLED=0 go build -o "$work/palimpsest" ./cmd/palimpsest
cd e2e
go build -o "$work/soak" ./soak
"$work/soak" -palimpsest "$work/palimpsest" -work "$work" -transcripts "$here/../../../shared/transcripts" "$@"
