package summarize

import (
	"path"
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

// checkOf says what kind of check a command is, and how it reports; false if it
// is none.
func checkOf(words []string) (kind string, by runner, ok bool) {
	for range 4 { // wrappers around wrappers
		words = unwrap(words)
		if len(words) == 0 {
			return "", 0, false
		}
		for _, w := range words[1:] {
			if w == "--help" || w == "-h" || w == "--version" || w == "--list" || w == "--listTests" || w == "--collect-only" || w == "--dry-run" || w == "-list" {
				return "", 0, false
			}
		}
		name, args := path.Base(words[0]), words[1:]
		var rest []string
		if kind, by, rest = table(name, args); rest == nil {
			if by == anyRunner {
				by = scripted(kind)
			}
			return kind, by, kind != ""
		}
		words = rest
	}
	return "", 0, false
}

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
		case contains(valued, w):
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
		case contains(valued, w):
			i++
		case !strings.HasPrefix(w, "-"):
			return words[i:]
		}
	}
	return []string{""}
}

// single are programs that do one thing.
var single = map[string]struct {
	kind string
	by   runner
}{
	"staticcheck": {lintCheck, goRunner}, "revive": {lintCheck, goRunner}, "gotestsum": {testCheck, goRunner},
	"pytest": {testCheck, pythonRunner}, "py.test": {testCheck, pythonRunner}, "tox": {testCheck, pythonRunner}, "nox": {testCheck, pythonRunner},
	"mypy": {lintCheck, mypyRunner}, "pyright": {lintCheck, 0}, "basedpyright": {lintCheck, 0}, "flake8": {lintCheck, 0}, "pylint": {lintCheck, 0},
	"black": {formatCheck, blackRunner}, "isort": {formatCheck, 0}, "tsc": {buildCheck, tscRunner}, "tsgo": {buildCheck, tscRunner}, "vue-tsc": {buildCheck, tscRunner},
	"eslint": {lintCheck, eslintRunner}, "oxlint": {lintCheck, 0}, "stylelint": {lintCheck, 0}, "tslint": {lintCheck, 0}, "prettier": {formatCheck, prettierRunner},
	"vitest": {testCheck, scriptRunner}, "jest": {testCheck, scriptRunner}, "mocha": {testCheck, scriptRunner}, "ava": {testCheck, scriptRunner},
	"rspec": {testCheck, rspecRunner}, "rubocop": {lintCheck, 0}, "phpunit": {testCheck, phpRunner}, "pest": {testCheck, phpRunner}, "phpstan": {lintCheck, 0},
	"psalm": {lintCheck, 0}, "ctest": {testCheck, 0}, "ninja": {buildCheck, 0}, "xcodebuild": {buildCheck, swiftRunner}, "swiftlint": {lintCheck, 0},
	"shellcheck": {lintCheck, 0}, "hadolint": {lintCheck, 0}, "actionlint": {lintCheck, 0}, "yamllint": {lintCheck, 0}, "markdownlint": {lintCheck, 0},
	"gcc": {buildCheck, 0}, "g++": {buildCheck, 0}, "clang": {buildCheck, 0}, "clang++": {buildCheck, 0}, "javac": {buildCheck, 0}, "rustc": {buildCheck, cargoRunner},
}

// table finds a program. With rest it only runs another command.
func table(name string, args []string) (kind string, by runner, rest []string) {
	if s, ok := single[name]; ok {
		return s.kind, s.by, nil
	}
	first := ""
	if a := from(args); len(a) > 0 {
		first = a[0]
	}
	switch name {
	case "go":
		switch first {
		case "test":
			for i, a := range args {
				if a == "-c" || a == "-run=^$" || a == "-run=XXX" || a == "-run" && i+1 < len(args) && (args[i+1] == "^$" || args[i+1] == "XXX") {
					return buildCheck, goRunner | compileRunner, nil // no test is run
				}
			}
			return testCheck, goRunner | compileRunner, nil
		case "build", "install":
			return buildCheck, goRunner | compileRunner, nil
		case "vet":
			return lintCheck, goRunner | compileRunner, nil
		case "fmt":
			return formatCheck, goRunner, nil
		case "run", "tool":
			if a := from(args[1:], "-mod", "-tags"); len(args) > 1 {
				tool, _, _ := strings.Cut(a[0], "@")
				if t := path.Base(tool); t == "staticcheck" || t == "golangci-lint" || t == "gotestsum" || t == "gofumpt" || t == "goimports" {
					return "", 0, append([]string{t}, a[1:]...)
				}
			}
		}
	case "golangci-lint":
		switch first {
		case "run":
			return lintCheck, golangciRunner, nil
		case "fmt":
			return formatCheck, golangciRunner, nil
		}
	case "gofmt", "gofumpt", "goimports":
		for _, a := range args {
			if a == "-l" || a == "-d" || a == "-w" || a == "-s" {
				return formatCheck, 0, nil
			}
		}
	case "cargo":
		if strings.HasPrefix(first, "+") {
			first = ""
			if a := arguments(args); len(a) > 1 {
				first = a[1]
			}
		}
		switch first {
		case "test", "nextest", "t":
			return testCheck, cargoRunner, nil
		case "build", "check", "b", "c":
			return buildCheck, cargoRunner, nil
		case "clippy":
			return lintCheck, cargoRunner, nil
		case "fmt":
			return formatCheck, 0, nil
		}
	case "npm", "pnpm", "yarn", "bun":
		return packageScript(name, args)
	case "npx", "bunx", "pnpx":
		return "", 0, from(args, "-p", "--package", "-c")
	case "node":
		if contains(args, "--test") {
			return testCheck, scriptRunner, nil
		}
	case "deno":
		switch first {
		case "test":
			return testCheck, scriptRunner, nil
		case "lint":
			return lintCheck, 0, nil
		case "fmt":
			return formatCheck, 0, nil
		case "check":
			return buildCheck, 0, nil
		case "task":
			return script(second(args)), anyRunner, nil
		}
	case "biome":
		switch first {
		case "check", "lint", "ci":
			return lintCheck, biomeRunner, nil
		case "format":
			return formatCheck, biomeRunner, nil
		}
	case "playwright", "cypress":
		if first == "test" || first == "run" {
			return testCheck, scriptRunner, nil
		}
	case "next", "vite", "nuxt", "astro", "ng", "webpack", "rollup", "turbo", "nx", "lerna":
		if first == "run" {
			first = second(args)
		}
		return script(first), anyRunner, nil
	case "python", "python3", "py":
		if len(args) > 1 && args[0] == "-m" {
			if args[1] == "unittest" {
				return testCheck, pythonRunner, nil
			}
			return "", 0, args[1:]
		}
		if path.Base(first) == "manage.py" && second(args) == "test" {
			return testCheck, pythonRunner, nil
		}
	case "uv", "poetry", "pipenv", "hatch", "rye", "pdm":
		if first == "run" {
			return "", 0, from(from(args)[1:], "--with", "--extra", "--group", "-p", "--python")
		}
	case "ruff":
		switch first {
		case "check":
			return lintCheck, ruffRunner, nil
		case "format":
			return formatCheck, ruffRunner, nil
		}
	case "mvn", "mvnw", "gradle", "gradlew":
		return goals(name, args)
	case "sbt":
		return script(first), 0, nil
	case "make", "gmake":
		targets := arguments(args, "-C", "-f", "-j", "-o")
		if len(targets) == 0 {
			return buildCheck, anyRunner, nil
		}
		kind := script(targets[len(targets)-1])
		if kind == mixedCheck && targets[len(targets)-1] == "check" {
			kind = testCheck // by the conventions of GNU
		}
		return kind, anyRunner, nil
	case "just", "task", "rake", "invoke":
		return script(first), anyRunner, nil
	case "mise":
		switch first {
		case "run", "r":
			return script(second(args)), anyRunner, nil
		case "exec", "x":
			for i, w := range args {
				if w == "--" {
					return "", 0, append(args[i+1:], "")
				}
			}
		}
	case "cmake":
		if contains(args, "--build") {
			return buildCheck, makeRunner, nil
		}
	case "dotnet":
		switch first {
		case "test":
			return testCheck, dotnetRunner, nil
		case "build":
			return buildCheck, dotnetRunner, nil
		case "format":
			return formatCheck, 0, nil
		}
	case "swift":
		switch first {
		case "test":
			return testCheck, swiftRunner, nil
		case "build":
			return buildCheck, swiftRunner, nil
		}
	case "bundle":
		if first == "exec" {
			return "", 0, from(args)[1:]
		}
	case "rails":
		if strings.HasPrefix(first, "test") {
			return testCheck, railsRunner, nil
		}
	case "composer":
		if first == "run" || first == "run-script" {
			first = second(args)
		}
		return script(first), phpRunner, nil
	case "php", "artisan":
		switch {
		case first == "test" || path.Base(first) == "artisan" && second(args) == "test":
			return testCheck, phpRunner, nil
		case strings.Contains(first, "/"):
			return "", 0, from(args)
		}
	case "mix", "zig", "flutter", "dart", "forge":
		if name == "mix" && first == "compile" {
			return buildCheck, 0, nil
		}
		if first == "analyze" {
			return lintCheck, 0, nil
		}
		return script(first), 0, nil
	case "bazel", "bazelisk":
		switch first {
		case "test":
			return testCheck, bazelRunner, nil
		case "build":
			return buildCheck, bazelRunner, nil
		}
	case "pre-commit":
		if first == "run" {
			return mixedCheck, 0, nil
		}
	}
	return "", 0, nil
}

// mute reports whether a check prints nothing where it finds nothing.
func mute(words []string) bool {
	for range 4 {
		if words = unwrap(words); len(words) == 0 {
			return false
		}
		name, args := path.Base(words[0]), words[1:]
		switch name {
		case "go":
			return len(args) > 0 && (args[0] == "build" || args[0] == "vet" || args[0] == "test" && contains(args, "-c"))
		case "tsc", "tsgo", "vue-tsc", "eslint", "staticcheck", "flake8", "shellcheck":
			return true
		case "pnpm", "yarn", "bun":
			if len(args) > 0 && (args[0] == "tsc" || args[0] == "tsgo" || args[0] == "vue-tsc" || args[0] == "eslint") {
				return true
			}
		}
		_, _, rest := table(name, args)
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
func packageScript(name string, args []string) (kind string, by runner, rest []string) {
	a := from(args, "-w", "--workspace", "--prefix", "--filter", "-F", "-C", "--dir", "--cwd")
	switch a[0] {
	case "run", "run-script", "rum":
		a = from(a[1:], "-w", "--workspace", "--prefix", "--filter", "-F")
		return script(a[0]), anyRunner, nil
	case "test", "t", "tst":
		if name == "bun" {
			return testCheck, scriptRunner, nil
		}
		return testCheck, anyRunner, nil
	case "exec", "dlx", "x":
		a = a[1:]
		if len(a) > 0 && a[0] == "--" {
			a = a[1:]
		}
		return "", 0, from(a, "-p", "--package")
	}
	if name == "npm" || a[0] == "" {
		return "", 0, nil
	}
	if name == "yarn" && a[0] == "workspace" && len(a) > 2 {
		return packageScript(name, a[2:])
	}
	if s, ok := single[a[0]]; ok { // pnpm vitest
		return s.kind, s.by, nil
	}
	return script(a[0]), anyRunner, nil
}

// scriptWords tell from a part of a script's name what the script does.
var scriptWords = map[string]string{
	"test": testCheck, "tests": testCheck, "spec": testCheck, "e2e": testCheck, "unit": testCheck, "integration": testCheck, "jest": testCheck, "vitest": testCheck,
	"unittest": testCheck, "pytest": testCheck, "lint": lintCheck, "eslint": lintCheck, "linter": lintCheck, "tslint": lintCheck, "vet": lintCheck, "clippy": lintCheck,
	"typecheck": lintCheck, "types": lintCheck, "mypy": lintCheck, "tsc": lintCheck, "stylelint": lintCheck, "staticcheck": lintCheck,
	"build": buildCheck, "compile": buildCheck, "bundle": buildCheck, "assemble": buildCheck, "fmt": formatCheck, "format": formatCheck, "prettier": formatCheck,
	"gofmt": formatCheck, "check": mixedCheck, "verify": mixedCheck, "validate": mixedCheck, "ci": mixedCheck,
}

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

// goals reads the goals of Maven and the tasks of Gradle: the one that says most
// names the check.
func goals(name string, args []string) (kind string, by runner, rest []string) {
	by = gradleRunner
	if strings.HasPrefix(name, "mvn") {
		by = mavenRunner
	}
	for _, a := range arguments(args, "-f", "-pl", "-p", "-P", "--file", "-x") {
		a = strings.ToLower(a[strings.LastIndexByte(a, ':')+1:])
		switch {
		case strings.Contains(a, "test") && !strings.HasPrefix(a, "compile"), a == "verify":
			return testCheck, by, nil
		case a == "check" && kind == "":
			kind = mixedCheck
		case strings.HasPrefix(a, "spotlessapply"), a == "format":
			kind = formatCheck
		case strings.Contains(a, "lint"), strings.HasPrefix(a, "checkstyle"), strings.HasPrefix(a, "spotless"), a == "detekt":
			kind = lintCheck
		case a == "compile" || a == "package" || a == "install" || a == "build" || strings.HasPrefix(a, "assemble") || strings.HasPrefix(a, "compile"):
			kind = buildCheck
		}
	}
	return kind, by, nil
}
