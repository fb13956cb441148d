# SPDX-License-Identifier: MIT
#
# The kernel to build the module for.

# NVQ_FIND_KDIR: set KDIR to the running kernel's build directory, or to the
# newest of the headers packages, or to nothing.
AC_DEFUN([NVQ_FIND_KDIR], [
	AS_CASE([$host_cpu],
		[x86_64], [nvq_deb_arch=amd64],
		[aarch64], [nvq_deb_arch=arm64],
		[nvq_deb_arch=$host_cpu])
	KDIR=/lib/modules/`uname -r`/build
	AS_IF([test ! -e "$KDIR/Makefile"], [
		KDIR=`ls -d /usr/src/linux-headers-*-$nvq_deb_arch 2>/dev/null |
			sort -V | tail -n 1`
	])
])

# NVQ_KERNEL: --with-kernel, --with-moddir; sets KDIR, KVER, KLLVM, moddir and
# the conditional NVQ_DRIVER.
AC_DEFUN([NVQ_KERNEL], [
	AC_ARG_WITH([kernel], [AS_HELP_STRING([--with-kernel=DIR],
		[build the module for the kernel whose headers are in DIR
		(default: the running kernel's, else the newest in /usr/src);
		--without-kernel: no module])],
		[], [with_kernel=yes])
	AC_ARG_WITH([moddir], [AS_HELP_STRING([--with-moddir=DIR],
		[install the module into DIR
		(default: /lib/modules/VERSION/updates)])],
		[], [with_moddir=yes])
	KDIR= KVER= KLLVM=
	AS_CASE([$with_kernel],
		[no], [],
		[yes], [NVQ_FIND_KDIR],
		[KDIR=$with_kernel])
	AS_IF([test "$with_kernel" != no], [
		AC_MSG_CHECKING([for the kernel to build the module for])
		# Not kernel.release: Debian's differs from what uname -r says.
		nvq_uts="$KDIR/include/generated/utsrelease.h"
		AS_IF([test -n "$KDIR" && test -r "$nvq_uts"],
			[KVER=`sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' "$nvq_uts"`])
		# A kernel built by clang wants its modules built by clang.
		AS_IF([test -n "$KVER" && grep -qs '^CONFIG_CC_IS_CLANG=y' \
				"$KDIR/include/config/auto.conf"],
			[KLLVM=1])
		AC_MSG_RESULT([${KVER:-not found}])
		AS_IF([test -z "$KVER"], [
			AS_IF([test "$with_kernel" = yes], [NVQ_MISSING(m4_normalize([
				kernel headers not found: apt install
				linux-headers-amd64, or name them with
				--with-kernel=DIR, or do without the module:
				--without-kernel]))],
			[NVQ_MISSING(m4_normalize([
				no configured kernel in $with_kernel (it has no
				include/generated/utsrelease.h)]))])
		])
	])
	AS_CASE([$with_moddir],
		[yes|no], [moddir=/lib/modules/$KVER/updates],
		[moddir=$with_moddir])
	AC_PATH_PROG([DEPMOD], [depmod], [:], [$PATH:/usr/sbin:/sbin])
	AC_SUBST([KDIR])
	AC_SUBST([KVER])
	AC_SUBST([KLLVM])
	AC_SUBST([moddir])
	AM_CONDITIONAL([NVQ_DRIVER], [test -n "$KVER"])
])
