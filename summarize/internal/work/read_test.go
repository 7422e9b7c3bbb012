package work

import (
	"cmp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestQuietIfClean(t *testing.T) {
	for command, want := range map[string]bool{
		"go vet ./...": true, "npx tsc --noEmit": true, "pnpm exec eslint src": true, "yarn tsc": true, "go test -c ./x": true, "gofmt -l .": true,
		"go test ./...": false, "npm test": false, "gofmt -w .": false, "prettier --check .": false,
	} {
		if c := checkOf(strings.Fields(command)); c == nil || c.quietIfClean != want {
			t.Errorf("%s: %+v", command, c)
		}
	}
}

// TestNoProcess: a harness's notice of a process in the background that names none
// is read like any other output.
func TestNoProcess(t *testing.T) {
	for _, text := range []string{"Command running in background with ID: \nmore", "Command was manually backgrounded as background task \nmore"} {
		r := thread.ToolResult{CallID: "c", Tool: "Bash", Content: []thread.Part{thread.Text{Text: text}}}
		if w := ReadResult(nil, &r, text); w.Started != "" || !w.halted {
			t.Errorf("%q: %+v", text, w)
		}
	}
}

func TestCheckKinds(t *testing.T) {
	for command, want := range map[string]string{
		"go test ./...": "test", "go vet ./...": "lint", "go build": "build", "go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...": "lint", "golangci-lint run": "lint",
		"cargo test": "test", "cargo +nightly fmt": "format", "cargo clippy -- -D warnings": "lint", "npm test": "test", "npm run test:unit": "test", "npm run lint -- --fix": "lint",
		"pnpm --filter web build": "build", "yarn test": "test", "yarn workspace api lint": "lint", "bun test": "test", "npx tsc --noEmit": "build", "npx -y eslint .": "lint",
		"npx prettier --check .": "format", "pnpm exec vitest run": "test", "bunx biome check": "lint", "python3 -m pytest -q": "test", "uv run pytest": "test",
		"poetry run ruff check .": "lint", "ruff format": "format", "mypy src": "lint", "./mvnw -q test": "test", "mvn clean install": "build", "./gradlew :app:testDebugUnitTest": "test",
		"gradle build": "build", "make": "build", "make -C sub test": "test", "make check": "test", "mise run test:ci": "test", "just lint": "lint", "dotnet test": "test",
		"swift build": "build", "bin/rails test": "test", "bundle exec rspec spec/a_spec.rb": "test", "vendor/bin/phpunit": "test", "bazel test //...": "test", "composer test": "test",
		"timeout 60 npm test": "test", "env CI=1 npm test": "test", "CI=1 npm test": "test", "npm run check": "check", "deno test": "test", "mix test": "test", "ctest": "test",
		"cmake --build build": "build", "node --test": "test", "turbo run build": "build", "php artisan test": "test", "python manage.py test": "test",
		"npm install": "", "go mod tidy": "", "cargo run": "", "npm run dev": "", "make clean": "", "git status": "", "npx create-react-app x": "", "python x.py": "", "": "", "mise": "",
		"bundle exec": "", "uv run": "", "go run": "", "npx": "", "yarn": "", "npm": "", "go tool": "", "php": "", "timeout": "", "env": "", "mise exec --": "",
	} {
		got := &check{}
		if list, ok := shell.Read(command); ok {
			got = cmp.Or(checkOf(list[0].Plain()), got)
		}
		if got.kind != want {
			t.Errorf("%q is %q, want %q", command, got.kind, want)
		}
	}
}

// TestUnreadFile: a harness that flags nothing may say in words that a file was not read.
func TestUnreadFile(t *testing.T) {
	c := Call{Name: "read", Class: toolclass.Read, Files: []shell.FileOp{{Path: "a.go", Op: "read"}}}
	for text, want := range map[string]int{
		"ENOENT: no such file or directory, open 'a.go'":                        0,
		"Error: File not found: a.go":                                           0,
		"ERROR:\nInvalid `path` parameter: a.go. The path a.go does not exist.": 0,
		"ERROR: The path a.go does not exist":                                   0,
		"package a":                                                             1,
		"error:\n  code: 7":                                                     1, // a document
		"error: one\nb\nc\nd\ne\nf":                                             1, // a log
	} {
		// An editor with a command "view" has the class Edit.
		for _, tool := range []string{"read", "str_replace_editor"} {
			r := thread.ToolResult{Tool: tool, Outcome: thread.Success}
			w := ReadResult(nil, &r, text)
			if did, _ := c.Did(&w); len(did) != want {
				t.Errorf("%s %q: %v", tool, text, did)
			}
		}
	}
}
