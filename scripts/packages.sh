# Sourced by the scripts that need Debian packages.

# Installs Debian packages: as root, by sudo, or by telling the user how.
install_packages() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1 || ! sudo -n true 2>/dev/null; then
            printf 'missing: %s\nrun as root:\n    apt-get update && apt-get install -y --no-install-recommends %s\n' "$*" "$*" >&2
            exit 1
        fi
        as_root=(sudo -n)
    fi
    "${as_root[@]}" apt-get update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}
