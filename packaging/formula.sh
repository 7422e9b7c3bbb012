#!/bin/sh
# Writes the Homebrew formula of a release: packaging/formula.sh dist 0.1.0 >dist/palimpsest.rb
set -eu
dist=$1 version=$2
releases=https://github.com/palimpsest-ai/palimpsest/releases/download

each() { # each SYSTEM MACHINE
	name=palimpsest_${version}_$1_$2.tar.gz
	sum=$(awk -v name="$name" '$2 == name { print $1 }' "$dist/checksums.txt")
	[ -n "$sum" ] || {
		printf '%s/checksums.txt has no %s\n' "$dist" "$name" >&2
		exit 1
	}
	cpu=intel
	[ "$2" = amd64 ] || cpu=arm
	cat <<-END
	    on_$cpu do
	      url "$releases/v$version/$name"
	      sha256 "$sum"
	    end
	END
}

cat <<END
class Palimpsest < Formula
  desc "Keeps LLM agents inside their context window without losing the conversation"
  homepage "https://github.com/palimpsest-ai/palimpsest"
  version "$version"
  license "Apache-2.0"

  on_macos do
$(each darwin amd64)
$(each darwin arm64)
  end
  on_linux do
$(each linux amd64)
$(each linux arm64)
  end

  def install
    bin.install "palimpsest"
    bash_completion.install "completions/palimpsest.bash" => "palimpsest"
    zsh_completion.install "completions/palimpsest.zsh" => "_palimpsest"
    fish_completion.install "completions/palimpsest.fish"
    man1.install Dir["man/*.1"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/palimpsest version")
  end
end
END
