# merope-worker for NVIDIA GPUs (CUDA 13.0, architectures sm_80 and sm_90a). Build from the repository root:
#   docker build -f deploy/docker/worker-cuda.Dockerfile -t merope/worker-cuda .
# Run with the NVIDIA container toolkit: docker run --gpus 1 ...
#
# The base is pinned by DEBIAN; name a digest for builds that can be repeated byte by byte. cmake/bootstrap.sh pins LibTorch
# and what it needs beside the CUDA toolkit; the toolkit's own packages are pinned to 13.0 by their names.
ARG DEBIAN=debian:12-slim

FROM ${DEBIAN} AS cuda-repository
ADD https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb /tmp/cuda-keyring.deb
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && dpkg -i /tmp/cuda-keyring.deb && rm /tmp/cuda-keyring.deb

FROM cuda-repository AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      cuda-nvcc-13-0 cuda-cudart-dev-13-0 cuda-cupti-dev-13-0 cuda-libraries-dev-13-0 libcudnn9-dev-cuda-13 libnccl-dev
ENV PATH=/usr/local/cuda-13.0/bin:$PATH
WORKDIR /src
COPY cmake/bootstrap.sh cmake/bootstrap.sh
RUN cmake/bootstrap.sh --cuda && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset cuda -DMEROPE_TESTS=OFF -DMEROPE_WERROR=OFF \
    && cmake --build build/cuda --target merope-worker \
    && cmake --install build/cuda --prefix /opt/merope --component merope-worker
RUN mkdir -p /opt/merope/lib \
    && cd build/third_party \
    && cp -a libtorch/lib/*.so* cuda_runtime/lib/*.so* /opt/merope/lib/

FROM cuda-repository
RUN apt-get update && apt-get install -y --no-install-recommends \
      libprotobuf32 libssl3 libhiredis0.14 libprometheus-cpp-core1.0 libcivetweb1 libspdlog1.10 libfmt9 \
      libavcodec59 libavformat59 libswscale6 libavutil57 \
      cuda-libraries-13-0 libcudnn9-cuda-13 libnccl2 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home merope
COPY --from=build /opt/merope /opt/merope
ENV PATH=/opt/merope/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
EXPOSE 9465
STOPSIGNAL SIGTERM
# The checkpoint is not in the image: mount it at /models.
ENTRYPOINT ["/opt/merope/bin/merope-worker"]
CMD ["--model=/models/merope", "--device=cuda", "--admin-host=0.0.0.0", "--admin-port=9465"]
