#!/bin/sh
# with_diffusers.sh PYTHON SCRIPT ARGUMENTS...: runs the script with that Python, or with python3 where there is none; the
# script skips its cases when diffusers can not be imported.
python="$1"
shift
[ -x "$python" ] || python=python3
exec "$python" "$@"
