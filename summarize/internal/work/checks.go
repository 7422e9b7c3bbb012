package work

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// The kinds of checks, as in state.Check.
const (
	buildCheck  = "build"
	testCheck   = "test"
	lintCheck   = "lint"
	formatCheck = "format"
	mixedCheck  = "check" // several of them, or unknown which
)

// runner is a set of families of programs; those of a family report in the same words.
type runner uint32

const (
	goRunner runner = 1 << iota // go test; no other command of go has its words
	golangciRunner
	cargoRunner     // the compiler and clippy
	cargoTestRunner // what only tests print; so with the next ones
	pythonRunner    // pytest and unittest
	scriptRunner    // jest, vitest, mocha, node, bun
	tscRunner
	eslintRunner
	prettierRunner
	biomeRunner
	ruffRunner
	ruffFormatRunner
	mypyRunner
	blackRunner
	mavenRunner
	gradleRunner
	makeRunner
	dotnetRunner
	dotnetTestRunner
	swiftRunner
	swiftTestRunner
	rspecRunner
	railsRunner
	phpRunner
	bazelRunner
	npmRunner
	miseRunner
	compileRunner // the compiler of Go and what checks like it, called by name

	// anyRunner is for a script: only its name says what it runs.
	anyRunner   = ^runner(0)
	wrapRunner  = makeRunner | npmRunner | miseRunner | mavenRunner | gradleRunner | bazelRunner
	lintRunner  = golangciRunner | eslintRunner | biomeRunner | ruffRunner | ruffFormatRunner | mypyRunner | tscRunner | wrapRunner
	cargoTests  = cargoRunner | cargoTestRunner
	dotnetTests = dotnetRunner | dotnetTestRunner
	swiftTests  = swiftRunner | swiftTestRunner
	testsRunner = goRunner | cargoTests | pythonRunner | scriptRunner | dotnetTests | swiftTests | rspecRunner | railsRunner | phpRunner | wrapRunner
	styleRunner = prettierRunner | blackRunner | ruffFormatRunner | wrapRunner
	buildRunner = goRunner | cargoTests | tscRunner | dotnetTests | swiftTests | wrapRunner
)

// scriptRunners are the runners that a script of a kind may run.
var scriptRunners = map[string]runner{
	lintCheck: lintRunner, testCheck: testsRunner, formatCheck: styleRunner, buildCheck: buildRunner,
	mixedCheck: lintRunner | testsRunner | styleRunner | buildRunner,
}

// check is what a command checks and how it reports.
type check struct {
	kind         string
	runner       runner
	command      string
	task         string // the task of mise that it runs
	lists        bool   // it reports by its output; its exit status says nothing
	quietIfClean bool   // it prints nothing if it finds nothing
}

// checkOf says what a command checks; nil if nothing.
func checkOf(words []string) *check {
	for range 4 { // wrappers around wrappers
		words = shell.Unwrap(words)
		if len(words) == 0 || slices.ContainsFunc(words[1:], func(w string) bool { return asksOnly[w] }) {
			return nil
		}
		name, args := path.Base(words[0]), words[1:]
		if words = wrappedCommand(name, args); words != nil {
			continue
		}
		c := checkOfProgram(name, args)
		if c.kind == "" {
			return nil
		}
		if c.runner == anyRunner {
			c.runner = scriptRunners[c.kind]
		}
		c.lists = formatters[name] && !slices.Contains(args, "-w")
		c.quietIfClean = c.lists || quietIfClean(name, args)
		return &c
	}
	return nil
}

// asksOnly are options with which a program runs no check.
var asksOnly = scan.WordSet("--help -h --version --list --listTests --collect-only --dry-run -list")

// formatters list the files that they would change, unless -w makes them write.
var formatters = scan.WordSet("gofmt goimports gofumpt")

// silentPrograms are programs that print nothing if they find nothing.
var silentPrograms = scan.WordSet("tsc tsgo vue-tsc eslint staticcheck flake8 shellcheck")

// quietIfClean reports whether a check prints nothing if it finds nothing.
func quietIfClean(name string, args []string) bool {
	if packageManagers[name] && len(args) > 0 {
		name = args[0] // yarn tsc
	}
	return silentPrograms[name] || name == "go" && (args[0] == "build" || args[0] == "vet" || args[0] == "test" && slices.Contains(args, "-c"))
}

// arguments returns the words that are neither options nor values of the options in valued.
func arguments(words, valued []string) (out []string) {
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	for words = fromArgument(words, valued); words[0] != ""; words = fromArgument(words[1:], valued) {
		out = append(out, words[0])
	}
	return out
}

// fromArgument returns the words from the first argument on, or one empty word.
func fromArgument(words, valued []string) []string {
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case slices.Contains(valued, w):
			i++
		case !strings.HasPrefix(w, "-"):
			return words[i:]
		}
	}
	return []string{""}
}

// programs are checks by the name of the program, or by its name and first argument.
var programs = func() map[string]check {
	m := map[string]check{}
	for _, row := range []struct {
		kind  string
		by    runner
		names string
	}{
		{buildCheck, compileRunner, "go build, go install"},
		{buildCheck, tscRunner, "tsc, tsgo, vue-tsc"},
		{buildCheck, cargoRunner, "rustc, cargo build, cargo check, cargo b, cargo c"},
		{buildCheck, dotnetRunner, "dotnet build"},
		{buildCheck, swiftRunner, "swift build"},
		{buildCheck, swiftTests, "xcodebuild"},
		{buildCheck, bazelRunner, "bazel build, bazelisk build"},
		{buildCheck, 0, "ninja, gcc, g++, clang, clang++, javac, deno check, mix compile"},
		{testCheck, goRunner, "gotestsum"},
		{testCheck, cargoTests, "cargo test, cargo nextest, cargo t"},
		{testCheck, pythonRunner, "pytest, py.test, tox, nox"},
		{testCheck, scriptRunner, "vitest, jest, mocha, ava, deno test, playwright test, playwright run, cypress test, cypress run"},
		{testCheck, rspecRunner, "rspec"},
		{testCheck, phpRunner, "phpunit, pest"},
		{testCheck, dotnetTests, "dotnet test"},
		{testCheck, swiftTests, "swift test"},
		{testCheck, bazelRunner, "bazel test, bazelisk test"},
		{testCheck, 0, "ctest"},
		{lintCheck, compileRunner, "staticcheck"},
		{lintCheck, 0, "revive"},
		{lintCheck, compileRunner, "go vet"},
		{lintCheck, golangciRunner, "golangci-lint run"},
		{lintCheck, cargoRunner, "cargo clippy"},
		{lintCheck, mypyRunner, "mypy"},
		{lintCheck, ruffRunner, "ruff check"},
		{lintCheck, eslintRunner, "eslint"},
		{lintCheck, biomeRunner, "biome check, biome lint, biome ci"},
		{lintCheck, 0, "pyright, basedpyright, flake8, pylint, oxlint, stylelint, tslint, rubocop, phpstan, psalm, swiftlint, shellcheck, hadolint, actionlint, " +
			"yamllint, markdownlint, deno lint, mix analyze, zig analyze, flutter analyze, dart analyze, forge analyze"},
		{formatCheck, compileRunner, "go fmt"},
		{formatCheck, compileRunner, "golangci-lint fmt"},
		{formatCheck, blackRunner, "black"},
		{formatCheck, ruffFormatRunner, "ruff format"},
		{formatCheck, prettierRunner, "prettier"},
		{formatCheck, biomeRunner, "biome format"},
		{formatCheck, 0, "isort, cargo fmt, deno fmt, dotnet format"},
		{mixedCheck, 0, "pre-commit run"},
	} {
		for _, name := range strings.Split(row.names, ", ") {
			m[name] = check{kind: row.kind, runner: row.by}
		}
	}
	return m
}()

// wrapper is a program that runs another: the command follows one of the words in firsts (if
// there are any) and options, of which those in valued take a value.
type wrapper struct{ firsts, valued []string }

var wrappers = map[string]wrapper{
	"npm": {[]string{"exec", "x"}, packageOptions}, "pnpm": {[]string{"exec", "dlx", "x"}, packageOptions},
	"yarn": {[]string{"exec", "dlx"}, packageOptions}, "bun": {[]string{"x"}, packageOptions},
	"bundle": {[]string{"exec"}, nil}, "mise": {[]string{"exec", "x"}, nil},
	"npx": {nil, packageOptions}, "bunx": {nil, packageOptions}, "pnpx": {nil, packageOptions},
	"uv": pythonWrapper, "poetry": pythonWrapper, "pipenv": pythonWrapper, "hatch": pythonWrapper, "rye": pythonWrapper, "pdm": pythonWrapper,
}

var pythonWrapper = wrapper{[]string{"run"}, []string{"--with", "--extra", "--group", "-p", "--python"}}

// Options of package managers that take a value.
var (
	packageOptions   = []string{"-p", "--package", "-c"}
	workspaceOptions = []string{"-w", "--workspace", "--prefix", "--filter", "-F", "-C", "--dir", "--cwd"}
)

var pythons = scan.WordSet("python python3 py")

var packageManagers = scan.WordSet("npm pnpm yarn bun")

// wrappedCommand is the command that a wrapper runs; nil if the program is no wrapper.
func wrappedCommand(name string, args []string) []string {
	first := fromArgument(args, workspaceOptions)
	w, ok := wrappers[name]
	switch {
	case name == "go":
		if len(args) > 1 && (args[0] == "run" || args[0] == "tool") {
			a := fromArgument(args[1:], []string{"-mod", "-tags"})
			tool, _, _ := strings.Cut(a[0], "@")
			switch tool = path.Base(tool); tool {
			case "staticcheck", "golangci-lint", "gotestsum", "gofumpt", "goimports":
				return append([]string{tool}, a[1:]...)
			}
		}
	case name == "php" && strings.Contains(first[0], "/") && path.Base(first[0]) != "artisan":
		return first
	case name == "yarn" && first[0] == "workspace" && len(first) > 2:
		return append([]string{"yarn"}, first[2:]...)
	case pythons[name] && len(args) > 1 && args[0] == "-m" && args[1] != "unittest":
		return args[1:]
	case ok && w.firsts == nil:
		return fromArgument(args, w.valued)
	case slices.Contains(w.firsts, first[0]):
		if i := slices.Index(first, "--"); i >= 0 && name == "mise" {
			return first[i+1:]
		}
		return fromArgument(first[1:], w.valued)
	}
	return nil
}

// noTest matches go test with a pattern that no test has, so that it only builds.
var noTest = regexp.MustCompile(`(^| )-run[= ](\^\$|XXX)( |$)`)

// taskRunners run a named script or target; the value says in which words they report.
var taskRunners = scan.Inverted(map[runner]string{
	phpRunner: "composer",
	anyRunner: "next vite nuxt astro ng webpack rollup turbo nx lerna deno just task rake invoke mise npm pnpm yarn bun",
	0:         "sbt mix zig flutter dart forge",
})

// checkOfProgram says what a program checks.
func checkOfProgram(name string, args []string) check {
	if c, ok := programs[name]; ok {
		return c
	}
	all := fromArgument(args, nil)
	if packageManagers[name] {
		all = fromArgument(args, workspaceOptions)
	}
	if name == "cargo" && strings.HasPrefix(all[0], "+") { // of another toolchain
		all = fromArgument(all[1:], nil)
	}
	first, next := all[0], fromArgument(all[1:], workspaceOptions)[0]
	if c, ok := programs[name+" "+first]; ok {
		return c
	}
	by, names := taskRunners[name]
	switch {
	case name == "go" && first == "test":
		kind := testCheck
		if slices.Contains(args, "-c") || noTest.MatchString(strings.Join(args, " ")) {
			kind = buildCheck
		}
		return check{kind: kind, runner: goRunner | compileRunner}
	case formatters[name] && slices.ContainsFunc(args, func(a string) bool { return a == "-l" || a == "-d" || a == "-w" || a == "-s" }):
		return check{kind: formatCheck}
	case name == "node" && slices.Contains(args, "--test"):
		return check{kind: testCheck, runner: scriptRunner}
	case pythons[name] && (path.Base(first) == "manage.py" && next == "test" || len(args) > 1 && args[0] == "-m"):
		return check{kind: testCheck, runner: pythonRunner}
	case name == "mvn" || name == "mvnw":
		return check{kind: kindOfGoals(args), runner: mavenRunner}
	case name == "gradle" || name == "gradlew":
		return check{kind: kindOfGoals(args), runner: gradleRunner}
	case (name == "make" || name == "gmake") && slices.ContainsFunc(args, func(a string) bool { return a == "-n" || a == "-q" || a == "--just-print" || a == "--question" }):
		return check{} // it runs nothing
	case name == "make" || name == "gmake":
		targets := arguments(args, []string{"-C", "-f", "-j", "-o"})
		if len(targets) == 0 {
			return check{kind: buildCheck, runner: anyRunner}
		}
		last := targets[len(targets)-1]
		if last == "check" {
			last = testCheck // by the conventions of GNU
		}
		return check{kind: kindOfScript(last), runner: anyRunner}
	case name == "cmake" && slices.Contains(args, "--build"):
		return check{kind: buildCheck, runner: makeRunner}
	case name == "rails" && strings.HasPrefix(first, "test"):
		return check{kind: testCheck, runner: railsRunner}
	case (name == "php" || name == "artisan") && (first == "test" || path.Base(first) == "artisan" && next == "test"):
		return check{kind: testCheck, runner: phpRunner}
	case !names:
		return check{}
	case first == "run" || first == "task" || first == "r" || first == "run-script" || first == "rum":
		return scriptCheck(name, next, by)
	case packageManagers[name]:
		return packageCommand(name, first)
	}
	return scriptCheck(name, first, by)
}

// scriptCheck says what a script or task checks that a task runner runs.
func scriptCheck(name, script string, by runner) check {
	c := check{kind: kindOfScript(script), runner: by}
	if name == "mise" {
		c.task = script
	}
	return c
}

// packageCommand reads the commands of package managers of JavaScript; most of those accept
// the name of a script or a program as a command.
func packageCommand(name, first string) check {
	tests := first == "test" || first == "t" || first == "tst"
	if c, ok := programs[first]; ok && name != "npm" { // pnpm vitest
		return c
	}
	switch {
	case tests && name == "bun":
		return check{kind: testCheck, runner: scriptRunner}
	case tests:
		return check{kind: testCheck, runner: anyRunner}
	case name == "npm":
		return check{}
	}
	return check{kind: kindOfScript(first), runner: anyRunner}
}

// scriptWords say what a script does by a part of its name.
var scriptWords = scan.Inverted(map[string]string{
	testCheck:   "test tests spec e2e unit integration jest vitest unittest pytest",
	lintCheck:   "lint eslint linter tslint vet clippy typecheck types mypy tsc stylelint staticcheck",
	buildCheck:  "build compile bundle assemble",
	formatCheck: "fmt format prettier gofmt",
	mixedCheck:  "check verify validate ci",
})

// kindOfScript says what a script or a target checks by its name; "" if the name does not tell.
func kindOfScript(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "//")
	if strings.HasPrefix(name, "type-check") || strings.HasPrefix(name, "check-types") || strings.HasPrefix(name, "check:types") {
		return lintCheck
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(":-_./", r) }) {
		if kind := scriptWords[part]; kind != "" {
			return kind
		}
	}
	return ""
}

// kindOfGoals says what goals of Maven or tasks of Gradle check; a test wins.
func kindOfGoals(args []string) (kind string) {
	for _, a := range arguments(args, []string{"-f", "-pl", "-p", "-P", "--file", "-x"}) {
		a = strings.ToLower(a[strings.LastIndexByte(a, ':')+1:])
		begins := func(word string) bool { return strings.HasPrefix(a, word) }
		switch {
		case strings.Contains(a, "test") && !begins("compile"), a == "verify":
			return testCheck
		case a == "check" && kind == "":
			kind = mixedCheck
		case begins("spotlessapply"), a == "format":
			kind = formatCheck
		case strings.Contains(a, "lint"), begins("checkstyle"), begins("spotless"), a == "detekt":
			kind = lintCheck
		case a == "package", a == "install", a == "build", begins("assemble"), begins("compile"):
			kind = buildCheck
		}
	}
	return kind
}
