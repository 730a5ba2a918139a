#!/bin/sh
# Makes the console's secrets in a folder, each once: what is there stays.
#   deploy/secrets.sh [FOLDER]      FOLDER is ./secrets where none is given
#
# The folder is for its owner only. The files in it are readable by all, since Docker Compose mounts
# them as they are and the console runs as a user of its own.
set -eu
folder=${1:-secrets}
mkdir -p "$folder"
chmod 700 "$folder"
umask 022

random() {
    head -c 48 /dev/urandom | base64 | tr -d '\n+/='
}

keep() { # NAME TEXT
    [ -e "$folder/$1" ] || printf '%s' "$2" >"$folder/$1"
}

keep secret-key "$(random)"
keep agent-secret "$(random)"
keep postgres-password "$(random)"
keep database-url "postgresql://gpuadmin:$(cat "$folder/postgres-password")@postgres/gpuadmin"
echo "The secrets are in $folder." >&2
