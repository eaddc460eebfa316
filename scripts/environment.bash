# Where the repository and its virtual environment are. Sourced by the scripts, never run.
#
# The environment is the first of these that fits:
#   1. $STOCKADE_VENV
#   2. .venv in the repository, when it is ours to use (or still to be made)
#   3. a place of our own in the user's cache, when .venv belongs to somebody else or is broken beyond our right to mend it
#
# Written for bash 3.2, the one that macOS has.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
# An outer Python's settings would leak into ours.
unset PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0

# The file in an environment that says: made by scripts/setup, so scripts/setup may remove it.
marker=stockade-setup

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

digest() {
  if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1
}

# Print X.Y.Z of a Python if it starts and is new enough.
python_version() {
  "$1" -I -c 'import sys; v = sys.version_info; print("%d.%d.%d" % v[:3]); sys.exit(v < (3, 11))' 2>/dev/null
}

# Does an environment made by somebody else do for us as it stands?
is_healthy() {
  local version
  [ -f "$1/pyvenv.cfg" ] && version=$(python_version "$1/bin/python") && [ -d "$1/lib/python${version%.*}" ] &&
    grep -qF -- "$1" "$1/bin/activate" 2>/dev/null
}

is_usable() {
  [ -d "$1" ] && [ -O "$1" ] && [ -w "$1" ] && { [ -f "$1/$marker" ] || [ -z "$(ls -A -- "$1")" ] || is_healthy "$1"; }
}

# Print the place in the user's cache for an environment of this clone, one for each name.
cached_venv() {
  local cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
  [ -n "$cache" ] || die "there is no place for a virtual environment: HOME is not set" "Set STOCKADE_VENV to a directory."
  printf '%s\n' "$cache/stockade/venv-$(printf '%s' "$root" | digest | cut -c 1-12)${1:+-$1}"
}

choose_venv() {
  local mine=$root/.venv
  if [ -n "${STOCKADE_VENV:-}" ]; then
    case $STOCKADE_VENV in /*) mine=$STOCKADE_VENV ;; *) mine=$PWD/$STOCKADE_VENV ;; esac
    if [ -e "$mine" ] && ! is_usable "$mine"; then
      die "STOCKADE_VENV=$mine exists and is no virtual environment that this user may change" "Name a new directory."
    fi
  elif [ -e "$mine" ] || [ -L "$mine" ]; then
    is_usable "$mine" || mine=
  elif [ ! -w "$root" ]; then
    mine=
  fi
  if [ -z "$mine" ]; then
    mine=$(cached_venv "")
  fi
  printf '%s\n' "$mine"
}

# Print how many tests run at once: three for two processors, since a quarter of the time tests wait for something.
test_workers() {
  local processors
  processors=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
  printf '%s\n' "${STOCKADE_TEST_WORKERS:-$(((processors * 3 + 1) / 2))}"
}

# shellcheck disable=SC2034  # for those who source this
venv=$(choose_venv)
