package work

import (
	"slices"
	"strings"
	"testing"
)

// TestTable: each row fits its example, before the rows below it.
func TestTable(t *testing.T) {
	rows := 0
	for _, list := range read().commands {
		for _, c := range list {
			if rows++; c.example == "" {
				continue
			}
			words := strings.Fields(c.example)
			outer, _, _ := read().row(words)
			if inner, _, _ := read().what(words); outer != c && inner != c { // the example may have another program around it
				t.Errorf("%q: %+v, want %+v", c.example, outer, c)
			}
		}
	}
	seen := map[*printed]bool{}
	for _, list := range read().printed {
		for _, p := range list {
			if seen[p] {
				continue
			}
			seen[p], rows = true, rows+1
			var got []*printed
			read().tell(p.example, func(x told) { got = append(got, x.printed) })
			if !slices.Contains(got, p) {
				t.Errorf("%q is not known by its row, but by %d others", p.example, len(got))
			}
		}
	}
	if rows < 200 {
		t.Errorf("%d rows", rows)
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
		_, kind, _ := read().what(strings.Fields(command))
		if !is("checks", kind) {
			kind = ""
		}
		if kind != want {
			t.Errorf("%q is %q, want %q", command, kind, want)
		}
	}
}

// TestManyOperands: of a command with very many words only the first are held against a row, and all are its
// arguments.
func TestManyOperands(t *testing.T) {
	words := strings.Fields("git checkout main" + strings.Repeat(" pkg/store/file.go", 400) + " last.go")
	c, _, args := read().what(words)
	if c.event != "changes" || len(args) != len(words)-2 || args[len(args)-1] != "last.go" {
		t.Errorf("%q with %d arguments", c.event, len(args))
	}
	if _, kind, _ := read().what(strings.Fields("make" + strings.Repeat(" a/b:c.d", 400) + " test")); kind == "test" {
		t.Error("all words are held against a row")
	}
}
