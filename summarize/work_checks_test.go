package summarize

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
)

// TestOutdatedFailures: a failure of which a later run says more is not told.
func TestOutdatedFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  func(*logOf)
		want string
	}{
		{"one test fails, then all pass", func(l *logOf) { l.bad("go test ./x -run TestX", "x").ok("go test -race ./...", "") }, "test `go test -race ./...` success||"},
		{"one test fails, then those of another folder pass", func(l *logOf) { l.bad("go test ./x -run TestX", "x").ok("go test ./y", "") }, "test `go test ./x -run TestX` failure|x|; test `go test ./y` success||"},
		{"tests with a tag fail, then all without it pass", func(l *logOf) { l.bad("go test -tags e2e ./x", "x").ok("go test ./...", "") }, "test `go test -tags e2e ./x` failure|x|; test `go test ./...` success||"},
		{"one test of a script fails, then all pass", func(l *logOf) { l.bad("npm test -- a.test.ts", "x").ok("npm test", "") }, "test `npm test` success||"},
		{"another one passes", func(l *logOf) { l.bad("npm test -- a.test.ts", "x").ok("npm test -- b.test.ts", "") }, "test `npm test -- a.test.ts` failure|x|; test `npm test -- b.test.ts` success||"},
		{"one file fails, then all pass", func(l *logOf) { l.bad("npx vitest run a.test.ts -t adds", "x").ok("npx vitest run", "") }, "test `npx vitest run` success||"},
		{"a part fails, and what the name says is all passes after an edit", func(l *logOf) { l.bad("mise run test:integration", "x").edit("/r/a.go").ok("mise run test:ci", "") }, "test `mise run test:ci` success||"},
		{"a part fails, and what the name says is all passes without an edit", func(l *logOf) { l.bad("mise run test:integration", "x").ok("mise run test:ci", "") }, "test `mise run test:integration` failure|x|; test `mise run test:ci` success||"},
		{"a build fails, and all checks pass after an edit", func(l *logOf) {
			l.bad("cd /r/web && npx tsc --noEmit", "x").edit("/r/a.ts").ok("cd /r && npm run check", "")
		}, "check `npm run check (in /r)` success||"},
		{"a build fails, and the hook of a commit checks all after an edit", func(l *logOf) {
			l.bad("cd /r/web && npx tsc --noEmit", "x").edit("/r/a.ts").ok("cd /r && git commit -am x", "> @r/web@0.1.2 check\n> tsc --noEmit\n\n[main abc1234] x")
		}, ""},
		{"a task of mise after another, whose header comes last", func(l *logOf) {
			l.ok("mise run test && mise run test:integration 2>&1 | tail -9", "ok  \tx/a\t0.1s\n[test:integration] $ go test -tags=i ./i\nok  \tx/i\t0.1s\n[test] $ go test ./...")
		}, "test `mise run test` success||; test `mise run test:integration` success||"},
		{"a task of mise after another, that says nothing", func(l *logOf) {
			l.ok("mise run test && mise run test:integration 2>&1 | tail -9", "ok  \tx/a\t0.1s\n[test:integration] $ go test -tags=i ./i\n[test] $ go test ./...")
		}, "test `mise run test` success||; test `mise run test:integration` |[test] $ go test ./...|"},
		{"a task of mise after another, with a failure", func(l *logOf) {
			l.ok("mise run test && mise run test:integration 2>&1 | tail -9", "FAIL\tx/b\t0.1s\n[test:integration] $ go test -tags=i ./i\nok  \tx/i\t0.1s\nFAIL\tx/j\t0.1s")
		}, "test `mise run test` success||; test `mise run test:integration` |FAIL x/j 0.1s|"},
		{"a task of mise that runs what failed", func(l *logOf) {
			l.ok("go test ./x/... | tail -3", "FAIL\tx/y\t0.1s")
			l.ok("mise run test 2>&1 | tail -3", "[test] $ go test ./...\nok  \tx/y\t0.1s")
		}, "test `mise run test` success|ok x/y 0.1s|"},
		{"a task of mise that runs something else", func(l *logOf) {
			l.ok("go test ./x/... | tail -3", "FAIL\tx/y\t0.1s")
			l.ok("mise run test 2>&1 | tail -3", "[test] $ go test ./z\nok  \tx/z\t0.1s")
		}, "test `go test ./x/...` failure|FAIL x/y 0.1s|; test `mise run test` success|ok x/z 0.1s|"},
		{"the lines of a part of a task", func(l *logOf) {
			l.ok("mise run lint 2>&1 | tail -3", "[lint:go] 0 issues.\nFinished in 2.43s")
		}, "lint `mise run lint` |[lint:go] 0 issues.|"},
		{"a check does not tell, and the hook of a commit is one", func(l *logOf) {
			l.ok("npm run check 2>&1 | tail -1", "x").ok("git commit -am x", "> web@0.1.2 check\n> tsc --noEmit\n\n[main abc1234] x")
		}, ""},
		{"a build fails, and the hook of a commit stops it", func(l *logOf) {
			l.bad("npx tsc --noEmit", "x").edit("/r/a.ts").bad("git commit -am x", "> @r/web@0.1.2 check\n> tsc --noEmit\n\na.ts(1,2): error")
		}, "build `npx tsc --noEmit` failure|x|/r/a.ts"},
		{"a build fails elsewhere", func(l *logOf) {
			l.bad("cd /r/web && npx tsc --noEmit", "x").edit("/r/a.ts").ok("cd /r/api && npm run check", "")
		}, "build `npx tsc --noEmit (in /r/web)` failure|x|/r/a.ts; check `npm run check (in /r/api)` success||"},
		{"a run that did not tell, then an edit and another run", func(l *logOf) { l.ok("go test ./x | head -3", "x").edit("/r/a.go").ok("go test ./y", "") }, "test `go test ./y` success||"},
		{"a run that did not tell, then another run", func(l *logOf) { l.ok("go test ./x | head -3", "x").ok("go test ./y", "") }, "test `go test ./x` |x|; test `go test ./y` success||"},
	} {
		l := &logOf{}
		tt.log(l)
		if got := checks(l.fold(t, state.Work{})); got != tt.want {
			t.Errorf("%s: checks\n %s\nwant\n %s", tt.name, got, tt.want)
		}
	}
}
