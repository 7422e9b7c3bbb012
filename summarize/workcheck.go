package summarize

import (
	"path"
	"slices"
	"strings"
)

// The kinds of checks, as in state.Check.
const (
	buildCheck  = "build"
	testCheck   = "test"
	lintCheck   = "lint"
	formatCheck = "format"
	mixedCheck  = "check" // the name does not tell which
)

// runner is a family of programs that report how a check went in the same words.
type runner uint32

const (
	goRunner runner = 1 << iota
	golangciRunner
	cargoRunner
	pythonRunner // pytest and unittest
	scriptRunner // jest, vitest, mocha, node, bun
	tscRunner
	eslintRunner
	prettierRunner
	biomeRunner
	ruffRunner
	mypyRunner
	blackRunner
	mavenRunner
	gradleRunner
	makeRunner
	dotnetRunner
	swiftRunner
	rspecRunner
	railsRunner
	phpRunner
	bazelRunner
	npmRunner
	miseRunner
	compileRunner // the compiler of Go, called by name

	// anyRunner is that of a script: what it runs is told by its name alone.
	anyRunner   = ^runner(0)
	wrapRunner  = makeRunner | npmRunner | miseRunner | mavenRunner | gradleRunner | bazelRunner
	lintRunner  = golangciRunner | eslintRunner | biomeRunner | ruffRunner | mypyRunner | tscRunner | wrapRunner
	testsRunner = goRunner | cargoRunner | pythonRunner | scriptRunner | dotnetRunner | swiftRunner | rspecRunner | railsRunner | phpRunner | wrapRunner
	styleRunner = prettierRunner | blackRunner | wrapRunner
	buildRunner = goRunner | cargoRunner | tscRunner | dotnetRunner | swiftRunner | wrapRunner
)

// scripted is how a script reports that does a kind of check.
func scripted(kind string) runner {
	switch kind {
	case lintCheck:
		return lintRunner
	case testCheck:
		return testsRunner
	case formatCheck:
		return styleRunner
	case buildCheck:
		return buildRunner
	}
	return lintRunner | testsRunner | styleRunner | buildRunner
}

// check is what a command checks, and how it reports.
type check struct {
	kind string
	by   runner
}

// checkOf says what a command checks; false if it checks nothing.
func checkOf(words []string) (check, bool) {
	for range 4 { // wrappers around wrappers
		words = unwrap(words)
		if len(words) == 0 || slices.ContainsFunc(words[1:], func(w string) bool { return asksOnly[w] }) {
			return check{}, false
		}
		c, rest := program(path.Base(words[0]), words[1:])
		if rest == nil {
			if c.by == anyRunner {
				c.by = scripted(c.kind)
			}
			return c, c.kind != ""
		}
		words = rest
	}
	return check{}, false
}

// asksOnly are options with which a program checks nothing.
var asksOnly = set("--help -h --version --list --listTests --collect-only --dry-run -list")

// unwrap takes off what only runs another command.
func unwrap(w []string) []string {
	for len(w) > 0 {
		switch name := path.Base(w[0]); name {
		case "time", "nice", "nohup", "command", "sudo", "exec", "xvfb-run", "env", "timeout", "gtimeout":
			i := 1
			for i < len(w) && (strings.HasPrefix(w[i], "-") || strings.Contains(w[i], "=") && name == "env") {
				i++
			}
			if strings.HasSuffix(name, "timeout") {
				i++
			}
			w = w[min(i, len(w)):]
		default:
			if i := strings.IndexByte(w[0], '='); i <= 0 || strings.ContainsAny(w[0][:i], "/-. ") {
				return w
			}
			w = w[1:]
		}
	}
	return w
}

// arguments returns what of the words is no option. Those in valued take the word
// behind them.
func arguments(words []string, valued ...string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "--":
			return out
		case slices.Contains(valued, w):
			i++
		case !strings.HasPrefix(w, "-"):
			out = append(out, w)
		}
	}
	return out
}

// from returns the words from the first argument on.
func from(words []string, valued ...string) []string {
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

// programs are the checks that a program's name tells, or else its name with its
// first argument.
var programs = func() map[string]check {
	m := map[string]check{}
	for _, row := range []struct {
		kind  string
		by    runner
		names string
	}{
		{buildCheck, goRunner | compileRunner, "go build, go install"},
		{buildCheck, tscRunner, "tsc, tsgo, vue-tsc"},
		{buildCheck, cargoRunner, "rustc, cargo build, cargo check, cargo b, cargo c"},
		{buildCheck, dotnetRunner, "dotnet build"},
		{buildCheck, swiftRunner, "xcodebuild, swift build"},
		{buildCheck, bazelRunner, "bazel build, bazelisk build"},
		{buildCheck, 0, "ninja, gcc, g++, clang, clang++, javac, deno check, mix compile"},
		{testCheck, goRunner, "gotestsum"},
		{testCheck, cargoRunner, "cargo test, cargo nextest, cargo t"},
		{testCheck, pythonRunner, "pytest, py.test, tox, nox"},
		{testCheck, scriptRunner, "vitest, jest, mocha, ava, deno test, playwright test, playwright run, cypress test, cypress run"},
		{testCheck, rspecRunner, "rspec"},
		{testCheck, phpRunner, "phpunit, pest"},
		{testCheck, dotnetRunner, "dotnet test"},
		{testCheck, swiftRunner, "swift test"},
		{testCheck, bazelRunner, "bazel test, bazelisk test"},
		{testCheck, 0, "ctest"},
		{lintCheck, goRunner, "staticcheck, revive"},
		{lintCheck, goRunner | compileRunner, "go vet"},
		{lintCheck, golangciRunner, "golangci-lint run"},
		{lintCheck, cargoRunner, "cargo clippy"},
		{lintCheck, mypyRunner, "mypy"},
		{lintCheck, ruffRunner, "ruff check"},
		{lintCheck, eslintRunner, "eslint"},
		{lintCheck, biomeRunner, "biome check, biome lint, biome ci"},
		{lintCheck, 0, "pyright, basedpyright, flake8, pylint, oxlint, stylelint, tslint, rubocop, phpstan, psalm, swiftlint, shellcheck, hadolint, actionlint, " +
			"yamllint, markdownlint, deno lint, mix analyze, zig analyze, flutter analyze, dart analyze, forge analyze"},
		{formatCheck, goRunner, "go fmt"},
		{formatCheck, golangciRunner, "golangci-lint fmt"},
		{formatCheck, blackRunner, "black"},
		{formatCheck, ruffRunner, "ruff format"},
		{formatCheck, prettierRunner, "prettier"},
		{formatCheck, biomeRunner, "biome format"},
		{formatCheck, 0, "isort, cargo fmt, deno fmt, dotnet format"},
		{mixedCheck, 0, "pre-commit run"},
	} {
		for _, name := range strings.Split(row.names, ", ") {
			m[name] = check{row.kind, row.by}
		}
	}
	return m
}()

// program says what a program checks. With rest it only runs another command.
func program(name string, args []string) (c check, rest []string) {
	if c, ok := programs[name]; ok {
		return c, nil
	}
	first := from(args)[0]
	if name == "cargo" && strings.HasPrefix(first, "+") { // of another toolchain
		first = second(args)
	}
	if c, ok := programs[name+" "+first]; ok {
		return c, nil
	}
	switch name {
	case "go":
		if first == "test" {
			for i, a := range args {
				if a == "-c" || a == "-run=^$" || a == "-run=XXX" || a == "-run" && i+1 < len(args) && (args[i+1] == "^$" || args[i+1] == "XXX") {
					return check{buildCheck, goRunner | compileRunner}, nil // no test is run
				}
			}
			return check{testCheck, goRunner | compileRunner}, nil
		}
		if (first == "run" || first == "tool") && len(args) > 1 {
			a := from(args[1:], "-mod", "-tags")
			tool, _, _ := strings.Cut(a[0], "@")
			switch tool = path.Base(tool); tool {
			case "staticcheck", "golangci-lint", "gotestsum", "gofumpt", "goimports":
				return check{}, append([]string{tool}, a[1:]...)
			}
		}
	case "gofmt", "gofumpt", "goimports":
		if slices.ContainsFunc(args, func(a string) bool { return a == "-l" || a == "-d" || a == "-w" || a == "-s" }) {
			return check{formatCheck, 0}, nil
		}
	case "npm", "pnpm", "yarn", "bun":
		return packageScript(name, args)
	case "npx", "bunx", "pnpx":
		return check{}, from(args, "-p", "--package", "-c")
	case "node":
		if slices.Contains(args, "--test") {
			return check{testCheck, scriptRunner}, nil
		}
	case "deno":
		if first == "task" {
			return check{script(second(args)), anyRunner}, nil
		}
	case "next", "vite", "nuxt", "astro", "ng", "webpack", "rollup", "turbo", "nx", "lerna":
		if first == "run" {
			first = second(args)
		}
		return check{script(first), anyRunner}, nil
	case "python", "python3", "py":
		switch {
		case len(args) > 1 && args[0] == "-m" && args[1] != "unittest":
			return check{}, args[1:]
		case len(args) > 1 && args[0] == "-m", path.Base(first) == "manage.py" && second(args) == "test":
			return check{testCheck, pythonRunner}, nil
		}
	case "uv", "poetry", "pipenv", "hatch", "rye", "pdm":
		if first == "run" {
			return check{}, from(from(args)[1:], "--with", "--extra", "--group", "-p", "--python")
		}
	case "mvn", "mvnw":
		return check{goal(args), mavenRunner}, nil
	case "gradle", "gradlew":
		return check{goal(args), gradleRunner}, nil
	case "sbt", "mix", "zig", "flutter", "dart", "forge":
		return check{script(first), 0}, nil
	case "make", "gmake":
		targets := arguments(args, "-C", "-f", "-j", "-o")
		if len(targets) == 0 {
			return check{buildCheck, anyRunner}, nil
		}
		last := targets[len(targets)-1]
		if last == "check" {
			return check{testCheck, anyRunner}, nil // by the conventions of GNU
		}
		return check{script(last), anyRunner}, nil
	case "just", "task", "rake", "invoke":
		return check{script(first), anyRunner}, nil
	case "mise":
		switch first {
		case "run", "r":
			return check{script(second(args)), anyRunner}, nil
		case "exec", "x":
			if i := slices.Index(args, "--"); i >= 0 {
				return check{}, append(args[i+1:], "")
			}
		}
	case "cmake":
		if slices.Contains(args, "--build") {
			return check{buildCheck, makeRunner}, nil
		}
	case "bundle":
		if first == "exec" {
			return check{}, from(args)[1:]
		}
	case "rails":
		if strings.HasPrefix(first, "test") {
			return check{testCheck, railsRunner}, nil
		}
	case "composer":
		if first == "run" || first == "run-script" {
			first = second(args)
		}
		return check{script(first), phpRunner}, nil
	case "php", "artisan":
		switch {
		case first == "test" || path.Base(first) == "artisan" && second(args) == "test":
			return check{testCheck, phpRunner}, nil
		case strings.Contains(first, "/"):
			return check{}, from(args)
		}
	}
	return check{}, nil
}

// silent are programs that print nothing where they find nothing.
var silent = set("tsc tsgo vue-tsc eslint staticcheck flake8 shellcheck")

// mute reports whether a check prints nothing where it finds nothing.
func mute(words []string) bool {
	for range 4 {
		if words = unwrap(words); len(words) == 0 {
			return false
		}
		name, args := path.Base(words[0]), words[1:]
		switch {
		case name == "go":
			return len(args) > 0 && (args[0] == "build" || args[0] == "vet" || args[0] == "test" && slices.Contains(args, "-c"))
		case silent[name], (name == "pnpm" || name == "yarn" || name == "bun") && len(args) > 0 && silent[args[0]]:
			return true
		}
		_, rest := program(name, args)
		if rest == nil {
			return listing(words)
		}
		words = rest
	}
	return false
}

func second(words []string) string {
	if a := arguments(words); len(a) > 1 {
		return a[1]
	}
	return ""
}

// packageScript reads the calls of the package managers of JavaScript.
func packageScript(name string, args []string) (c check, rest []string) {
	a := from(args, "-w", "--workspace", "--prefix", "--filter", "-F", "-C", "--dir", "--cwd")
	switch a[0] {
	case "run", "run-script", "rum":
		a = from(a[1:], "-w", "--workspace", "--prefix", "--filter", "-F")
		return check{script(a[0]), anyRunner}, nil
	case "test", "t", "tst":
		if name == "bun" {
			return check{testCheck, scriptRunner}, nil
		}
		return check{testCheck, anyRunner}, nil
	case "exec", "dlx", "x":
		if a = a[1:]; len(a) > 0 && a[0] == "--" {
			a = a[1:]
		}
		return check{}, from(a, "-p", "--package")
	}
	if name == "npm" || a[0] == "" {
		return check{}, nil
	}
	if name == "yarn" && a[0] == "workspace" && len(a) > 2 {
		return packageScript(name, a[2:])
	}
	if c, ok := programs[a[0]]; ok { // pnpm vitest
		return c, nil
	}
	return check{script(a[0]), anyRunner}, nil
}

// scriptWords tell from a part of a script's name what the script does.
var scriptWords = func() map[string]string {
	m := map[string]string{}
	for kind, words := range map[string]string{
		testCheck:   "test tests spec e2e unit integration jest vitest unittest pytest",
		lintCheck:   "lint eslint linter tslint vet clippy typecheck types mypy tsc stylelint staticcheck",
		buildCheck:  "build compile bundle assemble",
		formatCheck: "fmt format prettier gofmt",
		mixedCheck:  "check verify validate ci",
	} {
		for w := range strings.FieldsSeq(words) {
			m[w] = kind
		}
	}
	return m
}()

// script says what a script or a target does by its name; "" if the name does not
// tell.
func script(name string) string {
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

// goal reads the goals of Maven and the tasks of Gradle: the one that says most
// names the check.
func goal(args []string) (kind string) {
	for _, a := range arguments(args, "-f", "-pl", "-p", "-P", "--file", "-x") {
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
