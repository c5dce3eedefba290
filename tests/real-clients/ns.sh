#!/bin/sh
# ns.sh WORK CLIENTS CMD [ARG...]
# Runs CMD in network, mount, pid and uts namespaces of its own: there is loopback and nothing else, /tmp and /home are empty,
# and every process ends with CMD. WORK becomes /mnt/work, CLIENTS /mnt/clients, this directory /mnt/lane.
# Needs util-linux and iproute2; works as root, else with unprivileged user namespaces.
set -eu
LANE=$(cd "$(dirname "$0")" && pwd -P)
WORK=$(cd "$1" && pwd -P)
CLIENTS=$(cd "$2" && pwd -P)
shift 2
R=
[ "$(id -u)" = 0 ] || R=-r
exec unshare $R -n -m -u -p -f --mount-proc --kill-child sh -c '
  set -e
  mount --make-rprivate /
  ip link set lo up
  hostname lane
  L=$1 W=$2 C=$3
  shift 3
  mount -t tmpfs tmpfs /mnt
  mkdir /mnt/lane /mnt/work /mnt/clients
  mount --bind "$L" /mnt/lane
  mount --bind "$W" /mnt/work
  mount --bind "$C" /mnt/clients
  mount -t tmpfs tmpfs /tmp
  mount -t tmpfs tmpfs /home
  chmod 1777 /tmp
  mkdir -p /tmp/proj/demo /home/demo
  cd /mnt/work
  exec env PALOG_LANE=inside PYTHONDONTWRITEBYTECODE=1 "$@"' sh "$LANE" "$WORK" "$CLIENTS" "$@"
