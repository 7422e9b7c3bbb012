package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestFiles(t *testing.T) {
	for command, want := range map[string][]FileOp{
		"rm -rf build/ old.txt":                {{Path: "build/", Op: "deleted"}, {Path: "old.txt", Op: "deleted"}},
		"mv a.go b.go":                         {{Path: "a.go", Op: "deleted"}, {Path: "b.go", Op: "created"}},
		"git mv a.go pkg/":                     {{Path: "a.go", Op: "deleted"}, {Path: "pkg/a.go", Op: "created"}},
		"cd /repo && sed -i 's/a > b/c/' x.go": {{Path: "/repo/x.go", Op: "edited"}},
		"cd /repo; cd sub && rm x.go":          {{Path: "/repo/sub/x.go", Op: "deleted"}},
		"cd $DIR && rm x.go":                   nil,
		"cd && rm x.go":                        nil,
		"cd ~/w && rm x.go":                    nil,
		"cd - && rm x.go":                      nil,
		"pushd /w; popd; rm x.go":              {{Path: "x.go", Op: "deleted"}},
		"pushd /w && rm x.go":                  {{Path: "/w/x.go", Op: "deleted"}},
		"cat > notes.md <<'EOF'\nrm not/this.txt > nor/this\nEOF\ntouch c.txt": {{Path: "notes.md", Op: "created"}, {Path: "c.txt", Op: "created"}},
		"go test ./... 2>&1 | tee out.log":                                     {{Path: "out.log", Op: "created"}},
		"go build 2>/dev/null > bin/x":                                         {{Path: "bin/x", Op: "created"}},
		"echo a >> log.txt # write -> nowhere":                                 {{Path: "log.txt", Op: "edited"}},
		"# move a -> b\nls":                                                    nil,
		"rm *.tmp $X `x`":                                                      nil,
		"cat ./main.go | head -5":                                              {{Path: "main.go", Op: "read"}},
		"grep 'x > y' file.go":                                                 nil,
		"FOO=1 sudo rm a.b":                                                    {{Path: "a.b", Op: "deleted"}},
		"git checkout -- src/a.go":                                             {{Path: "src/a.go", Op: "edited"}},
		"git checkout main":                                                    nil,
		"git checkout origin/main -- src/a.go":                                 {{Path: "src/a.go", Op: "edited"}},
		"git restore -s origin/main src/a.go":                                  {{Path: "src/a.go", Op: "edited"}},
		"git restore --staged src/a.go":                                        nil,
		"sed -i 's/x/y/' a.go b.go":                                            {{Path: "a.go", Op: "edited"}, {Path: "b.go", Op: "edited"}},
		"sed -Ei '' -e 's/x/y/' -e 's/z//' a.go":                               {{Path: "a.go", Op: "edited"}},
		"sed -i.bak -f x.sed a.go":                                             {{Path: "a.go", Op: "edited"}},
		"sed --in-place= 's/x/i.y/' a.go; sed -n 's/-i//p' b.go":               {{Path: "a.go", Op: "edited"}, {Path: "b.go", Op: "read"}},
		"sed -n -e '1,5p' a.go":                                                {{Path: "a.go", Op: "read"}},
		"grep -q dist .gitignore || echo dist >> .gitignore":                   {{Path: ".gitignore", Op: "edited", Ran: RanPerhaps}},
		"rm a.txt || true":                                                     {{Path: "a.txt", Op: "deleted"}},
		"test -f a.txt && rm a.txt":                                            {{Path: "a.txt", Op: "deleted", Ran: RanIfQuiet}},
		"go vet ./... && rm a.txt":                                             {{Path: "a.txt", Op: "deleted", Ran: RanIfShown}},
		"go vet ./... >/dev/null 2>&1 && rm a.txt":                             {{Path: "a.txt", Op: "deleted", Ran: RanIfQuiet}},
		"go vet ./... 2>&1 >/dev/null && rm a.txt":                             {{Path: "a.txt", Op: "deleted", Ran: RanIfShown}},
		"go vet ./...\nrm a.txt":                                               {{Path: "a.txt", Op: "deleted"}},
		"set -e\ngo vet ./...\nrm a.txt":                                       {{Path: "a.txt", Op: "deleted", Ran: RanIfShown}},
		"cd /w || exit 1\nrm a.txt":                                            {{Path: "/w/a.txt", Op: "deleted", Ran: RanIfQuiet}},
		"for f in a.txt b.txt; do rm $f; done; rm c.txt":                       {{Path: "a.txt", Op: "deleted"}, {Path: "b.txt", Op: "deleted"}, {Path: "c.txt", Op: "deleted"}},
		"if true; then if false; then :; fi; rm a.txt; fi; rm b.txt":           {{Path: "a.txt", Op: "deleted", Ran: RanPerhaps}, {Path: "b.txt", Op: "deleted"}},
		"f() {\nrm a.txt\n}":                                                   {{Path: "a.txt", Op: "deleted", Ran: RanPerhaps}},
		"(cd web && rm a.txt)":                                                 {{Path: "web/a.txt", Op: "deleted"}},
		"(cd web; rm a.txt) && rm b.txt":                                       {{Path: "web/a.txt", Op: "deleted"}, {Path: "b.txt", Op: "deleted", Ran: RanIfShown}},
		"make && { touch a.txt; rm b.txt; }; rm c.txt":                         {{Path: "a.txt", Op: "created", Ran: RanIfShown}, {Path: "b.txt", Op: "deleted", Ran: RanIfShown}, {Path: "c.txt", Op: "deleted"}},
		"cd w && for f in a.txt b.txt; do rm $f; done":                         {{Path: "w/a.txt", Op: "deleted"}, {Path: "w/b.txt", Op: "deleted"}},
		"for d in w x; do cd v; rm a.txt; done; rm b.txt; rm /c.txt":           {{Path: "/c.txt", Op: "deleted"}},
		"if cd v; then rm a.txt; fi; rm b.txt; rm /c.txt":                      {{Path: "/c.txt", Op: "deleted"}},
		"f() { rm a.txt; }; rm b.txt":                                          {{Path: "a.txt", Op: "deleted", Ran: RanPerhaps}, {Path: "b.txt", Op: "deleted"}},
		"{ rm a.txt; rm b.txt; } &":                                            {{Path: "a.txt", Op: "deleted", Ran: RanPerhaps}, {Path: "b.txt", Op: "deleted", Ran: RanPerhaps}},
		"{ make && ! ls; } && rm b.txt":                                        {{Path: "b.txt", Op: "deleted", Ran: RanPerhaps}},
		"! grep -q x a.txt && rm b.txt":                                        {{Path: "b.txt", Op: "deleted", Ran: RanPerhaps}},
		"{ ls; pwd; } > a.txt":                                                 {{Path: "a.txt", Op: "created"}},
		"cat > a.txt <<EOF\nnot closed":                                        {{Path: "a.txt", Op: "created"}},
		"cat > a.txt <<EOF\n" + strings.Repeat("a long line\n", 2000) + "EOF\nrm b.txt": {{Path: "a.txt", Op: "created"}},
		"rm a.txt; echo 'open": nil,
		"rm a.txt &":           {{Path: "a.txt", Op: "deleted", Ran: RanPerhaps}},
		"":                     nil,
	} {
		line, _ := Read(command)
		got := Files(line)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(FileOp{}, "Note", "By"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got)\n%s", command, diff)
		}
	}
}

// TestFilesBound: a long list of names and a long body of a loop do not multiply, and what one
// command does is told of all names or of none.
func TestFilesBound(t *testing.T) {
	names := "for f in " + strings.Repeat("some/folder/of/some/file.txt ", 250) + "; do "
	for body, all := range map[string]int{
		strings.Repeat("rm $f;", 21): 250, "rm " + strings.Repeat("some/other/folder/file.txt ", 250) + "$f;": 250, "echo $f" + strings.Repeat(" >b/file.txt", 250) + ";": 250,
	} {
		line, _ := Read(names + body + "done; rm c.txt")
		got := Files(line)
		if len(got) != all+1 || got[all].Path != "c.txt" {
			t.Errorf("%.20q: %d", body, len(got))
		}
	}
}

// TestReadBound: what is held of a line does not multiply its bytes: a line of very many commands
// is not simple, its folders are not all known, and of very many short names none is told.
func TestReadBound(t *testing.T) {
	line, simple := Read(strings.Repeat("cd a;", 3800))
	folders := 0
	for _, c := range line {
		folders += len(c.Dir)
	}
	if simple || len(line) > 200 || folders > 5*19_000 {
		t.Errorf("simple %t, %d commands with %d bytes of folders", simple, len(line), folders)
	}
	line, simple = Read("rm" + strings.Repeat(" b", 9000))
	if got := Files(line); simple || len(got) > 0 {
		t.Errorf("simple %t, %d files", simple, len(got))
	}
}
