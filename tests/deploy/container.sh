#!/bin/sh
# Run a program as a container does, without an engine: container.sh TREE "FOLDER ..." COMMAND ...
#
# Run it as root in mount and PID namespaces of its own. Its root is a read-only file system: the system's programs,
# FOLDERs of this machine at their own paths, and the content of TREE. It may write to /tmp and /dev/shm. COMMAND
# replaces this shell, so it is process 1; it is an account that no file knows, without groups, rights, or a way to
# get any.
set -eu

tree=${1%/}
folders=$2
shift 2
root=$tree.root
mkdir -p "$root"
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$root"

bind() {
    mkdir -p "$root$2"
    mount --rbind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
}

for one in bin sbin lib lib32 lib64; do
    if [ -L "/$one" ]; then
        ln -s "$(readlink "/$one")" "$root/$one"
    elif [ -d "/$one" ]; then
        bind "/$one" "/$one"
    fi
done
# before the folders, because one of them may be below it
mkdir -p "$root/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
for one in /usr /etc $folders; do
    bind "$one" "$one"
done
for one in "$tree"/*; do
    bind "$one" "/${one##*/}"
done
mkdir -p "$root/proc" "$root/dev/shm"
mount -t proc proc "$root/proc"
for one in null zero random urandom; do
    touch "$root/dev/$one"
    mount --bind "/dev/$one" "$root/dev/$one"
done
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid=10001 --regid=10001 --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all "$@"
