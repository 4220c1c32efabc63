#!/usr/bin/env bash
# The kernels' tests on AArch64, at the levels scalar and neon: built by a cross compiler, run in QEMU's user emulation.
# usage: scripts/test_neon.sh [ctest args]
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/godwit"
cd "$ROOT"
. scripts/setup.sh

# The names are those of Debian and Ubuntu.
[ -n "$(package_list)" ] || die "unknown system: ./dev test neon runs on Debian 12 and Ubuntu 24.04"
# shellcheck disable=SC2046
install_packages $(cat scripts/packages/neon.txt)

export CCACHE_BASEDIR="$ROOT" CCACHE_NOHASHDIR=1
cmake --preset neon -DGODWIT_WERROR=ON >&2
ninja -C build/neon kernels_test >&2
python3 scripts/check_weak_symbols.py build/neon >&2
ctest --no-tests=error --test-dir build/neon --output-on-failure -j "$(nproc)" "$@"
