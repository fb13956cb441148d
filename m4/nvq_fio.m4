# SPDX-License-Identifier: MIT
#
# fio's headers, for the engine.  Debian packages fio but not its headers, and
# an engine fits one exact fio release, so that the default is to fetch the
# source of the fio that is installed.

# NVQ_FETCH_FIO: set FIO_SRC to what ci/fetch-fio-headers prints, or nothing.
AC_DEFUN([NVQ_FETCH_FIO], [
	FIO_SRC=
	AC_CHECK_PROG([FIO], [fio], [fio])
	AS_IF([test -n "$FIO" && test -x "$srcdir/ci/fetch-fio-headers"], [
		AC_MSG_NOTICE([fetching the headers of the installed fio])
		nvq_fio_out=`"$srcdir/ci/fetch-fio-headers" fio-headers` &&
			FIO_SRC=`AS_ECHO(["$nvq_fio_out"]) | tail -n 1`
	])
])

# NVQ_FIO_VERSION: what a fio built from FIO_SRC calls itself, as its own
# FIO-VERSION-GEN finds it, without writing there.
AC_DEFUN([NVQ_FIO_VERSION], [
	AS_IF([test -r "$FIO_SRC/FIO-VERSION-FILE"],
		[FIO_VERSION=`sed 's/^.*= *//' "$FIO_SRC/FIO-VERSION-FILE"`],
	[test -r "$FIO_SRC/version"],
		[FIO_VERSION=`cat "$FIO_SRC/version"`],
		[FIO_VERSION=`sed -n 's/^DEF_VER=//p' "$FIO_SRC/FIO-VERSION-GEN"`])
])

# NVQ_FIO: --with-fio; sets FIO_SRC, FIO_VERSION and the conditional NVQ_ENGINE.
AC_DEFUN([NVQ_FIO], [
	AC_ARG_WITH([fio], [AS_HELP_STRING([--with-fio=DIR],
		[build the engine for the configured fio source tree in DIR
		(default: fetch the installed fio's source);
		--without-fio: no engine])],
		[], [with_fio=yes])
	FIO_SRC= FIO_VERSION=
	AS_CASE([$with_fio],
		[no], [],
		[yes], [NVQ_FETCH_FIO],
		[FIO_SRC=$with_fio])
	# The compiler runs in the build directory, and so does configure.
	AS_CASE([$FIO_SRC], [""|/*], [], [FIO_SRC=`pwd`/$FIO_SRC])
	AS_IF([test "$with_fio" != no], [
		AC_MSG_CHECKING([for fio's headers])
		AS_IF([test ! -r "$FIO_SRC/config-host.h" ||
				test ! -r "$FIO_SRC/fio.h"], [
			AC_MSG_RESULT([not found])
			AS_IF([test "$with_fio" = yes], [NVQ_MISSING(m4_normalize([
				fio headers not found: apt install fio, whose
				source is then fetched, or name a configured
				source tree with --with-fio=DIR, or do without
				the engine: --without-fio]))],
			[NVQ_MISSING(m4_normalize([
				no configured fio source tree in $with_fio (it
				has no config-host.h)]))])
			FIO_SRC=
		], [
			NVQ_FIO_VERSION
			AC_MSG_RESULT([$FIO_VERSION])
		])
	])
	AC_SUBST([FIO_SRC])
	AC_SUBST([FIO_VERSION])
	AM_CONDITIONAL([NVQ_ENGINE], [test -n "$FIO_SRC"])
])
