#!/usr/bin/env bash
# Unpacks the C++ dependencies into a folder that can be carried to a machine without package registries.
#   here:  tools/carry_dependencies.sh carried
#   there: cmake --preset release -DCMAKE_PREFIX_PATH=$PWD/carried/usr   (and PKG_CONFIG_PATH, LD_LIBRARY_PATH as it prints)
# Needs apt (any user; nothing is installed). Works for targets with a C library at least as new as this machine's.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: tools/carry_dependencies.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
packages=(libsimdjson-dev libsimdjson14 libfmt-dev libfmt9 libcli11-dev libtomlplusplus-dev zlib1g-dev zlib1g
          libsqlite3-dev libsqlite3-0 libdeflate-dev libdeflate0 libisal-dev libisal2 libzstd-dev libzstd1 libgtest-dev libgmock-dev googletest
          libbenchmark-dev libbenchmark1debian libdw-dev libdw1 libelf-dev libelf1 liblzma-dev liblzma5 libbz2-1.0)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}")
for package in "$work"/*.deb; do dpkg -x "$package" "$folder"; done
rm -rf "$folder"/usr/share/doc "$folder"/usr/share/man "$folder"/usr/src
libraries=$folder/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo x86_64-linux-gnu)
# zlib's library is in /lib, and its development link is absolute; make the folder self-contained.
if [ -d "$folder/lib" ]; then cp -a "$folder"/lib/. "$folder/usr/lib/"; rm -rf "$folder/lib"; fi
find "$libraries" -type l | while read -r link; do
  target=$(readlink "$link")
  case "$target" in /*) ln -sf "$(basename "$target")" "$link" ;; esac
done
# pkg-config files name /usr; a prefix relative to the file works anywhere.
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../../..|; s|=/usr/|=${prefix}/|g' "$libraries"/pkgconfig/*.pc
du -sh "$folder" | sed 's/^/carried: /'
cat <<TEXT
On the other machine, from the folder that holds lanescope and this one:
  export CMAKE_PREFIX_PATH=\$PWD/$(basename "$folder")/usr
  export PKG_CONFIG_PATH=\$PWD/$(basename "$folder")/usr/lib/$(basename "$libraries")/pkgconfig
  export LD_LIBRARY_PATH=\$PWD/$(basename "$folder")/usr/lib/$(basename "$libraries")
TEXT
