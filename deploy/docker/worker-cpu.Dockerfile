# merope-worker for CPUs. Build from the repository root:
#   docker build -f deploy/docker/worker-cpu.Dockerfile -t merope/worker-cpu .
#
# The base is pinned by DEBIAN; name a digest for builds that can be repeated byte by byte. cmake/bootstrap.sh pins LibTorch.
ARG DEBIAN=debian:12-slim

FROM ${DEBIAN} AS build
WORKDIR /src
# First what changes rarely, so that a change of the sources downloads nothing again.
COPY cmake/bootstrap.sh cmake/bootstrap.sh
RUN cmake/bootstrap.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release \
    && cmake --build build/release --target merope-worker \
    && cmake --install build/release --prefix /opt/merope --component merope-worker
RUN mkdir -p /opt/merope/lib \
    && cd build/third_party \
    && cp -a libtorch/lib/libtorch_cpu.so libtorch/lib/libc10.so libtorch/lib/libgomp*.so* \
             cuda_runtime/lib/libcudart.so.* cuda_runtime/lib/libcupti.so.* /opt/merope/lib/

FROM ${DEBIAN}
RUN apt-get update && apt-get install -y --no-install-recommends \
      libprotobuf32 libssl3 libhiredis0.14 libprometheus-cpp-core1.0 libcivetweb1 libspdlog1.10 libfmt9 \
      libavcodec59 libavformat59 libswscale6 libavutil57 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home merope
COPY --from=build /opt/merope /opt/merope
ENV PATH=/opt/merope/bin:$PATH
USER 10001:10001
EXPOSE 9465
STOPSIGNAL SIGTERM
# The checkpoint is not in the image: mount it at /models.
ENTRYPOINT ["/opt/merope/bin/merope-worker"]
CMD ["--model=/models/merope", "--device=cpu", "--admin-host=0.0.0.0", "--admin-port=9465"]
