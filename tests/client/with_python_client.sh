#!/usr/bin/env bash
# with_python_client.sh SOURCE_DIR WORK_DIR TEST.py: installs client/python into a virtual environment under WORK_DIR, which is
# kept as long as the package's requirements stay the same, and runs the test there. A missing package index is a skip, whose
# reason is printed.
set -euo pipefail
source_dir=$1 work_dir=$2 test=$3
python=${PYTHON:-python3}
venv=$work_dir/venv

skip() { echo "[  SKIPPED ] $*"; exit 0; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "needs Python 3.9"

wanted=$(sha256sum < "$source_dir/client/python/pyproject.toml")
if [ "$(cat "$venv/.requirements" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" || skip "$python has no venv module"
  requirements=$("$venv/bin/python" - "$source_dir/client/python/pyproject.toml" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
for key in ("requires", "dependencies"):  # tomllib is not there before Python 3.11
    print("\n".join(re.findall(r'"([^"]+)"', re.search(rf"^{key} = \[(.*?)\]", text, re.M | re.S).group(1))))
PY
)
  mapfile -t requirements <<< "$requirements"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${requirements[@]}" ||
    skip "the package index can not be reached for ${requirements[*]}"
  echo "$wanted" > "$venv/.requirements"
fi

# From a copy, so that building leaves nothing in the source tree.
rm -rf "$work_dir/source"
mkdir -p "$work_dir/source/client"
cp -r "$source_dir/proto" "$work_dir/source/proto"
cp -r "$source_dir/client/python" "$work_dir/source/client/python"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps --no-build-isolation \
  "$work_dir/source/client/python"
cd "$work_dir"
exec "$venv/bin/python" "$test"
