# Boots systemd as the first process of its namespaces: $1 is the folder that keeps
# what the host writes, $2 one that it has at /opt, $3 the name of its control group.
# Everything here ends with it.
mount --make-rprivate /
root=$1/root
if ! test -d "$1/up"; then
	mkdir "$1/up" "$1/work" "$root"
	fresh=yes
fi
mount -t overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" overlay "$root"
if test -n "${fresh-}"; then
	# Of this host's services none starts, and it mounts nothing.
	rm -rf "$root/etc/systemd/system" "$root"/etc/rc?.d "$root/etc/rc.local" "$root/etc/fstab" "$root/etc/crypttab" "$root/var/log/journal"
	mkdir -p "$root/etc/systemd/system"
	ln -s /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
	# Nor do those that set what namespaces share.
	for unit in getty.target systemd-networkd.service systemd-networkd.socket systemd-resolved.service systemd-timesyncd.service \
		systemd-journald-audit.socket systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-sysctl.service \
		systemd-modules-load.service systemd-random-seed.service dev-hugepages.mount dev-mqueue.mount; do
		ln -s /dev/null "$root/etc/systemd/system/$unit"
	done
	: >"$root/etc/machine-id"
fi
mount --bind "$2" "$root/opt"
mkdir "$1/control"
mount -t cgroup2 cgroup2 "$1/control"
mkdir -p "$1/control/$3"
echo 0 >"$1/control/$3/cgroup.procs"
exec unshare --cgroup sh -euc '
	umount "$1/control"
	rmdir "$1/control"
	mount --rbind /dev "$1/root/dev"
	mount -t proc proc "$1/root/proc"
	mount -t sysfs -o ro sysfs "$1/root/sys"
	mount -t cgroup2 cgroup2 "$1/root/sys/fs/cgroup"
	mount -t tmpfs -o mode=0755 tmpfs "$1/root/run"
	mount -t tmpfs -o mode=1777 tmpfs "$1/root/tmp"
	cd "$1/root"
	mkdir -p run/before
	pivot_root . run/before
	umount -l /run/before
	exec env -i container=vmop PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
' boot "$1"
