# Boots systemd in namespaces of its own, with an sshd to which root and the user "visitor" log in. It ends with its
# standard input. Nothing of it is seen outside but the port of its sshd and a cgroup of its own.
#
# Takes a folder with home/, the folder of the provider, the port of sshd, the paths of sshd and of systemd.
set -e
folder=$1 provider=$2 port=$3 sshd=$4 systemd=$5
root=$folder/root cgroup=$folder/cgroup

if [ "$6" = '' ]; then
    mkdir "$root" "$cgroup" "$folder/layers"
    for key in key host_key; do
        ssh-keygen -q -t ed25519 -N '' -f "$folder/$key"
    done
    mount --make-rprivate /
    mount -t cgroup2 cgroup2 "$cgroup"
    own=$cgroup/damodel-test-$$
    mkdir "$own" "$own/system"
    unshare --pid --mount --ipc --uts --fork --kill-child sh "$0" "$@" enter "$own/system" </dev/null &
    booted=$!
    read -r _ || :
    kill -KILL "$booted" 2>/dev/null || :
    wait "$booted" 2>/dev/null || :
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        find "$own" -depth -type d -exec rmdir {} + 2>/dev/null && break
        sleep 0.2
    done
    exit
fi

if [ "$6" = enter ]; then
    echo 0 >"$7/cgroup.procs"
    shift 7
    exec unshare --cgroup sh "$0" "$folder" "$provider" "$port" "$sshd" "$systemd" boot
fi

grep -rqs pam_systemd.so /etc/pam.d
mount -t tmpfs tmpfs "$folder/layers"
mkdir "$folder/layers/upper" "$folder/layers/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/layers/upper,workdir=$folder/layers/work" "$root"
cd "$root"

# The kernel's settings and the devices are the machine's.
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs run
mkdir run/sshd

# Whatever leads to the two folders lets a user through.
for shared in "$folder" "$provider"; do
    mkdir -p ".$shared"
    parent=${shared%/*}
    while [ "$parent" ]; do
        chmod o+x ".$parent"
        parent=${parent%/*}
    done
    mount --bind "$shared" ".$shared"
done
chmod 755 "$folder"
chown -R 4711:4711 "$folder/home"

: >etc/fstab
echo "visitor:x:4711:4711::$folder/home:/bin/sh" >>etc/passwd
echo 'visitor:x:4711:' >>etc/group
echo 'visitor:*:19000:0:99999:7:::' >>etc/shadow
mkdir -p etc/systemd/logind.conf.d
printf '[Login]\nKillUserProcesses=yes\n' >etc/systemd/logind.conf.d/99-test.conf
cat >etc/systemd/system/damodel-test.service <<END
[Unit]
Requires=dbus.service systemd-logind.service systemd-user-sessions.service
After=dbus.service systemd-logind.service systemd-user-sessions.service
[Service]
ExecStart=$sshd -D -E $folder/sshd.log -f /etc/damodel-test
END
cat >etc/damodel-test <<END
ListenAddress 127.0.0.1:$port
HostKey $folder/host_key
AuthorizedKeysFile $folder/key.pub
StrictModes no
UsePAM yes
LogLevel VERBOSE
Match User visitor
ForceCommand PATH=$folder/home/.machine/bin:\$PATH; export PATH; exec sh -c "\$SSH_ORIGINAL_COMMAND"
END
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=damodel-test \
    chroot . "$systemd" --system --unit=damodel-test.service --log-target=null --show-status=0
