#!/usr/bin/env bash
# The demo: from a bare machine to a clip. Installs what is missing, builds, makes a small checkpoint, starts the whole service
# on this machine (private Redis, server, worker), submits a job, waits for it, and stops everything that it started.
# Writes out/demo.mp4 and out/demo.png (a contact sheet).
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/dev
size=512x288
say() { echo "demo: $*"; }

cmake/bootstrap.sh
cmake --preset dev > build/configure.log || { cat build/configure.log; exit 1; }
say "building (the first time takes minutes)"
cmake --build "$build" --target merope-server merope-worker merope-standalone merope-cli

model=build/demo/checkpoint
mkdir -p build/demo out
say "making a small checkpoint with deterministic weights"
python3 worker/tools/make_toy_checkpoint.py "$model"

# Nine conditioning frames: a drawn street that comes nearer.
for i in 0 1 2 3 4 5 6 7 8; do
  python3 deploy/demo_frame.py "$i" "$size" "build/demo/frame$i.png"
done

state=$(mktemp -d)
standalone=
stop() {
  if [ -n "$standalone" ]; then
    kill -INT "$standalone" 2>/dev/null || true
    wait "$standalone" || true
    standalone=
  fi
  rm -rf "$state"
}
trap stop EXIT

say "starting Redis, server and worker (log: build/demo/service.log)"
"$build/bin/merope-standalone" --state "$state" --model "$model" --listen 127.0.0.1:0 2> build/demo/service.log &
standalone=$!
for _ in $(seq 600); do
  [ -s "$state/server.address" ] && break
  kill -0 "$standalone" 2>/dev/null || { cat build/demo/service.log; exit 1; }
  sleep 0.1
done
server=$(cat "$state/server.address")

"$build/bin/merope-cli" --server "$server" submit --shape straight:20m,turn:30deg --frames 49 --fps 16 --fov 70 --size "$size" \
  --steps 8 --guidance 3 --seed 1 --image build/demo/frame{0,1,2,3,4,5,6,7,8}.png -o out/demo.mp4

ffmpeg -v error -y -i out/demo.mp4 -vf 'select=not(mod(n\,4)),scale=256:-1,tile=4x4:padding=4' -frames:v 1 out/demo.png
stop
say "wrote out/demo.mp4 and out/demo.png"
