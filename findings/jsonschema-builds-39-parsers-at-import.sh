#!/usr/bin/env bash
# Whatever imports jsonschema, such as nbformat, builds 39 parsers first, if rfc3987-syntax is installed.
#
# jsonschema 4.26.0, rfc3987-syntax 1.1.0 (JupyterLab 4 installs it through jupyter-events), lark 1.3.1, nbformat
# 5.10.4, Python 3.11. Believed: format checks cost something when a schema asks for them. Seen: `import nbformat`
# imports rfc3987_syntax, which builds 39 Earley parsers of one grammar, one for each of its rules, before any
# schema is there: four fifths of the import's CPU time (0.2 s without it, 1.1 s with it). nbformat validates
# notebooks by fastjsonschema if it can, and never asks for an IRI.
# What to do: where JupyterLab is not needed, do not install it beside nbformat or nbconvert.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q install jsonschema==4.26.0 rfc3987-syntax==1.1.0 lark==1.3.1 nbformat==5.10.4 >/dev/null

cat >built.py <<'END'
import sys

if sys.argv[1] == "without":
    sys.modules["rfc3987_syntax"] = None  # as if it were not installed
    built = []
else:
    import lark

    built, begin = [], lark.Lark.__init__

    def counted(self, grammar, **options):
        built.append(options.get("start"))
        begin(self, grammar, **options)

    lark.Lark.__init__ = counted

import nbformat

print(len(built), "rfc3987_syntax" in sys.modules and sys.modules["rfc3987_syntax"] is not None)
END

with=$(venv/bin/python built.py with)
without=$(venv/bin/python built.py without)
echo "with rfc3987-syntax: $with; without: $without"
[ "$with" = "39 True" ] && [ "$without" = "0 False" ] || { echo "not as stated"; exit 1; }
echo "as stated"
