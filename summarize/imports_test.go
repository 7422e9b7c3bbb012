package summarize

import (
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	for _, tt := range []struct{ name, text, left string }{
		{"Go", "package a\n\nimport (\n\t\"os\"\n\n\tgit \"github.com/go-git/go-git/v5\" // v5\n\t_ \"embed\"\n)\n\nvar x = 1", "var x = 1"},
		{"Go, one", "import \"os\"\nimport js \"encoding/json\"\nfunc f()", "func f()"},
		{"Go, cut off", "import (\n\t\"os\"\nfunc f() {\n)", "func f() {|)"},
		{"JavaScript", "import fs from 'node:fs';\nimport { a, b as c } from \"./a\";\nimport {\n  a,\n  type B,\n  c as d,\n} from './b';\nimport './side.css';\nimport * as x from \"y\"\nimport type { T } from \"t\";\nconst y = 1;", "const y = 1;"},
		{"JavaScript, no last comma", "import {\n  a,\n  b\n} from './b';\nreturn", "b|return"},
		{"Python", "from __future__ import annotations\nimport os, sys\nimport numpy as np\nfrom a.b import (\n    c,\n    d,\n)\nx = 1", "import os, sys|x = 1"},
		{"Rust and Java", "use std::collections::{HashMap, HashSet};\npub use a::b;\nimport java.util.List;\nimport static a.B.*;\npackage a.b;\nfn f()", "fn f()"},
		{"C", "#include <stdio.h>\n#include \"a.h\"\n#define X 1", "#define X 1"},
		{"prose", "import the data first\nfrom now on only tests\nuse the new client\npackage managers are slow", "import the data first|from now on only tests|use the new client|package managers are slow"},
		{"a list of strings", "\"os\"\n\"strings\"", "\"os\"|\"strings\""},
		{"a block that is none", "import (\nreturn nil, err\n\"os\"", "return nil, err|\"os\""},
	} {
		var x imports
		var left []string
		for line := range strings.SplitSeq(tt.text, "\n") {
			if line = strings.TrimSpace(line); !x.holds(line) && line != "" {
				left = append(left, line)
			}
		}
		if got := strings.Join(left, "|"); got != tt.left {
			t.Errorf("%s: left %q, want %q", tt.name, got, tt.left)
		}
	}
}
