# Shared by ./quickstart and ./check: what they install and where Python work happens. Sourced, never run.
# Safe to run again: every step looks first and does only what is missing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "==> $*"; }
fail() { printf '%s\n' "lanescope: $*" >&2; exit 1; }

# apt as root, or through sudo; asks nothing.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else fail "expected root or sudo for: $* - run it yourself, then start this again"
  fi
}

# Installs the Debian packages that are missing; nothing to do costs a second and needs no root.
install_packages() {
  command -v dpkg-query >/dev/null 2>&1 ||
    fail "expected a Debian-like system (dpkg not found). The packages needed are: $*"
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  local quiet=(-qq -o=Dpkg::Use-Pty=0)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" update >/dev/null ||
    say "apt-get update had a problem; going on with the package lists at hand"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

# Prints why the interpreter's torch cannot be used, nothing when it can.
torch_problem() {
  "$1" - <<'PY' 2>/dev/null || echo "no torch"
import sys
try:
    import torch
except Exception:
    print("no torch")
    sys.exit(0)
major, minor = (int(part) for part in torch.__version__.split(".")[:2])
if (major, minor) < (2, 4):
    print(f"torch {torch.__version__} is older than 2.4")
PY
}

# Sets `python`: the interpreter everything runs with, always one of the project's own virtual environment (.venv), so
# that nothing is installed into yours. When the python3 you call already has torch >= 2.4, that torch is used as it is.
prepare_python() {
  local base=${LANESCOPE_PYTHON:-python3} torch="torch==2.13.0"
  command -v "$base" >/dev/null 2>&1 || fail "expected a Python interpreter called '$base' (set LANESCOPE_PYTHON)"
  if [ ! -x "$root/.venv/bin/python" ]; then
    say "making a virtual environment in .venv"
    local site=()
    [ -z "$(torch_problem "$base")" ] && site=(--system-site-packages)
    "$base" -m venv "${site[@]}" "$root/.venv" || fail "could not make .venv with $base -m venv"
    # A virtual environment cannot see the packages of another one it was made from; point at them.
    if [ ${#site[@]} -gt 0 ] && [ -n "$(torch_problem "$root/.venv/bin/python")" ]; then
      "$base" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' \
        > "$("$root/.venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/torch_of_$(basename "$base").pth"
    fi
  fi
  python=$root/.venv/bin/python
  export PATH=$root/.venv/bin:$PATH VIRTUAL_ENV=$root/.venv
  local problem
  problem=$(torch_problem "$python")
  if [ -n "$problem" ]; then
    say "installing $torch into .venv ($problem there; a few minutes, depending on the network)"
    "$python" -m pip install -qq --disable-pip-version-check "$torch" || fail "pip could not install $torch"
  fi
  local wanted=("$@") missing
  missing=$("$python" - "${wanted[@]}" <<'PY'
import importlib.metadata as metadata
import re
import sys
for wanted in sys.argv[1:]:
    try:
        metadata.version(re.split(r"[<>=]", wanted)[0])
    except metadata.PackageNotFoundError:
        print(wanted)
PY
)
  if [ -n "$missing" ]; then
    say "installing into .venv: $(echo $missing)"
    # shellcheck disable=SC2086
    "$python" -m pip install -qq --disable-pip-version-check $missing || fail "pip could not install: $missing"
  fi
  say "Python: $("$python" -c 'import sys, torch; print(sys.version.split()[0], "with torch", torch.__version__)')"
}

# Makes build/frameworks: an environment with what tests/frameworks needs, on top of .venv, which stays as it is.
prepare_frameworks() {
  local home=$root/build/frameworks
  [ -x "$home/bin/python" ] || "$python" -m venv "$home" || return 1
  local site
  site=$("$home/bin/python" -c 'import site; print(site.getsitepackages()[0])')
  # torch, lanescope and pytest come from .venv, and from where that has them. Its setuptools may be older than torch asks for,
  # so that pip has to be free to install another one.
  "$python" -c 'import site, sys; print("\n".join(p for p in sys.path if p.endswith("-packages")))' > "$site/of_venv.pth"
  "$python" -m pip freeze --all 2>/dev/null | grep -E '^(torch|numpy)==' > "$home/constraints.txt"
  "$home/bin/python" -m pip install -q --disable-pip-version-check -c "$home/constraints.txt" \
    -r "$root/tests/frameworks/requirements.txt"
}

packages_build=(g++ cmake ninja-build pkg-config git ca-certificates libsimdjson-dev libfmt-dev libcli11-dev libcpp-httplib-dev
                libtomlplusplus-dev zlib1g-dev libdeflate-dev libisal-dev libzstd-dev libsqlite3-dev libedit-dev libdw-dev python3 python3-dev python3-venv
                python3-pip)
# The page of `lanescope view` is built by npm. Debian's own is enough; another one that is there is used.
command -v npm >/dev/null 2>&1 || packages_build+=(nodejs npm)
packages_check=(ccache libgtest-dev libgmock-dev libbenchmark-dev clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev faketime chromium
                libopenmpi-dev openmpi-bin)
python_build=("pybind11>=2.12" "scikit-build-core>=0.10" numpy)
python_check=(pytest pytest-rerunfailures hypothesis mypy perfetto protobuf pandas polars)
