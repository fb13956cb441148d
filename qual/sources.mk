# SPDX-License-Identifier: MIT
#
# The modules of nvq-qual.

nvq_qual_py = \
	qual/nvq_qual/__init__.py \
	qual/nvq_qual/charts.py \
	qual/nvq_qual/cli.py \
	qual/nvq_qual/drives.py \
	qual/nvq_qual/environment.py \
	qual/nvq_qual/experiments.py \
	qual/nvq_qual/fio.py \
	qual/nvq_qual/kmsg.py \
	qual/nvq_qual/limits.py \
	qual/nvq_qual/outcome.py \
	qual/nvq_qual/page.py \
	qual/nvq_qual/panels.py \
	qual/nvq_qual/pictures.py \
	qual/nvq_qual/progress.py \
	qual/nvq_qual/report.py \
	qual/nvq_qual/results.py \
	qual/nvq_qual/runner.py \
	qual/nvq_qual/state.py \
	qual/nvq_qual/suite.py \
	qual/nvq_qual/units.py \
	qual/nvq_qual/verdict.py
