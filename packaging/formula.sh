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

# Where one is missing, this ends here.
mac_intel=$(each darwin amd64)
mac_arm=$(each darwin arm64)
linux_intel=$(each linux amd64)
linux_arm=$(each linux arm64)
cat <<END
class Palimpsest < Formula
  desc "Keeps LLM agents inside their context window without losing the conversation"
  homepage "https://github.com/palimpsest-ai/palimpsest"
  version "$version"
  license "Apache-2.0"

  on_macos do
$mac_intel
$mac_arm
  end
  on_linux do
$linux_intel
$linux_arm
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
