# SPDX-License-Identifier: MIT
#
# What configure did not find, collected so that one run names it all.

# NVQ_MISSING(TEXT): note one missing thing and the way to get it.
AC_DEFUN([NVQ_MISSING], [nvq_missing="$nvq_missing
  $1"])

# NVQ_PKG(VARIABLE, PKG-CONFIG MODULE AND VERSION, NAME, DEBIAN PACKAGE)
AC_DEFUN([NVQ_PKG], [
	PKG_CHECK_MODULES([$1], [$2], [],
		[NVQ_MISSING([$3 not found: apt install $4])])
])

# NVQ_REPORT_MISSING: stop if anything was noted.
AC_DEFUN([NVQ_REPORT_MISSING], [
	AS_IF([test -n "$nvq_missing"],
		[AC_MSG_ERROR([these are missing:$nvq_missing])])
])
