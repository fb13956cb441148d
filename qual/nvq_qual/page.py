# SPDX-License-Identifier: MIT
"""A page of HTML that needs nothing beside itself, and is XML as well."""

from html import escape

STYLE = """
body { font: 16px/1.45 "DejaVu Sans", Verdana, sans-serif; color: #222; background: #fff;
       max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: .8rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ccc; text-align: left;
         vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
thead th { border-bottom: 2px solid #444; }
figure { margin: 1.5rem 0; break-inside: avoid; }
figure svg { width: 100%; height: auto; }
figcaption { font-size: .85rem; color: #444; }
.verdict { font-weight: bold; padding: .05rem .5rem; border: 2px solid; white-space: nowrap; }
.pass { color: #00563f; border-style: solid; } .fail { color: #a34700; border-style: double;
  border-width: 4px; } .void, .skipped, .interrupted { color: #444; border-style: dashed; }
td ul { margin: .1rem 0; padding-left: 1.1rem; }
.better { color: #00507c; font-weight: bold; } .worse { color: #a34700; font-weight: bold; }
.small { font-size: .8rem; color: #444; }
pre { font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  @page { margin: 15mm; }
  h2, h3 { break-after: avoid; } tr, figure { break-inside: avoid; }
  thead { display: table-header-group; } .scroll { overflow: visible; }
  * { print-color-adjust: exact; }
}
"""
SIGNS = {"pass": "✓", "fail": "✗", "void": "∅", "skipped": "–", "interrupted": "…",
         "better": "▲", "worse": "▼"}


class Markup(str):
	"""Text that is HTML already."""


def text(value):
	return value if isinstance(value, Markup) else Markup(escape(str(value)))


def tag(name, content, **attributes):
	said = "".join(f' {k.rstrip("_")}="{escape(str(v))}"' for k, v in attributes.items())
	return Markup(f"<{name}{said}>{text(content)}</{name}>")


def join(parts, between=""):
	return Markup(between.join(text(p) for p in parts))


def verdict(word):
	return tag("span", f"{SIGNS.get(word, '')} {word}", class_=f"verdict {word}")


def bullets(lines):
	if not lines:
		return Markup("")
	return tag("ul", join(tag("li", line) for line in lines))


def table(heads, rows, numeric=()):
	"""numeric: the columns that hold numbers"""
	def row(cells, name):
		return tag("tr", join(tag(name, cell, **({"class_": "n"} if i in numeric else {}))
		                      for i, cell in enumerate(cells)))
	return tag("div", tag("table", join((
		tag("thead", row(heads, "th")),
		tag("tbody", join((row(r, "td") for r in rows), "\n"))), "\n")), class_="scroll")


def figure(svg, picture):
	"""The title is in the picture."""
	return tag("figure", join((Markup(svg), tag("figcaption", picture.caption)), "\n"))


def page(title, body):
	"""body: parts, one below the other"""
	return ("<!DOCTYPE html>\n"
	        '<html lang="en" xmlns="http://www.w3.org/1999/xhtml">\n<head>\n'
	        '<meta charset="utf-8"/>\n'
	        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
	        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
	        f"{tag('h1', title)}\n{join(body, chr(10))}\n</body>\n</html>\n")
