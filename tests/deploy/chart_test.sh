#!/bin/sh
# chart_test.sh TOOLS_FOLDER BIN_FOLDER: chart_test.py with the tools' own Python, or a skip with the reason.
if [ ! -x "$1/bin/helm" ] || [ ! -x "$1/venv/bin/python" ]; then
  echo "[  SKIPPED ] no helm and Kubernetes schemas in $1: cmake/bootstrap.sh --tests fetches them"
  exit 0
fi
exec "$1/venv/bin/python" "$(dirname "$0")/chart_test.py" "$1" "$2"
