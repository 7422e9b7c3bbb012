package shell

import (
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	for command, want := range map[string]string{
		"rm -rf build/ old.txt":                "deleted build/, deleted old.txt",
		"mv a.go b.go":                         "deleted a.go, created b.go",
		"git mv a.go pkg/":                     "deleted a.go, created pkg/a.go",
		"cd /repo && sed -i 's/a > b/c/' x.go": "edited /repo/x.go",
		"cd /repo; cd sub && rm x.go":          "deleted /repo/sub/x.go",
		"cd $DIR && rm x.go":                   "",
		"cd && rm x.go":                        "",
		"cd ~/w && rm x.go":                    "",
		"cd - && rm x.go":                      "",
		"pushd /w; popd; rm x.go":              "",
		"pushd /w && rm x.go":                  "deleted /w/x.go?",
		"cat > notes.md <<'EOF'\nrm not/this.txt > nor/this\nEOF\ntouch c.txt": "created notes.md, created c.txt",
		"go test ./... 2>&1 | tee out.log":                                     "created out.log",
		"go build 2>/dev/null > bin/x":                                         "created bin/x",
		"echo a >> log.txt # write -> nowhere":                                 "edited log.txt",
		"# move a -> b\nls":                                                    "",
		"rm *.tmp $X `x`":                                                      "",
		"cat ./main.go | head -5":                                              "read main.go",
		"grep 'x > y' file.go":                                                 "",
		"FOO=1 sudo rm a.b":                                                    "deleted a.b",
		"git checkout -- src/a.go":                                             "edited src/a.go",
		"git checkout main":                                                    "",
		"git checkout origin/main -- src/a.go":                                 "edited src/a.go",
		"git restore -s origin/main src/a.go":                                  "edited src/a.go",
		"git restore --staged src/a.go":                                        "",
		"sed -i 's/x/y/' a.go b.go":                                            "edited a.go, edited b.go",
		"sed -Ei '' -e 's/x/y/' -e 's/z//' a.go":                               "edited a.go",
		"sed -i.bak -f x.sed a.go":                                             "edited a.go",
		"sed --in-place= 's/x/i.y/' a.go; sed -n 's/-i//p' b.go":               "edited a.go, read b.go",
		"sed -n -e '1,5p' a.go":                                                "read a.go",
		"grep -q dist .gitignore || echo dist >> .gitignore":                   "edited .gitignore??",
		"rm a.txt || true":                                                     "deleted a.txt",
		"test -f a.txt && rm a.txt":                                            "deleted a.txt??",
		"go vet ./... && rm a.txt":                                             "deleted a.txt?",
		"go vet ./... >/dev/null 2>&1 && rm a.txt":                             "deleted a.txt??",
		"go vet ./... 2>&1 >/dev/null && rm a.txt":                             "deleted a.txt?",
		"go vet ./...\nrm a.txt":                                               "deleted a.txt",
		"set -e\ngo vet ./...\nrm a.txt":                                       "deleted a.txt??",
		"cd /w || exit 1\nrm a.txt":                                            "deleted /w/a.txt??",
		"for f in a.txt b.txt; do rm $f; done; rm c.txt":                       "deleted c.txt",
		"if true; then if false; then :; fi; rm a.txt; fi; rm b.txt":           "deleted a.txt??, deleted b.txt",
		"f() {\nrm a.txt\n}":                                                   "deleted a.txt??",
		"(cd web && rm a.txt)":                                                 "deleted web/a.txt",
		"(cd web; rm a.txt) && rm b.txt":                                       "deleted web/a.txt??, deleted b.txt??",
		"make && { touch a.txt; rm b.txt; }; rm c.txt":                         "created a.txt??, deleted b.txt??, deleted c.txt",
		"make && for f in a.txt; do rm $f; rm b.txt; done":                     "deleted b.txt??",
		"for d in w x; do cd v; rm a.txt; done; rm b.txt; rm /c.txt":           "deleted /c.txt",
		"if cd v; then rm a.txt; fi; rm b.txt; rm /c.txt":                      "deleted /c.txt",
		"f() { rm a.txt; }; rm b.txt":                                          "deleted a.txt??, deleted b.txt",
		"{ rm a.txt; rm b.txt; } &":                                            "deleted a.txt??, deleted b.txt??",
		"{ make && ! ls; } && rm b.txt":                                        "deleted b.txt??",
		"! grep -q x a.txt && rm b.txt":                                        "deleted b.txt??",
		"{ ls; pwd; } > a.txt":                                                 "created a.txt",
		"cat > a.txt <<EOF\nnot closed":                                        "created a.txt",
		"cat > a.txt <<EOF\n" + strings.Repeat("a long line\n", 2000) + "EOF\nrm b.txt": "created a.txt",
		"rm a.txt; echo 'open": "",
		"rm a.txt &":           "deleted a.txt??",
		"":                     "",
	} {
		line := Read(command)
		var got []string
		for _, op := range Files(line) {
			got = append(got, op.Op+" "+op.Path+strings.Repeat("?", int(op.By.Ran)))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%q: %s, want %s", command, all, want)
		}
	}
}

// TestReadBound: what is held of a line does not multiply its bytes: a line of very many commands
// is not read to its end, its folders are not all known, and of very many short names none is told.
func TestReadBound(t *testing.T) {
	line := Read(strings.Repeat("cd a;", 3800))
	folders := 0
	for _, c := range line {
		folders += len(c.Dir)
	}
	if !line[len(line)-1].Unread() || len(line) > 200 || folders > 5*19_000 {
		t.Errorf("%d commands with %d bytes of folders", len(line), folders)
	}
	line = Read("rm" + strings.Repeat(" b", 9000))
	if got := Files(line); len(got) > 0 {
		t.Errorf("%d files", len(got))
	}
}
