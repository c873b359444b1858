#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What is installed, and where: the one list, for `make install`, `make uninstall`, the packages and the tarball.
#   install.sh BINARY        installs; a configuration file that is there stays
#   install.sh --uninstall   takes away what it installed; configuration and what was recorded stay
# PREFIX, DESTDIR, UNITS (directory of systemd's units) and ZSH (of completions for zsh) say where. Where BINARY is for
# another processor, NATIVE is the same program for this one: it writes the man pages and the completions.
set -eu
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
UNITS=${UNITS:-/etc/systemd/system}
SHARE=$PREFIX/share
ZSH=${ZSH:-$SHARE/zsh/site-functions}
DOC=$SHARE/doc/fatpath
# Units that start the program, wherever it is.
PROGRAM_UNITS="fatpath.service fatpath-responder.service"

# MODE FILE TARGET
files() {
    cat <<END
644 include/fatpath/rude.h $PREFIX/include/fatpath/rude.h
644 packaging/fatpath-bpffs.service $UNITS/fatpath-bpffs.service
644 packaging/fatpath.sysusers /usr/lib/sysusers.d/fatpath.conf
644 README.md $DOC/README.md
644 CHANGELOG.md $DOC/CHANGELOG.md
END
    for dashboard in packaging/grafana/*.json; do
        echo "644 $dashboard $SHARE/fatpath/grafana/${dashboard##*/}"
    done
    # The pages, and what they name by a path: pictures, scenarios, examples.
    find docs experiments examples -type f ! -name '*.pyc' | sort | while read -r file; do echo "644 $file $DOC/$file"; done
}

# MODE FILE TARGET
configuration() {
    cat <<END
644 packaging/policy.toml /etc/fatpath/policy.toml
644 packaging/measure.toml /etc/fatpath/measure.toml
END
}

# SHELL TARGET
completions() {
    cat <<END
bash $SHARE/bash-completion/completions/fatpath
zsh $ZSH/_fatpath
fish $SHARE/fish/vendor_completions.d/fatpath.fish
END
}

# MODE FILE TARGET: as install(1) does, which a small system may lack. A program that runs is replaced, not written to.
put() {
    mkdir -p "$DESTDIR${3%/*}"
    rm -f "$DESTDIR$3"
    cp "$2" "$DESTDIR$3"
    chmod "$1" "$DESTDIR$3"
}

put_all() {
    binary=$1
    native=${NATIVE:-$binary}
    put 755 "$binary" "$PREFIX/bin/fatpath"
    "$native" man "$DESTDIR$SHARE/man"
    completions | while read -r shell target; do
        completion=$("$native" completions "$shell")
        printf '%s\n' "$completion" | put 644 /dev/stdin "$target"
    done
    for unit in $PROGRAM_UNITS; do
        sed "s|@PREFIX@|$PREFIX|" "packaging/$unit" | put 644 /dev/stdin "$UNITS/$unit"
    done
    files | while read -r mode file target; do
        put "$mode" "$file" "$target"
    done
    configuration | while read -r mode file target; do
        [ -e "$DESTDIR$target" ] || put "$mode" "$file" "$target"
    done
    [ -n "$DESTDIR" ] || has_group || groupadd --system fatpath ||
        echo "install.sh: the group fatpath is missing: only root may read what the daemon says of flows" >&2
}

has_group() { grep -q '^fatpath:' /etc/group; }

take_all() {
    for unit in $PROGRAM_UNITS; do rm -f "$DESTDIR$UNITS/$unit"; done
    rm -f "$DESTDIR$PREFIX/bin/fatpath" \
        "$DESTDIR$SHARE"/man/man1/fatpath*.1 "$DESTDIR$SHARE"/man/man5/fatpath-*.5 \
        "$DESTDIR$SHARE"/man/man7/fatpath-*.7
    completions | while read -r _ target; do rm -f "$DESTDIR$target"; done
    files | while read -r _ _ target; do rm -f "$DESTDIR$target"; done
    rm -rf "$DESTDIR$DOC"
    rmdir "$DESTDIR$SHARE/fatpath/grafana" "$DESTDIR$SHARE/fatpath" "$DESTDIR$PREFIX/include/fatpath" 2>/dev/null || true
}

case "${1:-}" in
--configuration) configuration | while read -r _ _ target; do echo "$target"; done ;;
--uninstall) take_all ;;
?*) put_all "$1" ;;
*) sed -n '3,7s/^# //p' "$0" >&2 && exit 2 ;;
esac
