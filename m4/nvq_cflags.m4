# SPDX-License-Identifier: MIT
#
# Compiler flags of the user-space pieces.

# NVQ_CFLAG(VARIABLE, FLAG): append FLAG if the compiler takes it.
AC_DEFUN([NVQ_CFLAG], [
	AC_MSG_CHECKING([whether $CC takes $2])
	nvq_save_cflags=$CFLAGS
	CFLAGS="$CFLAGS -Werror $2"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([])],
		[nvq_takes=yes], [nvq_takes=no])
	CFLAGS=$nvq_save_cflags
	AC_MSG_RESULT([$nvq_takes])
	AS_IF([test $nvq_takes = yes], [$1="$$1 $2"])
])

# NVQ_CFLAGS: --enable-werror, --enable-sanitizers; sets NVQ_WARN_CFLAGS,
# NVQ_SAN_FLAGS and NVQ_WERROR (y or n, for the module as well).
AC_DEFUN([NVQ_CFLAGS], [
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror],
		[make compiler warnings errors])], [], [enable_werror=no])
	AC_ARG_ENABLE([sanitizers], [AS_HELP_STRING([--enable-sanitizers],
		[build the user-space pieces with ASan and UBSan])],
		[], [enable_sanitizers=no])
	NVQ_WARN_CFLAGS= NVQ_SAN_FLAGS= NVQ_WERROR=n
	m4_foreach_w([nvq_flag], [-Wall -Wextra -Wshadow -Wstrict-prototypes
		-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla],
		[NVQ_CFLAG([NVQ_WARN_CFLAGS], nvq_flag)])
	AS_IF([test "$enable_werror" = yes], [
		NVQ_WERROR=y
		NVQ_WARN_CFLAGS="$NVQ_WARN_CFLAGS -Werror"
	])
	AS_IF([test "$enable_sanitizers" = yes], [
		NVQ_CFLAG([NVQ_SAN_FLAGS], m4_normalize([
			-fsanitize=address,undefined -fno-sanitize-recover=all
			-fno-omit-frame-pointer]))
		AS_IF([test -z "$NVQ_SAN_FLAGS"], [NVQ_MISSING(m4_normalize([
			sanitizer runtime of $CC not found: apt install
			libasan8 libubsan1 (gcc) or libclang-rt-14-dev (clang)]))])
	])
	AC_SUBST([NVQ_WARN_CFLAGS])
	AC_SUBST([NVQ_SAN_FLAGS])
	AC_SUBST([NVQ_WERROR])
])
